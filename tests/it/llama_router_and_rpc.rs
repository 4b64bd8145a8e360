//! llama.cpp's router and RPC workers, as backends of kontekst.
//!
//! Runs only if `KONTEKST_LLAMA_SERVER` names a real llama-server with router support and `KONTEKST_TEST_MODEL` a tiny
//! model. The RPC test also needs a llama-server that was built with RPC, and `KONTEKST_RPC_SERVER`.

#![cfg(target_os = "linux")]

use std::{
    fs,
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{
    test_home::{TestHome, wait_with_output},
    wait::wait_until,
};

/// A process that listens on a port. It is killed when this is dropped.
struct Listener {
    child: Child,
    port: u16,
}

impl Listener {
    fn start(command: &mut Command, port: u16) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut this = Self { child, port };
        wait_until("the process listens", || {
            assert!(this.child.try_wait().unwrap().is_none(), "{command:?} has ended");
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        this
    }

    fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns the real llama-server, if it has all of these options, and the model.
fn llama(options: &[&str]) -> Option<(PathBuf, PathBuf)> {
    let server = PathBuf::from(std::env::var_os("KONTEKST_LLAMA_SERVER")?);
    let model = PathBuf::from(std::env::var_os("KONTEKST_TEST_MODEL")?);
    let help = Command::new(&server).arg("--help").stdin(Stdio::null()).output().ok()?;
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    options.iter().all(|option| help.contains(option)).then_some((server, model))
}

fn agent(home: &TestHome, name: &str, model: &str) {
    let sampling = "[sampling]\ntemperature = 0.0\nmax_tokens = 400\n";
    home.write(&format!("agents/{name}/config.toml"), &format!("model = \"{model}\"\n{sampling}"));
    home.write(&format!("agents/{name}/agent.md"), "You are a test.\n");
}

fn events(home: &TestHome, words: &[&str]) -> Vec<Value> {
    let stdout = wait_with_output(home.spawn(words)).success();
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

#[test]
fn llama_router_switches_models_by_name() {
    let Some((server, model)) = llama(&["--models-dir", "--models-max"]) else { return };
    let models = tempfile::tempdir().unwrap();
    for name in ["one.gguf", "two.gguf", "three.gguf"] {
        fs::copy(&model, models.path().join(name)).unwrap();
    }
    fs::write(models.path().join("broken.gguf"), "this is no model").unwrap();
    let port = free_port();
    let mut command = Command::new(server);
    command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--models-max", "2", "--jinja"]);
    command.args(["-np", "1", "-c", "4096", "--models-dir"]).arg(models.path());
    let router = Listener::start(&mut command, port);

    let home = TestHome::with_config(&format!(
        "bind = \"off\"\nprovider = \"endpoint\"\nendpoint = \"http://127.0.0.1:{}\"\ncontext_size = 8192\n",
        router.port
    ));
    for name in ["one", "two", "three", "broken", "nope"] {
        agent(&home, name, name);
    }
    fs::write(home.work_dir().join("README.md"), "# A readme\n").unwrap();
    for name in ["one", "two", "three", "one"] {
        let events = events(&home, &["run", "--json", "--new", "--agent", name, "--auto-approve", "!tool"]);
        assert_eq!((count(&events, "tool_completed"), count(&events, "completed")), (1, 1), "{events:#?}");
        // The model was loaded before the request, so its real window is known and limits the configured one.
        let turn = events.iter().rfind(|event| event["type"] == "turn_completed").unwrap();
        assert_eq!(turn["context"]["context_size"], 4096);
    }
    // At most two models stay loaded, so one of the three had to be replaced.
    let shown = events(&home, &["run", "--json", "--new", "--agent", "two", "hello"]);
    assert_eq!((count(&shown, "completed"), count(&shown, "failed")), (1, 0), "{shown:#?}");
    for (name, why) in [("broken", "could not load broken"), ("nope", "model 'nope' not found")] {
        let refused = home.run(&["run", "--new", "--agent", name, "hello"]);
        assert!(refused.code != 0 && refused.stderr.contains(why), "{refused:?}");
    }
}

#[test]
fn two_rpc_workers_hold_one_model_and_a_lost_one_is_an_error() {
    let Some((server, model)) = llama(&["--rpc"]) else { return };
    let Some(worker) = std::env::var_os("KONTEKST_RPC_SERVER") else { return };
    let start = |port: u16| {
        Listener::start(Command::new(&worker).args(["-H", "127.0.0.1", "-p", &port.to_string()]), port)
    };
    let (first, mut second) = (start(free_port()), start(free_port()));
    let home = TestHome::with_config(&format!(
        "bind = \"off\"\nprovider = \"llama-server\"\nllama_server = \"{}\"\nmodel_dir = \"{}\"\ngpu_layers = 99\n\
         llama_args = [\"--rpc\", \"127.0.0.1:{},127.0.0.1:{}\"]\n",
        server.display(),
        model.parent().unwrap().display(),
        first.port,
        second.port
    ));
    agent(&home, "default", model.file_name().unwrap().to_str().unwrap());
    fs::write(home.work_dir().join("README.md"), "# A readme\n").unwrap();
    let ask = ["run", "--json", "--new", "--auto-approve", "!tool"];
    let answer = events(&home, &ask);
    assert_eq!((count(&answer, "tool_completed"), count(&answer, "completed")), (1, 1), "{answer:#?}");

    second.kill();
    let lost = home.run(&["run", "--new", "hello"]);
    assert!(lost.code != 0 && lost.stderr.contains("ggml-rpc.cpp"), "{lost:?}");
    let _second = start(second.port);
    let answer = events(&home, &ask);
    assert_eq!((count(&answer, "tool_completed"), count(&answer, "completed")), (1, 1), "{answer:#?}");
}
