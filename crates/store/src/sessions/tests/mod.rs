//! Tests of the session files, by subject.

mod append;
mod files;
mod tail;

use std::{fs, path::Path};

use kontekst_core::{CallId, Message, Role, ToolCall, ToolResult};

use super::*;

struct TestSessions {
    _dir: tempfile::TempDir,
    home: Home,
    sessions: Sessions,
    id: SessionId,
}

impl TestSessions {
    fn new() -> Self {
        // The files are in memory where possible, because thousands of fdatasyncs on a disk take minutes.
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
        let home = Home::find(Some(dir.path().join("data"))).unwrap();
        home.create().unwrap();
        let sessions = Sessions::new(&home);
        Self { _dir: dir, home, sessions, id: "s".parse().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.home.sessions().join("s.jsonl")
    }

    fn write(&self, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(), bytes).unwrap();
    }

    fn open(&self) -> SessionLog {
        self.sessions.open(&self.id).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.home.sessions())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn text(role: Role, content: &str, tokens: u32) -> Message {
    Message { tokens, ..Message::text(role, content) }
}

fn bytes_by_four(message: &Message) -> u32 {
    message.content.len() as u32 / 4
}

fn append(log: &mut SessionLog, messages: &[Message]) {
    let records: Vec<Record<'_>> = messages.iter().map(Record::Message).collect();
    log.append(&records).unwrap();
}

fn call(id: &str) -> ToolCall {
    ToolCall { id: CallId::new(id), name: "f".to_owned(), arguments: "{}".to_owned() }
}

fn calls(ids: &[&str]) -> Message {
    Message { tool_calls: ids.iter().map(|id| call(id)).collect(), ..text(Role::Assistant, "", 3) }
}

fn result(id: &str) -> Message {
    Message {
        tokens: 2,
        ..Message::result(ToolResult {
            call_id: CallId::new(id),
            name: "f".to_owned(),
            output: "done".to_owned(),
            is_error: false,
        })
    }
}

/// Returns one letter per message: `u` for the user, `a` for the assistant, `a(ids)` with calls, `r(id)` for
/// a result, and `!` for an error.
fn shape(messages: &[Message]) -> String {
    let one = |message: &Message| match (&message.role, &message.tool_result) {
        (Role::User, _) => "u".to_owned(),
        (_, Some(result)) => format!("r({}){}", result.call_id, if result.is_error { "!" } else { "" }),
        (_, None) if message.tool_calls.is_empty() => "a".to_owned(),
        _ => {
            let ids: Vec<_> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
            format!("a({})", ids.join(","))
        }
    };
    messages.iter().map(one).collect::<Vec<_>>().join(" ")
}
