//! The whole program with the real llama.cpp server and a tiny model.
//!
//! Runs only if `KONTEKST_LLAMA_SERVER` and `KONTEKST_TEST_MODEL` are set, as `.ci/run` does. The tiny model comes
//! from `tests/llama/tiny_gguf.py` and does what its prompt says: `!tool` calls a tool, `!think` reasons first,
//! `!long` never stops.

use std::{fs, io::Read as _, path::PathBuf, process::Command};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::{
    fake_llama::process::wait_for_exit,
    grpc::client_in_python,
    test_home::{TestHome, wait_with_output},
};

struct RealServer {
    home: TestHome,
    server: PathBuf,
}

impl RealServer {
    /// Returns `None` if no real server is configured.
    fn new() -> Option<Self> {
        let server = PathBuf::from(std::env::var_os("KONTEKST_LLAMA_SERVER")?);
        let model = PathBuf::from(std::env::var_os("KONTEKST_TEST_MODEL")?);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "endpoint = \"http://127.0.0.1:{port}\"\nbind = \"off\"\nmodel_dir = \"{}\"\n",
            model.parent().unwrap().display()
        );
        let home = TestHome::with_config(&config);
        let name = model.file_name().unwrap().to_str().unwrap().to_owned();
        home.write(
            "agents/default/config.toml",
            &format!(
                "model = \"{name}\"\ntool_role = true\n[sampling]\ntemperature = 0.0\nmax_tokens = 400\n"
            ),
        );
        home.write("agents/default/agent.md", "You are a test.\n");
        fs::write(home.work_dir().join("README.md"), "# A readme\n").unwrap();
        Some(Self { home, server })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        // The server is started by a script, whose interpreter is found through `PATH`.
        command.env("KONTEKST_LLAMA_SERVER", &self.server).env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    #[track_caller]
    fn success(&self, words: &[&str]) -> String {
        wait_with_output(self.command(words).spawn().unwrap()).success()
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.success(&["status", "--json"])).unwrap()
    }
}

#[test]
fn a_real_model_answers_calls_a_tool_and_is_gone_with_the_daemon() {
    let Some(real) = RealServer::new() else { return };
    let answer = real.success(&["run", "hello"]);
    assert!(answer.ends_with(".\n") && answer.lines().count() == 1, "{answer}");

    let events = real.success(&["run", "--json", "--auto-approve", "!tool"]);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("tools_proposed"), of("tool_completed"), of("completed")), (1, 1, 1), "{events:#?}");
    // The second turn processes only the new part of the prompt.
    let turns: Vec<_> = events.iter().filter(|event| event["type"] == "turn_completed").collect();
    let (prompt, cached) = (&turns[1]["context"]["prompt_tokens"], &turns[1]["context"]["cached_tokens"]);
    assert!(cached.as_i64().unwrap() * 10 > prompt.as_i64().unwrap() * 9, "{prompt} {cached}");

    let shown = real.success(&["sessions", "show", "--json"]);
    for part in ["!tool", "tool_calls", "README.md", "tool_result"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let status = real.status();
    let pid = i32::try_from(status["model_server"]["pid"].as_i64().unwrap()).unwrap();
    assert_eq!(
        (&status["model_server"]["running"], &status["model_server"]["healthy"]),
        (&true.into(), &true.into())
    );
    real.success(&["daemon", "stop"]);
    assert!(test_kill_process(Pid::from_raw(pid).unwrap()).is_err(), "the model server outlived the daemon");
}

#[test]
fn a_long_answer_is_cancelled_and_the_next_one_comes_at_once() {
    let Some(real) = RealServer::new() else { return };
    let mut child = real.command(&["run", "!long"]).spawn().unwrap();
    let mut first = [0; 16];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(wait_with_output(child).code, 130);
    assert!(real.success(&["run", "--new", "hello"]).ends_with(".\n"));
}

#[test]
fn the_model_server_dies_with_a_killed_daemon() {
    let Some(real) = RealServer::new() else { return };
    real.success(&["run", "hello"]);
    let pid = i32::try_from(real.status()["model_server"]["pid"].as_i64().unwrap()).unwrap();
    kill_process(real.home.daemon().unwrap(), Signal::KILL).unwrap();
    wait_for_exit(pid.unsigned_abs());
    assert!(real.success(&["run", "--new", "hello"]).ends_with(".\n"));
}

#[test]
fn a_client_in_python_drives_all_of_it() {
    let Some(real) = RealServer::new() else { return };
    real.success(&["daemon", "restart"]);
    let socket = format!("unix:{}", real.home.root().join("run/daemon.sock").display());
    if let Some(worked) = client_in_python("drive.py", &socket, &real.home) {
        assert_eq!(worked, ["status", "run", "approve", "deny", "cancel", "shutdown"]);
    }
}

/// The chat template of the model without its support for tools.
const PLAIN: &str = "\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- if loop.last and add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if '!tool' in message.content and '<tools>' in messages[0].content -%}{{- '<|tool|>' -}}
{%- else -%}{{- '<|text|>' -}}{%- endif -%}
{%- endif -%}
{%- endfor -%}
";

#[test]
fn a_real_model_whose_template_knows_no_tools_calls_one_in_text() {
    let Some(real) = RealServer::new() else { return };
    let config = fs::read_to_string(real.home.root().join("config.toml")).unwrap();
    let template = serde_json::to_string(PLAIN).unwrap();
    real.home.write("config.toml", &format!("{config}llama_args = [\"--chat-template\", {template}]\n"));
    let agent = real.home.read("agents/default/config.toml");
    real.home.write("agents/default/config.toml", &agent.replace("tool_role = true", "tool_role = \"text\""));
    let events = real.success(&["run", "--json", "--auto-approve", "!tool"]);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("tools_proposed"), of("tool_completed"), of("completed")), (1, 1, 1), "{events:#?}");
    let shown: Vec<_> = events.iter().filter(|event| event["type"] == "token").collect();
    assert!(!shown.iter().any(|event| event.to_string().contains('<')), "{shown:?}");
    let turns: Vec<_> = events.iter().filter(|event| event["type"] == "turn_completed").collect();
    let (prompt, cached) = (&turns[1]["context"]["prompt_tokens"], &turns[1]["context"]["cached_tokens"]);
    assert!(cached.as_i64().unwrap() * 10 > prompt.as_i64().unwrap() * 8, "{prompt} {cached}");
}
