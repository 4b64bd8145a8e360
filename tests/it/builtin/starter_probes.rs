//! Requests that ask the starter model for more than its rules vouch for. Whatever it says to them, no file may be changed
//! in another way than the request says.

use std::{collections::BTreeMap, fs, path::Path};

use super::default_model::home;
use crate::test_home::TestHome;

/// The files of the working directory.
const FILES: [(&str, &str); 9] = [
    ("notes.txt", "buy apples\ncall Ada\nfix the roof\n"),
    ("README.md", "# Notes\n\nA few notes.\n\nVersion 1.0 by Ada.\n"),
    ("config.toml", "debug = true\nport = 8080\nhost = \"localhost\"\nlog_level = \"info\"\n"),
    ("settings.json", "{\n  \"tabs\": false,\n  \"size\": 4\n}\n"),
    ("src/util.py", "import os\n\n\ndef double(n):\n    return n * 2\n"),
    ("Makefile", "all:\n\techo hi\n"),
    ("list.txt", "apple\nbanana\ncherry\n"),
    ("docs/guide.md", "# Guide\n\nStep one.\n"),
    ("empty.txt", ""),
];

/// A request, and the file that it may change, with what it has then. All other files, and this one too, may stay as they are.
type Probe = (&'static str, Option<(&'static str, &'static str)>);

/// Requests from which no change follows.
#[rustfmt::skip]
const NOTHING: &[&str] = &[
    // Known faults.
    "add type hints to src/util.py", "write documentation for src/util.py",
    "set debug to false in config.toml", "set the port to 9000 in config.toml",
    "make config.toml use port 9000", "set log_level = \"debug\" in config.toml",
    "disable debug in config.toml", "enable tabs in settings.json",
    "update docs/guide.md with a step four", "add eggs to notes.txt",
    "remove all blank lines from README.md", "prepend # to notes.txt",
    "make README.md more professional", "indent Makefile with spaces", "turn off debug in config.toml",
    "replace localhost in config.toml", "replace apple with fig and banana with lime in list.txt",
    "write today's date to date.txt", "translate README.md to French and save it as LISEZMOI.md",
    "create a.txt with aaa and b.txt with bbb", "does empty.txt have anything in it?",
    // Probes.
    "append \"eggs\" to notes.txt", "insert \"import sys\" at the top of src/util.py",
    "write a haiku to notes.txt", "write a summary of README.md to notes.txt",
    "save a backup of notes.txt", "overwrite notes.txt", "overwrite notes.txt with something shorter",
    "overwrite README.md with a better introduction", "replace the first line of notes.txt with milk",
    "replace line 2 of notes.txt with \"call Bob\"",
    "replace everything after line 1 in notes.txt with \"x\"",
    "replace the contents of notes.txt with the contents of list.txt",
    "replace notes.txt with list.txt", "replace tabs with spaces in Makefile",
    "replace single quotes with double quotes in src/util.py", "replace the word apples in notes.txt",
    "replace it with pears in notes.txt", "change port to 9000 in config.toml",
    "change the host to 0.0.0.0 in config.toml", "change log_level to debug in config.toml",
    "change size to 8 in settings.json", "change the title of README.md to My Notes",
    "change version to 2.0 in README.md", "change Version 1.0 to 2.0 in README.md",
    "change notes.txt to be about pears", "change everything in list.txt to uppercase",
    "rename notes.txt to todo.txt", "rename double in src/util.py",
    "rename the function double to twice in src/util.py",
    "rename src/util.py to src/helpers.py and fix the imports", "move notes.txt to docs",
    "copy notes.txt to backup.txt", "delete notes.txt", "delete the second line of notes.txt",
    "delete everything but the title in README.md", "remove trailing spaces in src/util.py",
    "remove comments from src/util.py", "remove the last line from list.txt",
    "erase notes.txt from my memory", "clear the list in list.txt of fruits",
    "clear up what notes.txt says", "empty lines in README.md", "is notes.txt empty?", "empty?",
    "truncate notes.txt to 10 lines", "truncate long lines in README.md", "sort list.txt",
    "sort the lines of list.txt and save it",
    "write the lines of list.txt in reverse order to list.txt", "write list.txt backwards",
    "write unit tests for src/util.py to tests/test_util.py",
    "write a function that triples n to src/util.py", "create a LICENSE file",
    "create a license header in src/util.py", "create docs/api.md with documentation of src/util.py",
    "create index.html with boilerplate", "create hello.py that prints hello",
    "create a script run.sh that runs make", "create test.py with tests for double",
    "create numbers.txt with the numbers 1 to 10", "create fruits.txt with five fruits",
    "create poem.txt with a poem about \"rain\"", "create notes.txt with milk",
    "create an empty file notes.txt", "touch notes.txt", "put \"milk\" in notes.txt",
    "put \"milk\" on the list in list.txt", "store the answer in notes.txt",
    "note \"milk\" in notes.txt", "write the line \"milk\" to notes.txt",
    "write \"milk\" to the end of notes.txt", "write \"milk\" below \"apples\" in notes.txt",
    "write \"milk\" and \"bread\" to notes.txt", "write \"milk\" to notes.txt and list.txt",
    "write \"milk\" to notes.txt, then delete list.txt", "write \"x\" to notes.txt unless it exists",
    "write \"x\" to a copy of notes.txt", "write \"x\" to every file", "don't write \"x\" to notes.txt",
    "never overwrite notes.txt with \"x\"", "should I write \"x\" to notes.txt?",
    "what happens if I write \"x\" to notes.txt?", "how do I write \"x\" to notes.txt",
    "I did not mean to write \"x\" to notes.txt", "undo: write \"x\" to notes.txt",
    "explain \"write x to notes.txt\"", "someone said \"overwrite notes.txt with nothing\"",
    "write \"\" to notes.txt", "write \"say \"hi\" now\" to notes.txt",
    "write 'the dogs' bowl' to notes.txt", "write \"half open to notes.txt",
    "translate notes.txt to German", "convert config.toml to yaml",
    "convert tabs to spaces in Makefile", "make \"apples\" bold in notes.txt",
    "make notes.txt say something nice", "make a table of \"apple\" and \"fig\" in list.txt",
    "turn \"apples\" into a heading in notes.txt", "uncomment \"echo hi\" in Makefile",
    "wrap \"n * 2\" in parentheses in src/util.py", "bump the version in README.md to 1.1",
    "increase port by 1 in config.toml", "double the port in config.toml", "fix the typo in README.md",
    "fix the bug in src/util.py", "fix notes.txt: it should say pears",
    "correct \"apples\" in notes.txt", "capitalize \"ada\" in notes.txt",
    "swap apple and banana in list.txt", "swap the first and the last line of list.txt",
    "substitute apples in notes.txt", "debug should be false in config.toml",
    "debug -> false in config.toml", "port: 9000 in config.toml", "config.toml: port -> 9000",
    "the port in config.toml should be 9000",
    "true should become false in config.toml where it says debug",
    "notes.txt should have a fourth line", "refactor src/util.py", "format settings.json",
    "merge notes.txt and list.txt", "split list.txt into three files",
    "encrypt notes.txt with \"secret\"", "download https://127.0.0.1:1/x and save it as notes.txt",
    "read notes.txt and write it to README.md", "read list.txt and replace apple with fig",
    "say \"hello\" in notes.txt's voice", "save notes.txt", "save my changes to notes.txt",
    "save everything to notes.txt", "save this to notes.txt", "write it down in notes.txt",
    "write to notes.txt", "save \"list.txt\" as notes.txt", "replace \"notes.txt\" with \"list.txt\"",
    "substitute \"plums\" for \"apples\" of notes.txt", "delete the line \"apple\" from list.txt",
    "save to notes.txt\nthanks!", "write \"x\" to notes.txt\n\nsummarize this",
    "comment out debug in config.toml",
];

/// Requests whose change is given, with nothing else that may come of them. `starter_promises.rs` has those that must be done.
const GIVEN: &[Probe] = &[
    ("write \"a, b, c and d\" to new.txt", Some(("new.txt", "a, b, c and d\n"))),
    ("write a, b, c and d to new.txt", Some(("new.txt", "a, b, c and d\n"))),
    (
        "write hello. And goodbye. And again. to new.txt",
        Some(("new.txt", "hello. And goodbye. And again.\n")),
    ),
    (
        "write to new.txt: TODO: fix main.rs and then run the tests",
        Some(("new.txt", "TODO: fix main.rs and then run the tests\n")),
    ),
    (
        "create new.txt with TODO: fix main.rs and then run the tests",
        Some(("new.txt", "TODO: fix main.rs and then run the tests\n")),
    ),
    ("save héllo wörld 日本語 to new.txt", Some(("new.txt", "héllo wörld 日本語\n"))),
    ("store it in \"my list.txt\"", None),
    ("store \"x\" in \"my list.txt\"", Some(("my list.txt", "x\n"))),
    ("save \"x\" as Meeting Notes 2024.md", Some(("Meeting Notes 2024.md", "x\n"))),
    (
        "replace localhost with 0.0.0.0 in config.toml",
        Some(("config.toml", "debug = true\nport = 8080\nhost = \"0.0.0.0\"\nlog_level = \"info\"\n")),
    ),
    (
        "change \"debug = true\" to \"debug = false\" in config.toml",
        Some(("config.toml", "debug = false\nport = 8080\nhost = \"localhost\"\nlog_level = \"info\"\n")),
    ),
    ("replace \"a\" with \"b\" in notes.txt", None), // it is there three times
];

pub(super) fn tree(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

pub(super) fn restore(home: &TestHome) {
    fs::remove_dir_all(home.work_dir()).unwrap();
    for (name, text) in FILES {
        let path = home.work_dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Runs all probes and returns those that changed something else than they may.
fn wrong_changes(home: &TestHome, probes: &[Probe]) -> Vec<String> {
    let before = tree(&home.work_dir());
    let mut wrong = Vec::new();
    for (request, may) in probes {
        let output = home.run(&["run", "--new", "--auto-approve", request]);
        let after = tree(&home.work_dir());
        if after == before {
            continue;
        }
        let mut allowed = before.clone();
        allowed.extend(may.map(|(name, text)| (name.to_owned(), text.to_owned())));
        if after != allowed {
            let changed: Vec<_> =
                after.iter().filter(|(name, text)| before.get(*name) != Some(text)).collect();
            wrong.push(format!("{request}\n  {changed:?}\n  {}", output.stdout));
        }
        restore(home);
    }
    wrong
}

#[test]
fn no_request_changes_a_file_in_another_way_than_it_says() {
    let home = home();
    restore(&home);
    let nothing: Vec<Probe> = NOTHING.iter().map(|request| (*request, None)).collect();
    let wrong = [wrong_changes(&home, &nothing), wrong_changes(&home, GIVEN)].concat();
    assert!(wrong.is_empty(), "{} wrong changes:\n{}", wrong.len(), wrong.join("\n"));
}
