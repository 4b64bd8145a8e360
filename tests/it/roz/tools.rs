//! Tools that run at the client: the three ways to declare them, and what can happen to their calls.

use kontekst_pb::roz::{
    RegisterTools, ToolResult, UserMessage, session_request::Request, session_response::Response,
};
use serde_json::json;

use super::{TestDaemon, call_step, frame_names, pure_tool, sequential_tool, stop_reason, tool_result, user};
use crate::agent_core::scripted_provider::Step;

fn register(source: &str, tools: &[&str], context: Option<&str>) -> Request {
    Request::RegisterTools(RegisterTools {
        source: Some(source.to_owned()).filter(|source| !source.is_empty()),
        tools: tools.iter().map(|name| sequential_tool(name)).collect(),
        system_context: context.map(str::to_owned),
    })
}

#[tokio::test]
async fn tools_can_be_replaced_between_turns() {
    let daemon = TestDaemon::new((0..5).map(|_| Step::Say("ok")));
    let mut client = daemon.session([sequential_tool("bash")]).await;
    client.turn("1").await;
    assert_eq!(daemon.offered(0), ["bash"]);

    client.send(register("sim", &["sim__go", "sim__stop"], Some("How to drive the simulator."))).await;
    client.turn("2").await;
    assert_eq!(daemon.offered(1), ["bash", "sim__go", "sim__stop"]);
    assert!(daemon.prompt(1).contains("How to drive the simulator."));

    client.turn("3").await;
    assert_eq!(daemon.offered(2), ["bash", "sim__go", "sim__stop"]);
    assert!(!daemon.prompt(2).contains("How to drive the simulator."), "read once: {}", daemon.prompt(2));

    client.send(register("sim", &[], None)).await;
    client.turn("4").await;
    assert_eq!(daemon.offered(3), ["bash"]);

    client.send(register("", &["bash", "more"], None)).await;
    client.turn("5").await;
    assert_eq!(daemon.offered(4), ["bash", "more"]);
}

#[tokio::test]
async fn registered_context_is_sent_once_and_after_a_messages_own() {
    let daemon = TestDaemon::new((0..4).map(|_| Step::Say("ok")));
    let mut client = daemon.session([]).await;
    client.send(register("a", &[], Some("from a"))).await;
    client.send(register("b", &[], Some("from b"))).await;
    let inline = |context: &str| UserMessage { system_context: Some(context.to_owned()), ..user("go") };
    for message in [inline("inline"), inline("  "), user("go"), user("go")] {
        client.send(Request::UserMessage(message)).await;
        assert_eq!(stop_reason(&client.finish_turn().await), "end_turn");
    }
    let has = |n: usize, part: &str| daemon.prompt(n).contains(part);
    assert!(has(0, "inline") && !has(0, "from b"));
    assert!(has(1, "from b") && !has(1, "from a"), "the last one wins, and a blank one is none");
    assert!(!has(2, "from b") && !has(3, "from b"));
}

#[tokio::test]
async fn tools_of_a_message_apply_to_that_turn_only() {
    let daemon = TestDaemon::new((0..3).map(|_| Step::Say("ok")));
    let mut client = daemon.session([sequential_tool("bash")]).await;
    for tools in [vec![], vec![sequential_tool("other")], vec![]] {
        client.send(Request::UserMessage(UserMessage { tools, ..user("go") })).await;
        client.finish_turn().await;
    }
    assert_eq!([daemon.offered(0), daemon.offered(1), daemon.offered(2)], [["bash"], ["other"], ["bash"]]);
}

#[tokio::test]
async fn tools_registered_during_a_turn_apply_to_the_next() {
    let daemon = TestDaemon::new([call_step("bash", json!({})), Step::Say("done"), Step::Say("next")]);
    let mut client = daemon.session([sequential_tool("bash")]).await;
    client.send_message("go").await;
    let request = client.next_tool_request().await;
    client.register_tools("late", vec![sequential_tool("late__one")]).await;
    client.send_result(&request, "ok").await;
    assert_eq!(stop_reason(&client.finish_turn().await), "end_turn");
    client.turn("go on").await;
    assert_eq!(daemon.offered(1), ["bash"]);
    assert_eq!(daemon.offered(2), ["bash", "late__one"]);
}

#[tokio::test]
async fn pure_calls_run_together_and_may_be_answered_in_any_order() {
    let calls = vec![
        ("look", json!({"at": "a"})),
        ("look", json!({"at": "b"})),
        ("look", json!({"at": "c"})),
        ("move", json!({})),
        ("look", json!({"at": "d"})),
    ];
    let daemon = TestDaemon::new([Step::Call(calls), Step::Say("seen")]);
    let mut client = daemon.session([pure_tool("look"), sequential_tool("move")]).await;
    client.send_message("look around").await;
    let (a, b, c) = (
        client.next_tool_request().await,
        client.next_tool_request().await,
        client.next_tool_request().await,
    );
    assert!(a.tool_call_id != b.tool_call_id && b.tool_call_id != c.tool_call_id);
    // No call that is not pure is requested before they are answered.
    client.ping().await;
    for (request, result) in [(&c, "C"), (&a, "A"), (&b, "B")] {
        client.send_result(request, result).await;
    }
    let moved = client.next_tool_request().await;
    assert_eq!(moved.tool_name, "move");
    client.ping().await;
    client.send_result(&moved, "M").await;
    let last = client.next_tool_request().await;
    client.send_result(&last, "D").await;
    assert_eq!(stop_reason(&client.finish_turn().await), "end_turn");
    let prompt = daemon.prompt(1);
    let results: Vec<&str> = prompt.lines().filter_map(|line| line.strip_prefix("<tool> ")).collect();
    assert_eq!(results, ["A", "B", "C", "M", "D"]);
}

#[tokio::test]
async fn unexpected_results_are_ignored() {
    let daemon = TestDaemon::new([
        Step::CallWithId("same", "bash", "{}"),
        Step::Say("one"),
        Step::CallWithId("same", "bash", "{}"),
        Step::Say("two"),
    ]);
    let mut client = daemon.session([sequential_tool("bash")]).await;
    client.send_message("go").await;
    let first = client.next_tool_request().await;
    assert_eq!(first.tool_call_id, "same");
    client.send(Request::ToolResult(tool_result("unknown", "x"))).await;
    client.send_result(&first, "first").await;
    client.send_result(&first, "twice").await;
    let frames = client.finish_turn().await;
    assert_eq!(stop_reason(&frames), "end_turn");
    // The model uses the same id again. A late result of the first call must not answer the second.
    client.send_message("again").await;
    let second = client.next_tool_request().await;
    assert_ne!(second.tool_call_id, first.tool_call_id);
    client.send_result(&first, "late").await;
    client.ping().await;
    client.send_result(&second, "second").await;
    assert_eq!(stop_reason(&client.finish_turn().await), "end_turn");
    let prompt = daemon.prompt(3);
    assert!(prompt.contains("<tool> first\n") && prompt.contains("<tool> second\n"), "{prompt}");
    assert!(!prompt.contains("late") && !prompt.contains("twice"), "{prompt}");
}

#[tokio::test]
async fn call_details_reach_the_model() {
    let daemon = TestDaemon::new([call_step("bash", json!({})), Step::Say("I see")]);
    let mut client = daemon.session([sequential_tool("bash")]).await;
    client.send_message("go").await;
    let request = client.next_tool_request().await;
    client
        .send(Request::ToolResult(ToolResult {
            tool_call_id: request.tool_call_id,
            success: false,
            result: "no such file".to_owned(),
            exit_code: Some(2),
            truncated: true,
            duration_ms: Some(7),
        }))
        .await;
    client.finish_turn().await;
    assert!(daemon.prompt(1).contains("no such file\n[exit code 2, the client cut the output, took 7 ms]"));
    assert!(daemon.model.requests()[1].messages[2].tool_result.as_ref().unwrap().is_error);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_result_times_out_and_the_turn_continues() {
    let daemon =
        TestDaemon::new([Step::Call(vec![("quick", json!({})), ("slow", json!({}))]), Step::Say("a pity")]);
    let mut slow = pure_tool("slow");
    slow.timeout_ms = 200_000;
    let mut client = daemon.session([pure_tool("quick"), slow]).await;
    client.send_message("go").await;
    assert_eq!(client.next_tool_request().await.timeout_ms, 120_000);
    assert_eq!(client.next_tool_request().await.timeout_ms, 200_000);
    let frames = client.finish_turn().await;
    assert_eq!(stop_reason(&frames), "end_turn");
    let alive = frames.iter().filter(|frame| matches!(frame, Response::Keepalive(_))).count();
    assert_eq!(alive, 200 / 15, "one every 15 s");
    let prompt = daemon.prompt(1);
    assert!(
        prompt.contains("no result within 120 s") && prompt.contains("no result within 200 s"),
        "{prompt}"
    );
}

#[tokio::test]
async fn an_undeclared_tool_is_an_error_for_the_model_only() {
    let daemon = TestDaemon::new([call_step("format_disk", json!({})), Step::Say("sorry")]);
    let mut client = daemon.session([sequential_tool("bash")]).await;
    let frames = client.turn("go").await;
    assert_eq!(stop_reason(&frames), "end_turn");
    assert!(!frame_names(&frames).iter().any(|name| name.starts_with("request")));
    assert!(daemon.prompt(1).contains("there is no tool `format_disk`"), "{}", daemon.prompt(1));
}

#[tokio::test]
async fn a_client_tool_replaces_a_daemon_tool_of_the_same_name() {
    let config = |config: &mut kontekst_store::config::Config, work| {
        config.tools.working_dir = work;
        config.roz.daemon_tools = vec!["read_file".to_owned(), "list_files".to_owned()];
    };
    let daemon =
        TestDaemon::with_config([call_step("read_file", json!({"path": "x"})), Step::Say("ok")], config);
    let mut client = daemon.session([sequential_tool("read_file")]).await;
    client.send_message("go").await;
    let request = client.next_tool_request().await;
    client.send_result(&request, "the client's").await;
    client.finish_turn().await;
    assert_eq!(daemon.offered(0), ["list_files", "read_file"]);
    assert!(daemon.prompt(1).contains("the client's"));
}
