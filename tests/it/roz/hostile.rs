//! Clients that mean harm, or mean well and do not read.

use kontekst::pb::roz::{
    ContentPart, ConversationMessage, Ping, RegisterTools, SessionRequest, StartSession, ToolSchema,
    UserMessage, session_request::Request, session_response::Response,
};
use serde_json::json;

use super::{Room, call, pure, single, stop, user};
use crate::core::scripted::Step;

#[tokio::test]
async fn floods_of_tools_are_refused_and_change_nothing() {
    let room = Room::new([Step::Say("ok")]);
    let mut talk = room.session([single("bash")]).await;
    let many: Vec<ToolSchema> = (0..100_000).map(|n| pure(&format!("t{n}"))).collect();
    let large = ToolSchema { description: "x".repeat(70_000), ..pure("large") };
    let odd = pure("not a name");
    for tools in [many, vec![large], vec![odd]] {
        talk.register("flood", tools).await;
        assert_eq!(talk.error().await, "invalid_argument");
    }
    // Many small messages end at the same limits.
    for n in 0..1000 {
        talk.register("", vec![pure(&format!("small{n}"))]).await;
    }
    for _ in 0..(1000 - 255) {
        assert_eq!(talk.error().await, "invalid_argument");
    }
    talk.ask("go").await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    assert_eq!(room.offered(0).len(), 256);
}

#[tokio::test]
async fn a_flood_of_registrations_leaves_the_last() {
    let room = Room::new([Step::Say("ok")]);
    let mut talk = room.session([]).await;
    for n in 0..100_000 {
        let register = RegisterTools {
            source: Some("s".to_owned()),
            tools: vec![pure(&format!("s__{n}"))],
            system_context: None,
        };
        talk.say(Request::RegisterTools(register)).await;
    }
    talk.ask("go").await;
    talk.turn().await;
    assert_eq!(room.offered(0), ["s__99999"]);
}

#[tokio::test]
async fn a_start_that_cannot_be_is_refused_and_the_stream_ends() {
    let part = ContentPart { part: None };
    let history = vec![ConversationMessage { role: "user".to_owned(), parts: vec![part] }; 10_001];
    for start in [
        StartSession { tools: vec![single("no name")], ..StartSession::default() },
        StartSession { history, ..StartSession::default() },
    ] {
        let room = Room::new([]);
        let mut talk = room.open().await;
        talk.say(Request::Start(start)).await;
        assert_eq!(talk.error().await, "invalid_argument");
        assert_eq!(talk.rest().await, []);
    }
}

#[tokio::test]
async fn what_comes_back_in_every_frame_is_short() {
    let room = Room::new([]);
    let mut talk = room.session([]).await;
    let message_id = Some("x".repeat(257));
    talk.say(Request::UserMessage(UserMessage { message_id, ..user("go") })).await;
    assert_eq!(talk.error().await, "invalid_argument");
    let tools = vec![single("no name")];
    talk.say(Request::UserMessage(UserMessage { tools, ..user("go") })).await;
    assert_eq!(talk.error().await, "invalid_argument");
    talk.ping().await;
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_the_session_and_says_why() {
    let room = Room::new([]);
    let mut talk = room.session([]).await;
    talk.ask(&"x".repeat(13 * 1024 * 1024)).await;
    assert_eq!(talk.error().await, "invalid_argument");
    assert_eq!(talk.rest().await, []);
}

#[tokio::test]
async fn a_result_that_is_too_large_is_cut_in_its_middle() {
    let room = Room::new([call("bash", json!({})), Step::Say("ok")]);
    let mut talk = room.session([single("bash")]).await;
    talk.ask("go").await;
    let request = talk.request().await;
    talk.answer(&request, &"line\n".repeat(2_000_000)).await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    let prompt = room.prompt(1);
    assert!(prompt.len() < 64 * 1024 && prompt.contains("cut to fit the window"), "{} bytes", prompt.len());
}

#[tokio::test]
async fn only_the_stream_that_was_asked_can_answer() {
    let room = Room::new([
        Step::CallAs("id", "bash", "{}"),
        Step::CallAs("id", "bash", "{}"),
        Step::Say("b"),
        Step::Say("a"),
    ]);
    let mut a = room.session([single("bash")]).await;
    let mut b = room.session([single("bash")]).await;
    a.ask("go").await;
    let of_a = a.request().await;
    b.ask("go").await;
    let of_b = b.request().await;
    assert_eq!(of_a.tool_call_id, of_b.tool_call_id);
    b.answer(&of_a, "from b").await;
    assert_eq!(stop(&b.turn().await), "end_turn");
    a.ping().await;
    a.answer(&of_a, "from a").await;
    assert_eq!(stop(&a.turn().await), "end_turn");
    assert!(room.prompt(3).contains("from a") && !room.prompt(3).contains("from b"));
}

/// Pings as fast as they are taken, and reads nothing.
#[tokio::test]
async fn who_does_not_read_is_not_read_either() {
    let room = Room::new([]);
    let mut talk = room.session([]).await;
    let requests = talk.requests.clone().unwrap();
    let ping = || SessionRequest { request: Some(Request::Ping(Ping {})) };
    let mut sent = 0_usize;
    // The windows of both sides and the queue fill up, and then it stops.
    while tokio::time::timeout(std::time::Duration::from_millis(300), requests.send(ping())).await.is_ok() {
        sent += 1;
        assert!(sent < 5_000_000, "it never stops");
    }
    // Whoever reads again misses nothing.
    let mut pongs = 0;
    drop(requests);
    talk.half_close();
    while let Some(frame) = talk.next().await {
        assert!(matches!(frame, Response::Pong(_)));
        pongs += 1;
    }
    assert_eq!(pongs, sent);
}

#[tokio::test]
async fn a_stalled_reader_is_cut_off_and_its_run_with_it() {
    let flood: &'static str = Box::leak("word ".repeat(4_000_000).into_boxed_str());
    let room = Room::new([Step::Whole(flood), Step::Say("for others")]);
    let mut talk = room.session([]).await;
    talk.ask("go").await;
    while room.core.active_runs() == 0 {
        tokio::task::yield_now().await;
    }
    while room.core.active_runs() > 0 {
        tokio::task::yield_now().await;
    }
    let ended = loop {
        match talk.frames.message().await {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert_eq!(ended.unwrap_err().code(), tonic::Code::ResourceExhausted);
    let mut other = room.session([]).await;
    other.ask("go").await;
    assert_eq!(stop(&other.turn().await), "end_turn");
}
