//! The built-in engine behind the gRPC door.

use kontekst_pb::{ApproveToolCommand, DenyToolCommand, run_command::Command, run_event::Event};

use super::home;
use crate::grpc::{TestClient, block_on, event_names};

#[test]
fn a_client_approves_a_call() {
    let home = home();
    home.run(&["daemon", "restart"]).success();
    block_on(async {
        let mut client = TestClient::open(&home).await;
        client.start(&home, "!tool").await;
        let events = client.events_until(|event| matches!(event, Event::ToolsProposed(_))).await;
        let Some(Event::ToolsProposed(proposed)) = events.last() else { unreachable!() };
        let call_id = proposed.calls[0].call_id.clone();
        client.send(Command::ApproveTool(ApproveToolCommand { call_id, remember: false })).await;
        let events = client.run_to_end().await;
        let mut seen = event_names(&events);
        seen.dedup(); // the number of text pieces depends on timing
        assert_eq!(
            seen,
            [
                "tool_started",
                "tool_completed",
                "tools_completed",
                "token",
                "turn_completed",
                "context_snapshot",
                "completed"
            ]
        );
    });
}

#[test]
fn a_client_denies_a_call() {
    let home = home();
    home.run(&["daemon", "restart"]).success();
    block_on(async {
        let mut client = TestClient::open(&home).await;
        client.start(&home, "!tool").await;
        let events = client.events_until(|event| matches!(event, Event::ToolsProposed(_))).await;
        let Some(Event::ToolsProposed(proposed)) = events.last() else { unreachable!() };
        let call_id = proposed.calls[0].call_id.clone();
        let deny = DenyToolCommand { call_id, reason: "no".to_owned(), ..DenyToolCommand::default() };
        client.send(Command::DenyTool(deny)).await;
        let events = client.run_to_end().await;
        let Some(Event::Cancelled(cancelled)) = events.last() else { panic!("{events:?}") };
        assert!(cancelled.denied);
    });
}
