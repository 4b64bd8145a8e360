//! Tests what is done about a request without the model.

use super::*;

const DATA: &str = "one\ntwo\nthree\n\nfive";

fn written(path: &str, content: &str, replaces: bool) -> Plan {
    Plan::Change(Change::write(path, content.to_owned(), replaces))
}

fn edited(path: &str, old: &str, new: &str, occurrence: Option<u32>) -> Plan {
    Plan::Change(Change::edit(path, old, new, occurrence).unwrap())
}

#[track_caller]
fn check(request: &str, expected: &Plan) {
    assert_eq!(Plan::new(request), *expected, "{request}");
}

#[track_caller]
fn check_all(requests: &[&str], expected: &Plan) {
    for request in requests {
        check(request, expected);
    }
}

#[test]
fn a_quoted_text_is_written_as_it_is() {
    check_all(
        &[
            "write \"a b\" to c.txt",
            "please write 'a b' into the file c.txt.",
            "can you save \"a b\" as c.txt?",
            "overwrite c.txt with \"a b\"",
            "write to c.txt: \"a b\"",
            "in c.txt, write \"a b\"",
            "replace the contents of c.txt with `a b`",
            "replace c.txt with \"a b\"",
            "Write “a b” to \"c.txt\", please!",
            "write the text \"a b\" to c.txt now",
        ],
        &written("c.txt", "a b\n", true),
    );
    check_all(
        &[
            "create c.txt with \"a b\"",
            "create a file called c.txt that says 'a b'",
            "create c.txt and write \"a b\" in it",
            "put \"a b\" in c.txt",
            "echo \"a b\" > c.txt",
            "write the line \"a b\" to c.txt",
            "note \"a b\" in c.txt",
            "a new file c.txt with \"a b\"",
            "\"a b\" -> c.txt",
        ],
        &written("c.txt", "a b\n", false),
    );
    check(
        "write \"it's, you know. And so: on\" to a/b.md",
        &written("a/b.md", "it's, you know. And so: on\n", true),
    );
    check("write 'it's' to c.txt", &written("c.txt", "it's\n", true));
    check("store \"x\" in \"my list.txt\"", &written("my list.txt", "x\n", false));
    check("save \"x\" as Meeting Notes 2024.md", &written("Meeting Notes 2024.md", "x\n", true));
}

#[test]
fn a_text_after_a_colon_or_on_its_own_lines_goes_on_to_the_end() {
    for (request, path, text, replaces) in [
        (
            "write to todo.txt: fix main.rs and then run the tests",
            "todo.txt",
            "fix main.rs and then run the tests",
            true,
        ),
        (
            "write this to todo.txt: hello. And goodbye. And again.",
            "todo.txt",
            "hello. And goodbye. And again.",
            true,
        ),
        ("save the following to a.txt:\none\ntwo\n", "a.txt", "one\ntwo", true),
        ("save this as a.txt\n  one\ntwo", "a.txt", "  one\ntwo", true),
        ("create a.txt with the following content: a: b", "a.txt", "a: b", false),
        ("create a.txt:\n```\nx = 1\n\ny\n```", "a.txt", "x = 1\n\ny", false),
        ("overwrite a.txt with\n  indented", "a.txt", "  indented", true),
        ("write to 日本.txt: héllo wörld 日本語", "日本.txt", "héllo wörld 日本語", true),
        ("write a note to a.txt: call Ada", "a.txt", "call Ada", false),
    ] {
        check(request, &written(path, &format!("{text}\n"), replaces));
    }
}

#[test]
fn a_new_file_may_be_given_its_text_without_quotes() {
    for (request, path, text) in [
        ("create hello.txt with hello", "hello.txt", "hello"),
        ("write hello world to greeting.md", "greeting.md", "hello world"),
        ("create 日本.txt with こんにちは", "日本.txt", "こんにちは"),
        ("create todo.txt with buy milk", "todo.txt", "buy milk"),
    ] {
        check(request, &written(path, &format!("{text}\n"), false));
    }
}

#[test]
fn a_file_is_emptied_only_where_the_request_says_so() {
    check_all(
        &["empty notes.txt", "clear the file notes.txt", "please truncate notes.txt"],
        &written("notes.txt", "", true),
    );
    check_all(&["create an empty file notes.txt", "touch notes.txt"], &written("notes.txt", "", false));
}

#[test]
fn a_text_is_replaced_by_another() {
    check_all(
        &[
            "replace \"nmae\" with \"name\" in a.py",
            "replace nmae with name in a.py",
            "replace nmae by name in the file a.py",
            "in a.py, replace nmae with name",
            "fix the typo in a.py: replace nmae with name",
            "rename nmae to name in a.py",
            "change \"nmae\" to \"name\" in a.py, please",
            "\"nmae\" -> \"name\" in a.py",
        ],
        &edited("a.py", "nmae", "name", None),
    );
    for (request, path, old, new, occurrence) in [
        ("replace localhost with 0.0.0.0 in config.toml", "config.toml", "localhost", "0.0.0.0", None),
        ("n * 2 should become n * 3 in src/util.py", "src/util.py", "n * 2", "n * 3", None),
        ("DEBUG = False -> DEBUG = True in a.py", "a.py", "DEBUG = False", "DEBUG = True", None),
        ("change apples to pears in notes.txt", "notes.txt", "apples", "pears", None),
        ("change 8080 to 9000 in config.toml", "config.toml", "8080", "9000", None),
        ("replace all \"a\" with \"b\" in c.txt", "c.txt", "a", "b", Some(0)),
        ("replace every foo with bar in c.rs", "c.rs", "foo", "bar", Some(0)),
        ("replace foo with bar everywhere in c.rs", "c.rs", "foo", "bar", Some(0)),
        ("change the third 'a' to 'b' in c.txt", "c.txt", "a", "b", Some(3)),
        ("delete \"a\" from c.txt", "c.txt", "a", "", None),
        ("remove every \"a\" from c.txt", "c.txt", "a", "", Some(0)),
        ("replace \"a, b\" with \"c and d\" in \"my list.txt\"", "my list.txt", "a, b", "c and d", None),
    ] {
        check(request, &edited(path, old, new, occurrence));
    }
}

#[test]
fn a_change_that_is_not_given_in_full_is_left_to_the_model_or_declined() {
    #[rustfmt::skip]
    let requests = [
        "add type hints to src/util.py", "write documentation for src/util.py",
        "set debug to false in config.toml", "set the port to 9000 in config.toml",
        "make config.toml use port 9000", "set log_level = \"debug\" in config.toml",
        "disable debug in config.toml", "enable tabs in settings.json",
        "update docs/guide.md with a step four", "add eggs to notes.txt",
        "remove all blank lines from README.md", "prepend # to notes.txt",
        "make README.md more professional", "indent Makefile with spaces",
        "turn off debug in config.toml", "replace localhost in config.toml",
        "replace apple with fig and banana with lime in a.txt", "write today's date to date.txt",
        "translate README.md to French and save it as LISEZMOI.md",
        "create a.txt with aaa and b.txt with bbb", "does empty.txt have anything in it?",
        "write a, b, c and d to list.txt", "create a.txt with TODO: fix main.rs and then run the tests",
        "write hello. And goodbye. And again. to a.txt", "change debug to false in config.toml",
        "change the port to 9000 in config.toml", "replace version 1.0 with 2.0 in README.md",
        "replace tabs with spaces in Makefile", "write \"x\" at the top of a.txt",
        "don't write \"x\" to a.txt", "write \"\" to a.txt", "empty notes.txt?",
        "clear the cache in a.py", "create hello.py that prints hello", "create hello.py with hello",
        "write \"a\" and \"b\" to c.txt", "write \"say \"hi\" now\" to c.txt", "append \"x\" to a.txt",
        "save \"a.txt\" as b.txt", "replace \"a.txt\" with \"b.txt\"",
        "substitute \"a\" for \"b\" in c.txt", "delete the line \"a\" from c.txt",
        "save to a.txt\nthanks!", "put TODO: rename the money into drun352.txt",
        "a.lock, color_6 => photo event, thx", "create joke.txt with funny joke",
        "create plan.md with weekly schedule", "write weather to weather.txt", "write: hello to a.txt",
        "change author to Bob in README.md", "change priority to high in todo.md",
        "rename x to y in a.py", "write to a.txt: \"one\" and \"two\"",
    ];
    for request in requests {
        let plan = Plan::new(request);
        assert!(!matches!(plan, Plan::Change(_)), "{request}: {plan:?}");
    }
}

#[test]
fn several_things_are_declined() {
    for request in [
        "read notes.md and read src/main.rs",
        "read a.txt and b.txt",
        "read a.txt, b.txt",
        "create a.txt with aaa and b.txt with bbb",
        "read notes.txt and delete it",
        "open a.txt. Then replace x with y.",
        "replace apple with fig and banana with lime in a.txt",
    ] {
        check(request, &Plan::Say(ONE_THING.to_owned()));
    }
    for request in [
        "open notes.txt and show me what it says",
        "go to docs/ and read plan.md",
        "in docs/, read plan.md",
        "read b.txt in a/c",
        "list all markdown files in docs",
        "find and read notes.txt",
    ] {
        check(request, &Plan::AskModel);
    }
    check("read my file.txt", &Plan::Say(NAME.to_owned()));
    check("write \"x\" to a new file.txt", &Plan::Say(NAME.to_owned()));
    check("read my notes.txt", &Plan::AskModel);
}

#[test]
fn lines_of_piped_data_are_counted_and_found() {
    let said = |text: &str| Plan::Say(text.to_owned());
    let ask = |instruction: &str| Plan::new(&format!("{DATA}\n\n{instruction}"));
    for instruction in
        ["how many lines are there?", "count the lines", "wc -l", "how many?", "number of lines, please"]
    {
        assert_eq!(ask(instruction), said("There are 5 lines."), "{instruction}");
    }
    for (instruction, answer) in [
        ("what does the final line say?", "The final line is: five"),
        ("show me the last line", "The last line is: five"),
        ("show line 2", "The 2nd line is: two"),
        ("show line 2 of 5", "The 2nd line is: two"),
        ("line 4 please", "The 4th line is: "),
        ("what is the second to last line", "The second to last line is: "),
        ("read me line three", "The 3rd line is: three"),
        ("line one", "The 1st line is: one"),
        ("line 9", "There are only 5 lines."),
        ("how many lines contain two?", DECLINED),
        ("what does the middle line say?", DECLINED),
        ("show the last two lines", DECLINED),
        ("translate line 2", DECLINED),
        ("what is the line after the third", DECLINED),
    ] {
        assert_eq!(ask(instruction), said(answer), "{instruction}");
    }
    for count in [1, 12, 25, 60, 300, 20_000] {
        let data: Vec<String> = (1..=count).map(|line| format!("row {line}")).collect();
        let ask = |instruction: &str| Plan::new(&format!("{}\n\n{instruction}", data.join("\n")));
        let all =
            if count == 1 { "There is 1 line.".to_owned() } else { format!("There are {count} lines.") };
        assert_eq!(ask("how many lines are there?"), Plan::Say(all));
        let Plan::Say(last) = ask("what does the final line say?") else { panic!("{count}") };
        assert!(last.ends_with(&format!(" line is: row {count}")), "{last}");
    }
    for instruction in ["read the third one", "open notes.txt", "read the file on line 2", "summarize this"] {
        assert_eq!(ask(instruction), Plan::AskModel, "{instruction}");
    }
}

#[test]
fn piped_data_are_saved_whole_or_one_line_of_them() {
    let ask = |instruction: &str| Plan::new(&format!("{DATA}\n\n{instruction}"));
    for (instruction, path, text, replaces) in [
        ("save this as a.txt", "a.txt", DATA, true),
        ("write it to a.txt", "a.txt", DATA, true),
        ("put these lines in a.txt", "a.txt", DATA, false),
        ("save the second line to b.txt", "b.txt", "two", true),
        ("save line 3 as b.txt", "b.txt", "three", true),
        ("put the last line into b.txt", "b.txt", "five", false),
        ("write \"x\" to c.txt", "c.txt", "x", true),
    ] {
        assert_eq!(ask(instruction), written(path, &format!("{text}\n"), replaces), "{instruction}");
    }
    for instruction in [
        "save the last 2 lines to b.txt",
        "save the middle line to b.txt",
        "append this to b.txt",
        "save line 9 as b.txt",
    ] {
        assert!(!matches!(ask(instruction), Plan::Change(_)), "{instruction}: {:?}", ask(instruction));
    }
    // Data are no request.
    check("write \"x\" to a.txt\n\nsummarize this", &Plan::AskModel);
    check("write this to a.txt:\nx\n\nsummarize this", &Plan::AskModel);
}
