//! Frames and JSON-RPC messages on the wire, valid and invalid.

use std::{collections::HashMap, io::Write as _, process::Stdio, thread};

use serde_json::{Value, json};

use super::{Editor, MAIN, TIMEOUT, TestProject, edit_call, frame};
use crate::{
    fake_llama::Reply,
    hostile_input::{Random, rounds},
};

/// A request that is answered with "no such session". It shows that the connection still works.
const PROBE: &str =
    r#"{"jsonrpc":"2.0","id":"probe","method":"kaiak/session/status","params":{"session_id":"none"}}"#;

impl Editor {
    /// Checks that the connection still answers, and that no other frame comes before the answer.
    #[track_caller]
    fn assert_alive(&mut self) {
        self.send(PROBE);
        let frame = self.frame();
        assert_eq!((&frame["id"], &frame["error"]["code"]), (&json!("probe"), &json!(-32003)), "{frame}");
    }

    /// Checks that the next frame is the error `code` for the request `id`.
    #[track_caller]
    fn assert_error(&mut self, code: i32, id: &Value) {
        let frame = self.frame();
        assert_eq!((&frame["error"]["code"], &frame["id"]), (&json!(code), id), "{frame}");
        assert!(
            frame.get("result").is_none()
                && frame["jsonrpc"] == "2.0"
                && frame["error"]["message"].is_string()
        );
    }
}

fn create(project: &TestProject, id: u64, name: &str) -> String {
    let params = json!({"workspace_path": project.workspace(), "session_name": name});
    json!({"jsonrpc": "2.0", "id": id, "method": "kaiak/session/create", "params": params}).to_string()
}

/// Tables beside `jsonrpc` and `framing` have all kinds of invalid messages and headers.
#[test]
fn each_kind_of_invalid_message_has_its_error() {
    let (project, mut editor) = TestProject::with_editor([]);
    let null = Value::Null;
    let valid = create(&project, 1, "x");
    let deep = "[".repeat(100_000);
    for (body, code, id) in [
        (deep.as_str(), -32700, null.clone()),
        (&format!("[{valid},{valid}]"), -32600, null.clone()),
        (r#"{"jsonrpc":"1.0","method":"kaiak/session/status","id":7}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","method":"kaiak/session/status","id":1,"params":[1]}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","method":"kaiak/session/status","id":1}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","method":"kaiak/nope","id":"a"}"#, -32601, json!("a")),
        (r#"{"jsonrpc":"2.0","method":"kaiak/v2/session/create","id":2,"params":{}}"#, -32601, json!(2)),
        (r#"{"jsonrpc":"2.0","method":"$/unknown","id":3}"#, -32601, json!(3)),
    ] {
        editor.send(body);
        editor.assert_error(code, &id);
    }
    editor.write(b"Content-Length: 3\r\n\r\n\"\xff\"");
    editor.assert_error(-32700, &null);
    let broken =
        ["Foo: 1\r\n\r\n", "Content-Length: abc\r\n\r\n", "Content-Length: -5\r\n\r\n", "{\"a\": 1}\n"];
    for broken in broken {
        editor.write(broken.as_bytes());
        editor.assert_error(-32700, &null);
        // The reader finds the next valid frame, and no session was created by any of this.
        editor.assert_alive();
    }
}

#[test]
fn notifications_are_never_answered_and_ids_come_back_as_they_were() {
    let (project, mut editor) = TestProject::with_editor([]);
    editor.notify("kaiak/nope", &json!({}));
    editor.notify("kaiak/session/create", &json!({"workspace_path": project.workspace()}));
    editor.notify("kaiak/session/terminate", &json!({"session_id": 5}));
    editor.notify("$/setTrace", &json!({"value": "off"}));
    editor.notify("workspace/didChangeWatchedFiles", &json!({"changes": []}));
    editor.assert_alive();
    for id in ["0", "-1", "9007199254740993", "\"\"", "\"é\"", "null"] {
        editor.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"kaiak/nope"}}"#));
        editor.assert_error(-32601, &serde_json::from_str(id).unwrap());
    }
}

#[test]
fn an_id_that_is_in_use_is_refused() {
    let project = TestProject::with_config([], "[kaiak]\nmax_sessions = 100\n");
    let mut editor = project.editor();
    let body = frame(&create(&project, 1, "x"));
    editor.write(&body.repeat(20));
    let answers: Vec<Value> = (0..20).map(|_| editor.frame()).collect();
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32600).count();
    let created = answers.iter().filter(|answer| answer["result"]["status"] == "created").count();
    assert!(refused > 0 && created > 0 && refused + created == 20, "{refused} {created}");
}

#[test]
fn ten_megabytes_pass_and_one_byte_more_does_not() {
    let (_project, mut editor) = TestProject::with_editor([]);
    let padded = |bytes: usize| {
        let head = r#"{"jsonrpc":"2.0","id":1,"method":"kaiak/session/status","params":{"session_id":"none","pad":""#;
        let tail = "\"}}";
        format!("{head}{}{tail}", "x".repeat(bytes - head.len() - tail.len()))
    };
    let limit = 10 * 1024 * 1024;
    editor.send(&padded(limit));
    editor.assert_error(-32003, &json!(1));
    editor.send(&padded(limit + 1));
    let frame = editor.frame();
    assert_eq!((&frame["error"]["code"], &frame["id"]), (&json!(-32015), &Value::Null));
    let data = &frame["error"]["data"];
    assert_eq!((&data["limit"], &data["actual_bytes"]), (&json!("request_payload"), &json!(limit + 1)));
    editor.assert_alive();
}

#[test]
fn a_huge_content_length_ends_the_connection() {
    let project = TestProject::new([]);
    let mut other = project.editor();
    other.assert_alive();
    let before = project.home.daemon_memory("VmRSS:");
    let mut editor = project.editor();
    editor.write(b"Content-Length: 99999999999\r\n\r\n");
    editor.assert_error(-32015, &Value::Null);
    assert!(editor.frames.recv_timeout(TIMEOUT).is_err(), "it is closed");
    assert!(project.home.daemon_memory("VmRSS:").saturating_sub(before) < 20 * 1024);
    other.assert_alive();
}

#[test]
fn ten_thousand_malformed_frames_are_survived() {
    let (project, mut editor) = TestProject::with_editor([]);
    editor.assert_alive();
    let before = project.home.daemon_memory("VmRSS:");
    let valid = create(&project, 1, "x");
    let mut random = Random::new(0);
    let mut stdin = editor.stdin.take().unwrap();
    let writer = thread::spawn(move || {
        for number in 0..rounds(10_000, 100_000) {
            let mut bytes = match number % 5 {
                // A truncated body with a matching length.
                0 => frame(valid.get(..random.below(valid.len())).unwrap_or("{")),
                // Flipped bytes, in the header or the body.
                1 => {
                    let mut bytes = frame(&valid);
                    for _ in 0..4 {
                        let at = random.below(bytes.len());
                        bytes[at] = random.byte();
                    }
                    bytes
                }
                2 => format!("Content-Length: {}\r\n\r\n", ["x", "-1", "1e9", ""][random.below(4)])
                    .into_bytes(),
                3 => (0..random.below(200)).map(|_| random.byte()).collect(),
                _ => frame(&"[".repeat(random.below(1000))),
            };
            // A flipped length may be larger than the body, so the rest is filled up.
            if number % 5 == 1 {
                bytes.resize(bytes.len() + 2000, b'\n');
            }
            if stdin.write_all(&bytes).is_err() {
                panic!("the connection was closed at frame {number}");
            }
        }
        stdin
    });
    editor.stdin = Some(writer.join().unwrap());
    // Completes the last frame, whatever its length says.
    editor.write(&vec![b'\n'; 128 * 1024]);
    editor.send(PROBE);
    editor.find(|frame| frame["id"] == "probe");
    let mut codes: HashMap<i64, u32> = HashMap::new();
    for frame in &editor.unread {
        *codes.entry(frame["error"]["code"].as_i64().unwrap_or_default()).or_default() += 1;
    }
    assert!(codes.get(&-32700).is_some_and(|count| *count > 1000), "{codes:?}");
    let growth = project.home.daemon_memory("VmRSS:").saturating_sub(before);
    assert!(growth <= 32 * 1024, "{growth} KiB");
}

#[test]
fn eof_inside_a_body_ends_the_connection() {
    let (project, mut editor) = TestProject::with_editor([]);
    editor.assert_alive();
    editor.write(b"Content-Length: 100\r\n\r\n{\"jsonrpc\":");
    assert_eq!(editor.close(), (0, String::new()));
    assert_eq!(project.read("src/main.rs"), MAIN);

    // Requests before the end of the input are answered.
    let output = project.home.run_with(&["rpc", "--stdio"], &frame(&create(&project, 1, "x"))).success();
    assert!(output.contains("\"status\":\"created\""), "{output}");
    // JSON lines without headers, which people try by hand.
    let output = project
        .home
        .run_with(&["rpc"], b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n")
        .success();
    assert!(output.contains("-32700"), "{output}");
}

#[test]
fn initialize_shutdown_and_exit_follow_lsp() {
    let (project, mut editor) = TestProject::with_editor([]);
    let welcome =
        editor.result("initialize", &json!({"processId": null, "rootUri": null, "capabilities": {}}));
    assert_eq!((&welcome["capabilities"], &welcome["serverInfo"]["name"]), (&json!({}), &json!("kontekst")));
    editor.notify("initialized", &json!({}));
    editor.error("initialize", &json!({}), -32600);
    let session = editor.create(&project);
    assert_eq!(editor.result("shutdown", &Value::Null), Value::Null);
    editor.error("kaiak/session/status", &json!({"session_id": session}), -32600);
    editor.notify("exit", &Value::Null);
    assert_eq!(editor.child.wait().unwrap().code(), Some(0));

    let mut rude = project.editor();
    rude.assert_alive();
    rude.notify("exit", &Value::Null);
    assert_eq!(rude.child.wait().unwrap().code(), Some(1));
}

#[test]
fn execute_command_reaches_the_same_methods() {
    let (project, mut editor) = TestProject::with_editor([]);
    let command = |name: &str, params: Value| json!({"command": name, "arguments": [params]});
    let create = command("kaiak/session/create", json!({"workspace_path": project.workspace()}));
    let session = editor.result("workspace/executeCommand", &create)["session_id"].clone();
    let status = command("kaiak/session/status", json!({"session_id": session}));
    assert_eq!(editor.result("workspace/executeCommand", &status)["status"], "created");
    editor.error("workspace/executeCommand", &command("other", json!({})), -32601);
}

#[test]
fn logs_stay_off_stdout() {
    let project = TestProject::new([edit_call(), Reply::text("done")]);
    let mut command = project.home.command(&["rpc"]);
    command.stdin(Stdio::piped()).env("KONTEKST_LOG", "trace");
    let mut editor = Editor::start(command.spawn().unwrap());
    let session = editor.create(&project);
    editor.generate(&session);
    let question = editor.next_interaction();
    editor.approve(&question, true);
    // `read_frames` panics on bytes outside of a frame.
    assert_eq!(editor.completion_status(), "success");
}
