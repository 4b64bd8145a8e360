//! Fix requests: which are accepted, which notifications they send, and how they end.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use super::{FIXED, TestProject, approval, assert_time, edit_call, incident, is_uuid};
use crate::{
    fake_llama::{FakeLlama, Reply, Setup},
    test_home::TestHome,
};

/// Checks the form and the numbers of the notifications of one request, in the order in which they came.
fn check_notifications(frames: &[&Value], session: &str, request: &str) {
    let (mut number, mut percentage) = (0, 0);
    for frame in frames {
        let params = &frame["params"];
        assert!(frame.get("id").is_none() && frame["jsonrpc"] == "2.0", "{frame}");
        assert_eq!((&params["session_id"], &params["request_id"]), (&json!(session), &json!(request)));
        assert_time(&params["timestamp"]);
        assert!(params["content"].is_object());
        let this: u64 = params["message_id"].as_str().unwrap().strip_prefix("msg-").unwrap().parse().unwrap();
        assert!(this > number, "{frame}");
        number = this;
        if frame["method"] == "kaiak/stream/progress" {
            let content = &params["content"];
            let this = content["percentage"].as_u64().unwrap();
            assert!((percentage..=100).contains(&this), "{frame}");
            assert!(!content["phase"].as_str().unwrap().is_empty());
            assert!(!content["description"].as_str().unwrap().is_empty());
            percentage = this;
        }
    }
}

#[test]
fn the_documented_example_sends_every_notification_in_order() {
    let model = [
        Reply::reasoning("I should look first.", "Let me look. ")
            .then_calls([("read_file", json!({"path": "src/main.rs"}))]),
        edit_call(),
        Reply::text("I replaced the call."),
    ];
    let (project, mut editor, session) = TestProject::with_session(model);
    let mut example = incident("src/main.rs", 42);
    example["category"] = json!("deprecated-api");
    example["metadata"] = json!({"deprecated_since": "1.5.0", "replacement": "new_method()"});
    let migration = json!({"target_version": "2.0.0", "migration_guide_url": "https://example.com/guide"});
    let id = editor.send_request(
        "kaiak/fix/generate",
        &json!({"session_id": session, "incidents": [example], "migration_context": migration}),
    );
    // The response to the request comes before its first notification.
    let first = editor.frame();
    assert_eq!(first["id"], id);
    let result = &first["result"];
    let request = result["request_id"].as_str().unwrap().to_owned();
    assert!(request.strip_prefix("req-").is_some_and(is_uuid));
    assert_eq!((&result["status"], &result["incident_count"]), (&json!("processing"), &json!(1)));
    assert_eq!(result["session_id"], session.as_str());
    assert_time(&result["created_at"]);

    let mut frames = Vec::new();
    loop {
        let frame = editor.frame();
        if frame["method"] == "kaiak/stream/user_interaction" {
            let status = editor.result("kaiak/session/status", &json!({"session_id": session}));
            assert_eq!(
                (&status["status"], &status["active_request_id"]),
                (&json!("processing"), &json!(request))
            );
            let id = editor.send_request(
                "kaiak/interaction/respond",
                &approval(frame["params"]["interaction_id"].as_str().unwrap(), true),
            );
            editor.response(id);
        }
        let last = frame["params"]["content"]["event"] == "request_completed";
        frames.push(frame);
        if last {
            break;
        }
    }
    let all: Vec<&Value> = frames.iter().collect();
    check_notifications(&all, &session, &request);
    let content = |name: &str| -> Vec<&Value> {
        let method = format!("kaiak/stream/{name}");
        frames
            .iter()
            .filter(|frame| frame["method"] == method)
            .map(|frame| &frame["params"]["content"])
            .collect()
    };
    let progress = content("progress");
    assert_eq!(
        (&progress.last().unwrap()["percentage"], &progress.last().unwrap()["phase"]),
        (&json!(100), &json!("completed"))
    );
    assert!(progress.len() >= 6, "{progress:#?}");
    let text: String =
        content("ai_response").iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!(text, "Let me look. I replaced the call.");
    assert_eq!(content("ai_response").last().unwrap()["partial"], false);
    assert_eq!(content("thinking")[0]["text"], "I should look first.");
    let tools: Vec<(&Value, &Value)> =
        content("tool_call").iter().map(|call| (&call["tool_name"], &call["operation"])).collect();
    let (start, complete) = (json!("start"), json!("complete"));
    let (read, edit) = (json!("read_file"), json!("edit_file"));
    assert_eq!(tools, [(&read, &start), (&read, &complete), (&edit, &start), (&edit, &complete)]);
    let done = content("tool_call")[1];
    assert_eq!(
        (&done["parameters"]["path"], &done["result"]["success"]),
        (&json!("src/main.rs"), &json!(true))
    );
    assert!(done["result"]["data"].as_str().unwrap().contains("old_method"));

    let status = editor.result("kaiak/session/status", &json!({"session_id": session}));
    assert_eq!((&status["status"], &status["active_request_id"]), (&json!("ready"), &Value::Null));
    assert_eq!((&status["message_count"], &status["error_count"]), (&json!(frames.len()), &json!(0)));

    // The prompt has the incident, the code around it and the migration, and only a few tools.
    let asked = &project.model.chats()[0];
    let (system, prompt) = (
        asked["messages"][0]["content"].as_str().unwrap(),
        asked["messages"][1]["content"].as_str().unwrap(),
    );
    assert!(system.contains("https://example.com/guide"), "{system}");
    for part in
        ["line 42", "deprecated-api-usage", "use `new_method()` instead", "1.5.0", "2:     old_method();"]
    {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let tools: Vec<&str> = asked["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["read_file", "write_file", "edit_file", "list_files", "ask_user"]);
}

#[test]
fn invalid_requests_start_nothing() {
    let (project, mut editor, session) = TestProject::with_session([]);
    symlink("/etc", project.path("l")).unwrap();
    let generate = "kaiak/fix/generate";
    editor.error(generate, &json!({"session_id": "nope", "incidents": []}), -32003);
    editor.error(generate, &json!({"session_id": session, "incidents": []}), -32602);
    editor.error(generate, &json!({"session_id": session, "incidents": {}}), -32602);
    editor.error(generate, &json!({"session_id": session}), -32602);
    editor.error(generate, &json!({"session_id": 5, "incidents": []}), -32602);
    for (field, value) in [
        ("line_number", json!(0)),
        ("line_number", json!("42")),
        ("severity", json!("fatal")),
        ("description", json!("")),
        ("file_path", json!("../x")),
        ("file_path", json!("/etc/passwd")),
        ("file_path", json!("C:\\x")),
        ("file_path", json!("")),
        ("file_path", json!("src")),
    ] {
        let mut wrong = incident("src/main.rs", 2);
        wrong[field] = value;
        let incidents = json!([incident("src/main.rs", 1), wrong]);
        let data = editor.error(generate, &json!({"session_id": session, "incidents": incidents}), -32602);
        assert_eq!((&data["index"], &data["field"]), (&json!(1), &json!(field)));
    }
    let outside = json!({"session_id": session, "incidents": [incident("l/passwd", 1)]});
    let data = editor.error(generate, &outside, -32002);
    assert_eq!(data["file_path"], "l/passwd");
    let many = |count: u64| -> Value { (1..=count).map(|line| incident("src/main.rs", line)).collect() };
    let data = editor.error(generate, &json!({"session_id": session, "incidents": many(1001)}), -32602);
    assert_eq!((&data["limit"], &data["actual"]), (&json!("incidents"), &json!(1001)));
    assert!(project.model.chats().is_empty());

    // A thousand incidents are accepted. The test does not wait for the fixes.
    project.model.push(Reply::hang());
    let answer = editor.result(generate, &json!({"session_id": session, "incidents": many(1000)}));
    assert_eq!(answer["incident_count"], 1000);
}

#[test]
fn two_files_are_fixed_one_after_the_other() {
    let other = json!({"path": "src/lib.rs", "old_str": "old_method()", "new_str": "new_method()"});
    let model = [edit_call(), Reply::text("One."), Reply::calls([("edit_file", other)]), Reply::text("Two.")];
    let (project, mut editor, session) = TestProject::with_session(model);
    fs::write(project.path("src/lib.rs"), "pub fn f() { old_method() }\n").unwrap();
    editor.generate_for(&session, &json!([incident("src/main.rs", 2), incident("src/lib.rs", 1)]));
    for file in ["src/main.rs", "src/lib.rs"] {
        assert_eq!(editor.notification("file_modification")["content"]["file_path"], file);
        let question = editor.next_interaction();
        assert_eq!(editor.approve(&question, true)["result"]["status"], "processed");
    }
    let done = editor.system_event("request_completed");
    assert_eq!((&done["status"], &done["summary"]["proposals_applied"]), (&json!("success"), &json!(2)));
    assert_eq!(
        (project.read("src/main.rs"), project.read("src/lib.rs")),
        (FIXED.into(), "pub fn f() { new_method() }\n".into())
    );
    // Each file gets its own conversation with the same system prompt.
    let chats = project.model.chats();
    assert_eq!(chats[0]["messages"][0], chats[2]["messages"][0]);
    assert_eq!(chats[2]["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn ten_requests_at_a_time() {
    let (project, mut editor) = TestProject::with_editor((0..12).map(|_| Reply::hang()));
    let (session, other) = (editor.create(&project), editor.create(&project));
    let requests: Vec<String> = (0..10).map(|_| editor.generate(&session)).collect();
    let generate = json!({"session_id": session, "incidents": [incident("src/main.rs", 2)]});
    let data = editor.error("kaiak/fix/generate", &generate, -32015);
    assert_eq!(
        (&data["limit"], &data["max"], &data["active"]),
        (&json!("concurrent_requests"), &json!(10), &json!(10))
    );
    editor.generate(&other);
    editor.result("kaiak/fix/cancel", &json!({"request_id": requests[4]}));
    editor.generate(&session);
    // Terminating the session cancels all of its requests.
    editor.result("kaiak/session/terminate", &json!({"session_id": session}));
    for _ in 0..11 {
        assert_eq!(editor.completion_status(), "cancelled");
    }
}

#[test]
fn a_cancelled_request_reports_once_and_then_nothing() {
    let (project, mut editor) =
        TestProject::with_editor([Reply::text("half ").then_hang(), Reply::text("whole")]);
    let session = editor.create(&project);
    let request = editor.generate(&session);
    editor.notification("ai_response");
    let id = json!({"request_id": request});
    let call = editor.send_request("kaiak/fix/cancel", &id);
    let mut last = Value::Null;
    let answer = loop {
        let frame = editor.frame();
        if frame["id"] == call {
            break frame;
        }
        last = frame;
    };
    assert_eq!(
        (&answer["result"]["request_id"], &answer["result"]["status"]),
        (&json!(request), &json!("cancelled"))
    );
    assert_time(&answer["result"]["cancelled_at"]);
    assert_eq!(
        (&last["params"]["content"]["event"], &last["params"]["content"]["status"]),
        (&json!("request_completed"), &json!("cancelled"))
    );
    project.model.wait_for_disconnect();
    let data = editor.error("kaiak/fix/cancel", &id, -32008);
    assert_eq!(data["status"], "cancelled");

    let request = editor.generate(&session);
    assert_eq!(editor.completion_status(), "success");
    editor.error("kaiak/fix/cancel", &json!({"request_id": request}), -32008);
    editor.error("kaiak/fix/cancel", &json!({"request_id": "req-none"}), -32007);
    editor.error("kaiak/fix/cancel", &json!({}), -32602);
    assert!(editor.unread.iter().all(|frame| frame["params"]["request_id"] == request.as_str()));
}

#[test]
fn a_failing_model_is_reported_and_the_next_request_works() {
    let (_project, mut editor, session) =
        TestProject::with_session([Reply::error(500, "out of order"), Reply::text("fine")]);
    editor.generate(&session);
    let error = editor.notification("error");
    assert_eq!(error["content"]["error_code"], "MODEL_FAILED");
    assert_eq!(editor.completion_status(), "failed");
    let status = editor.result("kaiak/session/status", &json!({"session_id": session}));
    assert_eq!((&status["status"], &status["error_count"]), (&json!("ready"), &json!(1)));
    editor.generate(&session);
    assert_eq!(editor.completion_status(), "success");
}

#[test]
fn an_unreachable_model_and_a_broken_agent_are_errors() {
    let mut project = TestProject::new([]);
    let mut editor = project.editor();
    let session = editor.create(&project);
    project.model = FakeLlama::start([]);
    editor.generate(&session);
    let error = editor.notification("error");
    assert_eq!(
        (&error["content"]["error_code"], &error["content"]["code"], &error["content"]["recoverable"]),
        (&json!("MODEL_UNREACHABLE"), &json!(-32006), &json!(false))
    );
    assert_eq!(editor.completion_status(), "failed");
    project.home.write("agents/default/config.toml", "model = 5\n");
    let generate = json!({"session_id": session, "incidents": [incident("src/main.rs", 2)]});
    editor.error("kaiak/fix/generate", &generate, -32006);
}

#[test]
fn a_model_that_never_finishes_is_stopped() {
    let look = || Reply::calls([("list_files", json!({"pattern": "*"}))]);
    let (project, mut editor) = TestProject::with_editor([look(), look()]);
    let session = editor.create_with(&project, &json!({"max_turns": 2}));
    editor.generate(&session);
    assert_eq!(editor.notification("error")["content"]["error_code"], "LIMIT_REACHED");
    assert_eq!(editor.completion_status(), "failed");
}

#[test]
fn a_file_that_is_too_large_is_left_out() {
    let (project, mut editor) =
        TestProject::with_editor([Reply::text("nothing to do"), Reply::text("it is not there")]);
    fs::write(project.path("large.rs"), "x".repeat(1024 * 1024 + 1)).unwrap();
    fs::write(project.path("bytes.rs"), b"\xff\xfe").unwrap();
    let session = editor.create(&project);
    let incidents = ["large.rs", "bytes.rs", "src/main.rs", "absent.rs"].map(|path| incident(path, 1));
    editor.generate_for(&session, &json!(incidents));
    for (path, error_code) in [("large.rs", "FILE_TOO_LARGE"), ("bytes.rs", "NOT_TEXT")] {
        let error = editor.notification("error")["content"].clone();
        assert_eq!((&error["error_code"], &error["recoverable"]), (&json!(error_code), &json!(true)));
        assert_eq!(error["details"]["file_path"], path);
    }
    let done = editor.system_event("request_completed");
    assert_eq!((&done["status"], &done["summary"]["incidents_processed"]), (&json!("success"), &json!(2)));
    assert!(project.model.chats()[1]["messages"][1]["content"].as_str().unwrap().contains("does not exist"));
}

#[test]
fn a_long_answer_is_split_into_messages_under_a_megabyte() {
    let piece = "é\u{1}🦀\"".repeat(12_500);
    let deltas = (0..30).map(|_| json!({"content": piece}));
    let (project, mut editor, session) = TestProject::with_session([Reply::deltas(deltas)]);
    project.home.write("agents/default/config.toml", "[rails]\nrepeats = false\n");
    editor.generate(&session);
    let mut text = String::new();
    loop {
        let message = editor.notification("ai_response");
        assert!(message.to_string().len() < 1024 * 1024);
        text.push_str(message["content"]["text"].as_str().unwrap());
        if message["content"]["partial"] == false {
            break;
        }
    }
    assert!(text == piece.repeat(30), "{} bytes of {}", text.len(), 30 * piece.len());
    assert_eq!(editor.completion_status(), "success");
}

#[test]
fn a_large_file_is_worked_on_in_parts_that_fit_the_window() {
    let model = FakeLlama::with(Setup { window: 4096, ..Setup::default() }, []).always(|_| Reply::text("ok"));
    let config = format!(
        "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\ncontext_size = 4096\n",
        model.url()
    );
    let project = TestProject { home: TestHome::with_config(&config), model };
    let code: String =
        (1..=3000).map(|line| format!("    let value_{line} = old_method({line});\n")).collect();
    fs::write(project.path("big.rs"), code).unwrap();
    let mut editor = project.editor();
    let session = editor.create(&project);
    let incidents: Value = (1..=20).map(|n| incident("big.rs", n * 140)).collect();
    editor.generate_for(&session, &incidents);
    let done = editor.system_event("request_completed");
    assert_eq!((&done["status"], &done["summary"]["incidents_processed"]), (&json!("success"), &json!(20)));
    let chats = project.model.chats();
    assert!(chats.len() > 1);
    let prompts: String = chats.iter().map(|chat| chat["messages"][1]["content"].as_str().unwrap()).collect();
    for n in 1..=20 {
        assert!(prompts.contains(&format!("value_{} = old_method", n * 140)), "{n}");
    }
}

#[test]
fn commands_are_offered_only_where_the_section_says_so() {
    for (config, expect) in [("", false), ("[kaiak]\ncommands = true\n", true)] {
        let project = TestProject::with_config([Reply::text("nothing to do")], config);
        let mut editor = project.editor();
        let session = editor.create(&project);
        editor.generate(&session);
        editor.completion_status();
        let offered = project.model.chats()[0]["tools"].to_string().contains("run_command");
        assert_eq!(offered, expect, "{config}");
    }
}

#[test]
fn a_rule_that_denies_leaves_nothing_to_propose_and_one_that_allows_still_proposes() {
    let (project, mut editor, session) =
        TestProject::with_session([edit_call(), Reply::text("I could not.")]);
    project.home.write("policy.toml", "deny = [\"edit_file(src/)\"]\n");
    editor.generate(&session);
    editor.completion_status();
    assert_ne!(project.read("src/main.rs"), FIXED);
    let (project, mut editor, session) = TestProject::with_session([edit_call(), Reply::text("Done.")]);
    project.home.write("policy.toml", "allow = [\"edit_file\"]\n");
    editor.generate(&session);
    let interaction = editor.next_interaction();
    editor.approve(&interaction, true);
    editor.completion_status();
    assert_eq!(project.read("src/main.rs"), FIXED);
}
