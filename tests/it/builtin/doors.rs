//! The engine behind the gRPC door.

use kontekst::pb::{ApproveToolCommand, DenyToolCommand, run_command::Command, run_event::Event};

use super::home;
use crate::grpc::{Talk, block_on, names};

#[test]
fn a_client_approves_a_call() {
    let home = home();
    home.run(&["daemon", "restart"]).success();
    block_on(async {
        let mut talk = Talk::open(&home).await;
        talk.start(&home, "!tool").await;
        let events = talk.until(|event| matches!(event, Event::ToolsProposed(_))).await;
        let Some(Event::ToolsProposed(proposed)) = events.last() else { unreachable!() };
        let call_id = proposed.calls[0].call_id.clone();
        talk.say(Command::ApproveTool(ApproveToolCommand { call_id })).await;
        let events = talk.drain().await;
        let mut names = names(&events);
        names.dedup(); // an answer comes in as many pieces as it likes
        assert_eq!(
            names,
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
        let mut talk = Talk::open(&home).await;
        talk.start(&home, "!tool").await;
        let events = talk.until(|event| matches!(event, Event::ToolsProposed(_))).await;
        let Some(Event::ToolsProposed(proposed)) = events.last() else { unreachable!() };
        let call_id = proposed.calls[0].call_id.clone();
        let deny = DenyToolCommand { call_id, reason: "no".to_owned(), ..DenyToolCommand::default() };
        talk.say(Command::DenyTool(deny)).await;
        let events = talk.drain().await;
        let Some(Event::Cancelled(cancelled)) = events.last() else { panic!("{events:?}") };
        assert!(cancelled.denied);
    });
}
