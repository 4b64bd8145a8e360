//! Starts, finds, replaces and stops daemons.

use std::{fs, io::Write as _, process::Child};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    fake_llama::{FakeLlama, Reply, Setup, gate, process::wait_for_exit},
    hostile_input::{Random, rounds},
    test_home::{Output, TestHome, wait_with_output},
    wait::wait_until,
};

#[test]
fn status_never_starts_a_daemon() {
    let home = TestHome::new("http://127.0.0.1:1");
    let output = home.run(&["status"]);
    assert_eq!(output.stdout, "");
    let stderr = output.fails(6);
    assert!(stderr.starts_with("kontekst: error: the daemon is not running\n"), "{stderr}");
    assert!(home.daemon().is_none());
}

#[test]
fn a_home_directory_that_does_not_exist_is_not_made() {
    let home = TestHome::new("http://127.0.0.1:1");
    let nowhere = home.work_dir().join("no/body");
    let mut command = home.command(&["sessions"]);
    command.env("HOME", &nowhere).env_remove("KONTEKST_HOME");
    let error = wait_with_output(command.spawn().unwrap()).fails(2);
    assert!(error.contains("does not exist") && error.contains("set HOME"), "{error}");
    assert!(!home.work_dir().join("no").exists());
    let new = home.work_dir().join("new/data");
    wait_with_output(home.command(&["sessions"]).env("KONTEKST_HOME", &new).spawn().unwrap()).success();
    assert!(new.join("run").is_dir());
}

#[test]
fn many_cold_clients_start_one_daemon() {
    let model = FakeLlama::start([]).always(|_| Reply::text("here"));
    for _ in 0..rounds(1, 20) {
        let home = TestHome::new(&model.url());
        let clients: Vec<_> = (0..rounds(32, 100)).map(|_| home.spawn(&["run", "--new", "hi"])).collect();
        for client in clients {
            assert_eq!(wait_with_output(client).success(), "here\n");
        }
        let log = home.read("daemon.log");
        assert_eq!(log.matches("listening").count(), 1, "{log}");
    }
}

#[test]
fn a_killed_daemon_is_noticed_and_replaced() {
    let (model, home) = TestHome::with_model([Reply::text("half ").then_hang(), Reply::text("whole")]);
    let client = home.spawn(&["run", "hi"]);
    model.wait_for_chats(1);
    kill_process(home.daemon().unwrap(), Signal::KILL).unwrap();
    let stderr = wait_with_output(client).fails(6);
    assert!(stderr.contains("the daemon closed the connection before the run ended"), "{stderr}");
    assert_eq!(home.run(&["run", "--new", "hi"]).success(), "whole\n");
}

#[test]
fn a_daemon_without_its_run_directory_exits_when_idle() {
    let (wait, key) = gate();
    let script = [Reply::text("half ").then_wait(wait).then_text("whole"), Reply::text("new")];
    let (model, home) = TestHome::with_model(script);
    let client = home.spawn(&["run", "--new", "hi"]);
    model.wait_for_chats(1);
    let first = home.daemon().unwrap();
    fs::remove_dir_all(home.root().join("run")).unwrap();
    assert_eq!(home.run(&["run", "--new", "hi"]).success(), "new\n");
    let second = home.daemon().unwrap();
    assert_ne!(first, second);
    key.open();
    assert_eq!(wait_with_output(client).success(), "half whole\n");
    wait_for_exit(first.as_raw_nonzero().get().unsigned_abs());
    // It has not removed the files of its successor.
    assert_eq!(home.daemon(), Some(second));
    home.run(&["status"]).success();
}

#[test]
fn stale_files_of_a_dead_daemon_are_ignored() {
    let (_model, home) = TestHome::with_server(FakeLlama::start([]).always(|_| Reply::text("here")));
    for rubbish in
        ["", "{", "{\"pid\":1,\"version\":\"99.0.0\",\"socket\":\"x\",\"started_at\":\"\"}", "\0\0"]
    {
        home.run(&["run", "--new", "hi"]).success();
        kill_daemon(&home);
        for name in ["daemon.json", "daemon.lock", "spawn.lock"] {
            home.write(&format!("run/{name}"), rubbish);
        }
    }
    assert_eq!(home.run(&["run", "--new", "hi"]).success(), "here\n");
}

#[test]
fn stop_waits_for_the_exit_and_a_new_daemon_can_start() {
    let (_model, home) = TestHome::with_server(FakeLlama::start([]).always(|_| Reply::text("here")));
    for _ in 0..3 {
        home.run(&["run", "hi"]).success();
        home.run(&["daemon", "stop"]).success();
        assert!(home.daemon().is_none());
        assert!(!home.root().join("run/daemon.sock").exists());
    }
    assert!(home.run(&["daemon", "stop"]).stderr.contains("was not running"));
}

#[test]
fn sigterm_cancels_runs_properly() {
    let (model, home) = TestHome::with_model([Reply::text("half ").then_hang()]);
    let client = home.spawn(&["run", "hi"]);
    model.wait_for_chats(1);
    kill_process(home.daemon().unwrap(), Signal::TERM).unwrap();
    let stderr = wait_with_output(client).fails(1);
    assert!(stderr.contains("the daemon cancelled the run"), "{stderr}");
    model.wait_for_disconnect();
}

#[test]
fn a_daemon_that_cannot_start_reports_why() {
    let home = TestHome::with_config("endpoint = \"http://127.0.0.1:1\"\ncontext_size = \"big\"\n");
    let stderr = home.run(&["run", "hi"]).fails(2);
    assert!(stderr.contains("config.toml") && stderr.contains('2'), "{stderr}");
    assert!(home.daemon().is_none());
}

#[test]
fn there_is_one_daemon_for_a_home() {
    let home = TestHome::new("http://127.0.0.1:1");
    home.run(&["daemon", "restart"]).success();
    let pid = home.daemon().unwrap();
    let second = home.spawn(&["daemon"]);
    let stderr = wait_with_output(second).fails(1);
    assert!(stderr.contains("another daemon is running"), "{stderr}");
    assert_eq!(home.daemon(), Some(pid));
}

#[test]
fn status_describes_the_daemon() {
    let (model, home) = TestHome::with_model([Reply::text("here")]);
    home.run(&["run", "hi"]).success();
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["active_runs"], 0);
    assert_eq!(status["data_dir"], home.root().display().to_string());
    assert_eq!(status["model_server"]["healthy"], true);
    assert_eq!(status["model_server"]["running"], false);
    assert_eq!(status["model_server"]["endpoint"], model.url());
    let page = home.run(&["status"]).success();
    assert!(page.contains("healthy, not ours"), "{page}");
}

#[test]
fn a_port_in_use_is_a_warning_until_it_is_free() {
    let taken = ["127.0.0.1:0"; 2].map(|address| std::net::TcpListener::bind(address).unwrap());
    let [bind, http] = taken.each_ref().map(|listener| listener.local_addr().unwrap().to_string());
    let model = FakeLlama::start([Reply::text("here")]);
    let config = format!(
        "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"{bind}\"\n[http]\nlisten = \"{http}\"\n",
        model.url()
    );
    let home = TestHome::with_config(&config);
    assert_eq!(home.run(&["run", "hi"]).success(), "here\n");
    let page = home.run(&["status"]).success();
    for warning in [format!("not listening on {bind}"), format!("not serving HTTP on {http}")] {
        assert!(page.contains(&warning), "{page}");
    }
    let refused = home.run(&["web", "--no-open"]).fails(2);
    assert!(refused.contains("config.toml sets an address") && !refused.contains("put `listen"), "{refused}");
    drop(taken);
    let status = || serde_json::from_str::<Value>(&home.run(&["status", "--json"]).success()).unwrap();
    wait_until("both ports are bound", || status()["warnings"] == Value::Array(Vec::new()));
    let status = status();
    assert_eq!((&status["bind"], &status["http"]), (&bind.into(), &http.into()));
}

#[test]
fn logs_shows_the_end_of_the_log() {
    let home = TestHome::new("http://127.0.0.1:1");
    home.run(&["daemon", "restart"]).success();
    assert!(home.run(&["daemon", "logs", "-n", "5"]).success().contains("listening"));
}

#[test]
fn a_command_substitution_does_not_wait_for_the_daemon() {
    let (_model, home) = TestHome::with_model([Reply::text("here")]);
    // `cat` waits until every copy of the shell's descriptor 9 is closed. The daemon must not keep one.
    let mut command = home.command(&["run", "hi"]);
    let program = command.get_program().to_owned();
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = format!("x=$({} {}); echo \"got $x\" | cat", program.display(), words.join(" "));
    command = std::process::Command::new("/bin/sh");
    command.arg("-c").arg(format!("( {line} ) 9>&1 | cat"));
    command
        .env_clear()
        .env("KONTEKST_HOME", home.root())
        .env("KONTEKST_PORTS", "")
        .current_dir(home.work_dir());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    assert_eq!(wait_with_output(command.spawn().unwrap()).success(), "got here\n");
}

#[test]
fn the_environment_may_be_empty() {
    let (_model, home) = TestHome::with_model([Reply::text("here")]);
    let mut command = home.command(&["run", "hi"]);
    command.env_remove("PATH").current_dir("/");
    assert_eq!(wait_with_output(command.spawn().unwrap()).success(), "here\n");
    assert!(fs::metadata(home.root().join("sessions")).is_ok());
}

/// Kills the daemon and waits until it is gone.
fn kill_daemon(home: &TestHome) {
    let pid = home.daemon().unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    wait_for_exit(pid.as_raw_nonzero().get().unsigned_abs());
}

/// Makes the running daemon look like one of an older release.
fn age(home: &TestHome) {
    let mut info: Value = serde_json::from_str(&home.read("run/daemon.json")).unwrap();
    info["version"] = "0.0.1".into();
    home.write("run/daemon.json", &info.to_string());
}

#[test]
fn an_idle_older_daemon_is_replaced() {
    let (_model, home) = TestHome::with_server(FakeLlama::start([]).always(|_| Reply::text("here")));
    home.run(&["run", "hi"]).success();
    let old = home.daemon().unwrap();
    age(&home);
    let output = home.run(&["run", "hi"]);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("here\n", "no file was changed\n"));
    assert_ne!(home.daemon().unwrap(), old);
}

#[test]
fn a_busy_older_daemon_is_used_as_it_is() {
    let (wait, key) = gate();
    let setup = Setup { slots: 2, ..Setup::default() };
    let long = Reply::text("long ").then_wait(wait).then_text("done");
    let (model, home) = TestHome::with_server(FakeLlama::with(setup, [long, Reply::text("short")]));
    let busy = home.spawn(&["run", "--new", "hi"]);
    model.wait_for_chats(1);
    let old = home.daemon().unwrap();
    age(&home);
    let output = home.run(&["run", "--session", "other", "hi"]);
    assert!(output.stderr.contains("0.0.1"), "{output:?}");
    assert_eq!(output.success(), "short\n");
    assert_eq!(home.daemon().unwrap(), old);
    key.open();
    assert_eq!(wait_with_output(busy).success(), "long done\n");
}

#[test]
fn fifty_killed_daemons_leave_a_home_that_works() {
    let (_model, home) = TestHome::with_server(FakeLlama::start([]).always(|_| Reply::text("here")));
    for _ in 0..50 {
        assert_eq!(home.run(&["run", "--session", "s", "hi"]).success(), "here\n");
        kill_daemon(&home);
    }
    let lines = home.read("sessions/s.jsonl");
    assert_eq!(lines.lines().count(), 100);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

/// A run whose client has not ended, and the name of its session.
struct StartedRun {
    client: Child,
    session: String,
    endless: bool,
}

impl StartedRun {
    fn finish(self) -> (Output, String) {
        (wait_with_output(self.client), self.session)
    }
}

/// Three runs at a time, some of them in the middle of an answer that never ends, when the daemon is killed.
#[test]
fn what_was_acknowledged_before_a_kill_is_in_the_session() {
    let setup = Setup { slots: 4, ..Setup::default() };
    let (model, home) = TestHome::with_server(FakeLlama::with(setup, []).always(|request| {
        if request.body.to_string().contains("never ends") {
            Reply::text("half ").then_hang()
        } else {
            Reply::text("here")
        }
    }));
    let (mut random, mut acknowledged) = (Random::new(3), 0);
    for round in 0..rounds(8, 134) {
        let chats = model.chats().len();
        let endless = random.below(4);
        let runs = (0..3).map(|number| {
            let endless = number < endless;
            let (prompt, session) =
                (if endless { "never ends" } else { "question" }, format!("r{round}-{number}"));
            StartedRun { client: home.spawn(&["run", "--session", &session, prompt]), session, endless }
        });
        let runs: Vec<_> = runs.collect();
        model.wait_for_chats(chats + 3);
        let (answered, endless): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| !run.endless);
        let mut outputs = Vec::new();
        // In every second round, on average, the answers have arrived.
        if random.below(2) == 0 {
            outputs.extend(answered.into_iter().map(StartedRun::finish));
            kill_daemon(&home);
        } else {
            kill_daemon(&home);
            outputs.extend(answered.into_iter().map(StartedRun::finish));
        }
        outputs.extend(endless.into_iter().map(StartedRun::finish));
        for (output, session) in outputs {
            let file = home.root().join("sessions").join(session).with_extension("jsonl");
            let stored = fs::read_to_string(file).unwrap_or_default();
            if output.code == 0 {
                acknowledged += 1;
                let answer: Value = serde_json::from_str(stored.lines().last().unwrap()).unwrap();
                assert_eq!((output.stdout.as_str(), &answer["content"]), ("here\n", &"here".into()));
            } else {
                assert_eq!(output.code, 6, "{output:?}");
            }
            assert!(stored.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{stored}");
        }
    }
    assert!(acknowledged > 0);
}

#[test]
fn clients_of_a_daemon_that_hangs_do_not_wait_for_ever() {
    let home = TestHome::new("http://127.0.0.1:1");
    home.run(&["daemon", "restart"]).success();
    kill_process(home.daemon().unwrap(), Signal::STOP).unwrap();
    let commands: [&[&str]; 4] = [&["status"], &["run", "hi"], &["approvals"], &["daemon", "stop"]];
    let clients = commands.map(|words| home.spawn(words));
    for (client, words) in clients.into_iter().zip(commands) {
        let stderr = wait_with_output(client).fails(6);
        assert!(
            stderr.contains("does not answer") && stderr.contains("daemon stop --force"),
            "{words:?} {stderr}"
        );
    }
    home.run(&["daemon", "stop", "--force"]).success();
    assert!(home.daemon().is_none());
}

#[test]
fn a_forced_stop_needs_neither_the_socket_nor_the_daemon_file() {
    let home = TestHome::new("http://127.0.0.1:1");
    assert!(home.run(&["daemon", "stop", "--force"]).stderr.contains("was not running"));
    home.run(&["daemon", "restart"]).success();
    let pid = home.daemon().unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    for name in ["daemon.json", "daemon.sock"] {
        fs::remove_file(home.root().join("run").join(name)).unwrap();
    }
    home.run(&["daemon", "stop", "--force"]).success();
    wait_for_exit(pid.as_raw_nonzero().get().unsigned_abs());
    home.run(&["daemon", "stop", "--force", "--if-idle"]).fails(2);
}

#[test]
fn a_run_in_progress_is_not_cut_by_the_limit_for_the_first_reply() {
    let (wait, key) = gate();
    let (model, home) = TestHome::with_model([Reply::text("half ").then_wait(wait).then_text("whole")]);
    let run = home.spawn(&["run", "hi"]);
    model.wait_for_chats(1);
    let daemon = home.daemon().unwrap();
    kill_process(daemon, Signal::STOP).unwrap();
    // This client waits for the whole limit, and the run that started before it goes on.
    assert!(home.run(&["status"]).fails(6).contains("does not answer"));
    kill_process(daemon, Signal::CONT).unwrap();
    key.open();
    assert_eq!(wait_with_output(run).success(), "half whole\n");
}

#[test]
fn silent_connections_do_not_delay_a_stop() {
    let model = FakeLlama::start([]);
    let config = format!("provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"127.0.0.1:0\"\n", model.url());
    let home = TestHome::with_config(&config);
    home.run(&["daemon", "restart"]).success();
    let status = home.json(&["status", "--json"]);
    let tcp = || std::net::TcpStream::connect(status["bind"].as_str().unwrap()).unwrap();
    let unix = || std::os::unix::net::UnixStream::connect(home.root().join("run/daemon.sock")).unwrap();
    // Some never send a byte, one stops in the middle of the preface, and one answers nothing after it.
    let (_tcp, _unix, mut half, mut whole) = (tcp(), unix(), tcp(), unix());
    half.write_all(b"PRI * HTTP/2").unwrap();
    whole.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    home.run(&["daemon", "stop"]).success();
    assert!(home.daemon().is_none());
    let log = home.read("daemon.log");
    assert!(!log.contains("did not disconnect in time"), "{log}");
}

#[test]
fn a_client_that_reads_nothing_more_does_not_keep_the_daemon() {
    let (model, home) = TestHome::with_model([Reply::text("x").then_repeat(event_of_text(), 4096)]);
    let client = home.spawn(&["run", "repeat y"]);
    model.wait_for_chats(1);
    let pid = Pid::from_child(&client);
    kill_process(pid, Signal::STOP).unwrap();
    // `stop` fails if the daemon has not ended within its limit.
    home.run(&["daemon", "stop"]).success();
    assert!(home.daemon().is_none());
    kill_process(pid, Signal::KILL).unwrap();
    drop(wait_with_output(client));
}

/// An event of 16 KiB of text.
fn event_of_text() -> String {
    let text = "y".repeat(16 * 1024);
    format!("data: {}\n\n", serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

#[test]
fn no_client_fails_while_an_older_daemon_is_replaced() {
    let (_model, home) = TestHome::with_server(
        FakeLlama::with(Setup { slots: 4, ..Setup::default() }, []).always(|_| Reply::text("here")),
    );
    for _ in 0..rounds(2, 34) {
        home.run(&["run", "--new", "hi"]).success();
        age(&home);
        let clients: Vec<_> = (0..30).map(|_| home.spawn(&["run", "--new", "hi"])).collect();
        for client in clients {
            assert_eq!(wait_with_output(client).success(), "here\n");
        }
    }
}

#[test]
fn an_editor_that_starts_right_after_a_crash_finds_a_daemon() {
    let home = TestHome::new("http://127.0.0.1:1");
    let frame = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let input = frame(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#)
        + &frame(r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#)
        + &frame(r#"{"jsonrpc":"2.0","method":"exit"}"#);
    for _ in 0..rounds(10, 200) {
        let answers = home.run_with(&["rpc"], input.as_bytes()).success();
        assert!(answers.contains("\"id\":1") && answers.contains("\"id\":2"), "{answers}");
        kill_process(home.daemon().unwrap(), Signal::KILL).unwrap();
    }
}

#[test]
fn a_restart_shows_the_warnings_of_the_configuration() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let model = FakeLlama::start([]).always(|_| Reply::text("here"));
    let config = format!(
        "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"{address}\"\nendpont = 1\n",
        model.url()
    );
    let home = TestHome::with_config(&config);
    // The client that starts the daemon shows them, and not those that find it.
    let first = home.run(&["run", "hi"]);
    let second = home.run(&["run", "hi"]);
    let restarted = home.run(&["daemon", "restart"]);
    for output in [&first, &restarted] {
        let stderr = &output.stderr;
        assert!(
            stderr.contains("unknown key `endpont`") && stderr.contains(&address.to_string()),
            "{stderr}"
        );
    }
    assert_eq!(second.stderr, "no file was changed\n");
}

/// A configuration whose daemon exits after this many minutes without a client.
fn idle_exit_after(minutes: f64, model: &FakeLlama) -> String {
    format!(
        "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\nkeep_warm_minutes = {minutes}\n\
         [daemon]\nidle_exit_minutes = {minutes}\n",
        model.url()
    )
}

#[test]
fn a_daemon_that_a_command_started_exits_when_nobody_uses_it() {
    let model = FakeLlama::start([Reply::text("here")]);
    let home = TestHome::with_config(&idle_exit_after(0.005, &model));
    assert_eq!(home.run(&["run", "hi"]).success(), "here\n");
    if let Some(daemon) = home.daemon() {
        wait_for_exit(daemon.as_raw_nonzero().get().unsigned_abs());
    }
    assert!(!home.root().join("run/daemon.sock").exists());
    assert!(home.read("daemon.log").contains("stopping because there was no client for"));
    home.run(&["status"]).fails(6);
}

#[test]
fn no_client_fails_while_an_idle_daemon_exits() {
    let model = FakeLlama::with(Setup { slots: 4, ..Setup::default() }, []).always(|_| Reply::text("here"));
    // Some 12 ms and 1 ms: about as long as the next client takes to arrive, on a slow machine and on a fast one.
    let homes = [0.0002, 0.00002].map(|minutes| TestHome::with_config(&idle_exit_after(minutes, &model)));
    for home in &homes {
        for _ in 0..rounds(15, 300) {
            let clients: Vec<_> = (0..3).map(|_| home.spawn(&["run", "--new", "hi"])).collect();
            for client in clients {
                assert_eq!(wait_with_output(client).success(), "here\n");
            }
        }
    }
    let logs = homes.each_ref().map(|home| home.read("daemon.log"));
    assert!(logs.iter().any(|log| log.matches("listening").count() > 1), "no daemon has exited: {logs:?}");
}

#[test]
fn status_says_when_a_daemon_exits_by_itself() {
    let (_model, home) = TestHome::with_model([]);
    home.run(&["daemon", "restart"]).success();
    let status = home.json(&["status", "--json"]);
    assert_eq!((&status["idle_exit_seconds"], &status["stays_because"]), (&3600.into(), &"".into()));
    let page = home.run(&["status"]).success();
    assert!(page.contains("idle exit     after 1h0m0s without a client"), "{page}");
    home.run(&["daemon", "stop"]).success();
    let by_hand = home.spawn(&["daemon"]);
    wait_until("the daemon listens", || home.run(&["status"]).code == 0);
    let page = home.run(&["status"]).success();
    assert!(page.contains("idle exit     none: it was not started by a command"), "{page}");
    home.run(&["daemon", "stop"]).success();
    assert_eq!(wait_with_output(by_hand).code, 0);
}
