//! How turns end, and what happens when a client goes.

use std::time::Duration;

use kontekst::{
    core::Role,
    pb::roz::{
        CancelSession, CancelTurn, session_event_envelope::TypedEvent, session_request::Request,
        session_response::Response,
    },
};
use serde_json::json;

use super::{Room, call, names, single, stop, text};
use crate::core::scripted::{Step, gone};

fn cancel() -> Request {
    Request::CancelTurn(CancelTurn::default())
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_the_model_speaks() {
    let room = Room::new([Step::Hang("half an "), Step::Say("whole")]);
    let mut talk = room.session([]).await;
    talk.ask("go").await;
    talk.until(|frame| matches!(frame, Response::TextDelta(_))).await;
    talk.say(cancel()).await;
    let frames = talk.turn().await;
    assert_eq!(names(&frames), ["idle", "cancelled"]);
    // The next one is not refused, and knows what was said.
    talk.ask("again").await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    let prompt = room.prompt(1);
    assert!(
        prompt.contains(
            "<user> go\n<assistant> half an \n<assistant> [cancelled before it was finished]\n<user> again"
        ),
        "{prompt}"
    );
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_a_tool_runs() {
    let room = Room::new([call("bash", json!({})), Step::Say("fine")]);
    let mut talk = room.session([single("bash")]).await;
    talk.ask("go").await;
    let request = talk.request().await;
    talk.say(cancel()).await;
    let frames = talk.turn().await;
    assert_eq!(stop(&frames), "cancelled");
    let Some(Response::TurnComplete(complete)) = frames.last() else { unreachable!() };
    assert_eq!(complete.usage.as_ref().unwrap().output_tokens, 7, "what was used is told");
    talk.answer(&request, "late").await;
    assert_eq!(talk.error().await, "no_active_turn");
    // The conversation has no open call.
    talk.ask("again").await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    let roles: Vec<_> = room.model.requests()[1].messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]);
}

#[tokio::test]
async fn a_cancelled_session_ends_its_turn_first() {
    let room = Room::new([Step::Hang("half ")]);
    let mut talk = room.session([]).await;
    talk.ask("go").await;
    talk.until(|frame| matches!(frame, Response::TextDelta(_))).await;
    talk.say(Request::CancelSession(CancelSession::default())).await;
    let rest = talk.rest().await;
    let first: Vec<_> = rest.iter().filter_map(|frame| frame.response.clone()).collect();
    assert_eq!(names(&first), ["idle", "cancelled"]);
    let last = rest.last().unwrap().session_event.as_ref().unwrap();
    assert!(matches!(last.typed_event, Some(TypedEvent::SessionCompleted(_))));
    assert_eq!(room.core.active_runs(), 0);
}

#[tokio::test]
async fn a_half_closed_turn_that_needs_nothing_more_is_finished() {
    let room = Room::new([Step::Say("the whole answer")]);
    let mut talk = room.session([]).await;
    talk.ask("go").await;
    talk.half_close();
    let first: Vec<_> = talk.rest().await.into_iter().filter_map(|frame| frame.response).collect();
    assert_eq!((text(&first).as_str(), stop(&first)), ("the whole answer", "end_turn"));
}

#[tokio::test]
async fn a_client_that_is_gone_takes_its_run_along() {
    let room = Room::new([Step::Hang("half ")]);
    let mut talk = room.session([]).await;
    talk.ask("go").await;
    talk.until(|frame| matches!(frame, Response::TextDelta(_))).await;
    assert_eq!(room.core.active_runs(), 1);
    drop(talk);
    while room.core.active_runs() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_failed_turn_is_one_error_and_the_session_goes_on() {
    let room = Room::new([
        Step::Fail(gone(false)),
        Step::Fail(gone(false)),
        Step::Fail(kontekst::provider::ProviderError::Protocol("nonsense".to_owned())),
        Step::Fail(kontekst::provider::ProviderError::Status {
            status: 429,
            message: "slow down".to_owned(),
        }),
        Step::Cut("as far as it"),
    ]);
    let mut talk = room.session([]).await;
    for (prompt, code, retryable) in
        [("one", "model_error", true), ("two", "agent_error", false), ("three", "rate_limited", true)]
    {
        talk.ask(prompt).await;
        let frames = talk.turn().await;
        assert_eq!(stop(&frames), code);
        let Some(Response::Error(error)) = frames.last() else { unreachable!() };
        assert_eq!(error.retryable, retryable, "{error:?}");
        assert!(names(&frames).iter().any(|name| name.starts_with("idle")));
        talk.ping().await;
    }
    talk.ask("four").await;
    assert_eq!(stop(&talk.turn().await), "max_tokens");
    // What the user said is still known.
    let prompt = room.prompt(4);
    for said in ["<user> one", "<user> two", "[this turn failed before it was finished]\n<user> four"] {
        assert!(prompt.contains(said), "{prompt}");
    }
}

#[tokio::test]
async fn an_empty_message_starts_no_turn() {
    let room = Room::new([Step::Say("ok")]);
    let mut talk = room.session([]).await;
    talk.ask("  ").await;
    assert_eq!(talk.error().await, "invalid_argument");
    talk.ask("go").await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_kept_alive_with_true_figures_and_an_idle_session_is_not() {
    let room = Room::new([call("bash", json!({})), Step::Say("done")]);
    let mut talk = room.session([single("bash")]).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    talk.ping().await;
    talk.ask("go").await;
    let request = talk.request().await;
    for _ in 0..3 {
        let Some(Response::Keepalive(alive)) = talk.next().await else { panic!("no sign of life") };
        let (used, max) = (alive.tokens_used.unwrap(), alive.tokens_max.unwrap());
        assert!(used > 0 && used < max && max == 16_384, "{used} of {max}");
    }
    talk.answer(&request, "x").await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    tokio::time::advance(Duration::from_secs(60)).await;
    talk.ping().await;
}

#[tokio::test]
async fn a_daemon_that_stops_ends_its_sessions_well() {
    let room = Room::new([Step::Hang("half ")]);
    let mut idle = room.session([]).await;
    let mut busy = room.session([]).await;
    busy.ask("go").await;
    busy.until(|frame| matches!(frame, Response::TextDelta(_))).await;
    room.core.stop();
    assert_eq!(idle.rest().await, []);
    let first: Vec<_> = busy.rest().await.into_iter().filter_map(|frame| frame.response).collect();
    assert_eq!(stop(&first), "cancelled");
}
