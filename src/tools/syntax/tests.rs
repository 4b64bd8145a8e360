//! Texts that parse, texts that do not, and hostile ones.

use expect_test::expect;

use super::*;
use crate::hostile_input::{Random, rounds};

/// A valid text of each language.
const VALID: &[(&str, &str)] = &[
    (
        "a.sh",
        "for f in *.txt; do\n  if [[ -f $f ]]; then echo \"${f%.txt}\"; fi\ndone\ncat <<EOF\n$(date) '\nEOF\n",
    ),
    (
        "a.c",
        "#include <stdio.h>\nint main(void) {\n    int a[] = {1, 2};\n    return printf(\"%d\\n\", a[0]);\n}\n",
    ),
    ("a.go", "package main\n\nfunc add[T int](a, b T) (T, error) {\n\treturn a + b, nil\n}\n"),
    ("A.java", "class A<T> {\n    int f(T t) { return switch (t) { default -> 1; }; }\n}\n"),
    ("a.jsx", "export const f = async ({ a, ...b }) => <p id={`${a}`}>{b?.c ?? 1}</p>;\n"),
    (
        "a.py",
        "@d\nasync def f(a, *, b: int = 1) -> str:\n    match a:\n        case [x, *_]:\n            return f'{x!r:>{b}}'\n",
    ),
    (
        "a.rs",
        "fn f<'a>(a: &'a [u8]) -> impl Fn() + 'a {\n    move || { let Some(_) = a.first() else { return }; }\n}\n",
    ),
    (
        "a.ts",
        "function f<T>(a: T | null): a is T { return a! as unknown satisfies T; }\ntype A = { [K in keyof B]?: B[K] };\n",
    ),
    ("a.tsx", "export default function A(): JSX.Element { return <><B<string> c=\"d\" /></>; }\n"),
];

fn error(path: &str, text: &str) -> Option<SyntaxError> {
    match syntax(path, text) {
        Syntax::Error(error) => Some(error),
        Syntax::Valid | Syntax::Unknown => None,
    }
}

fn place(path: &str, text: &str) -> Option<(usize, usize)> {
    error(path, text).map(|error| (error.line, error.column))
}

#[test]
fn the_first_error_has_its_place() {
    assert_eq!(place("a.json", "{\n  \"a\": 1\n  \"b\": 2\n}\n"), Some((3, 3)));
    assert_eq!(place("a.JSON", "{\"a\": 1}\n"), None);
    assert_eq!(place("a.toml", "a = 1\nb = \n"), Some((2, 5)));
    assert_eq!(place("a.toml", "a = 1\n[b]\nc = \"x\"\n"), None);
    assert_eq!(place("a.yaml", "a: 1\nb: [1, 2\nc: 3\n").map(|place| place.0 > 1), Some(true));
    assert_eq!(place("a.yml", "---\na: 1\n---\nb: &x [2]\nc: *x\n"), None);
    assert_eq!(syntax("a.txt", "{"), Syntax::Unknown);
    assert_eq!(syntax("json", "{"), Syntax::Unknown);
    let error = error("a.json", "{\"a\" 1}").unwrap();
    assert_eq!((error.format, error.message.as_str()), ("JSON", "expected `:`"));
}

#[test]
fn source_code_that_parses_is_valid_and_half_of_it_is_not() {
    for (path, text) in VALID {
        assert_eq!(syntax(path, text), Syntax::Valid, "{path}");
        let half = &text[..text.rfind(['}', ')', ';', ']']).unwrap()];
        let half = half.trim_end_matches([';', ')', '}', '>', ' ', '\n', '/', '<']);
        assert!(error(path, half).is_some(), "{path}: {half}");
    }
}

#[test]
fn an_error_in_source_code_is_described() {
    let texts = [
        ("a.py", "a = 1\nGREETING = 'x' = \"y\"\n"),
        ("a.py", "def f(a,\n    return a\n"),
        ("a.py", "def f():\nreturn 1 +\n"),
        ("a.rs", "fn a() {\n    b(;\n}\n"),
        ("a.rs", "fn a() {\n    if b {\n        c();\n}\n"),
        ("a.js", "function é() {\n  return 1;\n"),
        ("a.go", "package a\n\nfunc b() {\n\treturn 1 +\n}\n"),
        ("a.c", "int a(void) {\n    return 1\n}\n"),
        ("a.java", "class A { int b() { return 1 } }"),
        ("a.ts", "let é: string = 'é' let b;\n"),
        ("a.sh", "if a; then\n  b\n"),
    ];
    let described = texts.map(|(path, text)| match error(path, text) {
        Some(error) => format!("{} {}:{} {}\n", error.format, error.line, error.column, error.message),
        None => format!("{path} is valid: {text}"),
    });
    expect![[r#"
        Python 2:12 this cannot be parsed: GREETING = 'x' = "y"
        Python 1:6 `(` is not closed: def f(a,
        Python 2:1 this cannot be parsed: return 1 +
        Rust 2:6 `(` is not closed: b(;
        Rust 1:8 `{` is not closed: fn a() {
        JavaScript 2:12 `}` is missing: return 1;
        Go 4:11 this cannot be parsed: return 1 +
        C 2:13 `;` is missing: return 1
        Java 1:29 `;` is missing: class A { int b() { return 1 } }
        TypeScript 1:21 this cannot be parsed: let é: string = 'é' let b;
        Bash 3:1 `fi` is missing
    "#]]
    .assert_eq(&described.concat());
}

#[test]
fn a_wrong_indentation_in_python_is_found() {
    for (text, found) in [
        ("def f(n): return n\n    pass\n", Some((2, 5, "this line is indented too far: pass"))),
        ("x = 1\n  y = 2\n", Some((2, 3, "this line is indented too far: y = 2"))),
        (
            "def f():\n\n# nothing\ndef g():\n    pass\n",
            Some((4, 1, "an indented block is missing: def g():")),
        ),
        ("def f():\n    x = 1\n    if x:\n", Some((3, 10, "an indented block is missing: if x:"))),
        ("if a:\n    b\n  c\n", Some((3, 3, "this line is indented as no line before it: c"))),
        ("\"\"\"a\n  b\n\"\"\"\nx = [\n        1,\n  2]\ny = 1 + \\\n      2\n", None),
        ("def f():\n    a = {1: 2,\n  3: 4}\n    # c\n# d \\\n    return f'{\n  a}'\n", None),
        ("class A:\n  def f(self): pass\n  x: int = 1\nif a: b\nelse: c\n", None),
        ("if a:\n\tb\nif c:\n    d\n", None),
        ("@a\n# c\nasync def f():\n    match x:\n        case 1:\n            pass\n    lambda: 1\n", None),
    ] {
        let error = error("a.py", text).map(|error| (error.line, error.column, error.message));
        assert_eq!(error.as_ref().map(|(line, column, text)| (*line, *column, &**text)), found, "{text}");
    }
}

#[test]
fn what_a_grammar_does_not_know_is_no_certain_error() {
    assert!(!error("a.sh", "if x; then\n").unwrap().is_certain);
    assert!(error("a.py", "if x\n").unwrap().is_certain);
    assert_eq!(syntax("a.ts", "let a = <string>b;\n"), Syntax::Unknown);
    assert_eq!(syntax("a.ts", "return <A<B>>(b);\n"), Syntax::Unknown);
    assert!(error("a.tsx", "let a = <string>b;\n").is_some());
    assert!(error("a.ts", "if (a < b {}\n").is_some());
}

#[test]
fn a_large_or_deep_text_is_not_parsed_for_long() {
    assert_eq!(syntax("a.json", &"[".repeat(MAX_BYTES + 1)), Syntax::Unknown);
    assert!(place("a.json", &"[".repeat(MAX_BYTES)).is_some());
    assert!(place("a.yaml", &"[".repeat(10_000)).is_some());
    let bomb = "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\n";
    place("a.yaml", bomb);
    for (path, _) in VALID {
        assert_eq!(syntax(path, &"(".repeat(1_000_000)), Syntax::Unknown, "{path}");
        let patterns =
            [("(", ")"), ("f(", ""), ("{", "}"), ("[", ""), ("<a>", ""), ("a=>", ""), ("if(x)", "")];
        for (number, (open, close)) in patterns.into_iter().enumerate() {
            let most = if number < rounds(1, 7) { 256 << 10 } else { 4 << 10 };
            let count = most / (open.len() + close.len());
            syntax(path, &format!("{}{}", open.repeat(count), close.repeat(count)));
        }
    }
}

#[test]
fn random_changes_of_source_code_are_parsed_without_harm() {
    let mut random = Random::new(17);
    for _ in 0..rounds(100, 10_000) {
        for (path, text) in VALID {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=random.below(6) {
                let (at, end) = (random.below(bytes.len()), random.below(bytes.len()));
                match random.below(4) {
                    0 => bytes[at] = random.byte(),
                    1 => drop(bytes.drain(at.min(end)..end)),
                    2 => bytes.insert(at, b"(){}[]<>'\"`\\\n\t $#;:,=\0"[random.below(22)]),
                    _ => bytes.extend_from_within(at.min(end)..end),
                }
                bytes.push(b'\n');
            }
            syntax(path, &String::from_utf8_lossy(&bytes));
        }
    }
}
