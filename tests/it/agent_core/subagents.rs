//! Subagents: their permissions, budgets and events.

use kontekst_agent::{
    StartRun, SubagentOptions, SubagentWatch, ToolOptions,
    protocol::{AfterDenial, Command, Event},
};
use kontekst_core::{SessionId, ToolDef, ToolOutcome};
use kontekst_store::subagent_log::{FailureCause, SubagentEvent, SubagentEventKind, SubagentExit};
use serde_json::{Value, json};

use super::{
    TestCore, event_names, events_until, proposed_calls, run_to_end,
    scripted_provider::{ScriptedProvider, Step},
};
use crate::wait::wait_until_async;

fn spawn_call(args: Value) -> (&'static str, Value) {
    ("spawn_worker", args)
}

fn spawn_with_prompt(prompt: &str) -> (&'static str, Value) {
    spawn_call(json!({"prompt": prompt}))
}

fn write_step(path: &str) -> Step {
    Step::Call(vec![("write_file", json!({"path": path, "content": "text\n"}))])
}

/// Returns a run in session `s` that may start subagents.
fn subagents_allowed() -> SubagentOptions {
    SubagentOptions { allow: true, ..SubagentOptions::default() }
}

fn request(test: &TestCore) -> StartRun {
    StartRun { subagents: subagents_allowed(), ..test.in_session("s", "go") }
}

/// Returns all events in the log of session `s`.
async fn logged_events(test: &TestCore) -> Vec<SubagentEvent> {
    let mut watch = watch(test);
    let mut events = Vec::new();
    while let Some(event) = watch.next_recorded().await.unwrap() {
        events.push(event);
    }
    events
}

fn watch(test: &TestCore) -> SubagentWatch {
    test.core.watch_subagents(&"s".parse().unwrap(), 0)
}

/// Returns the events until `count` subagents have exited.
async fn events_until_exits(watch: &mut SubagentWatch, mut count: usize) -> Vec<SubagentEvent> {
    let mut events = Vec::new();
    while count > 0 {
        let event = watch.next().await.unwrap();
        count -= usize::from(matches!(event.kind, SubagentEventKind::Exited { .. }));
        events.push(event);
    }
    events
}

fn log_names(events: &[SubagentEvent]) -> Vec<&'static str> {
    events
        .iter()
        .map(|event| match &event.kind {
            SubagentEventKind::Started { .. } => "started",
            SubagentEventKind::Turn { .. } => "turn",
            SubagentEventKind::ToolCall { .. } => "tool",
            SubagentEventKind::ApprovalRequested { .. } => "asked",
            SubagentEventKind::ApprovalResolved { approved: true, .. } => "approved",
            SubagentEventKind::ApprovalResolved { .. } => "denied",
            SubagentEventKind::Completed { .. } => "answered",
            SubagentEventKind::Failed { .. } => "failed",
            SubagentEventKind::Exited { how } => how.as_str(),
        })
        .collect()
}

/// Returns the tool results in the request of this number.
fn tool_results(test: &TestCore, request: usize) -> Vec<String> {
    let messages = &test.model.requests()[request].messages;
    messages.iter().filter_map(|m| m.tool_result.as_ref().map(|result| result.output.clone())).collect()
}

fn offered_tools(test: &TestCore, request: usize) -> Vec<String> {
    test.model.requests()[request].tools.iter().map(|tool| tool.name.clone()).collect()
}

fn approve_all(event: &Event) -> Vec<Command> {
    match event {
        Event::ToolsProposed(calls) => {
            calls.iter().map(|call| Command::Approve(call.call.id.clone())).collect()
        }
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn a_subagent_answers_and_is_stored_and_logged() {
    let test = TestCore::new([
        Step::Call(vec![spawn_with_prompt("look at f")]),
        Step::Call(vec![("read_file", json!({"path": "f"}))]),
        Step::Say("f says text"),
        Step::Say("so it does"),
    ]);
    test.write("f", "text\n");
    let events = test.run(request(&test)).await;
    assert_eq!(
        event_names(&events).join(" "),
        "started turn_completed proposed decided tool_started worker worker worker proposed decided \
         worker worker worker worker worker tool_done tools_completed text text text turn_completed \
         completed"
    );
    let log = logged_events(&test).await;
    assert_eq!(
        log_names(&log),
        ["started", "turn", "asked", "approved", "tool", "turn", "answered", "completed"]
    );
    let received: Vec<&SubagentEvent> = events
        .iter()
        .filter_map(|event| if let Event::Subagent(event) = event { Some(event) } else { None })
        .collect();
    assert_eq!(received, log.iter().collect::<Vec<_>>());
    assert_eq!(tool_results(&test, 3), ["f says text"]);

    let worker = &log[0].subagent;
    assert_eq!(log[0].parent.as_str(), "s");
    let sessions = kontekst_store::sessions::Sessions::new(test.core.home());
    assert_eq!(sessions.parent(worker).unwrap().as_str(), "s");
    let stored = test.stored_messages(worker.as_str());
    assert_eq!((stored.len(), stored[0].content.as_str()), (4, "look at f"));
    assert_eq!(test.stored_messages("s").len(), 4);
}

#[tokio::test]
async fn spawn_worker_is_offered_only_where_enabled() {
    let test = TestCore::new([Step::Say("a"), Step::Say("b"), Step::Say("c")]);
    test.run(test.in_session("s", "hi")).await;
    assert!(!offered_tools(&test, 0).contains(&"spawn_worker".to_owned()));
    test.run(request(&test)).await;
    assert_eq!(offered_tools(&test, 1).last().unwrap(), "spawn_worker");
    test.agent("lead", "workers = true\n");
    test.run(StartRun { agent: "lead".into(), ..test.in_session("t", "hi") }).await;
    assert_eq!(offered_tools(&test, 2), offered_tools(&test, 1));
}

#[tokio::test]
async fn subagents_nest_two_levels_at_most() {
    let test = TestCore::new([
        Step::Call(vec![spawn_with_prompt("one")]),
        Step::Call(vec![spawn_with_prompt("two")]),
        Step::Call(vec![spawn_with_prompt("three")]),
        Step::Say("no"),
        Step::Say("no"),
        Step::Say("no"),
    ]);
    test.run(request(&test)).await;
    let has = |n: usize| offered_tools(&test, n).contains(&"spawn_worker".to_owned());
    assert_eq!((has(0), has(1), has(2)), (true, true, false));
    assert!(
        tool_results(&test, 3)[0].contains("there is no tool `spawn_worker`"),
        "{:?}",
        tool_results(&test, 3)
    );
    let log = logged_events(&test).await;
    let depths: Vec<(u32, &SessionId)> = log
        .iter()
        .filter_map(|event| match event.kind {
            SubagentEventKind::Started { depth, .. } => Some((depth, &event.parent)),
            _ => None,
        })
        .collect();
    assert_eq!(depths, [(1, &"s".parse().unwrap()), (2, &log[0].subagent)]);
}

#[tokio::test]
async fn a_run_cannot_exceed_its_subagent_limit() {
    let tasks = || Step::Call(vec![spawn_with_prompt("a"), spawn_with_prompt("b"), spawn_with_prompt("c")]);
    let steps = [tasks(), Step::Say("x"), Step::Say("x"), Step::Say("done")];
    let test = TestCore::with_config(steps, |config| {
        config.workers.per_run = 2;
        config.workers.at_once = 1;
    });
    test.run(request(&test)).await;
    let results = tool_results(&test, 3);
    assert_eq!((results[0].as_str(), results[1].as_str()), ("x", "x"));
    assert!(results[2].contains("has started its 2 workers"), "{}", results[2]);
}

#[tokio::test]
async fn the_turn_budget_of_a_subagent_is_enforced() {
    let list = || Step::Call(vec![("list_files", json!({"pattern": "*"}))]);
    let test = TestCore::new([
        Step::Call(vec![spawn_call(json!({"prompt": "loop", "turns": 2}))]),
        list(),
        list(),
        Step::Say("I see"),
    ]);
    test.run(request(&test)).await;
    assert_eq!(tool_results(&test, 3), ["the worker failed: the run used up its 2 turns"]);
    let log = logged_events(&test).await;
    assert_eq!(log_names(&log[log.len() - 2..]), ["failed", "failed"]);
    assert!(matches!(log[log.len() - 2].kind, SubagentEventKind::Failed { cause: FailureCause::Budget, .. }));
}

#[tokio::test]
async fn a_token_budget_covers_a_subagent_and_its_children() {
    // The scripted provider reports 7 tokens for each answer.
    let test = TestCore::new([
        Step::Call(vec![spawn_call(json!({"prompt": "one", "tokens": 20}))]),
        Step::Call(vec![spawn_call(json!({"prompt": "two", "tokens": 1000}))]),
        Step::Call(vec![("list_files", json!({"pattern": "*"}))]),
        Step::Say("I have listed"),
        Step::Say("I see"),
    ]);
    test.run(request(&test)).await;
    let limits: Vec<u32> = test.model.requests().iter().map(|request| request.max_tokens).collect();
    assert_eq!(limits, [4096, 20, 13, 6, 4096]);
    assert!(tool_results(&test, 4)[0].contains("used up its 20 tokens"), "{:?}", tool_results(&test, 4));
}

#[tokio::test]
async fn the_time_budget_of_a_subagent_is_enforced() {
    let test = TestCore::new([
        Step::Call(vec![spawn_call(json!({"prompt": "think", "seconds": 1}))]),
        Step::Hang("well "),
        Step::Say("I see"),
    ]);
    test.run(request(&test)).await;
    assert_eq!(tool_results(&test, 2), ["the worker failed: it used up its 1 s"]);
    assert_eq!(log_names(&logged_events(&test).await), ["started", "failed", "failed"]);
}

#[tokio::test]
async fn two_subagents_share_one_slot() {
    let model = ScriptedProvider::with_one_slot([
        Step::Call(vec![spawn_with_prompt("a"), spawn_with_prompt("b")]),
        Step::Say("first"),
        Step::Say("second"),
        Step::Say("done"),
    ]);
    let test = TestCore::with_model(model, |_| {});
    let events = test.run(request(&test)).await;
    assert_eq!(*event_names(&events).last().unwrap(), "completed");
    let mut answers = tool_results(&test, 3);
    answers.sort();
    assert_eq!(answers, ["first", "second"]);
}

#[tokio::test]
async fn results_come_in_the_order_of_the_calls() {
    let test = TestCore::new([
        Step::Call(vec![spawn_with_prompt("a"), spawn_with_prompt("b")]),
        Step::ByPrompt(vec![("a", Step::Hang("")), ("b", Step::Say("b is done"))]),
        Step::ByPrompt(vec![("a", Step::Hang("")), ("b", Step::Say("b is done"))]),
        Step::Say("fine"),
    ]);
    let mut run = test.start(request(&test));
    let mut watch = watch(&test);
    let approve = events_until(&mut run, |event| matches!(event, Event::ToolsProposed(_))).await;
    approve_all(approve.last().unwrap()).into_iter().for_each(|command| run.send(command));
    let log = events_until_exits(&mut watch, 1).await;
    assert!(log_names(&log).contains(&"completed"));
    run.cancel();
    let events = run_to_end(&mut run, |_| Vec::new()).await;
    assert!(!event_names(&events).contains(&"tool_done"), "the second waits for the first");
    assert_eq!(log_names(&events_until_exits(&mut watch, 1).await).last().unwrap(), &"cancelled");
}

#[tokio::test]
async fn a_subagents_call_is_approved_by_the_parents_client() {
    let test = TestCore::new([
        Step::Call(vec![spawn_with_prompt("a"), spawn_with_prompt("b")]),
        write_step("x"),
        write_step("y"),
        Step::Say("ok"),
        Step::Say("ok"),
        Step::Say("done"),
    ]);
    let mut ids = Vec::new();
    let mut run = test.start(request(&test));
    let events = run_to_end(&mut run, |event| {
        if let Event::ToolsProposed(calls) = event {
            ids.extend(calls.iter().map(|call| (call.call.id.clone(), call.subagent.is_some())));
        }
        approve_all(event)
    })
    .await;
    assert_eq!(*event_names(&events).last().unwrap(), "completed");
    assert!(test.exists("x") && test.exists("y"));
    assert_eq!(ids.iter().map(|(_, worker)| *worker).collect::<Vec<_>>(), [false, false, true, true]);
    let mut unique: Vec<&str> = ids.iter().map(|(id, _)| id.as_str()).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 4);
}

#[tokio::test]
async fn a_denial_goes_to_the_subagent_or_ends_both_runs() {
    for then in [AfterDenial::Continue, AfterDenial::End] {
        let test = TestCore::new([
            Step::Call(vec![spawn_with_prompt("a")]),
            write_step("x"),
            Step::Say("I may not"),
            Step::Say("I see"),
        ]);
        let mut run = test.start(request(&test));
        let events = run_to_end(&mut run, |event| match event {
            Event::ToolsProposed(calls) if calls[0].subagent.is_some() => {
                let call = calls[0].call.id.clone();
                vec![Command::Deny { call, reason: "no".into(), then }]
            }
            _ => approve_all(event),
        })
        .await;
        assert!(!test.exists("x"));
        let ending = *event_names(&events).last().unwrap();
        let log = logged_events(&test).await;
        if then == AfterDenial::End {
            assert_eq!((ending, test.model.requests().len()), ("denied", 2));
            assert!(matches!(
                log[log.len() - 2].kind,
                SubagentEventKind::Failed { cause: FailureCause::Denied, .. }
            ));
        } else {
            assert_eq!(ending, "completed");
            assert_eq!(tool_results(&test, 2), ["denied: no"]);
        }
        assert!(log_names(&log).contains(&"denied"));
    }
}

#[tokio::test]
async fn closing_the_command_channel_denies_calls_of_subagents() {
    let test = TestCore::new([Step::Call(vec![spawn_with_prompt("a")]), write_step("x")]);
    let mut run = test.start(request(&test));
    let events = events_until(&mut run, |event| matches!(event, Event::ToolsProposed(_))).await;
    approve_all(events.last().unwrap()).into_iter().for_each(|command| run.send(command));
    run.close_commands();
    let events = run_to_end(&mut run, |_| Vec::new()).await;
    assert_eq!(*event_names(&events).last().unwrap(), "denied");
    assert!(!test.exists("x"));
    assert_eq!(
        log_names(&logged_events(&test).await),
        ["started", "turn", "asked", "denied", "failed", "failed"]
    );
}

#[tokio::test]
async fn subagents_are_cancelled_with_their_parent() {
    let test = TestCore::new([
        Step::Call(vec![spawn_with_prompt("a"), spawn_with_prompt("b")]),
        Step::Hang(""),
        Step::Hang(""),
    ]);
    let mut run = test.start(request(&test));
    let mut watch = watch(&test);
    let mut started = 0;
    while started < 2 {
        let event = run.next_event().await.unwrap();
        approve_all(&event).into_iter().for_each(|command| run.send(command));
        started += usize::from(matches!(event, Event::Subagent(_)));
    }
    drop(run);
    assert_eq!(
        log_names(&events_until_exits(&mut watch, 2).await),
        ["started", "started", "cancelled", "cancelled"]
    );
    wait_until_async("the runs are cancelled", || test.core.active_runs() == 0).await;
    // The session has a result for every call.
    let asked = test.stored_messages("s");
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert!(asked[3].tool_result.as_ref().unwrap().output.contains("cancelled while the worker ran"));
}

#[tokio::test]
async fn an_unknown_agent_fails_with_a_list_of_agents() {
    let test = TestCore::new([
        Step::Call(vec![spawn_call(json!({"prompt": "x", "agent": "nobody"}))]),
        Step::Say("I see"),
    ]);
    test.run(request(&test)).await;
    let result = &tool_results(&test, 1)[0];
    assert!(result.contains("no agent `nobody`; there are: default"), "{result}");
    assert!(matches!(
        logged_events(&test).await[1].kind,
        SubagentEventKind::Failed { cause: FailureCause::Other, .. }
    ));
}

#[tokio::test]
async fn a_subagent_on_another_server_is_flagged() {
    let test = TestCore::new([Step::Call(vec![
        spawn_call(json!({"prompt": "x", "agent": "cloud"})),
        spawn_with_prompt("y"),
    ])]);
    test.agent("cloud", "endpoint = \"https://models.example\"\n");
    let mut run = test.start(request(&test));
    let calls = proposed_calls(&mut run).await;
    let caution = calls[0].caution.as_ref().unwrap();
    assert!(caution.contains("https://models.example"), "{caution}");
    assert_eq!((calls[0].preview.as_str(), &calls[1].caution), ("x", &None));

    // The other direction too: text of an agent with its own server must not go to the default server unnoticed.
    let test = TestCore::new([Step::Call(vec![spawn_call(json!({"prompt": "x", "agent": "default"}))])]);
    test.agent("cloud", "endpoint = \"https://models.example\"\n");
    let mut run = test.start(StartRun { agent: "cloud".into(), ..request(&test) });
    let calls = proposed_calls(&mut run).await;
    assert!(calls[0].caution.is_some());
}

#[tokio::test]
async fn subagents_can_call_client_tools() {
    let def = ToolDef {
        name: "clock".into(),
        description: "the time".into(),
        parameters: json!({"type": "object", "properties": {}}),
        ..ToolDef::default()
    };
    let clock = || Step::Call(vec![("clock", json!({}))]);
    let test = TestCore::new([
        Step::Call(vec![spawn_with_prompt("a"), spawn_with_prompt("b")]),
        clock(),
        clock(),
        Step::Say("noon"),
        Step::Say("noon"),
        Step::Say("done"),
    ]);
    let timeout = std::time::Duration::from_secs(60);
    let client_tools = vec![kontekst_tools::ClientTool { def, timeout, concurrency: Default::default() }];
    let mut run = test.start(StartRun {
        tools: ToolOptions { client: client_tools, ..ToolOptions::default() },
        ..request(&test)
    });
    let events = run_to_end(&mut run, |event| match event {
        Event::ToolRequested { call, subagent: Some(_), .. } => {
            vec![Command::ToolResult { call: call.id.clone(), outcome: ToolOutcome::done("12:00") }]
        }
        _ => approve_all(event),
    })
    .await;
    assert_eq!(*event_names(&events).last().unwrap(), "completed");
    assert_eq!(tool_results(&test, 5), ["noon", "noon"]);
}

#[tokio::test]
async fn a_hundred_watchers_receive_the_same_events() {
    let test = TestCore::new([
        Step::Call(vec![spawn_with_prompt("a")]),
        Step::Call(vec![("list_files", json!({"pattern": "*"}))]),
        Step::Say("nothing"),
        Step::Say("done"),
    ]);
    let mut watchers = Vec::new();
    for n in 0..100 {
        let mut watch = test.core.watch_subagents(&"s".parse().unwrap(), 0);
        watchers.push(tokio::spawn(async move {
            // Later watchers receive the same events.
            for _ in 0..n {
                tokio::task::yield_now().await;
            }
            events_until_exits(&mut watch, 1).await
        }));
    }
    test.run(request(&test)).await;
    let log = logged_events(&test).await;
    assert_eq!(log.len(), 8);
    for watcher in watchers {
        assert_eq!(watcher.await.unwrap(), log);
    }
}

#[tokio::test]
async fn a_cancelled_wait_loses_no_event() {
    let test = TestCore::new([Step::Call(vec![spawn_with_prompt("a")]), Step::Say("x"), Step::Say("done")]);
    let mut watch = watch(&test);
    assert_eq!(watch.next_recorded().await.unwrap(), None);
    let mut run = test.start(request(&test));
    let playing = tokio::spawn(async move { run_to_end(&mut run, approve_all).await });
    let mut received = Vec::new();
    while received.len() < 4 {
        tokio::select! {
            biased;
            event = watch.next() => received.push(event.unwrap().seq),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(received, [1, 2, 3, 4]);
    playing.await.unwrap();
}

#[tokio::test]
async fn unfinished_subagents_of_a_dead_daemon_are_interrupted() {
    let test = TestCore::new([]);
    let line = |seq: u32, event: Value| {
        let mut line = json!({"seq": seq, "at": 1, "worker": "w", "parent": "s"});
        line.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let log = line(1, json!({"event": "started", "agent": "default", "prompt": "p", "depth": 1}))
        + &line(2, json!({"event": "turn", "number": 1}));
    std::fs::create_dir(test.home().join("teams")).unwrap();
    std::fs::write(test.home().join("teams/s.jsonl"), log).unwrap();
    let events = logged_events(&test).await;
    assert_eq!(events[2].kind, SubagentEventKind::Exited { how: SubagentExit::Interrupted });
    assert_eq!(events, logged_events(&test).await);
}

#[tokio::test]
async fn a_subagent_that_cannot_be_logged_is_not_started() {
    let test = TestCore::new([Step::Call(vec![spawn_with_prompt("a")]), Step::Say("I see")]);
    std::fs::write(test.home().join("teams"), "").unwrap();
    test.run(request(&test)).await;
    assert!(
        tool_results(&test, 1)[0].starts_with("the worker was not started: "),
        "{:?}",
        tool_results(&test, 1)
    );
    assert_eq!(test.model.requests().len(), 2);
}

#[tokio::test]
async fn a_client_history_can_name_its_subagent_log() {
    let test = TestCore::new([Step::Call(vec![spawn_with_prompt("a")]), Step::Say("x"), Step::Say("done")]);
    let request = StartRun {
        subagents: SubagentOptions { root_session: Some("roz-1".parse().unwrap()), ..subagents_allowed() },
        history: kontekst_agent::History::Provided(Vec::new()),
        ..test.request("go")
    };
    test.run(request).await;
    let mut watch = test.core.watch_subagents(&"roz-1".parse().unwrap(), 0);
    assert_eq!(watch.next().await.unwrap().parent.as_str(), "roz-1");
    assert!(
        test.core.has_session(&"roz-1".parse().unwrap()).await
            && !test.core.has_session(&"roz-2".parse().unwrap()).await
    );
}
