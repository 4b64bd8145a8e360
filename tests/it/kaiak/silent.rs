//! Editors that do not read.

use std::{
    io::{Read as _, Write as _},
    process::{Child, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use super::{TIMEOUT, TestProject, frame, incident, read_frames};
use crate::{
    fake_llama::{FakeLlama, Reply, Setup},
    test_home::CLIENT_MEMORY,
    wait::{Quiet, wait_until},
};

/// Returns an answer of this many kilobytes.
fn answer(pieces: usize) -> Reply {
    let event =
        json!({"choices": [{"index": 0, "delta": {"content": "x".repeat(1024)}, "finish_reason": null}]});
    Reply::text("").then_repeat(format!("data: {event}\n\n"), pieces)
}

/// An editor that has asked for a fix, and has read nothing since.
struct SilentEditor {
    relay: Child,
    stdout: ChildStdout,
}

impl SilentEditor {
    fn start(project: &TestProject) -> Self {
        // The answer is one letter again and again.
        project.home.write("agents/default/config.toml", "[rails]\nrepeats = false\n");
        let mut relay = project.home.command(&["rpc"]).stdin(Stdio::piped()).spawn().unwrap();
        let (mut stdin, mut stdout) = (relay.stdin.take().unwrap(), relay.stdout.take().unwrap());
        let create = json!({"jsonrpc": "2.0", "id": 0, "method": "kaiak/session/create",
            "params": {"workspace_path": project.workspace()}});
        stdin.write_all(&frame(&create.to_string())).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stdout.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let length = std::str::from_utf8(&head).unwrap().trim().strip_prefix("Content-Length: ").unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stdout.read_exact(&mut body).unwrap();
        let created: Value = serde_json::from_slice(&body).unwrap();
        let params =
            json!({"session_id": created["result"]["session_id"], "incidents": [incident("src/main.rs", 2)]});
        let generate = json!({"jsonrpc": "2.0", "id": 1, "method": "kaiak/fix/generate", "params": params});
        stdin.write_all(&frame(&generate.to_string())).unwrap();
        // It stays open until the relay ends.
        relay.stdin = Some(stdin);
        Self { relay, stdout }
    }

    fn kill(mut self) {
        self.relay.kill().unwrap();
        self.relay.wait().unwrap();
    }
}

/// Everything arrives once the editor reads again, and other editors are served in the meantime.
#[test]
fn an_editor_that_does_not_read_for_a_while_loses_nothing() {
    const PIECES: usize = 6_000;
    let project = TestProject::new([answer(PIECES)]);
    let SilentEditor { mut relay, stdout } = SilentEditor::start(&project);
    // Nothing is read from now on, and another editor is served in the meantime.
    project.model.wait_for_chats(1);
    project.editor().create(&project);
    let frames = read_frames(stdout);
    let (mut text_bytes, mut last) = (0, 0);
    loop {
        let next = frames.recv_timeout(TIMEOUT).unwrap();
        let params = &next["params"];
        if let Some(number) = params["message_id"].as_str().and_then(|id| id.strip_prefix("msg-")) {
            let number: u64 = number.parse().unwrap();
            assert_eq!(number, last + 1);
            last = number;
        }
        assert_ne!(next["method"], "kaiak/stream/error", "{next}");
        if next["method"] == "kaiak/stream/ai_response" {
            text_bytes += params["content"]["text"].as_str().unwrap().len();
            if params["content"]["partial"] == false {
                break;
            }
        }
    }
    assert_eq!(text_bytes, PIECES * 1024);
    drop(relay.stdin.take());
    relay.wait().unwrap();
}

#[test]
fn editors_that_do_not_read_take_little_memory() {
    // The most sessions at a time.
    const EDITORS: usize = 10;
    let model =
        FakeLlama::with(Setup { slots: EDITORS, ..Setup::default() }, (0..EDITORS).map(|_| answer(20_000)));
    let project = TestProject::with_model(model, "");
    project.editor().create(&project);
    let before = project.home.daemon_memory("VmHWM:");
    let editors: Vec<_> = (0..EDITORS).map(|_| SilentEditor::start(&project)).collect();
    project.model.wait_for_chats(EDITORS);
    let mut sent = Quiet::above(EDITORS as u64 * 1024 * 1024);
    wait_until("the buffers are full", || sent.is_constant(project.model.bytes_sent()));
    let taken = project.home.daemon_memory("VmHWM:") - before;
    assert!(taken < EDITORS as u64 * CLIENT_MEMORY, "{EDITORS} editors took {taken} KiB");
    editors.into_iter().for_each(SilentEditor::kill);
}
