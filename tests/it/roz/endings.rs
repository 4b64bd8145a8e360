//! The ends of turns, and of connections.

use std::time::Duration;

use kontekst_core::Role;
use kontekst_pb::roz::{
    CancelSession, CancelTurn, session_event_envelope::TypedEvent, session_request::Request,
    session_response::Response,
};
use serde_json::json;

use super::{TestDaemon, call_step, frame_names, sequential_tool, stop_reason, text};
use crate::{
    agent_core::scripted_provider::{Step, unreachable_error},
    wait::wait_until_async,
};

fn cancel() -> Request {
    Request::CancelTurn(CancelTurn::default())
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_the_model_speaks() {
    let daemon = TestDaemon::new([Step::Hang("half an "), Step::Say("whole")]);
    let mut client = daemon.session([]).await;
    client.send_message("go").await;
    client.frames_until(|frame| matches!(frame, Response::TextDelta(_))).await;
    client.send(cancel()).await;
    let frames = client.finish_turn().await;
    assert_eq!(frame_names(&frames), ["idle", "cancelled"]);
    // The next turn is accepted, and its prompt has the cancelled one.
    assert_eq!(stop_reason(&client.turn("again").await), "end_turn");
    let prompt = daemon.prompt(1);
    assert!(
        prompt.contains(
            "<user> go\n<assistant> half an \n<assistant> [cancelled before it was finished]\n<user> again"
        ),
        "{prompt}"
    );
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_a_tool_runs() {
    let daemon = TestDaemon::new([call_step("bash", json!({})), Step::Say("fine")]);
    let mut client = daemon.session([sequential_tool("bash")]).await;
    client.send_message("go").await;
    let request = client.next_tool_request().await;
    client.send(cancel()).await;
    let frames = client.finish_turn().await;
    assert_eq!(stop_reason(&frames), "cancelled");
    let Some(Response::TurnComplete(complete)) = frames.last() else { unreachable!() };
    assert_eq!(complete.usage.as_ref().unwrap().output_tokens, 7, "the usage is reported");
    client.send_result(&request, "late").await;
    assert_eq!(client.next_error().await, "no_active_turn");
    // The conversation has no call without a result.
    assert_eq!(stop_reason(&client.turn("again").await), "end_turn");
    let roles: Vec<_> = daemon.model.requests()[1].messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]);
}

#[tokio::test]
async fn a_cancelled_session_ends_its_turn_first() {
    let daemon = TestDaemon::new([Step::Hang("half ")]);
    let mut client = daemon.session([]).await;
    client.send_message("go").await;
    client.frames_until(|frame| matches!(frame, Response::TextDelta(_))).await;
    client.send(Request::CancelSession(CancelSession::default())).await;
    let rest = client.drain().await;
    let first: Vec<_> = rest.iter().filter_map(|frame| frame.response.clone()).collect();
    assert_eq!(frame_names(&first), ["idle", "cancelled"]);
    let last = rest.last().unwrap().session_event.as_ref().unwrap();
    assert!(matches!(last.typed_event, Some(TypedEvent::SessionCompleted(_))));
    assert_eq!(daemon.core.active_runs(), 0);
}

#[tokio::test]
async fn a_half_closed_turn_is_finished() {
    let daemon = TestDaemon::new([Step::Say("the whole answer")]);
    let mut client = daemon.session([]).await;
    client.send_message("go").await;
    client.half_close();
    let first: Vec<_> = client.drain().await.into_iter().filter_map(|frame| frame.response).collect();
    assert_eq!((text(&first).as_str(), stop_reason(&first)), ("the whole answer", "end_turn"));
}

#[tokio::test]
async fn a_disconnect_cancels_the_run() {
    let daemon = TestDaemon::new([Step::Hang("half ")]);
    let mut client = daemon.session([]).await;
    client.send_message("go").await;
    client.frames_until(|frame| matches!(frame, Response::TextDelta(_))).await;
    assert_eq!(daemon.core.active_runs(), 1);
    drop(client);
    wait_until_async("the run is cancelled", || daemon.core.active_runs() == 0).await;
}

#[tokio::test]
async fn a_failed_turn_is_one_error_and_the_session_goes_on() {
    let daemon = TestDaemon::new([
        Step::Fail(unreachable_error(false)),
        Step::Fail(unreachable_error(false)),
        Step::Fail(kontekst_provider::ProviderError::Protocol("nonsense".to_owned())),
        Step::Fail(kontekst_provider::ProviderError::Status {
            status: 429,
            message: "slow down".to_owned(),
            retry_after: None,
        }),
        Step::StopAtMaxTokens("as far as it"),
    ]);
    let mut client = daemon.session([]).await;
    for (prompt, code, retryable) in
        [("one", "model_error", true), ("two", "agent_error", false), ("three", "rate_limited", true)]
    {
        let frames = client.turn(prompt).await;
        assert_eq!(stop_reason(&frames), code);
        let Some(Response::Error(error)) = frames.last() else { unreachable!() };
        assert_eq!(error.retryable, retryable, "{error:?}");
        assert!(frame_names(&frames).iter().any(|name| name.starts_with("idle")));
        client.ping().await;
    }
    assert_eq!(stop_reason(&client.turn("four").await), "max_tokens");
    // A turn that failed before any answer leaves nothing in the conversation, as at the published service.
    let prompt = daemon.prompt(4);
    assert!(prompt.ends_with("\n<user> four\n") && !prompt.contains("<user> one"), "{prompt}");
}

#[tokio::test]
async fn an_empty_message_starts_no_turn() {
    let daemon = TestDaemon::new([Step::Say("ok")]);
    let mut client = daemon.session([]).await;
    client.send_message("  ").await;
    assert_eq!(client.next_error().await, "invalid_argument");
    assert_eq!(stop_reason(&client.turn("go").await), "end_turn");
}

#[tokio::test(start_paused = true)]
async fn keepalives_are_sent_during_turns_only() {
    let daemon = TestDaemon::new([call_step("bash", json!({})), Step::Say("done")]);
    let mut client = daemon.session([sequential_tool("bash")]).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    client.ping().await;
    client.send_message("go").await;
    let request = client.next_tool_request().await;
    for _ in 0..3 {
        let Some(Response::Keepalive(alive)) = client.next_response().await else {
            panic!("no sign of life")
        };
        let (used, max) = (alive.tokens_used.unwrap(), alive.tokens_max.unwrap());
        assert!(used > 0 && used < max && max == 16_384, "{used} of {max}");
    }
    client.send_result(&request, "x").await;
    assert_eq!(stop_reason(&client.finish_turn().await), "end_turn");
    tokio::time::advance(Duration::from_secs(60)).await;
    client.ping().await;
}

#[tokio::test]
async fn stopping_the_daemon_ends_its_sessions() {
    let daemon = TestDaemon::new([Step::Hang("half ")]);
    let mut idle = daemon.session([]).await;
    let mut busy = daemon.session([]).await;
    busy.send_message("go").await;
    busy.frames_until(|frame| matches!(frame, Response::TextDelta(_))).await;
    daemon.core.stop();
    assert_eq!(idle.drain().await, []);
    let first: Vec<_> = busy.drain().await.into_iter().filter_map(|frame| frame.response).collect();
    assert_eq!(stop_reason(&first), "cancelled");
}
