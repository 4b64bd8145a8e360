//! Black-box tests of the Kaiak door: the real `kontekst rpc` with a scripted model server.

mod example_client;
mod files;
mod fixes;
mod framing;
mod interactions;
mod real_llama;
mod sessions;
mod silent;

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead as _, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::TestHome,
};

/// The time that a test waits for a frame before it fails.
const TIMEOUT: Duration = Duration::from_secs(60);

const MAIN: &str = "fn main() {\n    old_method();\n}\n";
const FIXED: &str = "fn main() {\n    new_method();\n}\n";

/// A workspace, a model and a daemon.
struct TestProject {
    home: TestHome,
    model: FakeLlama,
}

impl TestProject {
    fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        Self::with_config(script, "")
    }

    /// Returns a project with an editor that is connected to its daemon.
    fn with_editor(script: impl IntoIterator<Item = Reply>) -> (Self, Editor) {
        let project = Self::new(script);
        let editor = project.editor();
        (project, editor)
    }

    /// Returns the same with a session.
    fn with_session(script: impl IntoIterator<Item = Reply>) -> (Self, Editor, String) {
        let (project, mut editor) = Self::with_editor(script);
        let session = editor.create(&project);
        (project, editor, session)
    }

    fn with_config(script: impl IntoIterator<Item = Reply>, config: &str) -> Self {
        Self::with_model(FakeLlama::start(script), config)
    }

    fn with_model(model: FakeLlama, config: &str) -> Self {
        let url = model.url();
        let home = TestHome::with_config(&format!(
            "provider = \"endpoint\"\nendpoint = \"{url}\"\nbind = \"off\"\ncontext_size = 16384\n{config}"
        ));
        fs::create_dir(home.work_dir().join("src")).unwrap();
        fs::write(home.work_dir().join("src/main.rs"), MAIN).unwrap();
        Self { home, model }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.work_dir().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn editor(&self) -> Editor {
        self.editor_with(&["rpc"])
    }

    fn editor_with(&self, words: &[&str]) -> Editor {
        Editor::start(self.home.command(words).stdin(Stdio::piped()).spawn().unwrap())
    }

    fn workspace(&self) -> String {
        self.home.work_dir().display().to_string()
    }
}

/// The client side of a connection: numbers its requests and keeps frames that were not asked for yet.
struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    frames: mpsc::Receiver<Value>,
    unread: VecDeque<Value>,
    next: u64,
}

impl Editor {
    fn start(mut child: Child) -> Self {
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, stdin, frames: read_frames(stdout), unread: VecDeque::new(), next: 0 }
    }

    fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    fn send(&mut self, body: &str) {
        self.write(&frame(body));
    }

    /// Sends a request and returns its id.
    fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Returns the next frame, whatever it is.
    #[track_caller]
    fn frame(&mut self) -> Value {
        match self.unread.pop_front() {
            Some(frame) => frame,
            None => self.frames.recv_timeout(TIMEOUT).expect("a frame comes"),
        }
    }

    /// Returns the first frame that is `wanted`. The frames before it are kept for later calls.
    #[track_caller]
    fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&wanted) {
            return self.unread.remove(at).unwrap();
        }
        loop {
            let Ok(frame) = self.frames.recv_timeout(TIMEOUT) else {
                panic!("it never came; there were {:#?}", self.unread);
            };
            if wanted(&frame) {
                return frame;
            }
            self.unread.push_back(frame);
        }
    }

    #[track_caller]
    fn response(&mut self, id: u64) -> Value {
        self.find(|frame| frame.get("method").is_none() && frame["id"] == id)
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send_request(method, params);
        self.response(id)
    }

    /// Sends a request and returns its result.
    #[track_caller]
    fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{answer:#}");
        answer["result"].clone()
    }

    /// Sends a request that must fail with `code`. Returns the data of the error.
    #[track_caller]
    fn error(&mut self, method: &str, params: &Value, code: i32) -> Value {
        let answer = self.call(method, params);
        assert!(answer.get("result").is_none(), "{answer:#}");
        assert_eq!(answer["error"]["code"], code, "{params} {answer:#}");
        answer["error"]["data"].clone()
    }

    #[track_caller]
    fn create(&mut self, project: &TestProject) -> String {
        self.create_with(project, &json!({}))
    }

    #[track_caller]
    fn create_with(&mut self, project: &TestProject, configuration: &Value) -> String {
        let params = json!({"workspace_path": project.workspace(), "configuration": configuration});
        self.result("kaiak/session/create", &params)["session_id"].as_str().unwrap().to_owned()
    }

    /// Requests a fix of one incident in `src/main.rs` and returns the id of the request.
    #[track_caller]
    fn generate(&mut self, session: &str) -> String {
        self.generate_for(session, &json!([incident("src/main.rs", 2)]))
    }

    #[track_caller]
    fn generate_for(&mut self, session: &str, incidents: &Value) -> String {
        let params = json!({"session_id": session, "incidents": incidents});
        self.result("kaiak/fix/generate", &params)["request_id"].as_str().unwrap().to_owned()
    }

    /// Returns the parameters of the next `kaiak/stream/{name}` notification.
    #[track_caller]
    fn notification(&mut self, name: &str) -> Value {
        let method = format!("kaiak/stream/{name}");
        self.find(|frame| frame["method"] == method)["params"].clone()
    }

    /// Returns the content of the next `kaiak/stream/system` notification about `event`.
    #[track_caller]
    fn system_event(&mut self, event: &str) -> Value {
        self.find(|frame| {
            frame["method"] == "kaiak/stream/system" && frame["params"]["content"]["event"] == event
        })["params"]["content"]
            .clone()
    }

    /// Returns the status with which the next request completes.
    #[track_caller]
    fn completion_status(&mut self) -> String {
        self.system_event("request_completed")["status"].as_str().unwrap().to_owned()
    }

    /// Returns the id of the next question to the user.
    #[track_caller]
    fn next_interaction(&mut self) -> String {
        self.notification("user_interaction")["interaction_id"].as_str().unwrap().to_owned()
    }

    /// Approves or rejects, and returns the response.
    #[track_caller]
    fn approve(&mut self, interaction: &str, approved: bool) -> Value {
        self.call("kaiak/interaction/respond", &approval(interaction, approved))
    }

    /// Closes stdin and waits for the exit. Returns the exit code and stderr.
    fn close(mut self) -> (i32, String) {
        drop(self.stdin.take());
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), stderr)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn frame(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Reads frames in a thread. Panics on bytes that do not belong to a frame.
fn read_frames(stdout: impl Read + Send + 'static) -> mpsc::Receiver<Value> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        loop {
            let mut header = String::new();
            if stdout.read_line(&mut header).unwrap() == 0 {
                return;
            }
            let length = header.strip_prefix("Content-Length: ").and_then(|rest| rest.strip_suffix("\r\n"));
            let length: usize = length.unwrap_or_else(|| panic!("no header: {header:?}")).parse().unwrap();
            let mut blank = [0; 2];
            stdout.read_exact(&mut blank).unwrap();
            assert_eq!(&blank, b"\r\n");
            let mut body = vec![0; length];
            stdout.read_exact(&mut body).unwrap();
            if sender.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}

fn incident(path: &str, line: u64) -> Value {
    json!({
        "id": format!("{path}:{line}"), "rule_id": "deprecated-api-usage", "file_path": path,
        "line_number": line, "severity": "warning", "description": "Use of deprecated API",
        "message": "Function `old_method()` is deprecated, use `new_method()` instead",
    })
}

fn approval(interaction: &str, approved: bool) -> Value {
    json!({"interaction_id": interaction, "response_type": "approval", "response_data": {"approved": approved}})
}

/// Returns the tool call that fixes `src/main.rs`.
fn edit_call() -> Reply {
    Reply::calls([(
        "edit_file",
        json!({"path": "src/main.rs", "old_str": "old_method", "new_str": "new_method"}),
    )])
}

fn write_call(path: &str, content: &str) -> Reply {
    Reply::calls([("write_file", json!({"path": path, "content": content}))])
}

fn is_uuid(text: &str) -> bool {
    uuid::Uuid::parse_str(text).is_ok_and(|id| id.get_version_num() == 4 && id.to_string() == text)
}

#[track_caller]
fn assert_time(value: &Value) {
    let text = value.as_str().unwrap();
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00Z", "{text}");
}
