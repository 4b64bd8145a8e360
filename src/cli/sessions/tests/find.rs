//! Finding, copying, exporting and pruning conversations.

use super::*;

fn searching(words: &[&str], limit: u32) -> Option<Command> {
    Some(Command::Search { words: words.iter().map(|word| (*word).to_owned()).collect(), limit })
}

fn forking(id: &str, at: Option<u64>) -> Option<Command> {
    Some(Command::Fork { id: Some(id.to_owned()), at })
}

fn pruning(dry_run: bool) -> Option<Command> {
    let older_than = Duration::from_secs(90 * 86_400);
    Some(Command::Prune(PruneArgs { older_than, dry_run, yes: true }))
}

/// Returns a conversation with one call of a tool.
fn conversation() -> Vec<Message> {
    let id = CallId::new("c1");
    let arguments = r#"{"path":"src/Parser.rs"}"#.to_owned();
    let call = ToolCall { id: id.clone(), name: "read_file".to_owned(), arguments };
    let output = "fn panic() {}\n```\nlet s = \"naïve \\ text\";\n```".to_owned();
    let result = ToolResult { call_id: id, name: "read_file".to_owned(), output, is_error: false };
    vec![
        Message {
            context: "The files in the working directory:\nsrc/Parser.rs".to_owned(),
            ..text(Role::User, "Why does the PARSER panic?\nIt did not yesterday.", 5)
        },
        Message { tool_calls: vec![call], ..text(Role::Assistant, "", 3) },
        Message::result(result),
        text(Role::Assistant, "It calls \x1b[31mpanic\x1b[0m.", 4),
    ]
}

#[test]
fn words_are_found_in_any_case_and_only_in_what_was_said() {
    let home = TestHome::new();
    home.session("old", 86_400, &conversation());
    home.session("new", 60, &[text(Role::User, "what is a parser?", 3)]);
    home.check(
        searching(&["parser"], 20),
        &expect![[r#"
            new  what is a parser?  (1 minute ago)
              1 user: what is a parser?

            old  Why does the PARSER panic?  (1 day ago)
              1 user: Why does the PARSER panic?
              2 assistant: read_file {"path":"src/Parser.rs"}
        "#]],
    );
    home.check(
        searching(&["panic", "Parser"], 20),
        &expect![[r#"
            old  Why does the PARSER panic?  (1 day ago)
              1 user: Why does the PARSER panic?
        "#]],
    );
    // Quotes, backslashes and letters outside of ASCII stand in another form in the file.
    for words in [&["\"NAÏVE \\ text\""][..], &["\\"], &["parser panic"]] {
        assert!(home.run(searching(words, 20), false).unwrap().starts_with("old  "), "{words:?}");
    }
    // These are only in the keys of the file.
    for words in [&["content"][..], &["role", "parser"], &["zebra"]] {
        assert!(home.run(searching(words, 20), false).unwrap().starts_with("No message has"), "{words:?}");
    }
    assert_eq!(home.run(searching(&[" "], 20), false).unwrap_err().status, ExitStatus::Usage);
    let limited = home.run(searching(&["parser"], 1), false).unwrap();
    assert!(!limited.contains("old") && limited.ends_with("\nThere may be more: --limit 10.\n"), "{limited}");
    let json: Value = serde_json::from_str(&home.run(searching(&["calls"], 9), true).unwrap()).unwrap();
    assert_eq!(json[0]["matches"][0]["message"], 4);
    assert_eq!((&json[0]["id"], &json[0]["messages"]), (&json!("old"), &json!(4)));
}

#[test]
fn a_long_line_is_shown_around_the_word() {
    let home = TestHome::new();
    home.session("s", 0, &[text(Role::User, &format!("{}İ needle {}", "é".repeat(500), "x".repeat(500)), 1)]);
    let json: Value = serde_json::from_str(&home.run(searching(&["needle"], 9), true).unwrap()).unwrap();
    let line = json[0]["matches"][0]["line"].as_str().unwrap();
    assert!(line.starts_with("…é") && line.contains(" needle x") && line.ends_with("x…"), "{line}");
    assert!(line.chars().count() <= 202);
}

#[test]
fn a_fork_has_the_beginning_and_becomes_active() {
    let home = TestHome::new();
    home.session("s", 0, &conversation());
    home.sessions.set_default_agent(&"s".parse().unwrap(), &"coder".parse().unwrap()).unwrap();
    home.sessions.set_working_dir(&"s".parse().unwrap(), std::path::Path::new("/src")).unwrap();
    let said = home.run(forking("s", Some(2)), false).unwrap();
    let id = home.sessions.active().unwrap();
    assert_eq!(said, format!("session {id} has 2 messages and is active\n"));
    let messages = home.sessions.transcript(&id).unwrap().messages;
    assert_eq!(messages, conversation()[..2]);
    let json: Value = serde_json::from_str(&home.run(None, true).unwrap()).unwrap();
    let fork = json.as_array().unwrap().iter().find(|session| session["active"] == true).unwrap();
    assert_eq!(fork["title"], "Why does the PARSER panic? (fork)");
    assert_eq!((&fork["default_agent"], &fork["working_dir"]), (&json!("coder"), &json!("/src")));

    home.run(forking("s", None), false).unwrap();
    let whole = home.sessions.active().unwrap();
    assert_eq!(home.sessions.transcript(&whole).unwrap().messages, conversation());
    home.check(
        forking("s", Some(5)),
        &expect![[r#"
            kontekst: error: session `s` has 4 messages, and not 5
              hint: `kontekst sessions show` numbers the messages
        "#]],
    );
    assert_eq!(home.sessions.active(), Some(whole));
    // A run has written half of its line.
    let path = home.home.sessions().join("s.jsonl");
    fs::write(&path, [fs::read(&path).unwrap(), b"{\"role\":\"us".to_vec()].concat()).unwrap();
    home.run(forking("s", None), false).unwrap();
    let forked = home.sessions.transcript(&home.sessions.active().unwrap()).unwrap();
    assert_eq!((forked.messages.len(), forked.damaged.len()), (4, 0));
}

#[test]
fn an_exported_conversation_is_markdown_that_a_tool_cannot_break() {
    let home = TestHome::new();
    home.session("s", 0, &conversation());
    let exporting = |format| Some(Command::Export { id: Some("why does".to_owned()), format });
    home.check(
        exporting(ExportFormat::Markdown),
        &expect![[r#"
            # Why does the PARSER panic?

            Session `s`

            ## User

            Why does the PARSER panic?
            It did not yesterday.

            ### Read for it

            ```
            The files in the working directory:
            src/Parser.rs
            ```

            ## Assistant

            ### Call of read_file

            ```json
            {"path":"src/Parser.rs"}
            ```

            ### Result of read_file

            ````
            fn panic() {}
            ```
            let s = "naïve \ text";
            ```
            ````

            ## Assistant

            It calls panic.
        "#]],
    );
    let json: Value = serde_json::from_str(&home.run(exporting(ExportFormat::Json), false).unwrap()).unwrap();
    assert_eq!(
        (&json["title"], json["messages"].as_array().unwrap().len()),
        (&json!("Why does the PARSER panic?"), 4)
    );
}

#[test]
fn pruning_leaves_what_is_new_active_or_in_use() {
    let home = TestHome::new();
    let day = 86_400;
    for (id, age) in [("new", 89 * day), ("old", 91 * day), ("worker", 91 * day), ("active", 200 * day)] {
        home.session(id, age, &[text(Role::User, "hi", 1)]);
    }
    for (id, age) in [("used", 100 * day), ("parent", 100 * day), ("child", day)] {
        home.session(id, age, &[text(Role::User, "hi", 1)]);
    }
    let id = |id: &str| id.parse::<SessionId>().unwrap();
    home.sessions.set_parent(&id("worker"), &id("old")).unwrap();
    home.sessions.set_parent(&id("child"), &id("parent")).unwrap();
    home.sessions.set_active(&id("active")).unwrap();
    let used = home.sessions.open(&id("used")).unwrap();
    home.check(
        pruning(true),
        &expect![[r#"
            old  91 days ago

            Would delete 1 session with 84 B.
        "#]],
    );
    assert_eq!(home.sessions.list().unwrap().len(), 7);
    home.check(
        pruning(false),
        &expect![[r#"
            deleted 1 session with 84 B
        "#]],
    );
    drop(used);
    home.run(pruning(false), false).unwrap();
    let mut left: Vec<String> =
        home.sessions.list().unwrap().iter().map(|session| session.id.to_string()).collect();
    left.sort();
    assert_eq!(left, ["active", "child", "new", "parent"]);
    home.check(
        pruning(false),
        &expect![[r#"
            No session is that old.
        "#]],
    );
}

#[test]
fn the_overview_follows_the_file() {
    let home = TestHome::new();
    let first = |home: &TestHome| {
        let json: Value = serde_json::from_str(&home.run(None, true).unwrap()).unwrap();
        (json[0]["title"].as_str().unwrap().to_owned(), json[0]["messages"].as_u64().unwrap())
    };
    home.session("s", 100, &[text(Role::User, "one", 1)]);
    assert_eq!(first(&home), ("one".to_owned(), 1));
    home.session("s", 50, &[text(Role::Assistant, "two", 1), text(Role::User, "three", 1)]);
    assert_eq!(first(&home), ("one".to_owned(), 3));
    fs::remove_file(home.home.sessions().join("s.jsonl")).unwrap();
    home.session("s", 10, &[text(Role::User, "another", 1)]);
    assert_eq!(first(&home), ("another".to_owned(), 1));
    fs::write(home.home.sessions().join(".overviews.json"), "garbage").unwrap();
    assert_eq!(first(&home), ("another".to_owned(), 1));
}
