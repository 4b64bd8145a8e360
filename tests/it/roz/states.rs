//! Every message in every state of a stream.

use kontekst_pb::roz::{
    CameraRequest, CancelSession, CancelTurn, IceCandidate, MessageFeedback, PermissionDecision, Ping,
    RegisterTools, SessionRequest, StartSession, ToolResult, WebRtcAnswer, session_request::Request,
    session_response::Response,
};
use serde_json::json;

use super::{TestClient, TestDaemon, call_step, frame_names, sequential_tool, user};
use crate::agent_core::scripted_provider::Step;

/// The state of the stream when the message comes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    NoSession,
    Idle,
    InTurn,
}

/// The expected effect of the message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    /// This frame is sent.
    Frame(&'static str),
    /// Nothing is sent, and the stream stays open.
    Silence,
    /// The stream ends.
    End,
}

use Expected::{End, Frame, Silence};

fn table() -> Vec<(&'static str, Option<Request>, [Expected; 3])> {
    let all = |expected| [expected; 3];
    vec![
        (
            "start",
            Some(Request::Start(StartSession::default())),
            [Frame("started"), Frame("error already_started"), Frame("error already_started")],
        ),
        (
            "user_message",
            Some(Request::UserMessage(user("go"))),
            [Frame("error no_session"), Frame("full"), Frame("error turn_in_progress")],
        ),
        (
            "tool_result",
            Some(Request::ToolResult(ToolResult {
                tool_call_id: "nobody's".to_owned(),
                ..ToolResult::default()
            })),
            [Frame("error no_session"), Frame("error no_active_turn"), Silence],
        ),
        (
            "permission_decision",
            Some(Request::PermissionDecision(PermissionDecision {
                approved: true,
                ..PermissionDecision::default()
            })),
            all(Silence),
        ),
        (
            "register_tools",
            Some(Request::RegisterTools(RegisterTools::default())),
            [Frame("error no_session"), Silence, Silence],
        ),
        ("cancel_turn", Some(Request::CancelTurn(CancelTurn::default())), [Silence, Silence, Frame("idle")]),
        ("cancel_session", Some(Request::CancelSession(CancelSession::default())), all(End)),
        ("ping", Some(Request::Ping(Ping {})), all(Frame("pong"))),
        ("feedback", Some(Request::Feedback(MessageFeedback::default())), all(Silence)),
        ("nothing", None, all(Silence)),
        ("webrtc_answer", Some(Request::WebrtcAnswer(WebRtcAnswer::default())), all(Silence)),
        ("ice_candidate", Some(Request::IceCandidate(IceCandidate::default())), all(Silence)),
        ("camera_request", Some(Request::CameraRequest(CameraRequest::default())), all(Silence)),
    ]
}

/// Opens a stream in this state. In a turn, a tool call waits for its result.
async fn client_in_state(daemon: &TestDaemon, state: State) -> TestClient {
    if state == State::NoSession {
        return daemon.open().await;
    }
    let mut client = daemon.session([sequential_tool("bash")]).await;
    if state == State::InTurn {
        client.send_message("go").await;
        client.next_tool_request().await;
    }
    client
}

async fn check_cell(what: &str, request: Option<Request>, state: State, expected: Expected) {
    let daemon = TestDaemon::new([call_step("bash", json!({})), Step::Say("fine")]);
    let mut client = client_in_state(&daemon, state).await;
    client.requests.as_ref().unwrap().send(SessionRequest { request }).await.unwrap();
    match expected {
        Frame(frame) => {
            let seen = client.next_response().await.map(|seen| frame_names(&[seen]).remove(0));
            assert_eq!(seen.as_deref(), Some(frame), "{what} in {state:?}");
            // The stream stays open.
            client.send(Request::Ping(Ping {})).await;
            client.frames_until(|frame| matches!(frame, Response::Pong(_))).await;
        }
        Silence => client.ping().await,
        End => {
            let errors = |frame: &Response| matches!(frame, Response::Error(_));
            let rest = client.drain().await;
            assert!(
                !rest.iter().filter_map(|frame| frame.response.as_ref()).any(errors),
                "{what} in {state:?}"
            );
        }
    }
    // An open session still works.
    if state == State::Idle && expected != End && what != "user_message" {
        client.send_message("go").await;
        client.next_tool_request().await;
    }
}

#[tokio::test]
async fn every_message_in_every_state() {
    for (what, request, row) in table() {
        for (state, expected) in [State::NoSession, State::Idle, State::InTurn].into_iter().zip(row) {
            check_cell(what, request.clone(), state, expected).await;
        }
    }
}

#[tokio::test]
async fn a_half_close_in_every_state() {
    for state in [State::NoSession, State::Idle, State::InTurn] {
        let daemon = TestDaemon::new([call_step("bash", json!({})), Step::Say("without it, then")]);
        let mut client = client_in_state(&daemon, state).await;
        client.half_close();
        let rest = client.drain().await;
        let first: Vec<_> = rest.iter().filter_map(|frame| frame.response.clone()).collect();
        match state {
            State::NoSession => assert_eq!(rest, []),
            State::Idle => assert_eq!((first.len(), rest.len()), (0, 1), "session_completed: {rest:?}"),
            // The turn is finished without the tools of the client.
            State::InTurn => {
                assert_eq!(*frame_names(&first).last().unwrap(), "end_turn");
                assert!(daemon.prompt(1).contains("the client has closed its side"), "{}", daemon.prompt(1));
            }
        }
    }
}
