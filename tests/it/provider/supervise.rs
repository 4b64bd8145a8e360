//! Servers of our own: found, started, waited for, restarted, gone.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use kontekst::{
    config::{Config, Home, ProviderKind},
    core::Cancel,
    provider::{
        Models as _, Progress, Provider, ProviderError, Wanted,
        router::{ProcessEnv, Router},
        supervisor::exec,
    },
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{TIMING, prompt};
use crate::fake_llama::{
    FakeLlama, Reply, Setup,
    process::{Binary, Mode, wait_until_gone},
};

/// A model directory with two models, a fake llama-server, and nothing at `endpoint`.
struct Place {
    dir: tempfile::TempDir,
    binary: Binary,
    config: Config,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let model_dir = dir.path().join("models");
        fs::create_dir(&model_dir).unwrap();
        for model in ["one.gguf", "two.gguf"] {
            fs::write(model_dir.join(model), "").unwrap();
        }
        let binary = Binary::new(dir.path());
        let config =
            Config { model_dir, endpoint: format!("http://127.0.0.1:{}", free_port()), ..Config::default() };
        Self { dir, binary, config }
    }

    fn router(&self) -> Router {
        let around = ProcessEnv {
            search_path: Some(
                std::env::join_paths([self.binary.dir(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap(),
            ),
            launcher: Some(launcher(self.dir.path())),
            ..ProcessEnv::default()
        };
        Router::with_timing(&self.config, around, TIMING)
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An executable that takes the role of the daemon's own: this test binary, again.
fn launcher(dir: &Path) -> PathBuf {
    let path = dir.join("launcher");
    if !path.exists() {
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = {} ] || exit 64\nshift\nfor word; do printf '%s\\n' \"$word\"; done > '{dir}'/role.$$\n\
             ROLE_FILE='{dir}'/role.$$ exec '{}' --exact provider::supervise::role --nocapture\n",
            exec::ROLE,
            std::env::current_exe().unwrap().display(),
            dir = dir.display(),
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    path
}

/// Not a test: what the launcher runs.
#[test]
fn role() {
    let Some(file) = std::env::var_os("ROLE_FILE") else { return };
    let arguments = fs::read_to_string(file).unwrap();
    let error = exec::exec_child(arguments.lines().map(Into::into));
    panic!("{error}");
}

fn open(router: &Router, model: &str) -> Result<Arc<dyn Provider>, ProviderError> {
    router.open(wanted(model), &Cancel::new(), &mut |_| {})
}

fn wanted(model: &str) -> Wanted<'_> {
    Wanted { model, endpoint: None }
}

fn say_hello(provider: &dyn Provider) -> Result<String, ProviderError> {
    provider.generate(&prompt("hi"), &Cancel::new(), &mut |_| {}).map(|turn| turn.content)
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_until_gone(pid); // which says that it was waited for, too
}

#[test]
fn a_child_is_started_as_the_seed_says_and_answers() {
    let place = Place::new();
    let router = place.router();
    assert!(!router.status().healthy);
    let provider = open(&router, "one.gguf").unwrap();
    assert_eq!(say_hello(&*provider).unwrap(), "hello");
    assert_eq!((provider.window(), provider.slots()), (Some(4096), 1));

    let starts = place.binary.starts();
    let start = &starts[0];
    let model = place.config.model_dir.join("one.gguf");
    assert_eq!(format!("http://127.0.0.1:{}", start.option("--port").unwrap()), place.config.endpoint);
    assert_eq!(start.option("--host"), Some("127.0.0.1"));
    assert_eq!(start.option("--ctx-size"), Some("4096"));
    assert_eq!(start.option("--reasoning-format"), Some("deepseek"));
    assert_eq!(start.option("-m"), model.to_str());
    assert_eq!(start.option("--alias"), Some("one"));
    assert_eq!(start.option("--n-gpu-layers"), None);
    assert_eq!(start.directory, place.config.model_dir);
    let (keys, rest): (Vec<_>, Vec<_>) =
        start.environment.iter().partition(|line| line.starts_with("LLAMA_API_KEY="));
    assert_eq!((keys.len(), rest), (1, vec![&"LLAMA_SERVER_ROUTER_PORT=1".to_owned()]));
    let key = keys[0].split_once('=').unwrap().1;
    assert!(key.len() == 32 && !start.arguments.iter().any(|word| word.contains(key)));

    let status = router.status();
    assert!(status.healthy && status.running);
    assert_eq!((status.pid, &*status.model, &*status.endpoint), (start.pid, "one", &*place.config.endpoint));

    // Opening again asks nobody and starts nothing.
    let again = Instant::now();
    for _ in 0..100 {
        open(&router, "one").unwrap();
    }
    assert!(again.elapsed() < Duration::from_millis(100), "{:?}", again.elapsed());
    assert_eq!(place.binary.starts().len(), 1);

    router.stop();
    router.stop();
    wait_until_gone(start.pid);
    let status = router.status();
    assert!(!status.running && !status.healthy && status.pid == 0);
    assert!(matches!(open(&router, "one"), Err(ProviderError::NoServer(_))));
}

#[test]
fn what_runs_at_the_endpoint_is_used_and_left_alone() {
    let fake = FakeLlama::with(Setup { key: Some("k".to_owned()), slots: 3, ..Setup::default() }, []);
    let fake = fake.always(|_| Reply::text("from there"));
    let place = Place::new();
    let config = Config { endpoint: fake.url(), ..place.config.clone() };
    let around = ProcessEnv { api_key: Some("k".to_owned()), ..ProcessEnv::default() };
    let router = Router::with_timing(&config, around, TIMING);
    let provider = open(&router, "any/name.gguf").unwrap();
    assert_eq!(say_hello(&*provider).unwrap(), "from there");
    assert_eq!(provider.slots(), 3);
    assert_eq!(fake.chats()[0]["model"], "any/name");
    let asked = fake.requests().len();
    open(&router, "any/name.gguf").unwrap();
    assert_eq!(fake.requests().len(), asked); // known to be good: no probe
    let status = router.status();
    assert!(status.healthy && !status.running && status.pid == 0);
    router.stop();
    assert!(router.status().healthy);
    fake.assert_clean();
}

#[test]
fn a_server_that_went_away_is_noticed_and_another_is_found() {
    let place = Place::new();
    let address = place.config.endpoint.strip_prefix("http://").unwrap().parse().unwrap();
    let setup = Setup { address, ..Setup::default() };
    let fake = FakeLlama::with(setup, []).always(|_| Reply::text("from there"));
    let router = place.router();
    let provider = open(&router, "one").unwrap();
    assert_eq!(say_hello(&*provider).unwrap(), "from there");
    drop(fake);
    let gone = say_hello(&*provider).unwrap_err();
    assert!(matches!(gone, ProviderError::Unreachable { started: false, .. }), "{gone:?}");
    let provider = open(&router, "one").unwrap(); // now of our own
    assert_eq!(say_hello(&*provider).unwrap(), "hello");
}

#[test]
fn a_pin_is_honoured_or_refused() {
    let fake = FakeLlama::start([]).always(|_| Reply::text("from there"));
    let mut place = Place::new();
    place.config.provider = Some(ProviderKind::Endpoint);
    let error = open(&place.router(), "one").err().unwrap().to_string();
    assert!(error.starts_with(&format!("nothing answers at {}", place.config.endpoint)), "{error}");
    place.config.provider = Some(ProviderKind::LlamaServer);
    place.config.endpoint = fake.url();
    let router = place.router();
    let provider = open(&router, "one").unwrap();
    assert_eq!(say_hello(&*provider).unwrap(), "hello");
    assert_eq!(fake.requests().len(), 0);
    // That port was taken: the child has another.
    assert_ne!(place.binary.starts()[0].option("--port"), fake.url().rsplit(':').next());
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let mut place = Place::new();
    // Else the built-in model would answer.
    place.config.provider = Some(ProviderKind::LlamaServer);
    let error = |place: &Place| match open(&place.router(), "three") {
        Err(ProviderError::NoServer(missing)) => missing,
        other => panic!("{:?}", other.err()),
    };
    let missing = error(&place);
    let expected = format!("there is no model three.gguf in {}", place.config.model_dir.display());
    assert!(missing.fact.ends_with(&expected), "{missing}");
    assert!(missing.hint.contains("one.gguf, two.gguf"), "{missing}");
    place.config.llama_server = Some(place.dir.path().join("none"));
    assert!(error(&place).fact.ends_with("none is not an executable file"));
    let router =
        Router::with_timing(&Config { llama_server: None, ..place.config }, ProcessEnv::default(), TIMING);
    if let Err(ProviderError::NoServer(missing)) = open(&router, "one") {
        assert!(missing.hint.contains("llama.cpp") && missing.hint.contains("endpoint"), "{missing}");
    }
}

#[test]
fn a_child_that_dies_at_once_is_reported_with_its_last_words() {
    let place = Place::new();
    place.binary.mode(Mode::DieAtOnce);
    let start = Instant::now();
    let error = open(&place.router(), "one").err().unwrap().to_string();
    assert!(error.contains("exit status: 1: E llama_model_load:  [31mnot a GGUF file"), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(place.binary.starts().len(), 1); // trying again would be of no use
}

#[test]
fn a_taken_port_is_not_the_end() {
    let place = Place::new();
    place.binary.mode(Mode::PortTaken);
    let router = place.router();
    assert_eq!(say_hello(&*open(&router, "one").unwrap()).unwrap(), "hello");
    assert_eq!(place.binary.starts().len(), 2);
}

#[test]
fn loading_is_reported_and_shared_and_survives_a_cancel() {
    let place = Place::new();
    place.binary.mode(Mode::Load);
    let router = place.router();
    let cancel = Cancel::new();
    let mut seen = Vec::new();
    let result = router.open(wanted("one"), &cancel, &mut |progress| {
        if progress == (Progress::Loading { model: "one".to_owned(), fraction: Some(0.5) }) {
            cancel.cancel();
        }
        seen.push(progress);
    });
    assert!(matches!(result.err(), Some(ProviderError::Cancelled)));
    assert_eq!(seen[0], Progress::Loading { model: "one".to_owned(), fraction: None });
    thread::scope(|scope| {
        let opens: Vec<_> =
            (0..8).map(|_| scope.spawn(|| say_hello(&*open(&router, "one").unwrap()))).collect();
        place.binary.go_on();
        for open in opens {
            assert_eq!(open.join().unwrap().unwrap(), "hello");
        }
    });
    assert_eq!(place.binary.starts().len(), 1);
}

#[test]
fn a_crashed_child_is_replaced_but_not_for_ever() {
    let place = Place::new();
    let router = place.router();
    for round in 1..=5 {
        let provider = open(&router, "one").unwrap();
        assert_eq!(say_hello(&*provider).unwrap(), "hello");
        kill(place.binary.starts().last().unwrap().pid);
        assert!(!router.status().running);
        let error = say_hello(&*provider).unwrap_err();
        assert!(matches!(error, ProviderError::Unreachable { started: false, .. }), "{error:?}");
        assert_eq!(place.binary.starts().len(), round);
    }
    let error = open(&router, "one").err().unwrap().to_string();
    assert!(
        error.starts_with("llama-server crashes again and again; the last time it ended with signal: 9"),
        "{error}"
    );
}

#[test]
fn a_kill_in_mid_answer_is_an_error_that_says_so() {
    let place = Place::new();
    place.binary.answer(&json!([{"hang": true}]));
    let router = place.router();
    let provider = open(&router, "one").unwrap();
    let pid = place.binary.starts()[0].pid;
    let error = provider.generate(&prompt("hi"), &Cancel::new(), &mut |_| kill(pid)).unwrap_err();
    assert!(matches!(error, ProviderError::Unreachable { started: true, .. }), "{error:?}");
}

#[test]
fn another_model_waits_for_the_answer_in_progress_and_takes_over() {
    let place = Place::new();
    place.binary.answer(&json!([{"hang": true}]));
    let router = place.router();
    let first = open(&router, "one").unwrap();
    let cancel = Cancel::new();
    let busy = {
        let (first, cancel) = (Arc::clone(&first), cancel.clone());
        let (tell, told) = std::sync::mpsc::channel();
        let call = thread::spawn(move || {
            first.generate(&prompt("hi"), &cancel, &mut |_| tell.send(()).unwrap_or(()))
        });
        told.recv().unwrap();
        call
    };
    let second = router.open(wanted("two"), &Cancel::new(), &mut |progress| {
        if let Progress::Queued { .. } = progress {
            cancel.cancel(); // only now: the switch is waiting for it
        }
    });
    assert!(matches!(busy.join().unwrap(), Err(ProviderError::Cancelled)));
    second.unwrap();
    let starts = place.binary.starts();
    assert_eq!(
        starts.iter().map(|start| start.option("--alias").unwrap()).collect::<Vec<_>>(),
        ["one", "two"]
    );
    wait_until_gone(starts[0].pid);
    let late = say_hello(&*first).unwrap_err();
    assert!(matches!(late, ProviderError::Unreachable { started: false, .. }), "{late:?}");
}

#[test]
fn as_many_models_stay_as_may_and_the_one_used_least_leaves() {
    let mut place = Place::new();
    place.config.max_loaded_models = 2;
    fs::write(place.config.model_dir.join("three.gguf"), "").unwrap();
    let router = place.router();
    let alive = || {
        let runs = |pid: u32| rustix::process::test_kill_process(Pid::from_raw(pid.cast_signed()).unwrap());
        let starts = place.binary.starts();
        let alive = starts.iter().filter(|start| runs(start.pid).is_ok());
        alive.map(|start| start.option("--alias").unwrap().to_owned()).collect::<Vec<_>>()
    };
    for model in ["one", "two", "one"] {
        assert_eq!(say_hello(&*open(&router, model).unwrap()).unwrap(), "hello");
    }
    assert_eq!(alive(), ["one", "two"]);
    assert_eq!(router.status().model, "one");
    let busy = open(&router, "one").unwrap();
    open(&router, "three").unwrap();
    assert_eq!(alive(), ["one", "three"]);
    assert_eq!(say_hello(&*busy).unwrap(), "hello");
    router.stop();
    assert!(alive().is_empty());
}

#[test]
fn a_child_that_nobody_uses_is_stopped_and_comes_back() {
    let mut place = Place::new();
    place.config.keep_warm_minutes = 0.002; // 120 ms
    let router = place.router();
    let provider = open(&router, "one").unwrap();
    assert_eq!(say_hello(&*provider).unwrap(), "hello");
    wait_until_gone(place.binary.starts()[0].pid);
    let late = say_hello(&*provider).unwrap_err();
    assert!(matches!(late, ProviderError::Unreachable { started: false, .. }), "{late:?}");
    place.binary.answer(&json!([{"hang": true}]));
    let provider = open(&router, "one").unwrap();
    assert_eq!(place.binary.starts().len(), 2);
    // In use, it stays for as long as that takes.
    let cancel = Cancel::new();
    let result = provider.generate(&prompt("hi"), &cancel, &mut |_| {
        thread::sleep(Duration::from_millis(400));
        cancel.cancel();
    });
    assert!(matches!(result, Err(ProviderError::Cancelled)), "{result:?}");
    wait_until_gone(place.binary.starts()[1].pid);
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_killed_daemon_left_is_ended_by_the_next_one() {
    let place = Place::new();
    let home = Home::find(Some(place.dir.path().join("home"))).unwrap();
    home.create().unwrap();
    let around = ProcessEnv { home: Some(home.clone()), ..ProcessEnv::default() };
    let config = Config { llama_server: Some(place.binary.path()), ..place.config.clone() };
    let router = Router::with_timing(&config, around.clone(), TIMING);
    open(&router, "one").unwrap();
    let pid = place.binary.starts()[0].pid;
    let record = home.run().join(format!("model-server-{pid}.json"));
    assert!(fs::read_to_string(&record).unwrap().contains("\"exe\":\"/"));
    // Two daemons at once are what the lock forbids; here it is the only way not to be the child's parent.
    let next = Router::with_timing(&config, around, TIMING);
    wait_until_gone(pid);
    assert!(!record.exists());
    assert!(!router.status().running && !next.status().running);
}

#[test]
fn a_stubborn_child_is_killed() {
    let place = Place::new();
    place.binary.mode(Mode::Stubborn);
    let router = place.router();
    open(&router, "one").unwrap();
    let start = Instant::now();
    router.stop();
    wait_until_gone(place.binary.starts()[0].pid);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_dies_with_a_daemon_that_was_killed() {
    let place = Place::new();
    place.binary.mode(Mode::Stubborn); // its stdin does not help: only the kernel's signal does
    let ready = place.dir.path().join("ready");
    let mut daemon = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "provider::supervise::daemon", "--nocapture"])
        .env("SUPERVISE_DIR", place.dir.path())
        .env("SUPERVISE_ENDPOINT", &place.config.endpoint)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while !ready.exists() {
        assert!(Instant::now() < until && daemon.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(5));
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    wait_until_gone(place.binary.starts()[0].pid);
}

/// Not a test: a daemon to be killed.
#[test]
fn daemon() {
    let Some(dir) = std::env::var_os("SUPERVISE_DIR").map(PathBuf::from) else { return };
    let config = Config {
        model_dir: dir.join("models"),
        endpoint: std::env::var("SUPERVISE_ENDPOINT").unwrap(),
        llama_server: Some(dir.join("fake-llama/llama-server")),
        ..Config::default()
    };
    let around = ProcessEnv { launcher: Some(launcher(&dir)), ..ProcessEnv::default() };
    let router = Router::with_timing(&config, around, TIMING);
    open(&router, "one").unwrap();
    fs::write(dir.join("ready"), "").unwrap();
    loop {
        thread::park();
    }
}
