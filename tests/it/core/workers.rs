//! Workers: what they may, what they cost, what is told of them.

use kontekst::{
    agent::{
        StartRun, SubagentWatch,
        protocol::{AfterDenial, Command, Event},
    },
    core::{SessionId, ToolDef, ToolOutcome},
    subagent_log::{FailureCause, SubagentEvent, SubagentEventKind, SubagentExit},
};
use serde_json::{Value, json};

use super::{
    Room, names, play,
    scripted::{Scripted, Step},
    until,
};

fn spawn(args: Value) -> (&'static str, Value) {
    ("spawn_worker", args)
}

fn task(prompt: &str) -> (&'static str, Value) {
    spawn(json!({"prompt": prompt}))
}

fn write(path: &str) -> Step {
    Step::Call(vec![("write_file", json!({"path": path, "content": "text\n"}))])
}

/// In session `s`, with workers.
fn request(room: &Room) -> StartRun {
    StartRun { allow_subagents: true, ..room.in_session("s", "go") }
}

/// Everything that the log of session `s` has.
async fn history(room: &Room) -> Vec<SubagentEvent> {
    let mut watch = watch(room);
    let mut events = Vec::new();
    while let Some(event) = watch.next_recorded().await.unwrap() {
        events.push(event);
    }
    events
}

fn watch(room: &Room) -> SubagentWatch {
    room.core.watch_subagents(&"s".parse().unwrap(), 0)
}

/// Until so many workers have ended.
async fn exits(watch: &mut SubagentWatch, mut count: usize) -> Vec<SubagentEvent> {
    let mut events = Vec::new();
    while count > 0 {
        let event = watch.next().await.unwrap();
        count -= usize::from(matches!(event.kind, SubagentEventKind::Exited { .. }));
        events.push(event);
    }
    events
}

fn told(events: &[SubagentEvent]) -> Vec<&'static str> {
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

/// What the model was told of its calls, in the request of this number.
fn results(room: &Room, request: usize) -> Vec<String> {
    let messages = &room.model.requests()[request].messages;
    messages.iter().filter_map(|m| m.tool_result.as_ref().map(|result| result.output.clone())).collect()
}

fn offered(room: &Room, request: usize) -> Vec<String> {
    room.model.requests()[request].tools.iter().map(|tool| tool.name.clone()).collect()
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
async fn a_worker_answers_and_leaves_a_session_and_a_log() {
    let room = Room::new([
        Step::Call(vec![task("look at f")]),
        Step::Call(vec![("read_file", json!({"path": "f"}))]),
        Step::Say("f says text"),
        Step::Say("so it does"),
    ]);
    room.write("f", "text\n");
    let events = room.run(request(&room)).await;
    assert_eq!(
        names(&events),
        [
            "started",
            "turn_completed",
            "proposed",
            "tool_started",
            "worker",
            "worker",
            "worker",
            "proposed",
            "worker",
            "worker",
            "worker",
            "worker",
            "worker",
            "tool_done",
            "tools_completed",
            "text",
            "text",
            "text",
            "turn_completed",
            "completed"
        ]
    );
    let log = history(&room).await;
    assert_eq!(told(&log), ["started", "turn", "asked", "approved", "tool", "turn", "answered", "completed"]);
    let heard: Vec<&SubagentEvent> = events
        .iter()
        .filter_map(|event| if let Event::Subagent(event) = event { Some(event) } else { None })
        .collect();
    assert_eq!(heard, log.iter().collect::<Vec<_>>());
    assert_eq!(results(&room, 3), ["f says text"]);

    let worker = &log[0].subagent;
    assert_eq!(log[0].parent.as_str(), "s");
    let sessions = kontekst::sessions::Sessions::new(room.core.home());
    assert_eq!(sessions.parent(worker).unwrap().as_str(), "s");
    let stored = room.stored(worker.as_str());
    assert_eq!((stored.len(), stored[0].content.as_str()), (4, "look at f"));
    assert_eq!(room.stored("s").len(), 4);
}

#[tokio::test]
async fn workers_are_offered_where_they_are_wanted_and_nowhere_else() {
    let room = Room::new([Step::Say("a"), Step::Say("b"), Step::Say("c")]);
    room.run(room.in_session("s", "hi")).await;
    assert!(!offered(&room, 0).contains(&"spawn_worker".to_owned()));
    room.run(request(&room)).await;
    assert_eq!(offered(&room, 1).last().unwrap(), "spawn_worker");
    room.agent("lead", "workers = true\n");
    room.run(StartRun { agent: "lead".into(), ..room.in_session("t", "hi") }).await;
    assert_eq!(offered(&room, 2), offered(&room, 1));
}

#[tokio::test]
async fn workers_of_workers_have_none() {
    let room = Room::new([
        Step::Call(vec![task("one")]),
        Step::Call(vec![task("two")]),
        Step::Call(vec![task("three")]),
        Step::Say("no"),
        Step::Say("no"),
        Step::Say("no"),
    ]);
    room.run(request(&room)).await;
    let has = |n: usize| offered(&room, n).contains(&"spawn_worker".to_owned());
    assert_eq!((has(0), has(1), has(2)), (true, true, false));
    assert!(results(&room, 3)[0].contains("there is no tool `spawn_worker`"), "{:?}", results(&room, 3));
    let log = history(&room).await;
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
async fn one_run_starts_so_many_workers_and_no_more() {
    let tasks = || Step::Call(vec![task("a"), task("b"), task("c")]);
    let steps = [tasks(), Step::Say("x"), Step::Say("x"), Step::Say("done")];
    let room = Room::with_config(steps, |config| {
        config.workers.per_run = 2;
        config.workers.at_once = 1;
    });
    room.run(request(&room)).await;
    let results = results(&room, 3);
    assert_eq!((results[0].as_str(), results[1].as_str()), ("x", "x"));
    assert!(results[2].contains("has started its 2 workers"), "{}", results[2]);
}

#[tokio::test]
async fn turns_are_a_budget() {
    let list = || Step::Call(vec![("list_files", json!({"pattern": "*"}))]);
    let room = Room::new([
        Step::Call(vec![spawn(json!({"prompt": "loop", "turns": 2}))]),
        list(),
        list(),
        Step::Say("I see"),
    ]);
    room.run(request(&room)).await;
    assert_eq!(results(&room, 3), ["the worker failed: the run used up its 2 turns"]);
    let log = history(&room).await;
    assert_eq!(told(&log[log.len() - 2..]), ["failed", "failed"]);
    assert!(matches!(log[log.len() - 2].kind, SubagentEventKind::Failed { cause: FailureCause::Budget, .. }));
}

#[tokio::test]
async fn tokens_are_a_budget_for_a_worker_and_those_it_starts() {
    // The scripted model counts 7 tokens for each answer.
    let room = Room::new([
        Step::Call(vec![spawn(json!({"prompt": "one", "tokens": 20}))]),
        Step::Call(vec![spawn(json!({"prompt": "two", "tokens": 1000}))]),
        Step::Call(vec![("list_files", json!({"pattern": "*"}))]),
        Step::Say("I have listed"),
        Step::Say("I see"),
    ]);
    room.run(request(&room)).await;
    let limits: Vec<u32> = room.model.requests().iter().map(|request| request.max_tokens).collect();
    assert_eq!(limits, [4096, 20, 13, 6, 4096]);
    assert!(results(&room, 4)[0].contains("used up its 20 tokens"), "{:?}", results(&room, 4));
}

#[tokio::test]
async fn seconds_are_a_budget() {
    let room = Room::new([
        Step::Call(vec![spawn(json!({"prompt": "think", "seconds": 1}))]),
        Step::Hang("well "),
        Step::Say("I see"),
    ]);
    room.run(request(&room)).await;
    assert_eq!(results(&room, 2), ["the worker failed: it used up its 1 s"]);
    assert_eq!(told(&history(&room).await), ["started", "failed", "failed"]);
}

#[tokio::test]
async fn two_workers_and_one_slot() {
    let model = Scripted::with_one_slot([
        Step::Call(vec![task("a"), task("b")]),
        Step::Say("first"),
        Step::Say("second"),
        Step::Say("done"),
    ]);
    let room = Room::with_model(model, |_| {});
    let events = room.run(request(&room)).await;
    assert_eq!(*names(&events).last().unwrap(), "completed");
    let mut answers = results(&room, 3);
    answers.sort();
    assert_eq!(answers, ["first", "second"]);
}

#[tokio::test]
async fn results_come_in_the_order_of_the_calls() {
    let room = Room::new([
        Step::Call(vec![task("a"), task("b")]),
        Step::ByPrompt(vec![("a", Step::Hang("")), ("b", Step::Say("b is done"))]),
        Step::ByPrompt(vec![("a", Step::Hang("")), ("b", Step::Say("b is done"))]),
        Step::Say("fine"),
    ]);
    let mut run = room.start(request(&room));
    let mut watch = watch(&room);
    let approve = until(&mut run, |event| matches!(event, Event::ToolsProposed(_))).await;
    approve_all(approve.last().unwrap()).into_iter().for_each(|command| run.send(command));
    let log = exits(&mut watch, 1).await;
    assert!(told(&log).contains(&"completed"));
    run.cancel();
    let events = play(&mut run, |_| Vec::new()).await;
    assert!(!names(&events).contains(&"tool_done"), "the second waits for the first");
    assert_eq!(told(&exits(&mut watch, 1).await).last().unwrap(), &"cancelled");
}

#[tokio::test]
async fn a_workers_call_is_approved_by_the_parents_client() {
    let room = Room::new([
        Step::Call(vec![task("a"), task("b")]),
        write("x"),
        write("x"),
        Step::Say("ok"),
        Step::Say("ok"),
        Step::Say("done"),
    ]);
    let mut ids = Vec::new();
    let mut run = room.start(request(&room));
    let events = play(&mut run, |event| {
        if let Event::ToolsProposed(calls) = event {
            ids.extend(calls.iter().map(|call| (call.call.id.clone(), call.subagent.is_some())));
        }
        approve_all(event)
    })
    .await;
    assert_eq!(*names(&events).last().unwrap(), "completed");
    assert!(room.exists("x"));
    assert_eq!(ids.iter().map(|(_, worker)| *worker).collect::<Vec<_>>(), [false, false, true, true]);
    let mut unique: Vec<&str> = ids.iter().map(|(id, _)| id.as_str()).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 4);
}

#[tokio::test]
async fn a_denial_reaches_the_worker_or_ends_both() {
    for then in [AfterDenial::Continue, AfterDenial::End] {
        let room =
            Room::new([Step::Call(vec![task("a")]), write("x"), Step::Say("I may not"), Step::Say("I see")]);
        let mut run = room.start(request(&room));
        let events = play(&mut run, |event| match event {
            Event::ToolsProposed(calls) if calls[0].subagent.is_some() => {
                let call = calls[0].call.id.clone();
                vec![Command::Deny { call, reason: "no".into(), then }]
            }
            _ => approve_all(event),
        })
        .await;
        assert!(!room.exists("x"));
        let ending = *names(&events).last().unwrap();
        let log = history(&room).await;
        if then == AfterDenial::End {
            assert_eq!((ending, room.model.requests().len()), ("denied", 2));
            assert!(matches!(
                log[log.len() - 2].kind,
                SubagentEventKind::Failed { cause: FailureCause::Denied, .. }
            ));
        } else {
            assert_eq!(ending, "completed");
            assert_eq!(results(&room, 2), ["denied: no"]);
        }
        assert!(told(&log).contains(&"denied"));
    }
}

#[tokio::test]
async fn a_client_that_decides_nothing_any_more_denies_its_workers_too() {
    let room = Room::new([Step::Call(vec![task("a")]), write("x")]);
    let mut run = room.start(request(&room));
    let events = until(&mut run, |event| matches!(event, Event::ToolsProposed(_))).await;
    approve_all(events.last().unwrap()).into_iter().for_each(|command| run.send(command));
    run.close_commands();
    let events = play(&mut run, |_| Vec::new()).await;
    assert_eq!(*names(&events).last().unwrap(), "denied");
    assert!(!room.exists("x"));
    assert_eq!(told(&history(&room).await), ["started", "turn", "asked", "denied", "failed", "failed"]);
}

#[tokio::test]
async fn workers_end_with_their_parent() {
    let room = Room::new([Step::Call(vec![task("a"), task("b")]), Step::Hang(""), Step::Hang("")]);
    let mut run = room.start(request(&room));
    let mut watch = watch(&room);
    let mut started = 0;
    while started < 2 {
        let event = run.next_event().await.unwrap();
        approve_all(&event).into_iter().for_each(|command| run.send(command));
        started += usize::from(matches!(event, Event::Subagent(_)));
    }
    drop(run);
    assert_eq!(told(&exits(&mut watch, 2).await), ["started", "started", "cancelled", "cancelled"]);
    while room.core.active_runs() > 0 {
        tokio::task::yield_now().await;
    }
    // The next prompt finds no open call.
    let asked = room.stored("s");
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert!(asked[3].tool_result.as_ref().unwrap().output.contains("cancelled while the worker ran"));
}

#[tokio::test]
async fn a_worker_of_an_agent_that_is_not_there_fails_and_says_which_are() {
    let room =
        Room::new([Step::Call(vec![spawn(json!({"prompt": "x", "agent": "nobody"}))]), Step::Say("I see")]);
    room.run(request(&room)).await;
    let result = &results(&room, 1)[0];
    assert!(result.contains("no agent `nobody`; there are: default"), "{result}");
    assert!(matches!(
        history(&room).await[1].kind,
        SubagentEventKind::Failed { cause: FailureCause::Other, .. }
    ));
}

#[tokio::test]
async fn another_server_is_a_reason_to_look_twice() {
    let room = Room::new([Step::Call(vec![spawn(json!({"prompt": "x", "agent": "cloud"})), task("y")])]);
    room.agent("cloud", "endpoint = \"https://models.example\"\n");
    let mut run = room.start(request(&room));
    let events = until(&mut run, |event| matches!(event, Event::ToolsProposed(_))).await;
    let Some(Event::ToolsProposed(calls)) = events.last() else { unreachable!() };
    let caution = calls[0].caution.as_ref().unwrap();
    assert!(caution.contains("https://models.example"), "{caution}");
    assert_eq!((calls[0].preview.as_str(), &calls[1].caution), ("x", &None));

    // And the other way round: what a server of its own was told does not go to everybody's.
    let room = Room::new([Step::Call(vec![spawn(json!({"prompt": "x", "agent": "default"}))])]);
    room.agent("cloud", "endpoint = \"https://models.example\"\n");
    let mut run = room.start(StartRun { agent: "cloud".into(), ..request(&room) });
    let events = until(&mut run, |event| matches!(event, Event::ToolsProposed(_))).await;
    let Some(Event::ToolsProposed(calls)) = events.last() else { unreachable!() };
    assert!(calls[0].caution.is_some());
}

#[tokio::test]
async fn a_clients_tool_is_a_workers_too() {
    let def = ToolDef {
        name: "clock".into(),
        description: "the time".into(),
        parameters: json!({"type": "object", "properties": {}}),
    };
    let clock = || Step::Call(vec![("clock", json!({}))]);
    let room = Room::new([
        Step::Call(vec![task("a"), task("b")]),
        clock(),
        clock(),
        Step::Say("noon"),
        Step::Say("noon"),
        Step::Say("done"),
    ]);
    let timeout = std::time::Duration::from_secs(60);
    let client_tools = vec![kontekst::tools::ClientTool { def, timeout, concurrency: Default::default() }];
    let mut run = room.start(StartRun { client_tools, ..request(&room) });
    let events = play(&mut run, |event| match event {
        Event::ToolRequested { call, subagent: Some(_), .. } => {
            vec![Command::ToolResult { call: call.id.clone(), outcome: ToolOutcome::Done("12:00".into()) }]
        }
        _ => approve_all(event),
    })
    .await;
    assert_eq!(*names(&events).last().unwrap(), "completed");
    assert_eq!(results(&room, 5), ["noon", "noon"]);
}

#[tokio::test]
async fn a_hundred_watchers_hear_the_same() {
    let room = Room::new([
        Step::Call(vec![task("a")]),
        Step::Call(vec![("list_files", json!({"pattern": "*"}))]),
        Step::Say("nothing"),
        Step::Say("done"),
    ]);
    let mut watchers = Vec::new();
    for n in 0..100 {
        let mut watch = room.core.watch_subagents(&"s".parse().unwrap(), 0);
        watchers.push(tokio::spawn(async move {
            // Some are late, and hear it all the same.
            for _ in 0..n {
                tokio::task::yield_now().await;
            }
            exits(&mut watch, 1).await
        }));
    }
    room.run(request(&room)).await;
    let log = history(&room).await;
    assert_eq!(log.len(), 8);
    for watcher in watchers {
        assert_eq!(watcher.await.unwrap(), log);
    }
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_nothing() {
    let room = Room::new([Step::Call(vec![task("a")]), Step::Say("x"), Step::Say("done")]);
    let mut watch = watch(&room);
    assert_eq!(watch.next_recorded().await.unwrap(), None);
    let mut run = room.start(request(&room));
    let playing = tokio::spawn(async move { play(&mut run, approve_all).await });
    let mut heard = Vec::new();
    while heard.len() < 4 {
        tokio::select! {
            biased;
            event = watch.next() => heard.push(event.unwrap().seq),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(heard, [1, 2, 3, 4]);
    playing.await.unwrap();
}

#[tokio::test]
async fn what_a_daemon_left_behind_is_told_as_interrupted() {
    let room = Room::new([]);
    let line = |seq: u32, event: Value| {
        let mut line = json!({"seq": seq, "at": 1, "worker": "w", "parent": "s"});
        line.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let log = line(1, json!({"event": "started", "agent": "default", "prompt": "p", "depth": 1}))
        + &line(2, json!({"event": "turn", "number": 1}));
    std::fs::create_dir(room.home().join("teams")).unwrap();
    std::fs::write(room.home().join("teams/s.jsonl"), log).unwrap();
    let events = history(&room).await;
    assert_eq!(events[2].kind, SubagentEventKind::Exited { how: SubagentExit::Interrupted });
    assert_eq!(events, history(&room).await);
}

#[tokio::test]
async fn a_worker_that_cannot_be_noted_is_not_started() {
    let room = Room::new([Step::Call(vec![task("a")]), Step::Say("I see")]);
    std::fs::write(room.home().join("teams"), "").unwrap();
    room.run(request(&room)).await;
    assert!(results(&room, 1)[0].starts_with("the worker was not started: "), "{:?}", results(&room, 1));
    assert_eq!(room.model.requests().len(), 2);
}

#[tokio::test]
async fn a_conversation_that_the_client_keeps_has_a_team_of_the_name_it_gives() {
    let room = Room::new([Step::Call(vec![task("a")]), Step::Say("x"), Step::Say("done")]);
    let request = StartRun {
        allow_subagents: true,
        root_session: Some("roz-1".parse().unwrap()),
        history: kontekst::agent::History::Provided(Vec::new()),
        ..room.request("go")
    };
    room.run(request).await;
    let mut watch = room.core.watch_subagents(&"roz-1".parse().unwrap(), 0);
    assert_eq!(watch.next().await.unwrap().parent.as_str(), "roz-1");
    assert!(
        room.core.has_session(&"roz-1".parse().unwrap()) && !room.core.has_session(&"roz-2".parse().unwrap())
    );
}
