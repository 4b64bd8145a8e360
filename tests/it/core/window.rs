//! What the model is sent, turn after turn.

use kontekst::{
    agent::protocol::Event,
    core::{ContextSnapshot, Role, Source},
    provider::ProviderError,
};
use serde_json::json;

use super::{Room, names, scripted::Step};

fn snapshots(events: &[Event]) -> Vec<&ContextSnapshot> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::TurnCompleted { context, .. } => Some(&**context),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn each_prompt_starts_with_the_one_before_it_across_runs_too() {
    let read = || Step::Call(vec![("read_file", json!({"path": "f"}))]);
    let room = Room::new([read(), read(), Step::Say("one"), read(), Step::Say("two")]);
    room.write("f", "text\n");
    room.write("AGENTS.md", "Be kind.");
    room.run(room.in_session("s", "first")).await;
    room.run(room.in_session("s", "second")).await;
    let requests = room.model.requests();
    for (earlier, later) in requests.iter().zip(&requests[1..]) {
        assert_eq!(earlier.system, later.system);
        assert_eq!(earlier.tools, later.tools);
        for (a, b) in earlier.messages.iter().zip(&later.messages) {
            assert_eq!((a.role, &a.content, &a.tool_calls), (b.role, &b.content, &b.tool_calls));
            assert_eq!(
                a.tool_result.as_ref().map(|r| (&r.call_id, &r.output)),
                b.tool_result.as_ref().map(|r| (&r.call_id, &r.output))
            );
        }
        assert!(earlier.messages.len() < later.messages.len());
    }
}

#[tokio::test]
async fn project_instructions_are_sent_once_and_never_stored() {
    let room = Room::new([Step::Say("a"), Step::Say("b")]);
    room.write("AGENTS.md", "Only tabs.");
    room.run(room.in_session("s", "one")).await;
    room.run(room.in_session("s", "two")).await;
    let last = &room.model.requests()[1];
    assert_eq!(last.system.matches("Only tabs.").count(), 1);
    assert!(last.messages.iter().all(|m| !m.content.contains("Only tabs.")));
}

#[tokio::test]
async fn the_snapshot_adds_up_and_names_its_sources() {
    let room = Room::new([Step::Say("a"), Step::Say("b")]);
    room.run(room.in_session("s", "one")).await;
    let events = room.run(room.in_session("s", "two")).await;
    let snapshot = snapshots(&events)[0];
    let sum =
        snapshot.system_tokens + snapshot.tool_tokens + snapshot.history_tokens + snapshot.memory_tokens;
    assert_eq!(snapshot.total_tokens(), sum);
    assert_eq!(
        [Source::System, Source::History, Source::Memory].map(|source| snapshot.count(source)),
        [1, 2, 2]
    );
    assert_eq!(snapshot.messages[0].role, Role::System);
    assert!(snapshot.tool_tokens > 0 && snapshot.history_budget > 0);
}

#[tokio::test]
async fn history_is_limited_to_its_budget_and_starts_at_a_user_message() {
    let steps: Vec<Step> =
        (0..30).map(|_| Step::Say("an answer that takes some room, as answers do")).collect();
    let room = Room::with_config(steps, |config| config.context_size = 4096);
    let long = "word ".repeat(200);
    for _ in 0..30 {
        let events = room.run(room.in_session("s", &long)).await;
        assert_eq!(*names(&events).last().unwrap(), "completed");
        let request = room.model.requests().pop().unwrap();
        assert_eq!(request.messages[0].role, Role::User);
        let tokens: u32 = request.messages.iter().map(|m| m.tokens).sum();
        assert!(tokens <= 4096 - 1024, "{tokens}");
    }
    assert!(room.model.requests()[29].messages.len() > 5);
}

#[tokio::test]
async fn an_overflow_is_trimmed_and_asked_again() {
    let overflow = || ProviderError::Overflow { prompt_tokens: 9000, window: 8192 };
    let room = Room::new([Step::Say("a"), Step::Say("b"), Step::Fail(overflow()), Step::Say("fits")]);
    room.run(room.in_session("s", "one")).await;
    room.run(room.in_session("s", "two")).await;
    let events = room.run(room.in_session("s", "three")).await;
    assert_eq!(names(&events), ["started", "notice", "text", "turn_completed", "completed"]);
    assert_eq!(room.model.requests()[3].messages.len(), 1);
    assert_eq!(room.stored("s").len(), 6);

    let room = Room::new([Step::Fail(overflow())]);
    assert_eq!(*names(&room.run(room.request("too much")).await).last().unwrap(), "failed");
}

#[tokio::test]
async fn a_prompt_that_the_server_cut_is_told_once() {
    let call = || Step::Call(vec![("read_file", json!({"path": "f"}))]);
    let room = Room::new([call(), Step::Unread("a", 5000)]);
    room.write("f", "text\n");
    let events = room.run(room.in_session("s", "one")).await;
    let told =
        |event: &&Event| matches!(event, Event::Notice(text) if text.contains("left out about 5000 tokens"));
    assert_eq!(events.iter().filter(told).count(), 1);
}

#[tokio::test]
async fn a_request_says_whose_it_is_and_how_long() {
    let room = Room::new([Step::Say("a"), Step::Say("b")]);
    room.run(room.in_session("s", "one")).await;
    let first = &room.model.requests()[0];
    assert_eq!(first.session.as_ref().map(kontekst::core::SessionId::as_str), Some("s"));
    assert!(first.prompt_tokens > 0);
}
