//! Requests of many kinds with a model that does each of them right, and with one that does nothing and says that it has:
//! neither is held up, and a right outcome stays right.
//!
//! `cases.json` has a request on each line: its files, the calls that are right for it, and the answer. `check` is a line for
//! the shell that ends with 0 if the files are right; without one, no file may change.

mod conversations;

use std::{
    collections::{BTreeMap, HashMap},
    env, fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    scripted_model::{Act, LARGE, Model, UNKNOWN, start},
    tasks::suite::Tree,
    test_home::{Output, TestHome, wait_with_output},
};

/// The text on stderr at the end of a run that has changed nothing and whose model says otherwise.
const FACT_OF_NO_CHANGE: &str = "no file was changed";

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Case {
    name: String,
    prompt: String,
    /// The model does not do what its answer says.
    lie: bool,
    files: BTreeMap<String, String>,
    /// The files are in a git repository with one commit.
    git: bool,
    /// A line for the shell that changes the files further.
    setup: String,
    stdin: String,
    args: Vec<String>,
    calls: Vec<(String, Value)>,
    answer: String,
    check: String,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("cases.json")).unwrap()
}

/// Runs each case with a model that makes its calls and then gives its answer, and expects the answer, the right files, and
/// no question to the model beyond those. `wrong_output` returns what is wrong with the output of a run.
#[track_caller]
fn check(model: Model, cases: &[Case], flags: &[&str], wrong_output: fn(&Case, &Output) -> Option<String>) {
    let questions: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let (counter, script) = (Arc::clone(&questions), cases.to_vec());
    let fake = start(model, move |body| {
        let Some((case, turn)) = place(&script, body) else { return Act::Say("no case".to_owned()) };
        *counter.lock().unwrap().entry(case.name.clone()).or_default() += 1;
        case.calls.get(turn).map_or_else(
            || Act::Say(case.answer.clone()),
            |(name, arguments)| Act::Call(name.clone(), arguments.clone()),
        )
    });
    let home = TestHome::new(&fake.url());
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::<String>::new()));
    let faults = |case: &Case| {
        let (output, files_are_right) = run(&home, case, flags);
        let asked = questions.lock().unwrap().get(&case.name).copied().unwrap_or_default();
        let expected = case.calls.len() + 1;
        let faults = [
            wrong_output(case, &output),
            (output.code != 0).then(|| format!("exit status {}", output.code)),
            (!files_are_right).then(|| "the files are not right".to_owned()),
            (asked != expected).then(|| format!("{asked} questions and not {expected}")),
        ];
        let faults: Vec<String> = faults.into_iter().flatten().collect();
        let text = || {
            format!(
                "{}: {:.80}\n  {}\n  {}",
                case.name,
                case.prompt,
                faults.join("; "),
                output.stderr.trim_end()
            )
        };
        (!faults.is_empty()).then(text)
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, SeqCst)) {
                    wrong.lock().unwrap().extend(faults(case));
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    assert!(wrong.is_empty(), "{} of {} runs of {model:?}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Returns the case that a request to the model belongs to, and how often the model has answered before.
fn place<'a>(script: &'a [Case], body: &Value) -> Option<(&'a Case, usize)> {
    let messages = body["messages"].as_array()?;
    let user = messages.iter().find(|message| message["role"] == "user")?["content"].as_str()?;
    let of_prompt = script.iter().filter(|case| user.contains(&case.prompt));
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    Some((of_prompt.max_by_key(|case| case.prompt.len())?, turn))
}

/// Runs a case in a directory of its own, and returns its output and whether its files are right afterwards.
fn run(home: &TestHome, case: &Case, flags: &[&str]) -> (Output, bool) {
    let dir = home.work_dir().join(&case.name);
    fs::create_dir(&dir).unwrap();
    Tree(case.files.clone()).write(&dir).unwrap();
    if case.git {
        let identity = "git config user.email a@example.org && git config user.name a";
        assert!(shell(&dir, &format!("git init -q && {identity} && git add -A && git commit -qm start")));
    }
    assert!(shell(&dir, &case.setup));
    let before = tree(&dir);
    let args: Vec<&str> = case.args.iter().map(String::as_str).collect();
    let words = [&["run", "--new", "--auto-approve"], flags, &args, &["--", &case.prompt]].concat();
    let mut command = home.command(&words);
    command.current_dir(&dir).env("PATH", env::var_os("PATH").unwrap());
    if !case.stdin.is_empty() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().unwrap();
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(case.stdin.as_bytes()).unwrap();
    }
    let output = wait_with_output(child);
    let files_are_right = if case.check.is_empty() { tree(&dir) == before } else { shell(&dir, &case.check) };
    (output, files_are_right)
}

/// Runs a line in the shell, and returns true if it ends with 0.
fn shell(dir: &Path, line: &str) -> bool {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line]).current_dir(dir).env_clear().env("PATH", env::var_os("PATH").unwrap());
    shell.env("HOME", dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().unwrap().success()
}

/// Returns the files of a case, without what git and Python keep there.
fn tree(dir: &Path) -> Tree {
    let mut tree = Tree::read(dir).unwrap();
    tree.0.retain(|path, _| !path.split('/').any(|part| part == ".git" || part == "__pycache__"));
    tree
}

fn without_lies() -> Vec<Case> {
    cases().into_iter().filter(|case| !case.lie).collect()
}

/// Returns what is wrong if stdout is not the answer alone.
fn answer_alone(case: &Case, output: &Output) -> Option<String> {
    let is_answer = output.stdout.strip_suffix('\n').unwrap_or(&output.stdout) == case.answer;
    (!is_answer).then(|| format!("stdout is {:?}", output.stdout))
}

/// The same of the events, none of which may say that a call or an answer was turned back.
fn answer_in_events(case: &Case, output: &Output) -> Option<String> {
    let events = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<Value> = events.collect();
    let turned_back = events.iter().find(|event| event["type"] == "turned_back");
    let is_end = |event: &Value| event["type"] == "completed" && event["content"] == *case.answer;
    let completed = events.iter().any(is_end);
    turned_back
        .map(Value::to_string)
        .or_else(|| (!completed).then(|| format!("the end is {:?}", events.last())))
}

#[test]
fn a_large_model_that_does_its_work_is_not_held_up() {
    check(LARGE, &without_lies(), &[], answer_alone);
}

#[test]
fn a_model_of_unknown_size_that_does_its_work_is_not_held_up() {
    check(UNKNOWN, &without_lies(), &["--json"], answer_in_events);
}

/// The answer is the user's to judge; the program adds the facts.
#[test]
fn what_a_model_only_says_is_printed_beside_the_facts() {
    let acts = |case: &Case| {
        case.calls.iter().any(|(name, _)| ["edit_file", "write_file", "run_command"].contains(&name.as_str()))
    };
    let idle = |case: Case| Case {
        answer: format!("Done. {}", case.answer),
        calls: Vec::new(),
        check: String::new(),
        ..case
    };
    let (lies, honest): (Vec<Case>, Vec<Case>) = cases().into_iter().partition(|case| case.lie);
    let prompts: Vec<&str> = lies.iter().map(|case| &*case.prompt).collect();
    let idle =
        honest.iter().filter(|case| acts(case) && !prompts.contains(&&*case.prompt)).cloned().map(idle);
    let cases: Vec<Case> = lies.iter().cloned().chain(idle).collect();
    check(LARGE, &cases, &[], |case, output| {
        let fact = case.check.is_empty() && !output.stderr.contains(FACT_OF_NO_CHANGE);
        answer_alone(case, output).or_else(|| fact.then(|| format!("stderr is {:?}", output.stderr)))
    });
}
