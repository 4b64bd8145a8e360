//! Tools of the daemon in a session: asked about one at a time, by id.

use std::fs;

use kontekst::{
    config::Config,
    pb::roz::{
        PermissionDecision, session_event_envelope::TypedEvent, session_request::Request,
        session_response::Response,
    },
};
use serde_json::json;

use super::{Room, Talk, names, single, stop};
use crate::core::scripted::Step;

fn writes(names: &'static [&'static str]) -> Step {
    Step::Call(names.iter().map(|name| ("write_file", json!({"path": name, "content": "x"}))).collect())
}

fn room(steps: impl IntoIterator<Item = Step>) -> Room {
    Room::with_config(steps, |config: &mut Config, work| {
        config.tools.working_dir = work;
        config.roz.daemon_tools = vec!["write_file".to_owned(), "read_file".to_owned()];
    })
}

/// The id that an approval waits for; before it comes the tool's name.
async fn waiting(talk: &mut Talk) -> String {
    let waits = |frame: &Response| matches!(frame, Response::ActivityUpdate(update) if update.state == "waiting_approval");
    let seen = talk.until(waits).await;
    let names = names(&seen);
    assert_eq!(names[names.len() - 2], "calling_tool write_file", "{names:?}");
    let Some(Response::ActivityUpdate(update)) = seen.into_iter().next_back() else { unreachable!() };
    update.detail
}

async fn decide(talk: &Talk, id: &str, approved: bool) {
    let tool_call_id = id.to_owned();
    talk.say(Request::PermissionDecision(PermissionDecision { tool_call_id, approved, modifier: None }))
        .await;
}

#[tokio::test]
async fn calls_of_the_daemons_tools_are_asked_about_one_at_a_time() {
    let room = room([writes(&["a", "b", "c"]), Step::Say("done")]);
    let mut talk = room.session([single("bash")]).await;
    talk.ask("write").await;
    let a = waiting(&mut talk).await;
    decide(&talk, "nobody's", false).await;
    decide(&talk, &a, true).await;
    let b = waiting(&mut talk).await;
    assert_ne!(a, b);
    // A second word on the first call changes nothing.
    decide(&talk, &a, false).await;
    decide(&talk, &b, false).await;
    let c = waiting(&mut talk).await;
    decide(&talk, &c, true).await;
    let frames = talk.turn().await;
    assert_eq!(stop(&frames), "end_turn");
    assert!(!names(&frames).iter().any(|name| name.starts_with("request")), "the client runs none of it");
    let there = |name: &str| room.work().join(name).exists();
    assert_eq!([there("a"), there("b"), there("c")], [true, false, true]);
    assert!(room.prompt(1).contains("Permission denied by user for: write_file"), "{}", room.prompt(1));
}

#[tokio::test]
async fn the_second_generation_hears_of_the_same_approval() {
    let room = room([writes(&["a"]), Step::Say("done")]);
    let mut talk = room.session([]).await;
    talk.ask("write").await;
    let mut events = Vec::new();
    loop {
        let event = talk.frame().await.unwrap().session_event.and_then(|event| event.typed_event);
        match event {
            Some(TypedEvent::ActivityChanged(activity)) if activity.state == "awaiting_approval" => {
                assert!(activity.robot_safe);
                events.push(activity.reason);
            }
            Some(TypedEvent::ApprovalRequested(request)) => {
                assert_eq!((request.action.as_str(), request.timeout_secs), ("write_file", 300));
                assert!(request.reason.contains("+x"), "the preview: {}", request.reason);
                events.push(request.approval_id.clone());
                decide(&talk, &request.approval_id, true).await;
            }
            Some(TypedEvent::ApprovalResolved(resolved)) => {
                let outcome = resolved.outcome.unwrap().fields["type"].clone();
                assert!(format!("{outcome:?}").contains("approved"));
                events.push(resolved.approval_id);
            }
            Some(TypedEvent::TurnFinished(_)) => break,
            _ => {}
        }
    }
    assert!(events.len() == 3 && events.iter().all(|id| *id == events[0]), "{events:?}");
}

#[tokio::test]
async fn other_arguments_than_those_that_were_shown_are_not_run() {
    let room = room([writes(&["a"]), Step::Say("done")]);
    let mut talk = room.session([]).await;
    talk.ask("write").await;
    let id = waiting(&mut talk).await;
    let path = prost_types::Value { kind: Some(prost_types::value::Kind::StringValue("b".to_owned())) };
    let modifier = prost_types::Struct { fields: [("path".to_owned(), path)].into() };
    talk.say(Request::PermissionDecision(PermissionDecision {
        tool_call_id: id,
        approved: true,
        modifier: Some(modifier),
    }))
    .await;
    talk.turn().await;
    assert!(room.prompt(1).contains(r#"the user wants these arguments instead: {"path":"b"}"#));
    assert_eq!(fs::read_dir(room.work()).unwrap().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_answer_is_a_no() {
    let room = room([writes(&["a"]), Step::Say("done")]);
    let mut talk = room.session([]).await;
    talk.ask("write").await;
    waiting(&mut talk).await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    assert!(room.prompt(1).contains("there was no answer in time") && !room.work().join("a").exists());
}

#[tokio::test]
async fn a_client_that_cannot_answer_any_more_has_said_no() {
    let room = room([writes(&["a", "b"]), writes(&["c"]), Step::Say("done")]);
    let mut talk = room.session([]).await;
    talk.ask("write").await;
    waiting(&mut talk).await;
    talk.half_close();
    let first: Vec<_> = talk.rest().await.into_iter().filter_map(|frame| frame.response).collect();
    assert_eq!(stop(&first), "end_turn");
    assert_eq!(fs::read_dir(room.work()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_tool_that_is_not_listed_does_not_take_part() {
    let room = Room::new([Step::Say("ok")]);
    let mut talk = room.session([]).await;
    talk.ask("go").await;
    talk.turn().await;
    assert_eq!(room.offered(0), Vec::<String>::new());
}
