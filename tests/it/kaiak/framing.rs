//! What is on the wire: frames, JSON-RPC, and what becomes of nonsense.

use std::{collections::HashMap, fs, io::Write as _, process::Stdio, thread, time::Duration};

use serde_json::{Value, json};

use super::{Editor, MAIN, PATIENCE, Room, edit, frame};
use crate::fake_llama::Reply;

/// A request whose answer says that there is no such session: the cheapest proof of life.
const PROBE: &str =
    r#"{"jsonrpc":"2.0","id":"probe","method":"kaiak/session/status","params":{"session_id":"none"}}"#;

impl Editor {
    /// Answers still come, and nothing else came before this one.
    #[track_caller]
    fn lives(&mut self) {
        self.send(PROBE);
        let frame = self.frame();
        assert_eq!((&frame["id"], &frame["error"]["code"]), (&json!("probe"), &json!(-32003)), "{frame}");
    }

    /// The next frame is this error.
    #[track_caller]
    fn refuses(&mut self, code: i32, id: &Value) {
        let frame = self.frame();
        assert_eq!((&frame["error"]["code"], &frame["id"]), (&json!(code), id), "{frame}");
        assert!(
            frame.get("result").is_none()
                && frame["jsonrpc"] == "2.0"
                && frame["error"]["message"].is_string()
        );
    }
}

/// Bytes of the daemon in memory.
fn resident(room: &Room) -> u64 {
    let pid = room.home.daemon().unwrap().as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn create(room: &Room, id: u64, name: &str) -> String {
    let params = json!({"workspace_path": room.workspace(), "session_name": name});
    json!({"jsonrpc": "2.0", "id": id, "method": "kaiak/session/create", "params": params}).to_string()
}

#[test]
fn names_are_bytes_and_a_length_in_characters_costs_one_frame() {
    let room = Room::new([]);
    let mut editor = room.editor();
    let body = create(&room, 1, "mïgrât\u{2713}");
    editor.send(&body);
    assert_eq!(editor.answer(1)["result"]["status"], "created");

    editor.write(format!("Content-Length: {}\r\n\r\n{body}", body.chars().count()).as_bytes());
    editor.refuses(-32700, &Value::Null);
    editor.refuses(-32700, &Value::Null);
    editor.lives();
}

#[test]
fn headers_are_read_liberally() {
    let room = Room::new([]);
    let mut editor = room.editor();
    for head in [
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        "Content-Length: {}\r\nContent-Type: application/vscode-jsonrpc; charset=utf8\r\n\r\n",
        "content-length:{}\r\n\r\n",
    ] {
        let head = head.replace("{}", &PROBE.len().to_string());
        editor.write(format!("{head}{PROBE}").as_bytes());
        assert_eq!(editor.frame()["error"]["code"], -32003, "{head}");
    }
    let utf16 = "Content-Type: a/b; charset=utf-16\r\nContent-Length: 2\r\n\r\n{}";
    editor.write(utf16.as_bytes());
    editor.refuses(-32700, &Value::Null);
    editor.lives();
}

#[test]
fn frames_come_in_any_pieces() {
    let room = Room::new([]);
    let mut editor = room.editor();
    let two = [frame(&create(&room, 1, "a")), frame(&create(&room, 2, "b"))].concat();
    editor.write(&two);
    let (b, a) = (editor.answer(2), editor.answer(1));
    assert_ne!(a["result"]["session_id"], b["result"]["session_id"]);
    for byte in frame(PROBE) {
        editor.write(&[byte]);
    }
    assert_eq!(editor.frame()["id"], "probe");
}

#[test]
fn each_kind_of_nonsense_has_its_answer() {
    let room = Room::new([]);
    let mut editor = room.editor();
    let null = Value::Null;
    let valid = create(&room, 1, "x");
    let deep = "[".repeat(100_000);
    for (body, code, id) in [
        (r#"{"jsonrpc":"2.0","id":1,"#, -32700, null.clone()),
        (deep.as_str(), -32700, null.clone()),
        ("42", -32600, null.clone()),
        ("\"x\"", -32600, null.clone()),
        ("null", -32600, null.clone()),
        ("{}", -32600, null.clone()),
        ("[]", -32600, null.clone()),
        (&format!("[{valid},{valid}]"), -32600, null.clone()),
        (r#"{"jsonrpc":"1.0","method":"kaiak/session/status","id":7}"#, -32600, json!(7)),
        (r#"{"jsonrpc":"2.0","id":8}"#, -32600, json!(8)),
        (r#"{"jsonrpc":"2.0","method":5,"id":9}"#, -32600, json!(9)),
        (r#"{"jsonrpc":"2.0","method":"a","id":{}}"#, -32600, null.clone()),
        (r#"{"jsonrpc":"2.0","method":"a","id":1,"params":3}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","method":"kaiak/session/status","id":1,"params":[1]}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","method":"kaiak/session/status","id":1}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","method":"kaiak/nope","id":"a"}"#, -32601, json!("a")),
        (r#"{"jsonrpc":"2.0","method":"kaiak/v2/session/create","id":2,"params":{}}"#, -32601, json!(2)),
        (r#"{"jsonrpc":"2.0","method":"$/unknown","id":3}"#, -32601, json!(3)),
    ] {
        editor.send(body);
        editor.refuses(code, &id);
    }
    editor.write(b"Content-Length: 3\r\n\r\n\"\xff\"");
    editor.refuses(-32700, &null);
    let broken =
        ["Foo: 1\r\n\r\n", "Content-Length: abc\r\n\r\n", "Content-Length: -5\r\n\r\n", "{\"a\": 1}\n"];
    for broken in broken {
        editor.write(broken.as_bytes());
        editor.refuses(-32700, &null);
        // It finds its way back, and no session was made by any of this.
        editor.lives();
    }
}

#[test]
fn notifications_are_never_answered_and_ids_come_back_as_they_were() {
    let room = Room::new([]);
    let mut editor = room.editor();
    editor.notify("kaiak/nope", &json!({}));
    editor.notify("kaiak/session/create", &json!({"workspace_path": room.workspace()}));
    editor.notify("kaiak/session/terminate", &json!({"session_id": 5}));
    editor.notify("$/setTrace", &json!({"value": "off"}));
    editor.notify("workspace/didChangeWatchedFiles", &json!({"changes": []}));
    editor.lives();
    for id in ["0", "-1", "9007199254740993", "\"\"", "\"é\"", "null"] {
        editor.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"kaiak/nope"}}"#));
        editor.refuses(-32601, &serde_json::from_str(id).unwrap());
    }
}

#[test]
fn an_id_that_is_in_use_is_refused() {
    let room = Room::with_config([], "[kaiak]\nmax_sessions = 100\n");
    let mut editor = room.editor();
    let body = frame(&create(&room, 1, "x"));
    editor.write(&body.repeat(20));
    let answers: Vec<Value> = (0..20).map(|_| editor.frame()).collect();
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32600).count();
    let created = answers.iter().filter(|answer| answer["result"]["status"] == "created").count();
    assert!(refused > 0 && created > 0 && refused + created == 20, "{refused} {created}");
}

#[test]
fn ten_megabytes_pass_and_one_byte_more_does_not() {
    let room = Room::new([]);
    let mut editor = room.editor();
    let padded = |bytes: usize| {
        let head = r#"{"jsonrpc":"2.0","id":1,"method":"kaiak/session/status","params":{"session_id":"none","pad":""#;
        let tail = "\"}}";
        format!("{head}{}{tail}", "x".repeat(bytes - head.len() - tail.len()))
    };
    let limit = 10 * 1024 * 1024;
    editor.send(&padded(limit));
    editor.refuses(-32003, &json!(1));
    editor.send(&padded(limit + 1));
    let frame = editor.frame();
    assert_eq!((&frame["error"]["code"], &frame["id"]), (&json!(-32015), &Value::Null));
    let data = &frame["error"]["data"];
    assert_eq!((&data["limit"], &data["actual_bytes"]), (&json!("request_payload"), &json!(limit + 1)));
    editor.lives();
}

#[test]
fn a_huge_promise_ends_the_connection_and_costs_nothing() {
    let room = Room::new([]);
    let mut other = room.editor();
    other.lives();
    let before = resident(&room);
    let mut editor = room.editor();
    editor.write(b"Content-Length: 99999999999\r\n\r\n");
    editor.refuses(-32015, &Value::Null);
    assert!(editor.frames.recv_timeout(PATIENCE).is_err(), "it is closed");
    assert!(resident(&room).saturating_sub(before) < 20 * 1024 * 1024);
    other.lives();
}

#[test]
fn ten_thousand_malformed_frames_are_survived() {
    let room = Room::new([]);
    let mut editor = room.editor();
    editor.lives();
    let before = resident(&room);
    let valid = create(&room, 1, "x");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut stdin = editor.stdin.take().unwrap();
    let writer = thread::spawn(move || {
        for number in 0..10_000 {
            let mut bytes = match number % 5 {
                // Cut, with a length that is right for what is left.
                0 => frame(valid.get(..random(valid.len())).unwrap_or("{")),
                // Flipped bytes, headers and all.
                1 => {
                    let mut bytes = frame(&valid);
                    for _ in 0..4 {
                        let at = random(bytes.len());
                        bytes[at] = u8::try_from(random(256)).unwrap();
                    }
                    bytes
                }
                2 => format!("Content-Length: {}\r\n\r\n", ["x", "-1", "1e9", ""][random(4)]).into_bytes(),
                3 => (0..random(200)).map(|_| u8::try_from(random(256)).unwrap()).collect(),
                _ => frame(&"[".repeat(random(1000))),
            };
            // A flipped length may promise more than there is: this closes what it opened.
            if number % 5 == 1 {
                bytes.resize(bytes.len() + 2000, b'\n');
            }
            if stdin.write_all(&bytes).is_err() {
                panic!("the connection was closed at frame {number}");
            }
        }
        stdin
    });
    let mut codes: HashMap<i64, u32> = HashMap::new();
    while !writer.is_finished() {
        if let Ok(frame) = editor.frames.recv_timeout(Duration::from_millis(20)) {
            *codes.entry(frame["error"]["code"].as_i64().unwrap_or_default()).or_default() += 1;
        }
    }
    editor.stdin = Some(writer.join().unwrap());
    // Whatever length was promised last, it is over after this.
    editor.write(&vec![b'\n'; 128 * 1024]);
    editor.send(PROBE);
    editor.find(|frame| frame["id"] == "probe");
    assert!(codes.get(&-32700).is_some_and(|count| *count > 1000), "{codes:?}");
    let growth = resident(&room).saturating_sub(before);
    assert!(growth <= 32 * 1024 * 1024, "{growth} bytes");
}

#[test]
fn an_end_in_the_middle_of_a_body_is_an_end() {
    let room = Room::new([]);
    let mut editor = room.editor();
    editor.lives();
    editor.write(b"Content-Length: 100\r\n\r\n{\"jsonrpc\":");
    assert_eq!(editor.leave(), (0, String::new()));
    assert_eq!(room.read("src/main.rs"), MAIN);

    // What was asked before the end is answered.
    let output = room.home.run_with(&["rpc", "--stdio"], &frame(&create(&room, 1, "x"))).success();
    assert!(output.contains("\"status\":\"created\""), "{output}");
    // People do this.
    let output =
        room.home.run_with(&["rpc"], b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n").success();
    assert!(output.contains("-32700"), "{output}");
}

#[test]
fn the_life_of_a_language_server() {
    let room = Room::new([]);
    let mut editor = room.editor();
    let welcome =
        editor.result("initialize", &json!({"processId": null, "rootUri": null, "capabilities": {}}));
    assert_eq!((&welcome["capabilities"], &welcome["serverInfo"]["name"]), (&json!({}), &json!("kontekst")));
    editor.notify("initialized", &json!({}));
    editor.error("initialize", &json!({}), -32600);
    let session = editor.create(&room);
    assert_eq!(editor.result("shutdown", &Value::Null), Value::Null);
    editor.error("kaiak/session/status", &json!({"session_id": session}), -32600);
    editor.notify("exit", &Value::Null);
    assert_eq!(editor.child.wait().unwrap().code(), Some(0));

    let mut rude = room.editor();
    rude.lives();
    rude.notify("exit", &Value::Null);
    assert_eq!(rude.child.wait().unwrap().code(), Some(1));
}

#[test]
fn editor_commands_reach_the_same_methods() {
    let room = Room::new([]);
    let mut editor = room.editor();
    let command = |name: &str, params: Value| json!({"command": name, "arguments": [params]});
    let create = command("kaiak/session/create", json!({"workspace_path": room.workspace()}));
    let session = editor.result("workspace/executeCommand", &create)["session_id"].clone();
    let status = command("kaiak/session/status", json!({"session_id": session}));
    assert_eq!(editor.result("workspace/executeCommand", &status)["status"], "created");
    editor.error("workspace/executeCommand", &command("other", json!({})), -32601);
}

#[test]
fn logs_stay_off_stdout() {
    let room = Room::new([edit(), Reply::text("done")]);
    let mut command = room.home.command(&["rpc"]);
    command.stdin(Stdio::piped()).env("KONTEKST_LOG", "trace");
    let mut editor = Editor::start(command.spawn().unwrap());
    let session = editor.create(&room);
    editor.generate(&session);
    let question = editor.question();
    editor.approve(&question, true);
    // The harness fails on a byte that is in no frame.
    assert_eq!(editor.ended(), "success");
}
