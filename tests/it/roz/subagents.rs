//! Subagents of a session, and watching them.

use kontekst_pb::roz::{
    PermissionDecision, StartSession, TeamEvent, WatchTeamRequest, session_request::Request,
    session_response::Response, team_event::Event,
};
use kontekst_store::config::Config;
use serde_json::json;
use tonic::{Code, Streaming};

use super::{TestDaemon, call_step, sequential_tool, stop_reason};
use crate::agent_core::scripted_provider::Step;

fn test_daemon() -> TestDaemon {
    let steps = [
        call_step("spawn_worker", json!({"prompt": "look into it"})),
        call_step("bash", json!({"command": "ls"})),
        Step::Say("two files"),
        Step::Say("my worker found two files"),
    ];
    TestDaemon::with_config(steps, |config: &mut Config, _| {
        config.roz.daemon_tools = vec!["spawn_worker".to_owned()];
    })
}

async fn watch(daemon: &TestDaemon, task: &str) -> Result<Streaming<TeamEvent>, Code> {
    let request = WatchTeamRequest { task_id: task.to_owned() };
    let watched = daemon.connect().await.watch_team(request).await;
    watched.map(tonic::Response::into_inner).map_err(|status| status.code())
}

/// Describes the events of a team up to the exit of its first worker.
async fn describe_events(mut events: Streaming<TeamEvent>) -> Vec<String> {
    let mut story = Vec::new();
    let mut worker = None;
    while let Some(event) = events.message().await.unwrap() {
        let (id, description) = match event.event.unwrap() {
            Event::WorkerStarted(started) => (started.worker_id, format!("started at {}", started.host_id)),
            Event::WorkerPhase(phase) => (phase.worker_id, format!("{} {}", phase.mode, phase.phase)),
            Event::WorkerToolCall(call) => (call.worker_id, format!("calls {}", call.tool)),
            Event::WorkerCompleted(done) => (done.worker_id, format!("says {}", done.result)),
            Event::WorkerFailed(failed) => (failed.worker_id, format!("fails: {}", failed.reason)),
            Event::WorkerExited(exited) => (exited.worker_id, "exits".to_owned()),
            Event::WorkerApprovalRequested(asked) => {
                (asked.worker_id, format!("asks for {}", asked.tool_name))
            }
            Event::WorkerApprovalResolved(resolved) => {
                (resolved.worker_id, format!("is told {}", resolved.approved))
            }
        };
        assert_eq!(*worker.get_or_insert(id.clone()), id, "one worker");
        let last = description == "exits";
        story.push(description);
        if last {
            break;
        }
    }
    story
}

const EXPECTED: [&str; 6] =
    ["started at local", "react 1", "calls bash", "react 2", "says two files", "exits"];

#[tokio::test]
async fn a_subagent_can_be_watched_live_and_afterwards() {
    let daemon = test_daemon();
    let mut client = daemon.open().await;
    client
        .send(Request::Start(StartSession {
            tools: vec![sequential_tool("bash")],
            ..StartSession::default()
        }))
        .await;
    let Some(Response::SessionStarted(started)) = client.next_response().await else { panic!("no session") };
    let rules: Vec<_> = started.permissions.iter().map(|rule| (&*rule.tool_pattern, &*rule.policy)).collect();
    assert_eq!(rules, [("bash", "allow"), ("spawn_worker", "require_confirmation")]);
    // The watch begins before the first event.
    let live = watch(&daemon, &started.session_id).await.unwrap();
    let live = tokio::spawn(describe_events(live));

    client.send_message("find out").await;
    let waits = |frame: &Response| matches!(frame, Response::ActivityUpdate(update) if update.state == "waiting_approval");
    let Some(Response::ActivityUpdate(update)) = client.frames_until(waits).await.pop() else {
        unreachable!()
    };
    let decision = PermissionDecision { tool_call_id: update.detail, approved: true, modifier: None };
    client.send(Request::PermissionDecision(decision)).await;
    // The subagent can call the tools of the client as well.
    let request = client.next_tool_request().await;
    assert_eq!(request.tool_name, "bash");
    client.send_result(&request, "a b").await;
    assert_eq!(stop_reason(&client.finish_turn().await), "end_turn");
    assert!(daemon.prompt(3).contains("two files"), "{}", daemon.prompt(3));

    assert_eq!(live.await.unwrap(), EXPECTED);
    client.half_close();
    client.drain().await;
    // The log of the subagents outlives the session.
    assert_eq!(describe_events(watch(&daemon, &started.session_id).await.unwrap()).await, EXPECTED);
}

#[tokio::test]
async fn an_invalid_task_cannot_be_watched() {
    let daemon = test_daemon();
    for (task, code) in [
        ("", Code::InvalidArgument),
        ("../../etc/passwd", Code::InvalidArgument),
        ("nonsense", Code::InvalidArgument),
        ("6ba7b810-9dad-41d1-80b4-00c04fd430c8", Code::NotFound),
    ] {
        assert_eq!(watch(&daemon, task).await.err(), Some(code), "{task}");
    }
}

#[tokio::test]
async fn a_watch_ends_with_the_daemon() {
    let daemon = test_daemon();
    let mut client = daemon.open().await;
    client.send(Request::Start(StartSession::default())).await;
    let Some(Response::SessionStarted(started)) = client.next_response().await else { panic!("no session") };
    let mut watched = watch(&daemon, &started.session_id).await.unwrap();
    daemon.core.stop();
    assert!(watched.message().await.unwrap().is_none());
}
