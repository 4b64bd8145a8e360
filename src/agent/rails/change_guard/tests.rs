//! Changes that are turned back, and changes that are not.

use serde_json::json;

use super::*;

/// Returns what the model reads about an edit of `f.py`, or of the file that the request names first.
fn edited(request: &str, old: &str, args: &Value) -> Option<String> {
    let path = if request.contains("a.ini") { "a.ini" } else { "f.py" };
    let (from, to) = (args["old_str"].as_str().unwrap(), args["new_str"].as_str().unwrap());
    let new =
        if args["replace_all"] == json!(true) { old.replace(from, to) } else { old.replacen(from, to, 1) };
    judged(request, EDIT_FILE, (path, old, &new), args)
}

fn edit(request: &str, old: &str, from: &str, to: &str) -> Option<String> {
    edited(request, old, &json!({"old_str": from, "new_str": to}))
}

fn written(request: &str, path: &str, old: &str, new: &str) -> Option<String> {
    judged(request, WRITE_FILE, (path, old, new), &json!({}))
}

fn judged(request: &str, tool: &str, (path, old, new): (&str, &str, &str), args: &Value) -> Option<String> {
    let change = Change { path: path.into(), old: Some(old.into()), new: new.into() };
    let mut guard = ChangeGuard::new(request);
    let first = guard.judge(tool, &change, args);
    guard.judge(tool, &change, args);
    assert_eq!(guard.judge(tool, &change, args), None, "a model that insists gets its way");
    first.map(|TurnedBack { fact, advice }| {
        [Some(fact), advice].into_iter().flatten().collect::<Vec<_>>().join(" ")
    })
}

const INI: &str = "[server]\nhost = here\nt = 30\n\n[client]\nretries = 3\nt = 30\n";

#[test]
fn an_edit_of_all_places_is_turned_back_twice_unless_all_are_meant() {
    let args = json!({"old_str": "t = 30", "new_str": "t = 60", "replace_all": true});
    assert_eq!(
        edited("In a.ini, set the t of the client to 60. Leave the server's as it is.", INI, &args).unwrap(),
        "Nothing was changed: old_str stands in a.ini 2 times, and the request does not say that all of them are meant. \
         The request speaks of \"client\": that is line 7, which belongs to `[client]`. Call edit_file with old_str \
         \"retries = 3\\nt = 30\" and new_str \"retries = 3\\nt = 60\"."
    );
    let unknown = edited("set t to 60 in a.ini", INI, &args).unwrap();
    assert!(unknown.contains("To change one, add the lines around it"), "{unknown}");
    for request in ["set every t to 60 in a.ini", "rename t to u in a.ini", "Replace t by u in a.ini!"] {
        assert_eq!(edited(request, INI, &args), None, "{request}");
    }
    assert_eq!(edited("set t to 60 in a.ini", "t = 30\n", &args), None);
}

#[test]
fn a_new_body_does_not_go_above_the_old_one() {
    let old = "import os\n\ndef f(x):\n    y = x\n\n    return y\n\n\ndef g(x):\n    return x\n";
    assert_eq!(
        edit("f in f.py is wrong", old, "def f(x):", "def f(x):\n    y = x + 1\n    return y\n").unwrap(),
        "Nothing was changed: the old lines of f would stay below the new ones. Give the whole old function in old_str. Call \
         edit_file with old_str \"def f(x):\\n    y = x\\n\\n    return y\" and new_str \"def f(x):\\n    y = x + 1\\n    return \
         y\"."
    );
    let method = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n";
    let of_method =
        edit("fix f.py", method, "def f(self):", "def f(self):\n        raise ValueError").unwrap();
    assert!(of_method.contains("old_str \"def f(self):\\n        return 1\""), "{of_method}");
    for (from, to) in [
        ("def f(x):", "def f(x):\n    x = abs(x)"),
        ("def f(x):", "def f(x):\n    if x is None:\n        return 0"),
        ("def f(x):", "def f(x, z):\n    return z"),
        ("def f(x):\n    y = x\n\n    return y", "def f(x):\n    return x"),
        ("def g(x):\n", "def h(x):\n    return x\n\n\ndef g(x):\n"),
    ] {
        assert_eq!(edit("fix f.py", old, from, to), None, "{to}");
    }
}

#[test]
fn the_place_that_is_meant_is_found_by_the_words_around_it() {
    let menu = "[breakfast]\nprice = 8\n\n[lunch]\nprice = 8\n\n[dinner]\nprice = 9\n";
    let wrong = "[breakfast]\nprice = 8";
    assert_eq!(
        edit("raise the price of lunch to 12 in a.ini", menu, wrong, "[breakfast]\nprice = 12").unwrap(),
        "Nothing was changed: the edit is for line 2 of a.ini. The request speaks of \"lunch\": that is line 5, which \
         belongs to `[lunch]`. Call edit_file with old_str \"[lunch]\\nprice = 8\" and new_str \"[lunch]\\nprice = 12\"."
    );
    let code = "def load(path):\n    return None\n\ndef save(path):\n    return None\n";
    let first = "def load(path):\n    return None";
    let turned_back = |request: &str| edit(request, code, first, "def load(path):\n    return 1").is_some();
    assert!(turned_back("Change the result of save in f.py to 1"));
    for request in [
        "Change the result of load in f.py to 1",
        "Change the results of load and save in f.py to 1",
        "Change the result in f.py to 1",
        "Change all results below save in f.py to 1",
        "What does save in f.py return?",
    ] {
        assert!(!turned_back(request), "{request}");
    }
    // A comment above a line belongs to it, and so do the words of the line itself.
    let lines = "# for users\na = 1\n# for guests\nb = 1\n";
    let guard = ChangeGuard::new("Set the value for guests in a.ini to 2");
    let advice = guard.meant_place(lines, &json!({"old_str": "= 1", "new_str": "= 2"})).unwrap();
    assert!(advice.ends_with("with old_str \"b = 1\" and new_str \"b = 2\"."), "{advice}");
}

#[test]
fn a_part_of_a_line_is_not_removed_in_place_of_the_line() {
    let code = "for p in ps:\n    print(\"DEBUG\", p)\n    n += p\n";
    let request = "Remove the debugging print from f.py.";
    assert_eq!(
        edit(request, code, "DEBUG", "").unwrap(),
        "Nothing was changed: this takes only a part out of line 2 of f.py, and the rest of the line stays. The line would \
         be `print(\"\", p)`. To remove the whole line: Call edit_file with old_str \"    print(\\\"DEBUG\\\", p)\\n\" and \
         new_str \"\". If only this part is meant, make the same call again."
    );
    assert_eq!(edit(request, code, "    print(\"DEBUG\", p)\n", ""), None, "the line");
    assert_eq!(edit(request, code, "print(\"DEBUG\", p)", ""), None, "all of the line");
    for request in [
        "Remove DEBUG from f.py",
        "Remove the first argument of print in f.py",
        "Remove the word in quotes from f.py",
        "Fix the print in f.py",
    ] {
        assert_eq!(edit(request, code, "DEBUG", ""), None, "{request}");
    }
    assert_eq!(edit(request, code, "DEBUG", "INFO"), None, "a replacement");
}

#[test]
fn lines_are_added_at_the_end_that_the_request_names() {
    let old = "flask\nrequests\n";
    let request = "Add the line pytest at the end of f.py.";
    assert_eq!(
        written(request, "f.py", old, "pytest\nflask\nrequests").unwrap(),
        "Nothing was changed: the request wants the new lines at the end of f.py, and this does not put them after its \
         last line. Call edit_file with old_str \"requests\" and new_str \"requests\\npytest\"."
    );
    assert!(edit(request, old, "flask", "flask\npytest").is_some());
    assert_eq!(edit(request, old, "requests", "requests\npytest"), None);
    assert_eq!(written(request, "f.py", old, "flask\nrequests\n\npytest\n"), None);
    assert_eq!(written(request, "g.py", old, "pytest\nflask\nrequests"), None, "another file");
    assert_eq!(edit(request, "a\na\n", "a\n", "a\na\n"), None, "an equal line");
    let top = "Insert an import at the top of f.py";
    assert!(edit(top, old, "requests", "requests\nimport x").is_some());
    assert_eq!(edit(top, old, "flask", "import x\nflask"), None);
    assert_eq!(edit("Add a line to f.py", old, "flask", "flask\nx"), None, "no end is named");
    let json = "{\n  \"a\": 1\n}\n";
    assert_eq!(
        edit("Add the key b at the end of f.py", json, "1\n", "1,\n  \"b\": 2\n"),
        None,
        "within the brackets"
    );
}

#[test]
fn what_the_request_does_not_speak_of_stays() {
    let code = "def even(n):\n    pass\n\n\ndef positive(n):\n    return n > 0\n";
    let request = "Fill in the function even in f.py.";
    let done = "def even(n):\n    return n % 2 == 0\n";
    assert_eq!(
        edit(request, code, code.trim_end(), done).unwrap(),
        "Nothing was changed: positive would be gone from f.py, and the request does not ask for that. Call edit_file, and \
         give in old_str and new_str only the lines that change. Call edit_file with old_str \"def even(n):\\n    pass\" and \
         new_str \"def even(n):\\n    return n % 2 == 0\"."
    );
    assert!(written(request, "f.py", code, done).is_some());
    assert_eq!(edit(request, code, "    pass", "    return n % 2 == 0"), None);
    for request in [
        "Remove what is unused from f.py",
        "Fix positive in f.py",
        "Simplify f.py and fix its bug",
        "What is wrong with f.py?",
    ] {
        assert_eq!(written(request, "f.py", code, done), None, "{request}");
    }
    let renamed = code.replace("positive", "is_positive");
    assert_eq!(written("Fix the names in f.py", "f.py", code, &renamed), None, "another name in its place");
    assert!(written("Set t in a.ini to 5", "a.ini", INI, "[server]\nt = 5\n").is_some());
    let rust = "pub(crate) struct A;\n\nimpl A {\n    pub async fn go(&self) {}\n    fn stop() {}\n}\n";
    assert!(edit("Fix the bug in f.py", rust, "    fn stop() {}\n", "").is_some());
    let go = "func (s *Set) Len() int {\n}\n\nfunc (s *Set) Add(n int) {\n}\n";
    assert!(edit("Fix Len in f.py", go, "func (s *Set) Add(n int) {\n}\n", "").is_some());
    let prose = "The class of 1990 met.\ntype of thing\n";
    assert_eq!(edit("Fix the text in f.py", prose, "type of thing\n", ""), None);
}

#[test]
fn an_added_line_does_not_take_the_place_of_another() {
    let old = "flask==3.0.2\nrequests==2.31.0\n";
    assert_eq!(
        edit("Add the line pytest==8.1.0 at the end of f.py.", old, "flask==3.0.2", "pytest==8.1.0").unwrap(),
        "Nothing was changed: the request wants something added to f.py, and this would remove `flask==3.0.2` in line 1. \
         Call edit_file with old_str \"requests==2.31.0\" and new_str \"requests==2.31.0\\npytest==8.1.0\"."
    );
    let anywhere = edit("add `pytest==8.1.0` to f.py", old, "flask==3.0.2", "pytest==8.1.0").unwrap();
    assert!(anywhere.ends_with("and new_str \"flask==3.0.2\\npytest==8.1.0\"."), "{anywhere}");
    for (request, from, to) in [
        ("Add pytest==8.1.0 to f.py", "flask==3.0.2", "flask==3.0.2\npytest==8.1.0"),
        ("Add pytest==8.1.0 to f.py in place of flask==3.0.2", "flask==3.0.2", "pytest==8.1.0"),
        ("Replace flask==3.0.2 in f.py with pytest==8.1.0", "flask==3.0.2", "pytest==8.1.0"),
        ("Add a version to flask in f.py", "flask==3.0.2", "flask==3.0.3"),
        ("Add an upper bound to requests in f.py", "requests==2.31.0", "requests>=2.31.0,<3"),
    ] {
        assert_eq!(edit(request, old, from, to), None, "{request}");
    }
}

#[test]
fn a_replacement_replaces_nothing_else() {
    let old = "import limits\n\nTITLE = f\"at most {limits.MAX} items\"\n";
    let request = "Rename the constant MAX to MAX_ITEMS in all files.";
    assert_eq!(
        edit(request, old, "import limits", "import limits_items").unwrap(),
        "Nothing was changed: the request only replaces \"MAX\" by \"MAX_ITEMS\", and this changes more. Call edit_file with \
         path \"f.py\", old_str \"TITLE = f\\\"at most {limits.MAX} items\\\"\" and new_str \"TITLE = f\\\"at most {limits.MAX_ITEMS} items\\\"\"."
    );
    assert_eq!(
        edit(request, "MAX_ITEMS = 10\n", "10", "100").unwrap(),
        "Nothing was changed: the request only replaces \"MAX\" by \"MAX_ITEMS\", and this changes more. Nothing of that is left \
         to do in f.py. Go on, or answer."
    );
    assert!(written(request, "limits.py", "MAX = 10\nMIN = 1\n", "MAX_ITEMS = 100\nMIN = 1\n").is_some());
    // Some of the places, all of them, and another end of the file.
    for new in ["MAX_ITEMS + MAX\n", "MAX + MAX_ITEMS\n", "MAX_ITEMS + MAX_ITEMS"] {
        assert_eq!(written(request, "f.py", "MAX + MAX\n", new), None, "{new}");
    }
    for request in [
        "Rename MAX to MAX_ITEMS in all files. Set it to 100.",
        "Rename the constant MAX to MAX_ITEMS in all files, and adapt the texts",
        "In f.py, rename limits.MAX to MAX in all files",
    ] {
        assert_eq!(edit(request, old, "import limits", "import limits_items"), None, "{request}");
    }
}
