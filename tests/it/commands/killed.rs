//! A daemon that is killed at any moment of a run with edits and commands, or of an undo.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Child,
    sync::{Arc, Mutex},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{home, undone::tree};
use crate::{
    fake_llama::{FakeLlama, Reply, process::wait_for_exit},
    hostile_input::{Random, rounds},
    test_home::{TestHome, wait_with_output},
};

const PATHS: [&str; 5] = ["a", "b", "d/a", "d/b", "e/f/a"];
const RUN: [&str; 7] = ["run", "-q", "--new", "--auto-approve", "--allow", "run_command", "go"];

type Call = (&'static str, Value);

/// Calls of a run, and every content that a path has at some moment of it.
struct Calls {
    random: Random,
    now: BTreeMap<&'static str, String>,
    contents: BTreeMap<&'static str, BTreeSet<String>>,
    calls: Vec<Call>,
}

impl Calls {
    /// `now` is the tree before the run, which is on disk.
    fn new(now: &BTreeMap<&'static str, String>, seed: usize) -> Self {
        let contents = now.iter().map(|(path, text)| (*path, BTreeSet::from([text.clone()]))).collect();
        let random = Random::new(seed as u64 + 1);
        let mut calls = Self { random, now: now.clone(), contents, calls: Vec::new() };
        for number in 0..8 {
            calls.add(number);
        }
        calls
    }

    fn path(&mut self) -> &'static str {
        PATHS[self.random.below(PATHS.len())]
    }

    fn put(&mut self, path: &'static str, text: String) {
        self.contents.entry(path).or_default().insert(text.clone());
        self.now.insert(path, text);
    }

    fn add(&mut self, number: usize) {
        let path = self.path();
        let text = format!("call {number}\n");
        match (self.random.below(4), self.now.get(path).cloned()) {
            (0, old) => {
                // The model has to read a file before it replaces it.
                self.calls.extend(old.map(|_| ("read_file", json!({"path": path}))));
                self.put(path, text.clone());
                self.calls.push(("write_file", json!({"path": path, "content": text})));
            }
            (1, Some(old)) => {
                self.put(path, text.clone());
                let (old, new) = (old.trim_end(), text.trim_end());
                self.calls.push(("edit_file", json!({"path": path, "old_str": old, "new_str": new})));
            }
            _ => {
                let parts: Vec<String> =
                    (0..1 + self.random.below(4)).map(|part| self.part(number, part)).collect();
                self.calls.push(("run_command", json!({"command": parts.join(" && ")})));
            }
        }
    }

    /// Returns a part of a command line. Whatever it changes is changed at once.
    fn part(&mut self, number: usize, part: usize) -> String {
        let (path, other) = (self.path(), self.path());
        match (self.random.below(5), self.now.get(path).cloned()) {
            (0, _) => {
                self.now.remove(path);
                format!("rm -f {path}")
            }
            (1, Some(text)) if path != other => {
                self.now.remove(path);
                self.put(other, text);
                format!("mkdir -p d e/f && mv {path} {other}")
            }
            (2, Some(_)) => format!("chmod 600 {path}"),
            (3, _) => {
                self.now.retain(|path, _| !path.starts_with("d/"));
                "rm -rf d".to_owned()
            }
            _ => {
                let text = format!("command {number} {part}\n");
                self.put(path, text.clone());
                format!("mkdir -p d e/f && printf '{}' > new && mv new {path}", text.replace('\n', "\\n"))
            }
        }
    }

    /// Checks that every file of the tree is one that it has been at some moment.
    fn check(&self, home: &TestHome, seed: usize) {
        for path in PATHS {
            let Ok(text) = fs::read_to_string(home.work_dir().join(path)) else { continue };
            let known = self.contents.get(path).is_some_and(|contents| contents.contains(&text));
            assert!(known, "seed {seed}: {path} is {text:?}, calls {:#?}", self.calls);
        }
    }
}

/// Looks at the working directory until `is_over`, but `most` times at most. Returns how often it did. This is how much time
/// passes, without a clock.
fn looks(home: &TestHome, most: usize, mut is_over: impl FnMut() -> bool) -> usize {
    let mut look = || {
        fs::read_dir(home.work_dir()).unwrap().for_each(drop);
        is_over()
    };
    (0..most).find(|_| look()).unwrap_or(most)
}

fn is_over(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_some()
}

/// Starts a client, and kills it and the daemon after `moment` looks. Returns false if it had ended before.
pub(crate) fn killed(home: &TestHome, words: &[&str], moment: usize) -> bool {
    let mut child = home.spawn(words);
    looks(home, moment, || is_over(&mut child));
    let was_over = is_over(&mut child);
    if !was_over {
        // A client whose daemon is gone starts another one, and its run once more.
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    }
    if let Some(daemon) = home.daemon() {
        kill_process(daemon, Signal::KILL).unwrap();
        wait_for_exit(daemon.as_raw_nonzero().get().unsigned_abs());
    }
    child.kill().ok(); // it may have ended
    child.wait().unwrap();
    !was_over
}

/// Returns the number of looks that a client takes that is not killed.
pub(crate) fn whole(home: &TestHome, words: &[&str]) -> usize {
    let mut child = home.spawn(words);
    let looks = looks(home, usize::MAX, || is_over(&mut child));
    let ended = wait_with_output(child);
    assert_eq!(ended.code, 0, "{words:?}: {ended:?}");
    looks.max(1)
}

/// Starts a client, and kills only that after `moment` looks. Returns false if it had ended before.
fn client_killed(home: &TestHome, words: &[&str], moment: usize) -> bool {
    let mut child = home.spawn(words);
    looks(home, moment, || is_over(&mut child));
    let was_over = is_over(&mut child);
    child.kill().ok(); // it may have ended
    child.wait().unwrap();
    !was_over
}

/// A model that makes the calls of a script, and homes with and without the sandbox.
struct Scripted {
    homes: Vec<TestHome>,
    script: Arc<Mutex<Vec<Call>>>,
    before: BTreeMap<&'static str, String>,
    _model: FakeLlama,
}

impl Scripted {
    fn new() -> Self {
        let script: Arc<Mutex<Vec<Call>>> = Arc::default();
        let calls = Arc::clone(&script);
        let model = FakeLlama::start([]).always(move |request| {
            let messages = request.body["messages"].as_array().unwrap();
            let done = messages.iter().filter(|message| message["role"] == "tool").count();
            calls
                .lock()
                .unwrap()
                .get(done)
                .map_or_else(|| Reply::text("done"), |call| Reply::calls([call.clone()]))
        });
        let configs = ["", "sandbox = \"auto\"\n"];
        let [plain, sandboxed] = configs.map(|config| home(&model, config));
        let homes =
            if super::new_names::has_sandbox(&sandboxed) { vec![plain, sandboxed] } else { vec![plain] };
        let before: BTreeMap<&str, String> = [("a", "one\n".to_owned()), ("d/a", "two\n".to_owned())].into();
        for home in &homes {
            fs::create_dir(home.work_dir().join("d")).unwrap();
            for (path, text) in &before {
                fs::write(home.work_dir().join(path), text).unwrap();
            }
        }
        Self { homes, script, before, _model: model }
    }

    /// Returns the home of this round, and the calls that the model makes in it.
    fn round(&self, seed: usize) -> (&TestHome, Calls) {
        let calls = Calls::new(&self.before, seed);
        self.script.lock().unwrap().clone_from(&calls.calls);
        (&self.homes[seed % self.homes.len()], calls)
    }
}

#[test]
fn a_daemon_killed_at_any_moment_of_calls_or_of_an_undo_leaves_what_can_be_taken_back() {
    let scripted = Scripted::new();
    let (mut in_run, mut in_undo, mut random) = (0, 0, Random::new(18));
    for seed in 0..rounds(6, 500) {
        let (home, calls) = scripted.round(seed);
        let start = tree(&home.work_dir());
        let looks_of_run = whole(home, &RUN);
        let after = tree(&home.work_dir());
        let looks_of_undo = whole(home, &["undo", "--yes"]);
        assert_eq!(tree(&home.work_dir()), start, "seed {seed}");

        in_run += usize::from(killed(home, &RUN, random.below(looks_of_run)));
        calls.check(home, seed);
        take_back(home, seed);
        assert_eq!(tree(&home.work_dir()), start, "seed {seed}, after a kill in the run");

        home.run(&RUN).success();
        assert_eq!(tree(&home.work_dir()), after, "seed {seed}");
        in_undo += usize::from(killed(home, &["undo", "--yes"], random.below(looks_of_undo)));
        calls.check(home, seed);
        take_back(home, seed);
        assert_eq!(tree(&home.work_dir()), start, "seed {seed}, after a kill in the undo");
    }
    assert!(in_run > 0 && in_undo > 0, "nothing was killed in the middle: {in_run} runs, {in_undo} undos");
}

/// The run ends with its client, and an undo of its with nobody at its end. An undo right after that waits for them.
#[test]
fn a_client_killed_at_any_moment_leaves_what_can_be_taken_back_at_once() {
    let scripted = Scripted::new();
    let (mut in_run, mut in_undo, mut random) = (0, 0, Random::new(180));
    for seed in 0..rounds(6, 500) {
        let (home, calls) = scripted.round(seed);
        let start = tree(&home.work_dir());
        let looks_of_run = whole(home, &RUN);
        let looks_of_undo = whole(home, &["undo", "--yes"]);
        in_run += usize::from(client_killed(home, &RUN, random.below(looks_of_run)));
        take_back(home, seed);
        calls.check(home, seed);
        assert_eq!(tree(&home.work_dir()), start, "seed {seed}, after a kill in the run");
        home.run(&RUN).success();
        in_undo += usize::from(client_killed(home, &["undo", "--yes"], random.below(looks_of_undo)));
        take_back(home, seed);
        assert_eq!(tree(&home.work_dir()), start, "seed {seed}, after a kill in the undo");
    }
    assert!(in_run > 0 && in_undo > 0, "nothing was killed in the middle: {in_run} runs, {in_undo} undos");
}

/// Takes back the last run, if it changed anything that was not taken back.
fn take_back(home: &TestHome, seed: usize) {
    let mut undone = home.run(&["undo", "--yes"]);
    // On a slow disk the end of what was killed can take longer than an undo waits, which it says then.
    for _ in 0..20 {
        if !undone.stderr.contains("is still in progress") {
            break;
        }
        undone = home.run(&["undo", "--yes"]);
    }
    let is_nothing = undone.code == 2 && undone.stderr.contains("no run has changed anything");
    assert!(undone.code == 0 || is_nothing, "seed {seed}: {undone:?}");
}
