//! Tools that run at the client: three ways to declare them, and what may happen to their calls.

use kontekst::pb::roz::{
    RegisterTools, ToolCategoryHint, ToolResult, UserMessage, session_request::Request,
    session_response::Response,
};
use serde_json::json;

use super::{Room, call, done, names, pure, single, stop, tool, user};
use crate::core::scripted::Step;

fn register(source: &str, tools: &[&str], context: Option<&str>) -> Request {
    Request::RegisterTools(RegisterTools {
        source: Some(source.to_owned()).filter(|source| !source.is_empty()),
        tools: tools.iter().map(|name| single(name)).collect(),
        system_context: context.map(str::to_owned),
    })
}

#[tokio::test]
async fn tools_are_swapped_between_turns() {
    let room = Room::new((0..5).map(|_| Step::Say("ok")));
    let mut talk = room.session([single("bash")]).await;
    talk.ask("1").await;
    talk.turn().await;
    assert_eq!(room.offered(0), ["bash"]);

    talk.say(register("sim", &["sim__go", "sim__stop"], Some("How to drive the simulator."))).await;
    talk.ask("2").await;
    talk.turn().await;
    assert_eq!(room.offered(1), ["bash", "sim__go", "sim__stop"]);
    assert!(room.prompt(1).contains("How to drive the simulator."));

    talk.ask("3").await;
    talk.turn().await;
    assert_eq!(room.offered(2), ["bash", "sim__go", "sim__stop"]);
    assert!(!room.prompt(2).contains("How to drive the simulator."), "read once: {}", room.prompt(2));

    talk.say(register("sim", &[], None)).await;
    talk.ask("4").await;
    talk.turn().await;
    assert_eq!(room.offered(3), ["bash"]);

    talk.say(register("", &["bash", "more"], None)).await;
    talk.ask("5").await;
    talk.turn().await;
    assert_eq!(room.offered(4), ["bash", "more"]);
}

#[tokio::test]
async fn context_that_waits_is_read_once_and_not_before_one_of_the_messages_own() {
    let room = Room::new((0..4).map(|_| Step::Say("ok")));
    let mut talk = room.session([]).await;
    talk.say(register("a", &[], Some("from a"))).await;
    talk.say(register("b", &[], Some("from b"))).await;
    let inline = |context: &str| UserMessage { system_context: Some(context.to_owned()), ..user("go") };
    for message in [inline("inline"), inline("  "), user("go"), user("go")] {
        talk.say(Request::UserMessage(message)).await;
        assert_eq!(stop(&talk.turn().await), "end_turn");
    }
    let has = |n: usize, part: &str| room.prompt(n).contains(part);
    assert!(has(0, "inline") && !has(0, "from b"));
    assert!(has(1, "from b") && !has(1, "from a"), "the last one wins, and a blank one is none");
    assert!(!has(2, "from b") && !has(3, "from b"));
}

#[tokio::test]
async fn tools_of_a_message_are_for_that_turn_alone() {
    let room = Room::new((0..3).map(|_| Step::Say("ok")));
    let mut talk = room.session([single("bash")]).await;
    for tools in [vec![], vec![single("other")], vec![]] {
        talk.say(Request::UserMessage(UserMessage { tools, ..user("go") })).await;
        talk.turn().await;
    }
    assert_eq!([room.offered(0), room.offered(1), room.offered(2)], [["bash"], ["other"], ["bash"]]);
}

#[tokio::test]
async fn tools_that_are_registered_in_a_turn_count_from_the_next_and_hold_nothing_up() {
    let room = Room::new([call("bash", json!({})), Step::Say("done"), Step::Say("next")]);
    let mut talk = room.session([single("bash")]).await;
    talk.ask("go").await;
    let request = talk.request().await;
    talk.register("late", vec![single("late__one")]).await;
    talk.answer(&request, "ok").await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    talk.ask("go on").await;
    talk.turn().await;
    assert_eq!(room.offered(1), ["bash"]);
    assert_eq!(room.offered(2), ["bash", "late__one"]);
}

#[tokio::test]
async fn pure_calls_are_out_together_and_answered_in_any_order() {
    let calls = vec![
        ("look", json!({"at": "a"})),
        ("look", json!({"at": "b"})),
        ("look", json!({"at": "c"})),
        ("move", json!({})),
        ("look", json!({"at": "d"})),
    ];
    let room = Room::new([Step::Call(calls), Step::Say("seen")]);
    let mut talk = room.session([pure("look"), single("move")]).await;
    talk.ask("look around").await;
    let (a, b, c) = (talk.request().await, talk.request().await, talk.request().await);
    assert!(a.tool_call_id != b.tool_call_id && b.tool_call_id != c.tool_call_id);
    // Nothing that is not pure is requested while they are out.
    talk.ping().await;
    for (request, result) in [(&c, "C"), (&a, "A"), (&b, "B")] {
        talk.answer(request, result).await;
    }
    let moved = talk.request().await;
    assert_eq!(moved.tool_name, "move");
    talk.ping().await;
    talk.answer(&moved, "M").await;
    let last = talk.request().await;
    talk.answer(&last, "D").await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    let prompt = room.prompt(1);
    let results: Vec<&str> = prompt.lines().filter_map(|line| line.strip_prefix("<tool> ")).collect();
    assert_eq!(results, ["A", "B", "C", "M", "D"]);
}

#[tokio::test]
async fn results_that_nobody_waits_for_are_ignored() {
    let room = Room::new([
        Step::CallAs("same", "bash", "{}"),
        Step::Say("one"),
        Step::CallAs("same", "bash", "{}"),
        Step::Say("two"),
    ]);
    let mut talk = room.session([single("bash")]).await;
    talk.ask("go").await;
    let first = talk.request().await;
    assert_eq!(first.tool_call_id, "same");
    talk.say(Request::ToolResult(done("unknown", "x"))).await;
    talk.answer(&first, "first").await;
    talk.answer(&first, "twice").await;
    let frames = talk.turn().await;
    assert_eq!(stop(&frames), "end_turn");
    // The model uses the same id again; what is late for the first call does not answer the second.
    talk.ask("again").await;
    let second = talk.request().await;
    assert_ne!(second.tool_call_id, first.tool_call_id);
    talk.answer(&first, "late").await;
    talk.ping().await;
    talk.answer(&second, "second").await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    let prompt = room.prompt(3);
    assert!(prompt.contains("<tool> first\n") && prompt.contains("<tool> second\n"), "{prompt}");
    assert!(!prompt.contains("late") && !prompt.contains("twice"), "{prompt}");
}

#[tokio::test]
async fn what_is_known_of_a_call_reaches_the_model() {
    let room = Room::new([call("bash", json!({})), Step::Say("I see")]);
    let mut talk = room.session([single("bash")]).await;
    talk.ask("go").await;
    let request = talk.request().await;
    talk.say(Request::ToolResult(ToolResult {
        tool_call_id: request.tool_call_id,
        success: false,
        result: "no such file".to_owned(),
        exit_code: Some(2),
        truncated: true,
        duration_ms: Some(7),
    }))
    .await;
    talk.turn().await;
    assert!(room.prompt(1).contains("no such file\n[exit code 2, the client cut the output, took 7 ms]"));
    assert!(room.model.requests()[1].messages[2].tool_result.as_ref().unwrap().is_error);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_result_is_given_up_after_its_time_and_the_turn_goes_on() {
    let room = Room::new([Step::Call(vec![("quick", json!({})), ("slow", json!({}))]), Step::Say("a pity")]);
    let mut slow = pure("slow");
    slow.timeout_ms = 200_000;
    let mut talk = room.session([pure("quick"), slow]).await;
    talk.ask("go").await;
    assert_eq!(talk.request().await.timeout_ms, 120_000);
    assert_eq!(talk.request().await.timeout_ms, 200_000);
    let frames = talk.turn().await;
    assert_eq!(stop(&frames), "end_turn");
    let alive = frames.iter().filter(|frame| matches!(frame, Response::Keepalive(_))).count();
    assert_eq!(alive, 200 / 15, "one every 15 s");
    let prompt = room.prompt(1);
    assert!(
        prompt.contains("no result within 120 s") && prompt.contains("no result within 200 s"),
        "{prompt}"
    );
}

#[tokio::test]
async fn a_tool_that_nobody_declared_is_an_error_for_the_model_only() {
    let room = Room::new([call("format_disk", json!({})), Step::Say("sorry")]);
    let mut talk = room.session([single("bash")]).await;
    talk.ask("go").await;
    let frames = talk.turn().await;
    assert_eq!(stop(&frames), "end_turn");
    assert!(!names(&frames).iter().any(|name| name.starts_with("request")));
    assert!(room.prompt(1).contains("there is no tool `format_disk`"), "{}", room.prompt(1));
}

#[tokio::test]
async fn a_tool_that_wants_a_sandbox_is_not_offered() {
    let room = Room::new([Step::Say("ok")]);
    let sandboxed = tool("execute_code", ToolCategoryHint::ToolCategoryCodeSandbox);
    let mut talk = room.session([single("bash"), sandboxed]).await;
    talk.ask("go").await;
    talk.turn().await;
    assert_eq!(room.offered(0), ["bash"]);
}

#[tokio::test]
async fn a_clients_read_file_is_the_clients() {
    let config = |config: &mut kontekst::config::Config, work| {
        config.tools.working_dir = work;
        config.roz.daemon_tools = vec!["read_file".to_owned(), "list_files".to_owned()];
    };
    let room = Room::with_config([call("read_file", json!({"path": "x"})), Step::Say("ok")], config);
    let mut talk = room.session([single("read_file")]).await;
    talk.ask("go").await;
    let request = talk.request().await;
    talk.answer(&request, "the client's").await;
    talk.turn().await;
    assert_eq!(room.offered(0), ["list_files", "read_file"]);
    assert!(room.prompt(1).contains("the client's"));
}
