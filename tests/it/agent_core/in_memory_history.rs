//! Histories in memory and tools that run at the client, as some doors need them.

use std::time::Duration;

use kontekst_agent::{
    Conversation, DaemonTools, ExtraContext, History, RunOverrides, StartRun, ToolOptions,
    protocol::{Command, Event, FailureKind, Outcome},
};
use kontekst_core::{Role, SessionId, ToolDef, ToolOutcome};
use kontekst_provider::ProviderError;
use kontekst_tools::{ClientTool, Concurrency};
use serde_json::json;

use super::{TestCore, client_tools, event_names, events_until, run_to_end, scripted_provider::Step};

fn concurrent_tool(name: &str) -> ClientTool {
    let parameters = json!({"type": "object", "properties": {}});
    let def = ToolDef { name: name.into(), description: "looks".into(), parameters, ..ToolDef::default() };
    ClientTool { def, timeout: Duration::from_secs(60), concurrency: Concurrency::Parallel }
}

fn with_history(test: &TestCore, conversation: &Conversation, prompt: &str) -> StartRun {
    StartRun { history: History::InMemory(conversation.clone()), ..test.request(prompt) }
}

fn sent_messages(test: &TestCore, n: usize) -> Vec<String> {
    let messages = &test.model.requests()[n].messages;
    messages.iter().map(|message| format!("{}: {}", message.role.as_str(), message.with_context())).collect()
}

#[tokio::test]
async fn concurrent_calls_run_together_and_results_keep_their_order() {
    let calls =
        vec![("look", json!({"at": "a"})), ("look", json!({"at": "b"})), ("look", json!({"at": "c"}))];
    let test = TestCore::new([Step::Call(calls), Step::Say("seen")]);
    let mut run =
        test.start(StartRun { tools: client_tools(vec![concurrent_tool("look")]), ..test.request("look") });
    let mut out = Vec::new();
    while out.len() < 3 {
        if let Some(Event::ToolRequested { call, .. }) = run.next_event().await {
            out.push(call);
        }
    }
    for at in [2, 0, 1] {
        let outcome = ToolOutcome::done(out[at].arguments.clone());
        run.send(Command::ToolResult { call: out[at].id.clone(), outcome });
    }
    let events = run_to_end(&mut run, |_| Vec::new()).await;
    assert_eq!(
        event_names(&events),
        ["tool_done", "tool_done", "tool_done", "tools_completed", "text", "turn_completed", "completed"]
    );
    let results: Vec<_> = test.model.requests()[1].messages[2..]
        .iter()
        .map(|message| message.tool_result.as_ref().unwrap().output.clone())
        .collect();
    assert_eq!(results, [r#"{"at":"a"}"#, r#"{"at":"b"}"#, r#"{"at":"c"}"#]);
}

#[tokio::test(start_paused = true)]
async fn each_concurrent_call_has_its_own_timeout() {
    let test =
        TestCore::new([Step::Call(vec![("slow", json!({})), ("quick", json!({}))]), Step::Say("fine")]);
    let slow = ClientTool { timeout: Duration::from_secs(600), ..concurrent_tool("slow") };
    let mut run = test
        .start(StartRun { tools: client_tools(vec![slow, concurrent_tool("quick")]), ..test.request("go") });
    let events = events_until(
        &mut run,
        |event| matches!(event, Event::ToolRequested { call, .. } if call.name == "quick"),
    );
    let events = events.await;
    let asked = events.iter().find_map(|event| match event {
        Event::ToolRequested { call, .. } if call.name == "slow" => Some(call.id.clone()),
        _ => None,
    });
    tokio::time::advance(Duration::from_secs(300)).await;
    run.send(Command::ToolResult { call: asked.unwrap(), outcome: ToolOutcome::done("in time") });
    assert_eq!(event_names(&run_to_end(&mut run, |_| Vec::new()).await)[..2], ["tool_done", "tool_failed"]);
}

#[tokio::test]
async fn an_in_memory_history_outlives_its_runs_and_is_not_stored() {
    let test = TestCore::new([
        Step::Think("hm", "one"),
        Step::Fail(ProviderError::Protocol("nonsense".to_owned())),
        Step::Say("three"),
    ]);
    let conversation = Conversation::new(SessionId::new(), Vec::new());
    let first = StartRun {
        context: ExtraContext {
            before_prompt: vec![" ".into(), "[now] noon".into()],
            ..ExtraContext::default()
        },
        ..with_history(&test, &conversation, "first")
    };
    test.run(first).await;
    assert_eq!(sent_messages(&test, 0), ["user: [now] noon\n\n---\n\nfirst"]);
    test.run(with_history(&test, &conversation, "second")).await;
    test.run(with_history(&test, &conversation, "third")).await;
    assert_eq!(sent_messages(&test, 2), ["user: first", "assistant: one", "user: third"]);
    let last = conversation.messages();
    assert_eq!((last.len(), last[3].content.as_str()), (4, "three"));
    let request = &test.model.requests()[2];
    assert_eq!(request.session.as_ref(), Some(conversation.id()));
    assert!(request.messages.iter().all(|message| message.tokens > 0));
    assert_eq!(std::fs::read_dir(test.core.home().sessions()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_prompt_whose_run_failed_without_an_answer_is_forgotten() {
    let refused = ProviderError::Status { status: 400, message: "no".into(), retry_after: None };
    let test = TestCore::new([Step::Fail(refused), Step::Say("now")]);
    let conversation = Conversation::new(SessionId::new(), Vec::new());
    let unknown = StartRun { agent: "nobody".to_owned(), ..with_history(&test, &conversation, "first") };
    assert_eq!(event_names(&test.run(unknown).await), ["failed"]);
    assert_eq!(
        event_names(&test.run(with_history(&test, &conversation, "second")).await),
        ["started", "failed"]
    );
    test.run(with_history(&test, &conversation, "third")).await;
    assert_eq!(sent_messages(&test, 1), ["user: third"]);
}

#[tokio::test]
async fn a_cancelled_run_keeps_its_partial_answer() {
    let test = TestCore::new([Step::Hang("half "), Step::Say("whole")]);
    let conversation = Conversation::new(SessionId::new(), Vec::new());
    let mut run = test.start(with_history(&test, &conversation, "first"));
    events_until(&mut run, |event| matches!(event, Event::Text(_))).await;
    run.cancel();
    run_to_end(&mut run, |_| Vec::new()).await;
    let roles: Vec<_> = conversation.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant]);
}

#[tokio::test]
async fn daemon_tools_can_be_selected_and_only_file_tools_need_a_directory() {
    let test = TestCore::new([Step::Say("a"), Step::Say("b"), Step::Say("c")]);
    for own in [vec![], vec!["web_fetch".to_owned()]] {
        let request = StartRun {
            working_dir: None,
            tools: ToolOptions {
                daemon: DaemonTools::Only(own.clone()),
                ..client_tools(vec![concurrent_tool("read_file")])
            },
            ..test.request("go")
        };
        assert_eq!(*event_names(&test.run(request).await).last().unwrap(), "completed");
        let offered = test.model.requests().last().unwrap().tools.clone();
        let offered: Vec<_> = offered.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(offered, [own, vec!["read_file".to_owned()]].concat());
    }
    let daemon = DaemonTools::Only(vec!["read_file".to_owned(), "web_fetch".to_owned()]);
    let tools = ToolOptions { daemon, ..ToolOptions::default() };
    let events = test.run(StartRun { working_dir: None, tools, ..test.request("go") }).await;
    assert_eq!(event_names(&events)[..2], ["started", "notice"]);
    assert_eq!(event_names(&events).last(), Some(&"completed"));
    let request = test.model.requests().pop().unwrap();
    let offered: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(offered, ["web_fetch"]);
    assert!(request.system.contains("No working directory was named"));
}

#[tokio::test]
async fn a_run_can_request_a_model_and_a_window() {
    let test = TestCore::new([Step::Say("ok")]);
    let overrides =
        RunOverrides { model: Some("other".to_owned()), context_size: Some(1024), ..RunOverrides::default() };
    let request = StartRun { overrides, ..test.request("go") };
    let events = test.run(request).await;
    let size = events.iter().find_map(|event| match event {
        Event::TurnCompleted { context, .. } => Some((context.context_size, context.answer_tokens)),
        _ => None,
    });
    assert_eq!(size, Some((1024, Some(7))));
    assert_eq!(test.model.requested_models(), ["other"]);
}

#[tokio::test]
async fn status_429_is_reported_as_busy() {
    let busy =
        |status| Step::Fail(ProviderError::Status { status, message: "later".to_owned(), retry_after: None });
    let test = TestCore::new([busy(429), busy(500)]);
    for expected in [true, false] {
        let events = test.run(test.request("go")).await;
        let Some(Event::Ended(Outcome::Failed(error))) = events.last() else { panic!("{events:?}") };
        assert_eq!((error.kind, error.busy), (FailureKind::Model, expected));
    }
}
