//! Workers of a session, and those who watch them.

use kontekst::{
    config::Config,
    pb::roz::{
        PermissionDecision, StartSession, TeamEvent, WatchTeamRequest, session_request::Request,
        session_response::Response, team_event::Event,
    },
};
use serde_json::json;
use tonic::{Code, Streaming};

use super::{Room, call, single, stop};
use crate::core::scripted::Step;

fn room() -> Room {
    let steps = [
        call("spawn_worker", json!({"prompt": "look into it"})),
        call("bash", json!({"command": "ls"})),
        Step::Say("two files"),
        Step::Say("my worker found two files"),
    ];
    Room::with_config(steps, |config: &mut Config, _| {
        config.roz.daemon_tools = vec!["spawn_worker".to_owned()];
    })
}

async fn watch(room: &Room, task: &str) -> Result<Streaming<TeamEvent>, Code> {
    let request = WatchTeamRequest { task_id: task.to_owned() };
    let watched = room.client().await.watch_team(request).await;
    watched.map(tonic::Response::into_inner).map_err(|status| status.code())
}

/// A team's events up to its first worker's end.
async fn story(mut events: Streaming<TeamEvent>) -> Vec<String> {
    let mut story = Vec::new();
    let mut worker = None;
    while let Some(event) = events.message().await.unwrap() {
        let (id, told) = match event.event.unwrap() {
            Event::WorkerStarted(started) => (started.worker_id, format!("started at {}", started.host_id)),
            Event::WorkerPhase(phase) => (phase.worker_id, format!("{} {}", phase.mode, phase.phase)),
            Event::WorkerToolCall(call) => (call.worker_id, format!("calls {}", call.tool)),
            Event::WorkerCompleted(done) => (done.worker_id, format!("says {}", done.result)),
            Event::WorkerFailed(failed) => (failed.worker_id, format!("fails: {}", failed.reason)),
            Event::WorkerExited(exited) => (exited.worker_id, "exits".to_owned()),
            Event::WorkerApprovalRequested(asked) => {
                (asked.worker_id, format!("asks for {}", asked.tool_name))
            }
            Event::WorkerApprovalResolved(told) => (told.worker_id, format!("is told {}", told.approved)),
        };
        assert_eq!(*worker.get_or_insert(id.clone()), id, "one worker");
        let last = told == "exits";
        story.push(told);
        if last {
            break;
        }
    }
    story
}

const STORY: [&str; 6] = ["started at local", "react 1", "calls bash", "react 2", "says two files", "exits"];

#[tokio::test]
async fn a_worker_is_watched_live_and_again_from_its_start() {
    let room = room();
    let mut talk = room.open().await;
    talk.say(Request::Start(StartSession { tools: vec![single("bash")], ..StartSession::default() })).await;
    let Some(Response::SessionStarted(started)) = talk.next().await else { panic!("no session") };
    let rules: Vec<_> = started.permissions.iter().map(|rule| (&*rule.tool_pattern, &*rule.policy)).collect();
    assert_eq!(rules, [("bash", "allow"), ("spawn_worker", "require_confirmation")]);
    // Watched before there is anything to see.
    let live = watch(&room, &started.session_id).await.unwrap();
    let live = tokio::spawn(story(live));

    talk.ask("find out").await;
    let waits = |frame: &Response| matches!(frame, Response::ActivityUpdate(update) if update.state == "waiting_approval");
    let Some(Response::ActivityUpdate(update)) = talk.until(waits).await.pop() else { unreachable!() };
    let decision = PermissionDecision { tool_call_id: update.detail, approved: true, modifier: None };
    talk.say(Request::PermissionDecision(decision)).await;
    // The worker's tools are the client's, too.
    let request = talk.request().await;
    assert_eq!(request.tool_name, "bash");
    talk.answer(&request, "a b").await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    assert!(room.prompt(3).contains("two files"), "{}", room.prompt(3));

    assert_eq!(live.await.unwrap(), STORY);
    talk.half_close();
    talk.rest().await;
    // The session is gone; what its workers did is not.
    assert_eq!(story(watch(&room, &started.session_id).await.unwrap()).await, STORY);
}

#[tokio::test]
async fn what_is_no_task_cannot_be_watched() {
    let room = room();
    for (task, code) in [
        ("", Code::InvalidArgument),
        ("../../etc/passwd", Code::InvalidArgument),
        ("nonsense", Code::InvalidArgument),
        ("6ba7b810-9dad-41d1-80b4-00c04fd430c8", Code::NotFound),
    ] {
        assert_eq!(watch(&room, task).await.err(), Some(code), "{task}");
    }
}

#[tokio::test]
async fn a_watch_ends_with_the_daemon() {
    let room = room();
    let mut talk = room.open().await;
    talk.say(Request::Start(StartSession::default())).await;
    let Some(Response::SessionStarted(started)) = talk.next().await else { panic!("no session") };
    let mut watched = watch(&room, &started.session_id).await.unwrap();
    room.core.stop();
    assert!(watched.message().await.unwrap().is_none());
}
