//! Runs whose model goes round in circles, or stops before it is done.

mod opening;
mod repetition;
mod results;
mod steps;

use kontekst_agent::{
    Expects, RunOverrides, StartRun,
    protocol::{Event, FailureKind, Outcome, RunFacts},
};
use kontekst_core::Role;
use kontekst_provider::ToolRole;
use serde_json::json;

use super::{TestCore, event_names, scripted_provider::Step};

/// Returns what the model read as the result of its first call.
fn first_result(test: &TestCore) -> String {
    let requests = test.model.requests();
    let mut results = requests[1].messages.iter().filter_map(|message| message.tool_result.as_ref());
    results.next().unwrap().output.clone()
}

fn read(path: &str) -> Step {
    Step::Call(vec![("read_file", json!({"path": path}))])
}

fn failure(events: &[Event]) -> (FailureKind, &str) {
    match events.last() {
        Some(Event::Ended(Outcome::Failed(error))) => (error.kind, &error.message),
        other => panic!("not a failure: {other:?}"),
    }
}

fn answer(events: &[Event]) -> &str {
    match events.last() {
        Some(Event::Ended(Outcome::Completed { content, .. })) => content,
        other => panic!("not completed: {other:?}"),
    }
}

/// Returns the results that the model has read when its script has made this many calls.
fn results(test: &TestCore, calls: usize) -> Vec<String> {
    let messages = &test.model.requests()[calls].messages;
    messages.iter().filter_map(|message| Some(message.tool_result.as_ref()?.output.clone())).collect()
}

/// Returns what the run has done, as its client is told.
fn facts(events: &[Event]) -> &RunFacts {
    let facts = events.iter().find_map(|event| match event {
        Event::Facts(facts) => Some(facts),
        _ => None,
    });
    facts.expect("each run has facts")
}

/// Returns what the client was told at the start about the answers of the run.
fn may_turn_back(events: &[Event]) -> Option<bool> {
    events.iter().find_map(|event| match event {
        Event::Started { may_turn_back, .. } => Some(*may_turn_back),
        _ => None,
    })
}

#[tokio::test]
async fn a_rail_that_is_off_does_nothing_and_a_bare_run_has_none() {
    let repeats = || (0..6).map(|_| read("a.txt")).chain([Step::Say("It says one.")]);
    let test = TestCore::new(repeats());
    test.write("a.txt", "one\n");
    test.agent("off", "[rails]\nrepeats = false\nunfinished = false\n");
    let request = StartRun { agent: "off".to_owned(), ..test.request("what is in a.txt?") };
    assert_eq!(answer(&test.run(request).await), "It says one.");

    let test = TestCore::new(repeats().chain([Step::Say("")]));
    test.write("a.txt", "one\n");
    let overrides = RunOverrides { bare: true, ..RunOverrides::default() };
    let bare = |prompt| StartRun { overrides: overrides.clone(), ..test.request(prompt) };
    assert_eq!(answer(&test.run(bare("what is in a.txt?")).await), "It says one.");
    // It is not asked again, and a run without an answer has still not completed.
    let empty = test.run(bare("and now?")).await;
    assert_eq!(failure(&empty), (FailureKind::Model, "the model's answer is empty"));
    for request in test.model.requests() {
        assert_eq!((request.tool_role, request.rescue), (ToolRole::Native, false));
    }
}

#[tokio::test]
async fn a_thought_without_end_is_ended_and_the_answer_is_asked_for() {
    let test = TestCore::new([Step::ThinkForEver, Step::Say("It is 7.")]);
    test.agent("brief", "[rails]\nthinking_budget = 100\n");
    let request = StartRun { agent: "brief".to_owned(), ..test.request("what is it?") };
    let events = test.run(request).await;
    assert_eq!(answer(&events), "It is 7.");
    let thought: usize =
        events.iter().map(|event| if let Event::Reasoning(text) = event { text.len() } else { 0 }).sum();
    assert_eq!(thought, 400);
    assert!(event_names(&events).contains(&"notice"));
    let thinking: Vec<bool> = test.model.requests().iter().map(|request| request.thinking).collect();
    assert_eq!(thinking, [true, false]);

    // A thought within the budget is left alone.
    let test = TestCore::new([Step::Think("hm", "It is 7.")]);
    test.agent("brief", "[rails]\nthinking_budget = 100\n");
    let request = StartRun { agent: "brief".to_owned(), ..test.request("what is it?") };
    assert_eq!(answer(&test.run(request).await), "It is 7.");
}

#[tokio::test]
async fn a_file_may_be_read_after_each_change() {
    let write = |number: usize| {
        Step::Call(vec![("write_file", json!({"path": "b.txt", "content": format!("{number}\n")}))])
    };
    let steps =
        (0..6).flat_map(|number| [read("a.txt"), write(number)]).chain([Step::Say("all six are done")]);
    let test = TestCore::new(steps);
    test.write("a.txt", "one\n");
    let events = test.run(test.request("count up")).await;
    assert_eq!(answer(&events), "all six are done");
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again_twice_and_then_the_run_fails() {
    let test = TestCore::new([Step::Say(""), Step::Say("It is 7.")]);
    assert_eq!(answer(&test.run(test.request("what is it?")).await), "It is 7.");

    let test = TestCore::new((0..3).map(|_| Step::Say("")));
    let events = test.run(test.request("what is it?")).await;
    assert_eq!(failure(&events), (FailureKind::Model, "the model's answer is empty"));
    assert_eq!(event_names(&events).iter().filter(|name| **name == "turn_completed").count(), 3);
}

#[tokio::test]
async fn a_prompt_without_an_answer_is_not_sent_with_the_next_one() {
    let empty = || (0..3).map(|_| Step::Say(" \n"));
    let test = TestCore::new(empty().chain([Step::Say("fine")]));
    failure(&test.run(test.in_session("s", "one")).await);
    answer(&test.run(test.in_session("s", "two")).await);
    let sent: Vec<_> =
        test.model.requests()[3].messages.iter().map(|message| message.content.clone()).collect();
    assert_eq!(sent, ["two"]);
    let stored = test.stored_messages("s");
    let people_see: Vec<_> = stored.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(people_see, ["one", "two", "fine"]);

    // After a call, the run is remembered without the answers that were none.
    let test = TestCore::new([read("a.txt")].into_iter().chain(empty()).chain([Step::Say("fine")]));
    test.write("a.txt", "one\n");
    failure(&test.run(test.in_session("s", "one")).await);
    answer(&test.run(test.in_session("s", "two")).await);
    let roles: Vec<_> = test.model.requests()[4].messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
}

fn edit(path: &str, old: &str, new: &str) -> Step {
    Step::Call(vec![("edit_file", json!({"path": path, "old_str": old, "new_str": new}))])
}

fn write(path: &str, content: &str) -> Step {
    Step::Call(vec![("write_file", json!({"path": path, "content": content}))])
}

#[tokio::test]
async fn a_model_that_repeats_a_call_reads_that_it_does_and_is_never_stopped() {
    let test = TestCore::new((0..9).map(|_| read("a.txt")).chain([Step::Say("It says one.")]));
    test.write("a.txt", "one\n");
    let events = test.run(test.request("what is in a.txt?")).await;
    assert_eq!(answer(&events), "It says one.");
    let results = results(&test, 9);
    let has_note: Vec<bool> = results.iter().map(|output| output.contains("those of before")).collect();
    assert_eq!(has_note[..3], [false, true, true], "{results:?}");
    assert!(!format!("{events:?}").contains("those of before"), "the note is for the model alone");
}

#[tokio::test]
async fn failing_calls_never_stop_a_model_that_does_not_work_in_steps() {
    let edit = |number: usize| {
        let args = json!({"path": "src/report.py", "old_str": format!("sum = {number}"), "new_str": "x"});
        Step::Call(vec![("edit_file", args)])
    };
    let test = TestCore::new((0..8).map(edit).chain([Step::Say("It cannot be done.")]));
    std::fs::create_dir(test.work_dir().join("src")).unwrap();
    test.write("src/report.py", "total = 1\nprint(total)\n");
    assert_eq!(answer(&test.run(test.request("fix src/report.py")).await), "It cannot be done.");
    assert_eq!(results(&test, 8), ["old_str not found in src/report.py"; 8]);
}

#[tokio::test]
async fn a_file_that_does_not_exist_has_similar_names() {
    let names = ["lib/report.py", "reprt.py", "/srv/nots.txt"];
    let test = TestCore::new(names.into_iter().map(read).chain([Step::Say("done")]));
    std::fs::create_dir(test.work_dir().join("src")).unwrap();
    test.write("src/report.py", "total = 1\n");
    test.write("notes.txt", "a note\n");
    assert_eq!(answer(&test.run(test.request("go")).await), "done");
    let results = results(&test, 3);
    assert_eq!(results[0], "file does not exist: lib/report.py. Did you mean `src/report.py`?");
    assert!(
        results[1].starts_with("file does not exist: reprt.py. Did you mean `src/report.py`?"),
        "{results:?}"
    );
    assert!(results[2].contains("relative to it. Did you mean `notes.txt`?"), "{results:?}");
}

/// Requests that sound like orders, and answers without any change. What the run has done says that nothing was changed.
#[tokio::test]
async fn no_words_of_a_request_turn_an_answer_or_a_change_back() {
    for prompt in [
        "fix the typo in a.txt",
        "Delete a.txt, line 1",
        "Run the tests of a.txt and commit it",
        "Set debug to false in a.txt. Change nothing yet.",
        "Ersetze one durch two in a.txt",
    ] {
        for answered in ["I will now read a.txt.", "Done.", prompt] {
            let answered: &'static str = answered.to_owned().leak();
            let test = TestCore::new([Step::Say(answered)]);
            test.write("a.txt", "one\n");
            let events = test.run(test.request(prompt)).await;
            assert_eq!(answer(&events), answered, "{prompt}");
            assert_eq!((test.model.requests().len(), may_turn_back(&events)), (1, Some(false)), "{prompt}");
            let facts = RunFacts { is_complete: true, ..RunFacts::default() };
            assert_eq!(self::facts(&events), &facts, "{prompt}");
        }
        let test = TestCore::new([write("a.txt", "two\n"), write("b.txt", "three\n"), Step::Say("done")]);
        test.write("a.txt", "one\n");
        let events = test.run(test.request(prompt)).await;
        assert_eq!((answer(&events), test.read("a.txt").as_str()), ("done", "two\n"), "{prompt}");
        assert_eq!(facts(&events).changed_files, ["a.txt", "b.txt"]);
    }
}

#[tokio::test]
async fn the_facts_of_a_run_are_what_differs_in_the_end() {
    let test = TestCore::new([edit("a.txt", "one", "two"), edit("a.txt", "two", "one"), Step::Say("done")]);
    test.write("a.txt", "one\n");
    let events = test.run(test.request("try something")).await;
    assert_eq!(facts(&events), &RunFacts { is_complete: true, ..RunFacts::default() });
    assert!(
        matches!(&events[events.len() - 2..], [Event::Facts(_), Event::Ended(_)]),
        "directly before the end"
    );
}

#[tokio::test]
async fn a_change_that_the_client_expects_is_asked_for_once() {
    let expecting =
        |test: &TestCore| StartRun { expects: Expects::Change, ..test.request("say two in a.txt") };
    let test = TestCore::new([Step::Say("It does."), edit("a.txt", "one", "two"), Step::Say("Now it does.")]);
    test.write("a.txt", "one\n");
    let events = test.run(expecting(&test)).await;
    assert_eq!((answer(&events), may_turn_back(&events)), ("Now it does.", Some(true)));

    let test = TestCore::new([Step::Say("It does."), Step::Say("It says two already.")]);
    test.write("a.txt", "two\n");
    let events = test.run(expecting(&test)).await;
    let reason = "the run has changed no file, and --expect-change wants a change";
    assert_eq!(failure(&events), (FailureKind::Check, reason));
}
