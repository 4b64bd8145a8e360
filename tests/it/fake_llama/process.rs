//! The fake server as an executable that takes llama-server's arguments.
//!
//! The executable is a shell script that starts this test binary again, which then serves. So it is there
//! whenever a test runs, and never older than the test.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{FakeLlama, Reply, Setup};

/// The variable that tells this test binary to be a server: the directory of a [`FakeBinary`].
const DIR: &str = "FAKE_LLAMA_DIR";

/// A `llama-server` in a directory of its own, with a record of what became of it.
pub struct FakeBinary {
    dir: PathBuf,
}

/// How the next process behaves.
#[derive(Clone, Copy, Debug)]
pub enum Mode {
    /// Serves. Chat requests are answered with what [`FakeBinary::answer`] was given, else with `hello`.
    Serve,
    /// Says why and exits with 1 before it is ready.
    DieAtOnce,
    /// Finds its port taken.
    PortTaken,
    /// Answers 503 and reports half the model loaded, until [`FakeBinary::finish_loading`].
    Load,
    /// Serves, and does not listen to TERM or to its stdin.
    Stubborn,
}

/// One start: the process id, the arguments, and the environment variables that begin with `LLAMA_`.
#[derive(Clone, Debug)]
pub struct Launch {
    pub pid: u32,
    pub arguments: Vec<String>,
    pub environment: Vec<String>,
    pub directory: PathBuf,
}

impl Launch {
    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|word| word == name)?;
        self.arguments.get(at + 1).map(String::as_str)
    }
}

impl FakeBinary {
    pub fn new(dir: &Path) -> Self {
        let dir = dir.join("fake-llama");
        fs::create_dir_all(&dir).unwrap();
        let binary = Self { dir };
        binary.mode(Mode::Serve);
        let (dir, tests) = (binary.dir.display(), std::env::current_exe().unwrap());
        // The process id of the shell is that of the server: `exec` keeps it.
        let script = format!(
            r#"#!/bin/sh
dir='{dir}'
if [ "$1" = --help ]; then
    echo '-h,    --help, --usage                  print usage and exit'
    for o in --host --port --ctx-size --n-gpu-layers --reasoning-format --alias --jinja -np -b -ub --no-webui; do
        echo "$o X"
    done
    exit 0
fi
for word; do printf '%s\n' "$word"; done > "$dir/arguments.$$"
env | grep '^LLAMA_' > "$dir/environment.$$"
pwd > "$dir/directory.$$"
echo $$ >> "$dir/starts"
[ "$(cat "$dir/mode")" = Stubborn ] && trap '' TERM
{DIR}="$dir" exec '{}' --exact fake_llama::process::server_process --nocapture --test-threads 1
"#,
            tests.display()
        );
        let path = binary.path();
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        binary
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join("llama-server")
    }

    /// The directory that [`FakeBinary::path`] is in, for a `PATH`.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How processes that start from now on behave.
    pub fn mode(&self, mode: Mode) {
        fs::write(self.dir.join("mode"), format!("{mode:?}")).unwrap();
    }

    /// Answers chat requests, in order and then again from the first: `{"text": …}`, `{"hang": true}`,
    /// or `{"calls": [[name, arguments], …]}`.
    pub fn answer(&self, answers: &Value) {
        fs::write(self.dir.join("answers"), answers.to_string()).unwrap();
    }

    /// Lets a process in [`Mode::Load`] be ready.
    pub fn finish_loading(&self) {
        fs::write(self.dir.join("go-on"), "").unwrap();
    }

    /// Every start so far.
    pub fn launches(&self) -> Vec<Launch> {
        let read = |name: &str| fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        let lines = |name: String| read(&name).lines().map(str::to_owned).collect();
        let start = |pid: &str| Launch {
            pid: pid.parse().unwrap(),
            arguments: lines(format!("arguments.{pid}")),
            environment: lines(format!("environment.{pid}")),
            directory: read(&format!("directory.{pid}")).trim_end().into(),
        };
        read("starts").lines().map(start).collect()
    }
}

/// Waits until no process has this id.
#[track_caller]
pub fn wait_until_gone(pid: u32) {
    let until = Instant::now() + super::TIMEOUT;
    // There is nothing to be told by: the process is another's child.
    while rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid.cast_signed()).unwrap())
        .is_ok()
    {
        assert!(Instant::now() < until, "process {pid} is still there");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Not a test: what the script runs.
#[test]
#[expect(clippy::exit, reason = "it is a process of its own")]
fn server_process() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let pid = std::process::id();
    let arguments = fs::read_to_string(dir.join(format!("arguments.{pid}"))).unwrap();
    let arguments: Vec<&str> = arguments.lines().collect();
    let option = |name: &str| arguments.iter().position(|word| *word == name).map(|at| arguments[at + 1]);
    let mode = fs::read_to_string(dir.join("mode")).unwrap();
    let say = |line: &str| {
        use std::io::Write as _;
        writeln!(std::io::stderr(), "{line}").ok();
    };
    match mode.as_str() {
        "DieAtOnce" => {
            say("I loading model");
            say("E llama_model_load: \u{1b}[31mnot a GGUF file");
            std::process::exit(1);
        }
        "PortTaken" => {
            fs::write(dir.join("mode"), "Serve").unwrap();
            say("E couldn't bind HTTP server socket");
            std::process::exit(1);
        }
        _ => {}
    }
    if mode != "Stubborn" && std::env::var_os("LLAMA_SERVER_ROUTER_PORT").is_some() {
        thread::spawn(|| {
            std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).ok();
            std::process::exit(0);
        });
    }
    let host = option("--host").unwrap_or("127.0.0.1");
    let setup = Setup {
        window: option("--ctx-size").map_or(4096, |tokens| tokens.parse().unwrap()),
        slots: option("-np").map_or(4, |slots| slots.parse().unwrap()),
        model_path: option("-m").unwrap().to_owned(),
        key: std::env::var("LLAMA_API_KEY").ok(),
        address: format!("{host}:{}", option("--port").unwrap()).parse().unwrap(),
        loading: mode == "Load",
        ..Setup::default()
    };
    let fake = FakeLlama::with(setup, []).always({
        let (dir, mut count) = (dir.clone(), 0);
        move |_| {
            count += 1;
            answer(&dir, count - 1)
        }
    });
    say("I srv  llama_server: listening");
    if mode == "Load" {
        let state = json!({"state": "loading", "payload": {"stages": ["text_model"], "current": "text_model", "value": 0.5}});
        use std::io::Write as _;
        writeln!(std::io::stdout(), "\ncmd_child_to_router:state:{state}").ok();
        while !dir.join("go-on").exists() {
            thread::sleep(Duration::from_millis(2));
        }
        fake.finish_loading();
    }
    loop {
        thread::park();
    }
}

fn answer(dir: &Path, at: usize) -> Reply {
    let answers = fs::read(dir.join("answers")).unwrap_or_default();
    let answers: Vec<Value> =
        serde_json::from_slice(&answers).unwrap_or_else(|_| vec![json!({"text": "hello"})]);
    let answer = &answers[at % answers.len()];
    if let Some(text) = answer["text"].as_str() {
        return Reply::text(text);
    }
    if answer["hang"] == true {
        return Reply::text("so ").then_hang();
    }
    let calls = answer["calls"].as_array().expect("`text`, `hang` or `calls`");
    Reply::calls(calls.iter().map(|call| (call[0].as_str().unwrap(), call[1].clone())))
}
