//! How runs begin and end.

use kontekst::{
    agent::protocol::{Event, FailureKind, Outcome},
    core::Role,
    provider::ProviderError,
};

use super::{
    Room, names, play,
    scripted::{Step, gone},
    until,
};

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
    let room = Room::new([Step::Say("hello there")]);
    let events = room.run(room.in_session("s", "hi")).await;
    assert_eq!(names(&events), ["started", "text", "text", "turn_completed", "completed"]);
    let text: String =
        events.iter().filter_map(|e| if let Event::Text(t) = e { Some(t.as_str()) } else { None }).collect();
    let Outcome::Completed { content, truncated, .. } = outcome(&events) else { panic!() };
    assert_eq!((text.as_str(), content.as_str(), *truncated), ("hello there", "hello there", false));
    let stored = room.stored("s");
    assert_eq!(
        stored.iter().map(|m| (m.role, m.content.as_str())).collect::<Vec<_>>(),
        [(Role::User, "hi"), (Role::Assistant, "hello there")]
    );
    assert!(stored.iter().all(|m| m.tokens > 0 && m.run.is_some() && m.at.is_some()));
    assert_eq!(room.core.active_runs(), 0);
}

#[tokio::test]
async fn thoughts_are_shown_and_never_stored() {
    let room = Room::new([Step::Think("secret thought", "answer"), Step::Say("again")]);
    let events = room.run(room.in_session("s", "hi")).await;
    assert!(events.contains(&Event::Reasoning("secret thought".into())));
    let Outcome::Completed { reasoning, .. } = outcome(&events) else { panic!() };
    assert_eq!(reasoning, "secret thought");
    room.run(room.in_session("s", "more")).await;
    let file = std::fs::read_to_string(room.home().join("sessions/s.jsonl")).unwrap();
    assert!(!file.contains("secret thought"));
    assert!(room.model.requests()[1].messages.iter().all(|m| m.reasoning.is_empty()));
}

#[tokio::test]
async fn what_does_not_exist_fails_before_the_run_begins() {
    for (agent, prompt) in [("nobody", "hi"), ("../default", "hi"), ("default", "  ")] {
        let room = Room::new([]);
        let mut request = room.in_session("s", prompt);
        request.agent = agent.to_owned();
        let events = room.run(request).await;
        assert_eq!(names(&events), ["failed"], "{agent}");
        assert_eq!(failure(&events).0, FailureKind::Request);
        assert!(!room.home().join("sessions/s.jsonl").exists());
    }
}

#[tokio::test]
async fn a_cut_answer_says_so() {
    let room = Room::new([Step::Cut("once upon")]);
    let events = room.run(room.request("tell")).await;
    assert!(matches!(outcome(&events), Outcome::Completed { truncated: true, .. }));
}

#[tokio::test]
async fn a_cancel_while_the_model_talks_keeps_what_was_said() {
    let room = Room::new([Step::Hang("half an "), Step::Say("whole")]);
    let mut run = room.start(room.in_session("s", "one"));
    until(&mut run, |event| matches!(event, Event::Text(_))).await;
    run.cancel();
    let events = play(&mut run, |_| Vec::new()).await;
    assert_eq!(names(&events), ["cancelled"]);
    room.run(room.in_session("s", "two")).await;
    let stored = room.stored("s");
    assert_eq!(
        stored.iter().map(|m| m.content.as_str()).collect::<Vec<_>>(),
        ["one", "half an ", "two", "whole"]
    );
}

#[tokio::test]
async fn dropping_a_run_cancels_it() {
    let room = Room::new([Step::Hang("")]);
    let mut run = room.start(room.request("hi"));
    until(&mut run, |event| matches!(event, Event::Text(_))).await;
    drop(run);
    while room.core.active_runs() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn stopping_the_core_cancels_every_run() {
    let room = Room::new([Step::Hang(""), Step::Hang("")]);
    let mut runs = [room.start(room.request("a")), room.start(room.request("b"))];
    for run in &mut runs {
        until(run, |event| matches!(event, Event::Text(_))).await;
    }
    room.core.stop();
    for run in &mut runs {
        assert_eq!(names(&play(run, |_| Vec::new()).await), ["cancelled"]);
    }
}

#[tokio::test]
async fn a_refused_request_fails_and_keeps_the_prompt() {
    let refused = ProviderError::Status { status: 400, message: "no such thing".into() };
    let room = Room::new([Step::Fail(refused), Step::Say("fine")]);
    let events = room.run(room.in_session("s", "one")).await;
    let (kind, message) = failure(&events);
    assert_eq!(kind, FailureKind::Model);
    assert!(message.contains("400") && message.contains("no such thing"), "{message}");
    let events = room.run(room.in_session("s", "two")).await;
    assert!(matches!(outcome(&events), Outcome::Completed { .. }));
    let asked = &room.model.requests()[1].messages;
    assert_eq!(asked.iter().map(|m| m.content.as_str()).collect::<Vec<_>>(), ["one", "two"]);
}

#[tokio::test]
async fn a_server_that_went_away_is_looked_for_once_more() {
    let room = Room::new([Step::Fail(gone(false)), Step::Say("back")]);
    let events = room.run(room.request("hi")).await;
    assert!(matches!(outcome(&events), Outcome::Completed { .. }));
    assert_eq!(room.model.opened(), 2);

    let room = Room::new([Step::Fail(gone(false)), Step::Fail(gone(false))]);
    assert_eq!(failure(&room.run(room.request("hi")).await).0, FailureKind::Unreachable);
}

#[tokio::test]
async fn nothing_is_asked_again_once_part_of_the_answer_was_shown() {
    let room = Room::new([Step::Break("half ")]);
    let events = room.run(room.in_session("s", "hi")).await;
    assert_eq!(names(&events), ["started", "text", "failed"]);
    assert_eq!(failure(&events).0, FailureKind::Unreachable);
    assert_eq!(room.stored("s")[1].content, "half ");
}

#[tokio::test]
async fn two_runs_of_one_session_take_turns() {
    let room = Room::new([Step::Hang("first "), Step::Say("second")]);
    let mut first = room.start(room.in_session("s", "one"));
    until(&mut first, |event| matches!(event, Event::Text(_))).await;
    let mut second = room.start(room.in_session("s", "two"));
    until(&mut second, |event| matches!(event, Event::WaitingForSession)).await;
    first.cancel();
    play(&mut first, |_| Vec::new()).await;
    let events = play(&mut second, |_| Vec::new()).await;
    assert_eq!(names(&events), ["started", "text", "turn_completed", "completed"]);
    let stored = room.stored("s");
    assert_eq!(
        stored.iter().map(|m| m.content.as_str()).collect::<Vec<_>>(),
        ["one", "first ", "two", "second"]
    );
}

#[tokio::test]
async fn a_run_that_makes_its_session_has_the_first_turn_of_it() {
    let room = Room::new([Step::Hang("first "), Step::Say("second")]);
    let mut first = room.start(room.request("one"));
    let events = until(&mut first, |event| matches!(event, Event::Text(_))).await;
    let made = events.iter().find_map(|event| match event {
        Event::Started { session, .. } => Some(session.to_string()),
        _ => None,
    });
    let mut second = room.start(room.in_session(&made.unwrap(), "two"));
    until(&mut second, |event| matches!(event, Event::WaitingForSession)).await;
    first.cancel();
    play(&mut first, |_| Vec::new()).await;
    let events = play(&mut second, |_| Vec::new()).await;
    assert_eq!(names(&events), ["started", "text", "turn_completed", "completed"]);
}
