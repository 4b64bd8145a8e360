//! The timer of systemd that runs the jobs, with a `systemctl` that only writes down how it was called.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::PathBuf,
    process::Command,
};

use serde_json::Value;

use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::{Output, TestHome, wait_with_output},
};

const TIMER: &str = "kontekst-jobs.timer";
const SERVICE: &str = "kontekst-jobs.service";

/// A user whose data directory is `~/.kontekst`, with a systemd of their own.
struct User {
    home: TestHome,
    /// The socket of `systemd --user`. Nobody reads from it.
    manager: UnixListener,
}

impl User {
    fn new(endpoint: &str) -> Self {
        let home = TestHome::new(endpoint);
        let user_home = home.root().parent().unwrap().to_owned();
        symlink(home.root(), user_home.join(".kontekst")).unwrap();
        fs::create_dir_all(user_home.join("runtime/systemd")).unwrap();
        let manager = UnixListener::bind(user_home.join("runtime/systemd/private")).unwrap();
        let user = Self { home, manager };
        user.systemctl("");
        user
    }

    /// Writes a `systemctl` that notes its arguments, links and unlinks the timer, and then does what `more` says.
    fn systemctl(&self, more: &str) {
        let bin = self.dir().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let (calls, units) = (self.dir().join("calls"), self.unit(""));
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> '{calls}'\n{more}\nwants='{units}/timers.target.wants'\ncase \"$2\" in\n\
             enable) mkdir -p \"$wants\"; ln -sf ../{TIMER} \"$wants\" ;;\n\
             disable) rm -f \"$wants/{TIMER}\" ;;\nesac\n",
            calls = calls.display(),
            units = units.display(),
        );
        fs::write(bin.join("systemctl"), script).unwrap();
        fs::set_permissions(bin.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn dir(&self) -> PathBuf {
        self.home.root().parent().unwrap().to_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        command.env("KONTEKST_HOME", self.dir().join(".kontekst")).env("TZ", "Europe/Berlin");
        command.env("XDG_RUNTIME_DIR", self.dir().join("runtime"));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.dir().join("bin").display()));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        wait_with_output(self.command(words).spawn().unwrap())
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(words).success()).unwrap()
    }

    /// Returns how `systemctl --user` was called since the last time.
    fn calls(&self) -> Vec<String> {
        let path = self.dir().join("calls");
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::remove_file(path).ok();
        text.lines().map(|line| line.strip_prefix("--user ").unwrap().to_owned()).collect()
    }

    fn unit(&self, name: &str) -> PathBuf {
        self.dir().join(".config/systemd/user").join(name)
    }

    /// Returns the first time of the timer, as a job would have it.
    fn next(&self) -> String {
        let text = fs::read_to_string(self.unit(TIMER)).unwrap();
        let time = text.lines().find_map(|line| line.strip_prefix("OnCalendar=")).unwrap().to_owned();
        time.trim_end_matches(" UTC").replace(' ', "T") + "Z"
    }

    /// Makes a job due, as if the machine had been off for some days.
    fn miss(&self, job: &str) {
        let file = self.home.read(&format!("jobs/{job}.toml"));
        let created = file.lines().find(|line| line.starts_with("created")).unwrap().to_owned();
        let file = file.replace(&created, "created = \"2026-01-01T00:00:00Z\"");
        self.home.write(&format!("jobs/{job}.toml"), &file);
    }
}

const SET_FIRST: [&str; 3] = ["daemon-reload", "restart kontekst-jobs.timer", "enable kontekst-jobs.timer"];
const SET_AGAIN: [&str; 2] = ["daemon-reload", "restart kontekst-jobs.timer"];
const REMOVED: [&str; 2] = ["disable --now kontekst-jobs.timer", "daemon-reload"];

#[test]
fn all_jobs_have_one_timer_that_goes_with_the_last_of_them() {
    let user = User::new("http://127.0.0.1:1");
    let every = user.run(&["every", "1w", "--name", "weekly", "hi"]);
    assert!(every.stderr.contains("a timer of systemd runs it"), "{every:?}");
    every.success();
    assert_eq!(user.calls(), SET_FIRST);
    let weekly = user.next();
    let service = fs::read_to_string(user.unit(SERVICE)).unwrap();
    let program = env!("CARGO_BIN_EXE_kontekst");
    assert!(service.contains(&format!("\nExecStart=\"{program}\" jobs run --due\n")), "{service}");
    let home = user.dir().join(".kontekst");
    assert!(service.contains(&format!("\nEnvironment=\"KONTEKST_HOME={}\"\n", home.display())), "{service}");

    user.run(&["every", "1d", "--name", "daily", "hi"]).success();
    assert_eq!(user.calls(), SET_AGAIN);
    let daily = user.next();
    assert!(daily < weekly, "{daily} {weekly}");
    // A list changes nothing, except after somebody has edited a job.
    let next = user.json(&["jobs", "list", "--json"])[0]["next_run"].as_str().unwrap().to_owned();
    assert_eq!(user.calls(), [""; 0]);
    // The timer never elapses before the job is due.
    assert!(next[..19] <= daily[..19], "{next} {daily}");
    let file = user.home.read("jobs/daily.toml").replace("\"1d\"", "\"2h\"");
    user.home.write("jobs/daily.toml", &file);
    user.run(&["jobs"]).success();
    assert_eq!(user.calls(), SET_AGAIN);
    assert!(user.next() < daily);

    // One who looks while a job is about to be started does not put that off.
    user.miss("daily");
    user.run(&["jobs"]).success();
    assert_eq!(user.calls(), [""; 0]);

    user.run(&["jobs", "pause", "daily"]).success();
    assert_eq!((user.calls(), user.next()), (SET_AGAIN.map(str::to_owned).into(), weekly));
    user.run(&["jobs", "pause", "weekly"]).success();
    assert_eq!(user.calls(), REMOVED);
    assert!(!user.unit(TIMER).exists() && !user.unit(SERVICE).exists());
    user.run(&["jobs", "resume", "weekly"]).success();
    assert_eq!(user.calls(), SET_FIRST);
    user.run(&["jobs", "remove", "weekly"]).success();
    assert_eq!(user.calls(), REMOVED);
    assert!(!user.unit(TIMER).exists() && !user.unit(SERVICE).exists());
    assert!(user.home.daemon().is_none(), "no daemon is needed for any of that");
}

#[test]
fn a_missed_run_is_made_up_for_once_whoever_runs_it() {
    let model = FakeLlama::start([]).always(|_| Reply::text("here"));
    let user = User::new(&model.url());
    user.run(&["every", "1d", "--name", "daily", "hi"]).success();
    user.run(&["every", "1d", "--name", "other", "hi"]).success();
    user.miss("daily");
    // Two of systemd and the one that a daemon starts.
    let runs: Vec<_> =
        [&["jobs", "run", "--due"][..], &["jobs", "run", "--due"], &["jobs", "run", "daily", "--due"]]
            .map(|words| user.command(words).spawn().unwrap())
            .into();
    runs.into_iter().for_each(|run| drop(wait_with_output(run)));
    user.run(&["jobs", "run", "--due"]).success();
    let results = user.json(&["jobs", "results", "--json"]);
    assert_eq!((results.as_array().unwrap().len(), model.chats().len()), (1, 1), "{results}");
    assert_eq!(results[0]["ending"], "done");
    let next =
        |at: usize| user.json(&["jobs", "list", "--json"])[at]["next_run"].as_str().unwrap().to_owned();
    let first = next(0).min(next(1));
    assert!(first[..19] <= user.next()[..19], "the service writes the next time into the timer");
    // A job needs the daemon only while it runs.
    let status = user.json(&["status", "--json"]);
    assert_eq!((&status["stays_because"], &status["active_runs"]), (&"".into(), &0.into()), "{status}");
    let doctor = user.run(&["doctor"]).stdout;
    assert!(doctor.contains("a timer of systemd runs them"), "{doctor}");
    user.systemctl("[ \"$2\" = is-active ] && exit 3");
    let doctor = user.run(&["doctor"]).stdout;
    assert!(doctor.contains("systemctl --user restart kontekst-jobs.timer"), "{doctor}");
}

#[test]
fn one_call_runs_all_that_is_due() {
    let model = FakeLlama::start([]).always(|_| Reply::text("here"));
    let user = User::new(&model.url());
    // More than run at a time.
    for job in ["one", "two", "three", "four"] {
        user.run(&["every", "1d", "--name", job, "hi"]).success();
        if job != "two" {
            user.miss(job);
        }
    }
    user.run(&["jobs", "run", "--due"]).success();
    let results = user.json(&["jobs", "results", "--json"]);
    let mut ran: Vec<&str> =
        results.as_array().unwrap().iter().map(|result| result["job"].as_str().unwrap()).collect();
    ran.sort_unstable();
    assert_eq!(ran, ["four", "one", "three"]);
    assert!(user.run(&["jobs", "run"]).fails(2).contains("<ID>"), "a job or --due");
}

#[test]
fn the_last_run_of_the_last_job_takes_the_timer_along() {
    let user = User::new("http://127.0.0.1:1");
    user.run(&["every", "1d", "--name", "daily", "hi"]).success();
    user.calls();
    let file = user.home.read("jobs/daily.toml") + "paused = true\n";
    user.home.write("jobs/daily.toml", &file);
    user.run(&["jobs", "run", "--due"]).success();
    assert_eq!(user.calls(), REMOVED);
    assert!(!user.unit(TIMER).exists());
    // A file that somebody is editing is no reason to forget the job.
    user.run(&["jobs", "resume", "daily"]).success();
    user.home.write("jobs/daily.toml", "schedule = ");
    user.run(&["jobs", "run", "--due"]).success();
    assert_eq!(fs::read_to_string(user.unit(TIMER)).unwrap().matches("OnCalendar=").count(), 1);
}

#[test]
fn the_daemon_runs_the_jobs_where_systemd_fails() {
    let user = User::new("http://127.0.0.1:1");
    user.systemctl("[ \"$2\" = restart ] && { echo 'Unit is masked.' >&2; exit 1; }");
    let every = user.run(&["every", "1d", "--name", "daily", "hi"]);
    let reason = "the daemon does: `systemctl --user restart kontekst-jobs.timer` failed: Unit is masked.";
    assert!(every.stderr.contains(reason) && every.stderr.contains("the daemon runs it"), "{every:?}");
    every.success();
    assert!(!user.unit(TIMER).exists() && !user.unit(SERVICE).exists());
    let waits = |user: &User| user.json(&["status", "--json"])["stays_because"].as_str().unwrap().to_owned();
    assert_eq!(waits(&user), "1 job(s) wait for their time");

    // Later it works, and fails again when a job is paused. The daemon has stopped in between.
    user.systemctl("");
    user.run(&["every", "1w", "--name", "other", "hi"]).success();
    assert_eq!(waits(&user), "");
    user.run(&["daemon", "stop"]).success();
    user.systemctl("exit 1");
    user.run(&["jobs", "pause", "daily"]).success();
    assert!(!user.unit(TIMER).exists());
    assert!(fs::symlink_metadata(user.unit("timers.target.wants").join(TIMER)).is_err());
    assert_eq!(waits(&user), "1 job(s) wait for their time");
}

#[test]
fn a_timer_that_was_disabled_or_has_no_systemd_leaves_the_jobs_to_the_daemon() {
    let user = User::new("http://127.0.0.1:1");
    user.run(&["every", "1d", "--name", "daily", "hi"]).success();
    let doctor = |user: &User| user.run(&["doctor"]).stdout;
    assert!(doctor(&user).contains("a timer of systemd runs them"));
    fs::remove_file(user.unit("timers.target.wants").join(TIMER)).unwrap();
    assert!(doctor(&user).contains("the daemon runs them, and it is not running"));
    user.run(&["jobs", "resume", "daily"]).success();
    user.calls();
    let User { home, manager } = user;
    drop(manager);
    let user = User { manager: UnixListener::bind(home.work_dir().join("unused")).unwrap(), home };
    assert!(doctor(&user).contains("the daemon runs them, and it is not running"));
    let every = user.run(&["every", "1d", "--name", "other", "hi"]);
    assert!(every.stderr.contains("the daemon runs it"), "{every:?}");
    assert_eq!(user.calls(), [""; 0]);
    // Another data directory has no timer.
    let mut other = user.command(&["every", "1d", "--name", "third", "hi"]);
    let other = wait_with_output(other.env("KONTEKST_HOME", user.home.root()).spawn().unwrap());
    assert!(other.stderr.contains("the daemon runs it"), "{other:?}");
}

#[test]
fn a_unit_that_somebody_else_wrote_stays_and_the_daemon_runs_the_jobs() {
    let user = User::new("http://127.0.0.1:1");
    fs::create_dir_all(user.unit("")).unwrap();
    fs::write(user.unit(SERVICE), "[Service]\nExecStart=/mine\n").unwrap();
    let every = user.run(&["every", "1d", "--name", "daily", "hi"]);
    assert!(every.stderr.contains("was not written by this command"), "{every:?}");
    assert!(every.stderr.contains("the daemon runs it"), "{every:?}");
    user.run(&["jobs", "remove", "daily"]).success();
    assert_eq!(user.calls(), [""; 0]);
    assert!(!user.unit(TIMER).exists());
    assert_eq!(fs::read_to_string(user.unit(SERVICE)).unwrap(), "[Service]\nExecStart=/mine\n");
}

#[test]
fn systemd_accepts_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return; // systemd is not installed here
    }
    let user = User::new("http://127.0.0.1:1");
    user.run(&["every", "mon..fri 07:30", "--name", "news", "hi"]).success();
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["--user", "--man=no", "verify", "./kontekst-jobs.timer", "./kontekst-jobs.service"]);
    analyze
        .current_dir(user.unit(""))
        .env("XDG_RUNTIME_DIR", user.dir().join("runtime"))
        .env("HOME", user.dir());
    let output = analyze.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !said.contains("kontekst-jobs"), "{said}");
}
