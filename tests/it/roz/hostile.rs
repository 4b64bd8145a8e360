//! Hostile clients, and clients that do not read.

use kontekst_pb::roz::{
    ContentPart, ConversationMessage, Ping, RegisterTools, SessionRequest, StartSession, ToolSchema,
    UserMessage, session_request::Request, session_response::Response,
};
use serde_json::json;

use super::{TestDaemon, call_step, pure_tool, sequential_tool, stop_reason, user};
use crate::{agent_core::scripted_provider::Step, wait::wait_until_async};

#[tokio::test]
async fn floods_of_tools_are_refused_and_change_nothing() {
    let daemon = TestDaemon::new([Step::Say("ok")]);
    let mut client = daemon.session([sequential_tool("bash")]).await;
    let many: Vec<ToolSchema> = (0..100_000).map(|n| pure_tool(&format!("t{n}"))).collect();
    let large = ToolSchema { description: "x".repeat(70_000), ..pure_tool("large") };
    let odd = pure_tool("not a name");
    for tools in [many, vec![large], vec![odd]] {
        client.register_tools("flood", tools).await;
        assert_eq!(client.next_error().await, "invalid_argument");
    }
    // Many small messages reach the same limits.
    for n in 0..1000 {
        client.register_tools("", vec![pure_tool(&format!("small{n}"))]).await;
    }
    for _ in 0..(1000 - 255) {
        assert_eq!(client.next_error().await, "invalid_argument");
    }
    assert_eq!(stop_reason(&client.turn("go").await), "end_turn");
    assert_eq!(daemon.offered(0).len(), 256);
}

#[tokio::test]
async fn a_flood_of_registrations_leaves_the_last() {
    let daemon = TestDaemon::new([Step::Say("ok")]);
    let mut client = daemon.session([]).await;
    for n in 0..100_000 {
        let register = RegisterTools {
            source: Some("s".to_owned()),
            tools: vec![pure_tool(&format!("s__{n}"))],
            system_context: None,
        };
        client.send(Request::RegisterTools(register)).await;
    }
    client.turn("go").await;
    assert_eq!(daemon.offered(0), ["s__99999"]);
}

#[tokio::test]
async fn an_invalid_start_is_refused_and_ends_the_stream() {
    let part = ContentPart { part: None };
    let history = vec![ConversationMessage { role: "user".to_owned(), parts: vec![part] }; 10_001];
    let many_parts =
        vec![ConversationMessage { role: "user".to_owned(), parts: vec![ContentPart::default(); 500_001] }];
    for start in [
        StartSession { history: many_parts, ..StartSession::default() },
        StartSession { project_context: vec![String::new(); 500_001], ..StartSession::default() },
        StartSession { tools: vec![sequential_tool("no name")], ..StartSession::default() },
        StartSession { history, ..StartSession::default() },
    ] {
        let daemon = TestDaemon::new([]);
        let mut client = daemon.open().await;
        client.send(Request::Start(start)).await;
        assert_eq!(client.next_error().await, "invalid_argument");
        assert_eq!(client.drain().await, []);
    }
}

#[tokio::test]
async fn oversized_message_ids_are_refused() {
    let daemon = TestDaemon::new([]);
    let mut client = daemon.session([]).await;
    let message_id = Some("x".repeat(257));
    client.send(Request::UserMessage(UserMessage { message_id, ..user("go") })).await;
    assert_eq!(client.next_error().await, "invalid_argument");
    let tools = vec![sequential_tool("no name")];
    client.send(Request::UserMessage(UserMessage { tools, ..user("go") })).await;
    assert_eq!(client.next_error().await, "invalid_argument");
    client.ping().await;
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_the_session_and_says_why() {
    let daemon = TestDaemon::new([]);
    let mut client = daemon.session([]).await;
    client.send_message(&"x".repeat(13 * 1024 * 1024)).await;
    assert_eq!(client.next_error().await, "invalid_argument");
    assert_eq!(client.drain().await, []);
}

#[tokio::test]
async fn a_result_that_is_too_large_is_cut_in_its_middle() {
    let daemon = TestDaemon::new([call_step("bash", json!({})), Step::Say("ok")]);
    let mut client = daemon.session([sequential_tool("bash")]).await;
    client.send_message("go").await;
    let request = client.next_tool_request().await;
    client.send_result(&request, &"line\n".repeat(2_000_000)).await;
    assert_eq!(stop_reason(&client.finish_turn().await), "end_turn");
    let prompt = daemon.prompt(1);
    assert!(prompt.len() < 64 * 1024 && prompt.contains("cut to fit the window"), "{} bytes", prompt.len());
}

#[tokio::test]
async fn only_the_stream_that_was_asked_can_answer() {
    let daemon = TestDaemon::new([
        Step::CallWithId("id", "bash", "{}"),
        Step::CallWithId("id", "bash", "{}"),
        Step::Say("b"),
        Step::Say("a"),
    ]);
    let mut a = daemon.session([sequential_tool("bash")]).await;
    let mut b = daemon.session([sequential_tool("bash")]).await;
    a.send_message("go").await;
    let of_a = a.next_tool_request().await;
    b.send_message("go").await;
    let of_b = b.next_tool_request().await;
    assert_eq!(of_a.tool_call_id, of_b.tool_call_id);
    b.send_result(&of_a, "from b").await;
    assert_eq!(stop_reason(&b.finish_turn().await), "end_turn");
    a.ping().await;
    a.send_result(&of_a, "from a").await;
    assert_eq!(stop_reason(&a.finish_turn().await), "end_turn");
    assert!(daemon.prompt(3).contains("from a") && !daemon.prompt(3).contains("from b"));
}

/// Pings as fast as they are taken, and reads nothing. The clock is paused: it moves on only when no task can run,
/// so the timeout means that the daemon has stopped reading.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_slowed_down() {
    let daemon = TestDaemon::new([]);
    let mut client = daemon.session([]).await;
    let requests = client.requests.clone().unwrap();
    let ping = || SessionRequest { request: Some(Request::Ping(Ping {})) };
    let mut sent = 0_usize;
    // The HTTP/2 windows of both sides and the queue fill up, and then the daemon stops reading.
    while tokio::time::timeout(std::time::Duration::from_millis(300), requests.send(ping())).await.is_ok() {
        sent += 1;
        assert!(sent < 5_000_000, "it never stops");
    }
    // A client that reads again has lost nothing.
    let mut pongs = 0;
    drop(requests);
    client.half_close();
    while let Some(frame) = client.next_response().await {
        assert!(matches!(frame, Response::Pong(_)));
        pongs += 1;
    }
    assert_eq!(pongs, sent);
}

#[tokio::test]
async fn a_stalled_reader_is_disconnected_and_its_run_cancelled() {
    let flood: &'static str = Box::leak("word ".repeat(4_000_000).into_boxed_str());
    let daemon = TestDaemon::new([Step::SayInBlocks(flood), Step::Say("for others")]);
    let mut client = daemon.session([]).await;
    client.send_message("repeat the word").await;
    wait_until_async("the run starts", || daemon.core.active_runs() == 1).await;
    wait_until_async("the run is cancelled", || daemon.core.active_runs() == 0).await;
    let ended = loop {
        match client.frames.message().await {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert_eq!(ended.unwrap_err().code(), tonic::Code::ResourceExhausted);
    let mut other = daemon.session([]).await;
    assert_eq!(stop_reason(&other.turn("go").await), "end_turn");
}
