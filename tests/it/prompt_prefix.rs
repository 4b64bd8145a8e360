//! Each prompt begins with the one before it, so that the model server can use its cache.

use std::{
    fs,
    process::{Child, Command, Stdio},
};

use kontekst_core::Cancel;
use kontekst_provider::openai::{Probe, ServerClient, probe};
use serde_json::{Value, json};

use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::TestHome,
    wait::{TIMEOUT, wait_until},
};

/// Returns the tools and messages of a request in the order in which a template renders them.
fn prompt(body: &Value) -> String {
    let messages = serde_json::to_string(&body["messages"]).unwrap();
    format!("{}{}", body["tools"], messages.strip_suffix(']').unwrap())
}

#[test]
fn each_prompt_starts_with_the_one_before_it() {
    let fake = FakeLlama::start([]).always({
        let mut turn = 0;
        move |_| {
            turn += 1;
            match turn % 21 {
                0 => Reply::text("that is all"),
                even if even % 2 == 0 => Reply::text("Let me see.")
                    .then_calls([("read_file", json!({"path": "a.txt", "end_line": turn}))]),
                _ => Reply::calls([(
                    "list_files",
                    json!({"pattern": format!("{{*.txt,{turn}}}"), "path": "."}),
                )]),
            }
        }
    });
    let home = TestHome::with_config(&format!(
        "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\ncontext_size = 16384\n",
        fake.url()
    ));
    home.write("agents/default/agent.md", "You are a test.\n");
    fs::write(home.work_dir().join("a.txt"), "some \"text\"\n").unwrap();
    home.run(&["run", "--auto-approve", "first"]).success();
    home.run(&["run", "-c", "--auto-approve", "second"]).success();
    home.run(&["daemon", "stop"]).success();
    home.run(&["run", "-c", "--auto-approve", "third"]).success();
    let chats = fake.chats();
    assert_eq!(chats.len(), 63);
    for (turn, pair) in chats.windows(2).enumerate() {
        let (before, after) = (prompt(&pair[0]), prompt(&pair[1]));
        assert!(after.starts_with(&before), "turn {}:\n{before}\n{after}", turn + 1);
        for key in ["model", "temperature", "top_p", "top_k", "repeat_penalty", "cache_prompt"] {
            assert_eq!(pair[0][key], pair[1][key], "{key}");
        }
    }

    // The same check on the rendered prompt, if a real server is configured.
    let Some(real) = RealServer::start() else { return };
    let rendered: Vec<String> = chats.iter().map(|chat| real.render(chat)).collect();
    for (turn, pair) in rendered.windows(2).enumerate() {
        assert!(pair[1].starts_with(&pair[0]), "turn {}:\n{}\n{}", turn + 1, pair[0], pair[1]);
    }
}

#[test]
fn in_steps_each_prompt_starts_with_the_one_before_it() {
    let fake = FakeLlama::start([]).always({
        let mut turn = 0;
        move |_| {
            turn += 1;
            Reply::text(&match turn % 7 {
                0 => json!({"tool": "answer", "text": "that is \"all\""}).to_string(),
                3 => json!({"tool": "read_file", "path": "b.txt"}).to_string(),
                _ => format!(r#"{{"tool": "list_files", "pattern": "{{*.txt,{turn}}}"}}"#),
            })
        }
    });
    let config = format!("provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\n", fake.url());
    let home = TestHome::with_config(&config);
    home.write("agents/default/agent.md", "You are a test.\n");
    home.write("agents/default/config.toml", "tool_role = \"steps\"\ncontext_size = 16384\n");
    fs::write(home.work_dir().join("a.txt"), "some \"text\"\n").unwrap();
    fs::write(home.work_dir().join("b.txt"), "b\n").unwrap();
    home.run(&["run", "--auto-approve", "what is in a.txt?"]).success();
    home.run(&["run", "-c", "--auto-approve", "second"]).success();
    let prompts: Vec<String> = fake.chats().iter().map(prompt).collect();
    assert_eq!(prompts.len(), 14);
    for (turn, pair) in prompts.windows(2).enumerate() {
        assert!(pair[1].starts_with(&pair[0]), "turn {}:\n{}\n{}", turn + 1, pair[0], pair[1]);
    }
    // The listing and the file that came with the first prompt stay, and do not come again with the next one.
    assert_eq!(prompts[13].matches("a.txt holds:").count(), 1);
    let reminder = "The request: what is in a.txt?";
    assert!(prompts[6].contains(reminder) && prompts[7].contains(reminder));
}

/// A real llama-server without a supervisor.
struct RealServer {
    process: Child,
    link: ServerClient,
}

impl RealServer {
    fn start() -> Option<Self> {
        let (binary, model) =
            (std::env::var_os("KONTEKST_LLAMA_SERVER")?, std::env::var_os("KONTEKST_TEST_MODEL")?);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(binary)
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--jinja", "-m"])
            .arg(model)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let real =
            Self { process, link: ServerClient::new(&format!("http://127.0.0.1:{port}"), None, TIMEOUT) };
        wait_until("the real server is ready", || {
            matches!(probe(&real.link, "", &Cancel::new(), TIMEOUT), Ok(Probe::Ready(_)))
        });
        Some(real)
    }

    fn render(&self, chat: &Value) -> String {
        let request = json!({"messages": chat["messages"], "tools": chat["tools"]}).to_string();
        let answer = self.link.request("/apply-template", Some(request.as_bytes()), &Cancel::new(), TIMEOUT);
        let (status, body) = answer.unwrap();
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["prompt"].as_str().unwrap().to_owned()
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
