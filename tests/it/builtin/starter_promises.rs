//! The promises of docs/models.md about the starter model: plain requests, and what each of them does, which is nothing else.

use super::{
    default_model::home,
    starter_probes::{restore, tree},
};

enum Does {
    /// The file has this content afterwards, and no other file is changed.
    Leaves(&'static str, &'static str),
    /// The answer contains this.
    Says(&'static str),
    /// The run fails with a reason that contains this.
    Fails(&'static str),
}
use Does::{Fails, Leaves, Says};

const CONFIG: &str = "debug = true\nport = 8080\nhost = \"localhost\"\nlog_level = \"info\"\n";
const PEARS: &str = "buy pears\ncall Ada\nfix the roof\n";

/// Requests without piped data.
const PLAIN: &[(&str, Does)] = &[
    ("read notes.txt", Says("call Ada")),
    ("show me notes.txt", Says("call Ada")),
    ("what does notes.txt say?", Says("call Ada")),
    ("cat README.md", Says("A few notes.")),
    ("open docs/guide.md", Says("Step one.")),
    ("please read src/util.py", Says("def double(n):")),
    ("what's in config.toml?", Says("port = 8080")),
    ("show the first two lines of notes.txt", Says("buy apples\ncall Ada")),
    ("show lines 1 to 2 of notes.txt", Says("buy apples\ncall Ada")),
    ("show me line 3 of notes.txt", Says("fix the roof")),
    ("read missing.txt", Says("missing.txt")),
    ("read \"my list.txt\"", Says("my list.txt")),
    ("read Meeting Notes 2024.md", Says("Meeting Notes 2024.md")),
    ("list the files here", Says("notes.txt")),
    ("list all files", Says("notes.txt")),
    ("list the markdown files in docs", Says("docs/guide.md")),
    ("which python files are in src?", Says("src/util.py")),
    ("what can you do?", Says("I can list, read, write and edit files")),
    ("write me a poem about the sea", Fails("kontekst models")),
    ("what is the capital of France?", Fails("kontekst models")),
    ("write \"hello world\" to hello.txt", Leaves("hello.txt", "hello world\n")),
    ("write hello world to hello.txt", Leaves("hello.txt", "hello world\n")),
    ("create hello.txt with hello", Leaves("hello.txt", "hello\n")),
    ("create a file called hello.txt with \"hi there\"", Leaves("hello.txt", "hi there\n")),
    ("create hello.txt containing \"hi there\"", Leaves("hello.txt", "hi there\n")),
    ("create a new file todo.txt that says \"buy milk\"", Leaves("todo.txt", "buy milk\n")),
    ("create todo.txt with buy milk", Leaves("todo.txt", "buy milk\n")),
    ("save \"buy milk\" to todo.txt", Leaves("todo.txt", "buy milk\n")),
    ("save \"buy milk\" in todo.txt", Leaves("todo.txt", "buy milk\n")),
    ("put \"buy milk\" into todo.txt", Leaves("todo.txt", "buy milk\n")),
    ("please write \"x = 1\" into app.ini", Leaves("app.ini", "x = 1\n")),
    ("can you write \"hello\" to greet.txt?", Leaves("greet.txt", "hello\n")),
    ("could you please create a file called x.txt with \"y\"?", Leaves("x.txt", "y\n")),
    ("write the text \"a, b, c and d\" to out.txt", Leaves("out.txt", "a, b, c and d\n")),
    ("write 'it's fine' to out.txt", Leaves("out.txt", "it's fine\n")),
    ("write `code` to out.md", Leaves("out.md", "code\n")),
    ("overwrite notes.txt with \"nothing left\"", Leaves("notes.txt", "nothing left\n")),
    ("replace the content of notes.txt with \"new\"", Leaves("notes.txt", "new\n")),
    (
        "write to out.txt: hello. And goodbye. And again.",
        Leaves("out.txt", "hello. And goodbye. And again.\n"),
    ),
    (
        "write this to out.txt: TODO: fix main.rs and then run it",
        Leaves("out.txt", "TODO: fix main.rs and then run it\n"),
    ),
    ("create out.txt with the following content: a, b, c and d", Leaves("out.txt", "a, b, c and d\n")),
    ("write to 日本.txt: héllo wörld 日本語", Leaves("日本.txt", "héllo wörld 日本語\n")),
    ("create 日本.txt with こんにちは", Leaves("日本.txt", "こんにちは\n")),
    ("save the following to out.txt:\none\ntwo", Leaves("out.txt", "one\ntwo\n")),
    ("create a.py:\n```\nx = 1\n```", Leaves("a.py", "x = 1\n")),
    ("in out.txt, write \"x\"", Leaves("out.txt", "x\n")),
    ("create out.txt and write \"x\" in it", Leaves("out.txt", "x\n")),
    ("echo \"hello\" > out.txt", Leaves("out.txt", "hello\n")),
    ("store it as \"my list.txt\": eggs", Leaves("my list.txt", "eggs\n")),
    ("note \"hello\" in out.txt", Leaves("out.txt", "hello\n")),
    ("create an empty file out.txt", Leaves("out.txt", "")),
    ("touch out.txt", Leaves("out.txt", "")),
    ("empty notes.txt", Leaves("notes.txt", "")),
    ("clear notes.txt", Leaves("notes.txt", "")),
    ("truncate list.txt", Leaves("list.txt", "")),
    ("replace \"apples\" with \"pears\" in notes.txt", Leaves("notes.txt", PEARS)),
    ("replace apples with pears in notes.txt", Leaves("notes.txt", PEARS)),
    ("change \"apples\" to \"pears\" in notes.txt", Leaves("notes.txt", PEARS)),
    ("change apples to pears in notes.txt", Leaves("notes.txt", PEARS)),
    ("in notes.txt, replace apples by pears", Leaves("notes.txt", PEARS)),
    ("apples -> pears in notes.txt", Leaves("notes.txt", PEARS)),
    ("fix the typo in notes.txt: replace apples with pears", Leaves("notes.txt", PEARS)),
    ("swap \"apples\" for \"pears\" in notes.txt", Leaves("notes.txt", PEARS)),
    ("delete \"call Ada\" from notes.txt", Leaves("notes.txt", "buy apples\n\nfix the roof\n")),
    ("replace all \"a\" with \"o\" in list.txt", Leaves("list.txt", "opple\nbonono\ncherry\n")),
    ("change the second \"a\" to \"o\" in list.txt", Leaves("list.txt", "apple\nbonana\ncherry\n")),
    (
        "n * 2 should become n * 3 in src/util.py",
        Leaves("src/util.py", "import os\n\n\ndef double(n):\n    return n * 3\n"),
    ),
    ("replace pears with plums in notes.txt", Fails("That did not work: old_str not found in notes.txt")),
    ("create notes.txt with \"x\"", Fails("That did not work: notes.txt exists already")),
    ("set debug to false in config.toml", Leaves("config.toml", CONFIG)),
    ("read notes.txt and read README.md", Fails("one thing at a time")),
    ("read my file.txt", Fails("in quotes")),
];

const LINES: &str = "README.md\nnotes.txt\nlist.txt\n";

/// Requests after which [`LINES`] are piped in.
const PIPED: &[(&str, Does)] = &[
    ("save this as a.txt", Leaves("a.txt", LINES)),
    ("write it to notes.txt", Leaves("notes.txt", LINES)),
    ("put these lines in a.txt", Leaves("a.txt", LINES)),
    ("save the second line to b.txt", Leaves("b.txt", "notes.txt\n")),
    ("how many lines are there?", Says("There are 3 lines.")),
    ("count the lines", Says("There are 3 lines.")),
    ("what does the final line say?", Says("The final line is: list.txt")),
    ("show line 2", Says("The 2nd line is: notes.txt")),
    ("line 3 please", Says("The 3rd line is: list.txt")),
    ("read the second one", Says("call Ada")),
    ("read the last one", Says("banana")),
    ("read notes.txt", Says("call Ada")),
    ("what does the middle line say?", Fails("kontekst models")),
];

#[test]
fn plain_requests_do_what_they_say() {
    let home = home();
    let mut wrong = Vec::new();
    let cases =
        PLAIN.iter().map(|case| (&b""[..], case)).chain(PIPED.iter().map(|case| (LINES.as_bytes(), case)));
    for (input, (request, does)) in cases {
        restore(&home);
        let mut expected = tree(&home.work_dir());
        let output = home.run_with(&["run", "--new", "--auto-approve", request], input);
        let is_right = match does {
            Leaves(name, text) => {
                expected.insert((*name).to_owned(), (*text).to_owned());
                true
            }
            Says(text) => output.code == 0 && output.stdout.contains(text),
            Fails(text) => output.code == 1 && output.stderr.contains(text) && output.stdout.is_empty(),
        };
        if !is_right || tree(&home.work_dir()) != expected {
            wrong.push(format!("{request}: {}{}", output.stdout, output.stderr));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
