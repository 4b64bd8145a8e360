//! The daemon as a systemd service: its units, the socket that it is handed, and what it tells its service manager.

use std::{
    fs,
    os::{
        fd::OwnedFd,
        unix::{
            fs::PermissionsExt as _,
            net::{UnixDatagram, UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::{Output, TestHome, wait_with_output},
    wait::TIMEOUT,
};

/// A home with a `systemctl` that only writes down how it was called.
struct Installation {
    home: TestHome,
}

impl Installation {
    fn new() -> Self {
        let home = TestHome::new("http://127.0.0.1:1");
        let bin = home.work_dir().join("bin");
        fs::create_dir(&bin).unwrap();
        let calls = home.work_dir().join("calls");
        let script = format!("#!/bin/sh\necho \"$@\" >> '{}'\n", calls.display());
        fs::write(bin.join("systemctl"), script).unwrap();
        fs::set_permissions(bin.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { home }
    }

    fn run(&self, words: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.home.work_dir().join("bin").display());
        wait_with_output(self.home.command(words).env("PATH", path).spawn().unwrap())
    }

    /// Returns how `systemctl` was called since the last time.
    fn calls(&self) -> Vec<String> {
        let path = self.home.work_dir().join("calls");
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::remove_file(path).ok();
        text.lines().map(str::to_owned).collect()
    }

    fn unit(&self, name: &str) -> PathBuf {
        self.home.root().parent().unwrap().join(".config/systemd/user").join(name)
    }
}

#[test]
fn the_units_are_installed_once_and_removed_again() {
    let test = Installation::new();
    let first = test.run(&["daemon", "install"]);
    assert!(first.stderr.contains("systemd starts the daemon when a command needs it"), "{first:?}");
    first.success();
    let started =
        ["show-environment", "daemon-reload", "enable --now kontekst.socket", "restart kontekst.socket"];
    assert_eq!(test.calls(), started.map(|call| format!("--user {call}")));
    let read = |name: &str| fs::read_to_string(test.unit(name)).unwrap();
    let socket = test.home.root().join("run/daemon.sock");
    assert!(read("kontekst.socket").contains(&format!("\nListenStream={}\n", socket.display())));
    let service = read("kontekst.service");
    assert!(service.contains(&format!("\nExecStart=\"{}\" daemon\n", env!("CARGO_BIN_EXE_kontekst"))));
    assert!(service.contains(&format!("\nEnvironment=\"KONTEKST_HOME={}\"\n", test.home.root().display())));

    let again = test.run(&["daemon", "install"]);
    assert_eq!(again.stderr.matches("is up to date").count(), 2, "{again:?}");
    assert_eq!(test.run(&["daemon", "install", "--print"]).success().matches("Written by").count(), 2);
    test.calls();

    fs::write(test.unit("mine.service"), "").unwrap();
    test.run(&["daemon", "uninstall"]).success();
    let stopped = ["show-environment", "disable --now kontekst.socket kontekst.service", "daemon-reload"];
    assert_eq!(test.calls(), stopped.map(|call| format!("--user {call}")));
    assert!(!test.unit("kontekst.socket").exists() && !test.unit("kontekst.service").exists());
    assert!(test.unit("mine.service").exists());
    assert!(test.run(&["daemon", "uninstall"]).stderr.contains("no units are installed"));
}

#[test]
fn a_unit_that_somebody_else_wrote_is_left_alone() {
    let test = Installation::new();
    let service = test.unit("kontekst.service");
    fs::create_dir_all(service.parent().unwrap()).unwrap();
    fs::write(&service, "[Service]\nExecStart=/mine\n").unwrap();
    let refused = test.run(&["daemon", "install"]).fails(2);
    assert!(refused.contains("was not written by this command"), "{refused}");
    assert!(!test.unit("kontekst.socket").exists());
    assert!(test.run(&["daemon", "uninstall"]).stderr.contains("kontekst.service stays"));
    assert_eq!(fs::read_to_string(service).unwrap(), "[Service]\nExecStart=/mine\n");
}

#[test]
fn without_systemd_nothing_is_written_and_the_error_says_what_to_do() {
    let test = Installation::new();
    let no_programs = test.home.work_dir().join("empty");
    let install = |words: &[&str]| {
        let mut command = test.home.command(words);
        wait_with_output(command.env("PATH", &no_programs).spawn().unwrap())
    };
    let error = install(&["daemon", "install"]).fails(1);
    assert!(error.contains("there is no systemd") && error.contains("@reboot kontekst daemon"), "{error}");
    assert!(!test.unit("kontekst.socket").exists());
    let written = install(&["daemon", "install", "--no-start"]);
    assert!(written.stderr.contains("systemctl --user enable --now kontekst.socket"), "{written:?}");
    written.success();
    assert!(test.unit("kontekst.socket").exists());
    install(&["daemon", "uninstall"]).success();
    assert!(!test.unit("kontekst.socket").exists());
}

#[test]
fn systemd_accepts_the_units_and_rates_that_of_the_system_at_most_two() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return; // systemd is not installed here
    }
    let dir = tempfile::tempdir().unwrap();
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib");
    let program = env!("CARGO_BIN_EXE_kontekst");
    let unit = |from: &str, to: &str| {
        let text = fs::read_to_string(contrib.join(from)).unwrap();
        let text = text.replace("%h/.local/bin/kontekst", program);
        let text = text.replace("/usr/local/bin/kontekst", program);
        fs::write(dir.path().join(to), text).unwrap();
    };
    let analyze = |words: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        let output = command.args(words).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{words:?} {output:?}");
        let warnings = String::from_utf8(output.stderr).unwrap();
        // It warns about the units of this machine and about manual pages that are not installed.
        assert!(
            !warnings.lines().any(|line| line.contains(".service:") && line.contains("nknown")),
            "{warnings}"
        );
    };
    unit("kontekst.socket", "kontekst.socket");
    unit("kontekst.service", "kontekst.service");
    analyze(&["verify", "--man=no", "./kontekst.socket", "./kontekst.service"]);
    unit("kontekst-system.service", "kontekst.service");
    analyze(&["verify", "--man=no", "./kontekst.service"]);
    analyze(&["security", "--offline=true", "--threshold=20", "./kontekst.service"]);
}

/// Starts the daemon as systemd does, with `listener` as its third descriptor.
fn start_activated(home: &TestHome, listener: &UnixListener, notify: &Path) -> Child {
    let daemon = home.command(&["daemon"]);
    let words = std::iter::once(daemon.get_program()).chain(daemon.get_args());
    let words: Vec<_> = words.map(|word| word.to_str().unwrap()).collect();
    let line = format!("export LISTEN_PID=$$ LISTEN_FDS=1; exec 3<&0 0</dev/null; exec {}", words.join(" "));
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).env_clear().current_dir(home.work_dir());
    command.env("KONTEKST_HOME", home.root()).env("KONTEKST_PORTS", "").env("NOTIFY_SOCKET", notify);
    command.stdin(OwnedFd::from(listener.try_clone().unwrap()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_daemon_serves_the_socket_that_it_is_handed_and_leaves_it_behind() {
    let (_model, home) = TestHome::with_server(FakeLlama::start([]).always(|_| Reply::text("here")));
    home.run(&["sessions"]).success();
    let socket = home.root().join("run/daemon.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let notify = home.work_dir().join("notify");
    let manager = UnixDatagram::bind(&notify).unwrap();
    manager.set_read_timeout(Some(TIMEOUT)).unwrap();
    let message = || {
        let mut buffer = [0; 4096];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };

    for _ in 0..2 {
        let daemon = start_activated(&home, &listener, &notify);
        assert!(message().starts_with("READY=1\nSTATUS=listening on "));
        assert_eq!(home.run(&["run", "--new", "hi"]).success(), "here\n");
        assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        home.run(&["daemon", "stop"]).success();
        assert!(message().starts_with("STOPPING=1"));
        assert_eq!(wait_with_output(daemon).code, 0);
        // The next client waits in the queue of the socket until the daemon has been started again.
        drop(UnixStream::connect(&socket).unwrap());
    }
}

#[test]
fn another_socket_than_the_daemons_is_refused() {
    let home = TestHome::new("http://127.0.0.1:1");
    home.run(&["sessions"]).success();
    let listener = UnixListener::bind(home.work_dir().join("other.sock")).unwrap();
    let daemon = start_activated(&home, &listener, Path::new("/nonexistent"));
    let error = wait_with_output(daemon).fails(1);
    assert!(error.contains("the service manager listens on another socket"), "{error}");
}

#[test]
fn status_leaves_a_socket_alone_on_which_no_daemon_listens() {
    let home = TestHome::new("http://127.0.0.1:1");
    fs::create_dir_all(home.root().join("run")).unwrap();
    let listener = UnixListener::bind(home.root().join("run/daemon.sock")).unwrap();
    assert!(home.run(&["status"]).fails(6).contains("the daemon is not running"));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "systemd would have started a daemon");
}
