//! What a door needs whose sessions live in memory and whose tools run at the client.

use std::time::Duration;

use kontekst::{
    agent::{
        Conversation, DaemonTools, History, StartRun,
        protocol::{Command, Event, FailureKind, Outcome},
    },
    core::{Role, SessionId, ToolDef, ToolOutcome},
    provider::ProviderError,
    tools::{ClientTool, Concurrency},
};
use serde_json::json;

use super::{Room, names, play, scripted::Step, until};

fn free(name: &str) -> ClientTool {
    let parameters = json!({"type": "object", "properties": {}});
    let def = ToolDef { name: name.into(), description: "looks".into(), parameters };
    ClientTool { def, timeout: Duration::from_secs(60), concurrency: Concurrency::Parallel }
}

fn kept(room: &Room, conversation: &Conversation, prompt: &str) -> StartRun {
    StartRun { history: History::InMemory(conversation.clone()), ..room.request(prompt) }
}

fn said(room: &Room, n: usize) -> Vec<String> {
    let messages = &room.model.requests()[n].messages;
    messages.iter().map(|message| format!("{}: {}", message.role.as_str(), message.content)).collect()
}

#[tokio::test]
async fn free_calls_are_out_together_and_their_results_are_read_in_order() {
    let calls =
        vec![("look", json!({"at": "a"})), ("look", json!({"at": "b"})), ("look", json!({"at": "c"}))];
    let room = Room::new([Step::Call(calls), Step::Say("seen")]);
    let mut run = room.start(StartRun { client_tools: vec![free("look")], ..room.request("look") });
    let mut out = Vec::new();
    while out.len() < 3 {
        if let Some(Event::ToolRequested { call, .. }) = run.next_event().await {
            out.push(call);
        }
    }
    for at in [2, 0, 1] {
        let outcome = ToolOutcome::Done(out[at].arguments.clone());
        run.send(Command::ToolResult { call: out[at].id.clone(), outcome });
    }
    let events = play(&mut run, |_| Vec::new()).await;
    assert_eq!(
        names(&events),
        ["tool_done", "tool_done", "tool_done", "tools_completed", "text", "turn_completed", "completed"]
    );
    let results: Vec<_> = room.model.requests()[1].messages[2..]
        .iter()
        .map(|message| message.tool_result.as_ref().unwrap().output.clone())
        .collect();
    assert_eq!(results, [r#"{"at":"a"}"#, r#"{"at":"b"}"#, r#"{"at":"c"}"#]);
}

#[tokio::test(start_paused = true)]
async fn each_free_call_has_its_own_time() {
    let room = Room::new([Step::Call(vec![("slow", json!({})), ("quick", json!({}))]), Step::Say("fine")]);
    let slow = ClientTool { timeout: Duration::from_secs(600), ..free("slow") };
    let mut run = room.start(StartRun { client_tools: vec![slow, free("quick")], ..room.request("go") });
    let events =
        until(&mut run, |event| matches!(event, Event::ToolRequested { call, .. } if call.name == "quick"));
    let events = events.await;
    let asked = events.iter().find_map(|event| match event {
        Event::ToolRequested { call, .. } if call.name == "slow" => Some(call.id.clone()),
        _ => None,
    });
    tokio::time::sleep(Duration::from_secs(300)).await;
    run.send(Command::ToolResult { call: asked.unwrap(), outcome: ToolOutcome::Done("in time".into()) });
    assert_eq!(names(&play(&mut run, |_| Vec::new()).await)[..2], ["tool_done", "tool_failed"]);
}

#[tokio::test]
async fn a_conversation_outlives_its_runs_and_is_stored_nowhere() {
    let room = Room::new([
        Step::Think("hm", "one"),
        Step::Fail(ProviderError::Protocol("nonsense".to_owned())),
        Step::Say("three"),
    ]);
    let conversation = Conversation::new(SessionId::new(), Vec::new());
    let first = StartRun {
        prompt_context: vec![" ".into(), "[now] noon".into()],
        ..kept(&room, &conversation, "first")
    };
    room.run(first).await;
    assert_eq!(said(&room, 0), ["user: [now] noon\n\n---\n\nfirst"]);
    room.run(kept(&room, &conversation, "second")).await;
    room.run(kept(&room, &conversation, "third")).await;
    assert_eq!(said(&room, 2), ["user: first", "assistant: one", "user: second", "user: third"]);
    let last = conversation.messages();
    assert_eq!((last.len(), last[4].content.as_str()), (5, "three"));
    let request = &room.model.requests()[2];
    assert_eq!(request.session.as_ref(), Some(conversation.id()));
    assert!(request.messages.iter().all(|message| message.tokens > 0));
    assert_eq!(std::fs::read_dir(room.core.home().sessions()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_prompt_is_kept_even_if_its_run_could_not_begin() {
    let room = Room::new([Step::Say("now")]);
    let conversation = Conversation::new(SessionId::new(), Vec::new());
    let nobody = StartRun { agent: "nobody".to_owned(), ..kept(&room, &conversation, "first") };
    assert_eq!(names(&room.run(nobody).await), ["failed"]);
    room.run(kept(&room, &conversation, "second")).await;
    assert_eq!(said(&room, 0), ["user: first", "user: second"]);
}

#[tokio::test]
async fn a_cancelled_run_leaves_what_was_said() {
    let room = Room::new([Step::Hang("half "), Step::Say("whole")]);
    let conversation = Conversation::new(SessionId::new(), Vec::new());
    let mut run = room.start(kept(&room, &conversation, "first"));
    until(&mut run, |event| matches!(event, Event::Text(_))).await;
    run.cancel();
    play(&mut run, |_| Vec::new()).await;
    let roles: Vec<_> = conversation.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant]);
}

#[tokio::test]
async fn the_daemons_tools_are_chosen_and_without_file_tools_no_directory_is_needed() {
    let room = Room::new([Step::Say("a"), Step::Say("b")]);
    for own in [vec![], vec!["web_fetch".to_owned()]] {
        let request = StartRun {
            working_dir: None,
            daemon_tools: DaemonTools::Only(own.clone()),
            client_tools: vec![free("read_file")],
            ..room.request("go")
        };
        assert_eq!(*names(&room.run(request).await).last().unwrap(), "completed");
        let offered = room.model.requests().last().unwrap().tools.clone();
        let offered: Vec<_> = offered.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(offered, [own, vec!["read_file".to_owned()]].concat());
    }
    let daemon_tools = DaemonTools::Only(vec!["read_file".to_owned()]);
    let events = room.run(StartRun { working_dir: None, daemon_tools, ..room.request("go") }).await;
    assert_eq!(names(&events), ["failed"]);
}

#[tokio::test]
async fn a_model_and_a_window_may_be_asked_for() {
    let room = Room::new([Step::Say("ok")]);
    let request =
        StartRun { model: Some("other".to_owned()), context_size: Some(1024), ..room.request("go") };
    let events = room.run(request).await;
    let size = events.iter().find_map(|event| match event {
        Event::TurnCompleted { context, .. } => Some((context.context_size, context.answer_tokens)),
        _ => None,
    });
    assert_eq!(size, Some((1024, Some(7))));
    assert_eq!(room.model.wanted(), ["other"]);
}

#[tokio::test]
async fn a_server_with_too_much_to_do_is_told_from_a_broken_one() {
    let busy = |status| Step::Fail(ProviderError::Status { status, message: "later".to_owned() });
    let room = Room::new([busy(429), busy(500)]);
    for expected in [true, false] {
        let events = room.run(room.request("go")).await;
        let Some(Event::Ended(Outcome::Failed(error))) = events.last() else { panic!("{events:?}") };
        assert_eq!((error.kind, error.busy), (FailureKind::Model, expected));
    }
}
