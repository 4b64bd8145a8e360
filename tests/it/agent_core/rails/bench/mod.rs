//! Forty models that misbehave in a way that is known of small ones, each with the rails and without.
//!
//! Each model does the wrong thing until what it reads helps it. Without rails it goes on until the run is over or says
//! that it is done although it is not. The test prints what became of each run.

mod answers;
mod calls;
mod changes;

use std::fmt::Write as _;

use kontekst::{
    agent::{
        History, RunOverrides, StartRun,
        protocol::{Event, Outcome},
    },
    provider::ChatRequest,
};

use super::{
    super::{TestCore, scripted_provider::ScriptedProvider},
    Step,
};

/// The number of turns after which a run is over, as far as the limit of turns decides.
const MAX_TURNS: u32 = 15;

/// A model that misbehaves, and the task that it has.
struct Case {
    name: &'static str,
    prompt: &'static str,
    files: Vec<(&'static str, String)>,
    /// The number of calls that a good model needs.
    needed: usize,
    /// Chooses the next step.
    model: fn(&Seen) -> Step,
    /// The end of the task: a part of the answer, or a file and its content.
    done: Done,
}

enum Done {
    Says(&'static str),
    File(&'static str, &'static str),
}

/// The texts that a model has read so far.
struct Seen {
    /// The number of answers before this one.
    turn: usize,
    /// The results and notes that it has read, oldest first.
    texts: Vec<String>,
}

impl Seen {
    fn new(request: &ChatRequest, turn: usize) -> Self {
        let text = |message: &kontekst::core::Message| match &message.tool_result {
            Some(result) => result.output.clone(),
            None => message.content.clone(),
        };
        // The first message is the prompt.
        Self { turn, texts: request.messages.iter().skip(1).map(text).collect() }
    }

    /// Returns true if it has read these words.
    fn read(&self, words: &str) -> bool {
        self.texts.iter().any(|text| text.contains(words))
    }

    /// Returns true if these words are in what it has read last.
    fn just_read(&self, words: &str) -> bool {
        self.texts.last().is_some_and(|text| text.contains(words))
    }
}

/// The end of a run, compared with its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The task is done, and the run says so.
    Finished,
    /// The run failed with a reason that is not its limit of turns.
    Failed,
    /// The run says that it is done, and it is not.
    Wrong,
    /// The run used up its turns.
    Turns,
}

/// Runs a case. Returns its ending and the number of its calls.
async fn run(case: &Case, bare: bool) -> (Ending, usize) {
    let model = case.model;
    let mut turn = 0;
    let provider = ScriptedProvider::reacting(move |request| {
        turn += 1;
        model(&Seen::new(request, turn - 1))
    });
    let test = TestCore::with_model(provider, |config| config.max_turns = MAX_TURNS);
    for (name, text) in &case.files {
        let path = test.work_dir().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let overrides = RunOverrides { bare, ..RunOverrides::default() };
    let history = History::Provided(Vec::new());
    let events = test.run(StartRun { overrides, history, ..test.request(case.prompt) }).await;
    let calls = events.iter().map(|event| match event {
        Event::TurnCompleted { calls, .. } => calls.len(),
        _ => 0,
    });
    let ending = match events.last() {
        Some(Event::Ended(Outcome::Completed { content, .. })) => {
            let done = match case.done {
                Done::Says(words) => content.contains(words),
                Done::File(name, text) => test.exists(name) && test.read(name) == text,
            };
            if done { Ending::Finished } else { Ending::Wrong }
        }
        Some(Event::Ended(Outcome::Failed(error))) if error.message.contains("used up its") => Ending::Turns,
        Some(Event::Ended(Outcome::Failed(_))) => Ending::Failed,
        other => panic!("{}: {other:?}", case.name),
    };
    (ending, calls.sum())
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "the table is what one runs this for")]
async fn rails_bench() {
    let cases: Vec<Case> =
        answers::cases().into_iter().chain(calls::cases()).chain(changes::cases()).collect();
    assert_eq!(cases.len(), 40);
    let mut table = format!("{:<62} {:<10} {:<10} wasted calls\n", "misbehaviour", "rails", "bare");
    let (mut finished, mut honest, mut bare_finished, mut wasted, mut bare_wasted) = (0, 0, 0, 0, 0);
    for case in &cases {
        let (with, calls) = run(case, false).await;
        let (without, bare_calls) = run(case, true).await;
        let (more, bare_more) = (calls.saturating_sub(case.needed), bare_calls.saturating_sub(case.needed));
        let (with_text, without_text) = (format!("{with:?}"), format!("{without:?}"));
        writeln!(table, "{:<62} {with_text:<10} {without_text:<10} {more} / {bare_more}", case.name).unwrap();
        finished += usize::from(with == Ending::Finished);
        honest += usize::from(with == Ending::Failed);
        bare_finished += usize::from(without == Ending::Finished);
        wasted += more;
        bare_wasted += bare_more;
    }
    let count = cases.len();
    let per_task = |calls: usize| calls as f64 / count as f64;
    writeln!(
        table,
        "finished: {finished} of {count} with rails, {bare_finished} without; failed with a reason: {honest}; wasted calls \
         a task: {:.2} with rails, {:.2} without",
        per_task(wasted),
        per_task(bare_wasted)
    )
    .unwrap();
    eprintln!("{table}");
    assert!(finished * 100 >= count * 95, "{table}");
    assert_eq!(finished + honest, count, "no run ends as if it were done, and none by its turns\n{table}");
    assert!(per_task(wasted) <= 2.0, "{table}");
}
