//! Runs whose model goes round in circles, or stops before it is done.

mod bench;
mod contradicted;
mod copied;
mod errors;
mod healthy;
mod offer;
mod opening;
mod remaining;
mod repetition;
mod results;
mod tests_that_pass;
mod unchanged;
mod writes;

use kontekst::{
    agent::{
        DaemonTools, RunOverrides, StartRun,
        protocol::{Command, Event, FailureKind, Outcome, ProposedCall},
    },
    core::Role,
    provider::ToolRole,
};
use serde_json::json;

use super::{TestCore, event_names, run_to_end, scripted_provider::Step};

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

/// Returns what the client was told at the start about the answers of the run.
fn may_turn_back(events: &[Event]) -> Option<bool> {
    events.iter().find_map(|event| match event {
        Event::Started { may_turn_back, .. } => Some(*may_turn_back),
        _ => None,
    })
}

#[tokio::test]
async fn a_model_that_repeats_a_call_reads_that_it_does_and_the_run_ends() {
    let test = TestCore::new((0..10).map(|_| read("a.txt")));
    test.write("a.txt", "one\n");
    let events = test.run(test.request("what is in a.txt?")).await;
    assert_eq!(
        failure(&events),
        (
            FailureKind::Limit,
            "the model called read_file 4 times with the same arguments and the same result"
        )
    );
    let requests = test.model.requests();
    assert_eq!(requests.len(), 4);
    let results: Vec<&str> = requests[3]
        .messages
        .iter()
        .filter_map(|message| message.tool_result.as_ref())
        .map(|result| result.output.as_str())
        .collect();
    let has_note: Vec<bool> = results.iter().map(|output| output.contains("exactly this call")).collect();
    assert_eq!(has_note, [false, true, true], "{results:?}");
    assert!(!format!("{events:?}").contains("exactly this call"), "the note is for the model alone");
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
async fn an_announcement_is_not_an_answer() {
    let test =
        TestCore::new([Step::Say("I will now read the file:"), read("a.txt"), Step::Say("It says one.")]);
    test.write("a.txt", "one\n");
    let events = test.run(test.in_session("s", "what is in a.txt?")).await;
    assert_eq!(answer(&events), "It says one.");
    let asked_again = &test.model.requests()[1].messages;
    assert!(asked_again.last().unwrap().content.starts_with("You said what you would do"), "{asked_again:?}");
    let stored = test.stored_messages("s");
    assert!(stored.iter().all(|message| !message.content.contains("You said")), "the user did not write it");
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again_twice_and_then_the_run_fails() {
    let test = TestCore::new([Step::Say(""), Step::Say("It is 7.")]);
    assert_eq!(answer(&test.run(test.request("what is it?")).await), "It is 7.");

    let test = TestCore::new((0..3).map(|_| Step::Say("")));
    let events = test.run(test.request("what is it?")).await;
    assert_eq!(failure(&events), (FailureKind::Model, "the model gave an empty answer"));
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

/// Returns, for each request, the tools that were withheld and whether a tool had to be called.
fn withheld(test: &TestCore) -> Vec<(Vec<String>, bool)> {
    let steps = test.model.requests().into_iter().map(|request| request.steps);
    steps.map(|steps| (steps.withheld_tools, steps.must_call)).collect()
}

#[tokio::test]
async fn a_tool_that_read_the_same_again_is_withheld_for_one_turn() {
    let test = TestCore::new([read("a.txt"), read("a.txt"), read("b.txt"), Step::Say("done")]);
    test.write("a.txt", "one\n");
    test.write("b.txt", "two\n");
    answer(&test.run(test.request("what is in a.txt?")).await);
    let has_read_file: Vec<bool> =
        withheld(&test).iter().map(|(names, _)| names.contains(&"read_file".to_owned())).collect();
    assert_eq!(has_read_file, [false, false, true, false]);
}

#[tokio::test]
async fn an_answer_is_none_before_the_change_that_was_asked_for() {
    let steps = [
        read("a.txt"),
        Step::Say("Here is the file:\n```\ntwo\n```"),
        edit("a.txt", "none", "two"),
        edit("a.txt", "one", "two"),
        Step::Say("changed"),
    ];
    let test = TestCore::new(steps);
    test.write("a.txt", "one\n");
    let events = test.run(test.in_session("s", "replace one with two in a.txt")).await;
    assert_eq!(answer(&events), "changed");
    let must_call: Vec<bool> = withheld(&test).into_iter().map(|(_, must_call)| must_call).collect();
    assert_eq!(must_call, [false, false, true, true, false], "until a file was changed");
    let asked_again = &test.model.requests()[2].messages;
    assert!(asked_again.last().unwrap().content.starts_with("No file has been changed yet."));
    assert!(test.stored_messages("s").iter().all(|message| !message.content.contains("No file has been")));
}

#[tokio::test]
async fn a_run_that_changes_nothing_although_it_was_asked_to_fails() {
    let test = TestCore::new((0..3).map(|_| Step::Say("I have fixed it.")));
    test.write("a.txt", "one\n");
    let events = test.run(test.request("fix the typo in a.txt")).await;
    let reason = "the model was asked for a change and changed no file";
    assert_eq!(failure(&events), (FailureKind::Model, reason));
    assert_eq!(may_turn_back(&events), Some(true));
    let turned_back = events.iter().filter(|event| **event == Event::TurnedBack(reason.to_owned()));
    assert_eq!(turned_back.count(), 2, "the third one ends the run");
}

#[tokio::test]
async fn questions_and_runs_without_file_tools_need_no_change() {
    let test = TestCore::new([Step::Say("Change line 3.")]);
    test.write("a.txt", "one\n");
    let events = test.run(test.request("how do I fix the typo in a.txt?")).await;
    assert_eq!((answer(&events), may_turn_back(&events)), ("Change line 3.", Some(false)));

    let test = TestCore::new([Step::Say("I cannot.")]);
    let mut request = test.request("fix the typo in a.txt");
    request.tools.daemon = DaemonTools::Only(vec!["read_file".to_owned()]);
    assert_eq!(answer(&test.run(request).await), "I cannot.");
}

#[tokio::test]
async fn a_denied_change_is_not_asked_for_again() {
    let test = TestCore::new([edit("a.txt", "one", "two"), Step::Say("You did not want it.")]);
    test.write("a.txt", "one\n");
    let mut run = test.start(test.request("replace one with two in a.txt"));
    let deny = |call: &ProposedCall| Command::decision(call.call.id.clone(), false, String::new(), true);
    let events = run_to_end(&mut run, |event| match event {
        Event::ToolsProposed(calls) => calls.iter().map(deny).collect(),
        _ => Vec::new(),
    })
    .await;
    assert_eq!(answer(&events), "You did not want it.");
}
