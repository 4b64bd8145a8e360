//! The starts and ends of runs.

use kontekst_agent::protocol::{Event, FailureKind, Outcome};
use kontekst_core::Role;
use kontekst_provider::ProviderError;

use super::{
    TestCore, event_names, events_until, run_to_end,
    scripted_provider::{Step, unreachable_error},
};
use crate::wait::wait_until_async;

fn outcome(events: &[Event]) -> &Outcome {
    match events.last() {
        Some(Event::Ended(outcome)) => outcome,
        other => panic!("not an ending: {other:?}"),
    }
}

fn failure(events: &[Event]) -> (FailureKind, String) {
    match outcome(events) {
        Outcome::Failed(error) => (error.kind, error.message.clone()),
        other => panic!("not a failure: {other:?}"),
    }
}

#[tokio::test]
async fn a_plain_answer() {
    let test = TestCore::new([Step::Say("hello there")]);
    let events = test.run(test.in_session("s", "hi")).await;
    assert_eq!(event_names(&events), ["started", "text", "text", "turn_completed", "completed"]);
    let text: String =
        events.iter().filter_map(|e| if let Event::Text(t) = e { Some(t.as_str()) } else { None }).collect();
    let Outcome::Completed { content, truncated, .. } = outcome(&events) else { panic!() };
    assert_eq!((text.as_str(), content.as_str(), *truncated), ("hello there", "hello there", false));
    let stored = test.stored_messages("s");
    assert_eq!(
        stored.iter().map(|m| (m.role, m.content.as_str())).collect::<Vec<_>>(),
        [(Role::User, "hi"), (Role::Assistant, "hello there")]
    );
    assert!(stored.iter().all(|m| m.tokens > 0 && m.run.is_some() && m.at.is_some()));
    assert_eq!(test.core.active_runs(), 0);
}

#[tokio::test]
async fn reasoning_is_shown_and_never_stored() {
    let test = TestCore::new([Step::Think("secret thought", "answer"), Step::Say("again")]);
    let events = test.run(test.in_session("s", "hi")).await;
    assert!(events.contains(&Event::Reasoning("secret thought".into())));
    let Outcome::Completed { reasoning, .. } = outcome(&events) else { panic!() };
    assert_eq!(reasoning, "secret thought");
    test.run(test.in_session("s", "more")).await;
    let file = std::fs::read_to_string(test.home().join("sessions/s.jsonl")).unwrap();
    assert!(!file.contains("secret thought"));
    assert!(test.model.requests()[1].messages.iter().all(|m| m.reasoning.is_empty()));
}

#[tokio::test]
async fn an_invalid_request_fails_before_the_run_starts() {
    for (agent, prompt) in [("nobody", "hi"), ("../default", "hi"), ("default", "  ")] {
        let test = TestCore::new([]);
        let mut request = test.in_session("s", prompt);
        request.agent = agent.to_owned();
        let events = test.run(request).await;
        assert_eq!(event_names(&events), ["failed"], "{agent}");
        assert_eq!(failure(&events).0, FailureKind::Request);
        assert!(!test.home().join("sessions/s.jsonl").exists());
    }
}

#[tokio::test]
async fn a_cancel_during_an_answer_keeps_the_partial_text() {
    let test = TestCore::new([Step::Hang("half an "), Step::Say("whole")]);
    let mut run = test.start(test.in_session("s", "one"));
    events_until(&mut run, |event| matches!(event, Event::Text(_))).await;
    run.cancel();
    let events = run_to_end(&mut run, |_| Vec::new()).await;
    assert_eq!(event_names(&events), ["cancelled"]);
    test.run(test.in_session("s", "two")).await;
    let stored = test.stored_messages("s");
    assert_eq!(
        stored.iter().map(|m| m.content.as_str()).collect::<Vec<_>>(),
        ["one", "half an ", "two", "whole"]
    );
}

#[tokio::test]
async fn dropping_a_run_cancels_it() {
    let test = TestCore::new([Step::Hang("")]);
    let mut run = test.start(test.request("hi"));
    events_until(&mut run, |event| matches!(event, Event::Text(_))).await;
    drop(run);
    wait_until_async("the run is cancelled", || test.core.active_runs() == 0).await;
}

#[tokio::test]
async fn stopping_the_core_cancels_every_run() {
    let test = TestCore::new([Step::Hang(""), Step::Hang("")]);
    let mut runs = [test.start(test.request("a")), test.start(test.request("b"))];
    for run in &mut runs {
        events_until(run, |event| matches!(event, Event::Text(_))).await;
    }
    test.core.stop();
    for run in &mut runs {
        assert_eq!(event_names(&run_to_end(run, |_| Vec::new()).await), ["cancelled"]);
    }
}

/// Returns the texts of the messages in the `n`th request.
fn asked(test: &TestCore, n: usize) -> Vec<String> {
    test.model.requests()[n].messages.iter().map(|message| message.content.clone()).collect()
}

#[tokio::test]
async fn a_prompt_without_any_answer_is_recorded_and_not_sent_again() {
    let status = |status| ProviderError::Status { status, message: "no".into(), retry_after: None };
    for error in [
        status(400),
        status(401),
        status(500),
        ProviderError::Protocol("nonsense".into()),
        unreachable_error(true),
    ] {
        let test =
            TestCore::new([Step::Say("zero"), Step::Fail(error), Step::Say("fine"), Step::Say("still fine")]);
        test.run(test.in_session("s", "hi")).await;
        failure(&test.run(test.in_session("s", "never taken")).await);
        for prompt in ["two", "three"] {
            let events = test.run(test.in_session("s", prompt)).await;
            assert!(matches!(outcome(&events), Outcome::Completed { .. }));
        }
        assert_eq!(asked(&test, 3), ["hi", "zero", "two", "fine", "three"]);
        let stored = test.stored_messages("s");
        let people_see: Vec<_> = stored.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(people_see, ["hi", "zero", "never taken", "two", "fine", "three", "still fine"]);
    }
}

#[tokio::test]
async fn a_huge_prompt_without_an_answer_does_not_hide_what_was_said_before() {
    let refused = ProviderError::Status { status: 400, message: "no".into(), retry_after: None };
    let test = TestCore::new([Step::Say("zero"), Step::Fail(refused), Step::Say("fine")]);
    test.run(test.in_session("s", "hi")).await;
    failure(&test.run(test.in_session("s", &"\u{1}".repeat(10_000_000))).await);
    test.run(test.in_session("s", "two")).await;
    assert_eq!(asked(&test, 2), ["hi", "zero", "two"]);
}

#[tokio::test]
async fn a_run_that_fails_after_an_answer_is_remembered() {
    let refused = ProviderError::Status { status: 500, message: "no".into(), retry_after: None };
    let read = Step::Call(vec![("read_file", serde_json::json!({"path": "f"}))]);
    let test = TestCore::new([read, Step::Fail(refused), Step::Say("fine")]);
    test.write("f", "text");
    failure(&test.run(test.in_session("s", "one")).await);
    test.run(test.in_session("s", "two")).await;
    let roles: Vec<_> = test.model.requests()[2].messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
}

#[tokio::test]
async fn an_unreachable_server_is_opened_once_more() {
    let test = TestCore::new([Step::Fail(unreachable_error(false)), Step::Say("back")]);
    let events = test.run(test.request("hi")).await;
    assert!(matches!(outcome(&events), Outcome::Completed { .. }));
    assert_eq!(test.model.open_count(), 2);

    let test = TestCore::new([Step::Fail(unreachable_error(false)), Step::Fail(unreachable_error(false))]);
    assert_eq!(failure(&test.run(test.request("hi")).await).0, FailureKind::Unreachable);
}

#[tokio::test]
async fn a_partial_answer_is_never_retried() {
    let test = TestCore::new([Step::Disconnect("half ")]);
    let events = test.run(test.in_session("s", "hi")).await;
    assert_eq!(event_names(&events), ["started", "text", "failed"]);
    let (kind, message) = failure(&events);
    assert_eq!(kind, FailureKind::Model);
    assert!(message.starts_with("an answer was broken off by the model server"), "{message}");
    assert_eq!(test.stored_messages("s")[1].content, "half ");
}

#[tokio::test]
async fn two_runs_of_one_session_take_turns_also_when_the_first_creates_it() {
    for is_new in [false, true] {
        let test = TestCore::new([Step::Hang("first "), Step::Say("second")]);
        let request = if is_new { test.request("one") } else { test.in_session("s", "one") };
        let mut first = test.start(request);
        let events = events_until(&mut first, |event| matches!(event, Event::Text(_))).await;
        let Event::Started { session, .. } = &events[0] else { panic!("{events:?}") };
        let mut second = test.start(test.in_session(session.as_str(), "two"));
        events_until(&mut second, |event| matches!(event, Event::WaitingForSession)).await;
        first.cancel();
        run_to_end(&mut first, |_| Vec::new()).await;
        let events = run_to_end(&mut second, |_| Vec::new()).await;
        assert_eq!(event_names(&events), ["started", "text", "turn_completed", "completed"]);
        let stored = test.stored_messages(session.as_str());
        let texts: Vec<_> = stored.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(texts, ["one", "first ", "two", "second"], "new: {is_new}");
    }
}
