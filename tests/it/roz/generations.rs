//! One recorded stream, decoded by clients of both generations of the protocol.

use kontekst_pb::roz::SessionResponse;
use kontekst_store::config::RozEvents;
use prost::Message as _;
use serde_json::json;

use super::{TestClient, TestDaemon, call_step, pure_tool};
use crate::agent_core::scripted_provider::Step;

/// The messages of the first generation as a client has them, reduced to the fields that are compared.
mod first {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct SessionResponse {
        #[prost(oneof = "Response", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11")]
        pub response: Option<Response>,
    }
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(super) enum Response {
        #[prost(message, tag = "1")]
        SessionStarted(Started),
        #[prost(message, tag = "2")]
        TextDelta(Delta),
        #[prost(message, tag = "3")]
        ThinkingDelta(Delta),
        #[prost(message, tag = "4")]
        ToolRequest(Request),
        #[prost(message, tag = "5")]
        TurnComplete(Complete),
        #[prost(message, tag = "6")]
        Error(Error),
        #[prost(message, tag = "7")]
        Keepalive(()),
        #[prost(message, tag = "8")]
        Pong(()),
        #[prost(message, tag = "9")]
        ContextCompacted(()),
        #[prost(message, tag = "10")]
        PresenceHint(Presence),
        #[prost(message, tag = "11")]
        ActivityUpdate(Activity),
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Started {
        #[prost(string, tag = "1")]
        pub session_id: String,
        #[prost(string, tag = "2")]
        pub model: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Delta {
        #[prost(string, tag = "1")]
        pub message_id: String,
        #[prost(string, tag = "2")]
        pub content: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Request {
        #[prost(string, tag = "1")]
        pub tool_call_id: String,
        #[prost(string, tag = "2")]
        pub tool_name: String,
        #[prost(uint32, tag = "4")]
        pub timeout_ms: u32,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Complete {
        #[prost(string, tag = "1")]
        pub message_id: String,
        #[prost(message, optional, tag = "2")]
        pub usage: Option<Usage>,
        #[prost(string, tag = "3")]
        pub stop_reason: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Usage {
        #[prost(uint32, tag = "1")]
        pub input: u32,
        #[prost(uint32, tag = "2")]
        pub output: u32,
        #[prost(uint32, tag = "3")]
        pub cache_read: u32,
        #[prost(uint32, tag = "4")]
        pub cache_creation: u32,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Error {
        #[prost(string, tag = "1")]
        pub code: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Presence {
        #[prost(string, tag = "1")]
        pub level: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Activity {
        #[prost(string, tag = "1")]
        pub state: String,
    }
}

mod second {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct SessionResponse {
        #[prost(oneof = "Response", tags = "7, 8, 19")]
        pub response: Option<Response>,
    }
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(super) enum Response {
        #[prost(message, tag = "7")]
        Keepalive(()),
        #[prost(message, tag = "8")]
        Pong(()),
        #[prost(message, tag = "19")]
        SessionEvent(Envelope),
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Envelope {
        #[prost(string, tag = "1")]
        pub event_id: String,
        #[prost(string, tag = "2")]
        pub correlation_id: String,
        #[prost(message, optional, tag = "4")]
        pub timestamp: Option<prost_types::Timestamp>,
        #[prost(string, tag = "5")]
        pub event_type: String,
        #[prost(oneof = "Typed", tags = "7, 8, 10, 11, 12, 14, 17, 18, 19, 20")]
        pub typed: Option<Typed>,
    }
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(super) enum Typed {
        #[prost(message, tag = "7")]
        SessionStarted(Started),
        #[prost(message, tag = "8")]
        SessionRejected(Rejected),
        #[prost(message, tag = "10")]
        TextDelta(Delta),
        #[prost(message, tag = "11")]
        ThinkingDelta(Delta),
        #[prost(message, tag = "12")]
        TurnFinished(Finished),
        #[prost(message, tag = "14")]
        ToolCallRequested(Request),
        #[prost(message, tag = "17")]
        ActivityChanged(Activity),
        #[prost(message, tag = "18")]
        PresenceHinted(Presence),
        #[prost(message, tag = "19")]
        TurnStarted(Turn),
        #[prost(message, tag = "20")]
        SessionCompleted(Completed),
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Started {
        #[prost(string, tag = "1")]
        pub session_id: String,
        #[prost(string, tag = "2")]
        pub mode: String,
        #[prost(string, optional, tag = "4")]
        pub model_name: Option<String>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Rejected {
        #[prost(string, tag = "1")]
        pub code: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Delta {
        #[prost(string, tag = "1")]
        pub content: String,
        #[prost(string, optional, tag = "2")]
        pub message_id: Option<String>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Finished {
        #[prost(uint32, tag = "1")]
        pub input: u32,
        #[prost(uint32, tag = "2")]
        pub output: u32,
        #[prost(uint32, tag = "3")]
        pub cache_creation: u32,
        #[prost(uint32, tag = "4")]
        pub cache_read: u32,
        #[prost(string, tag = "5")]
        pub stop_reason: String,
        #[prost(string, optional, tag = "6")]
        pub message_id: Option<String>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Request {
        #[prost(string, tag = "1")]
        pub call_id: String,
        #[prost(string, tag = "2")]
        pub tool_name: String,
        #[prost(uint32, tag = "4")]
        pub timeout_ms: u32,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Activity {
        #[prost(string, tag = "1")]
        pub state: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Presence {
        #[prost(string, tag = "1")]
        pub level: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Turn {
        #[prost(uint32, tag = "1")]
        pub turn_index: u32,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Completed {
        #[prost(string, tag = "1")]
        pub summary: String,
    }
}

/// Records a session with deltas, a tool call, an error, a ping and an ending.
async fn recorded(events: RozEvents) -> Vec<Vec<u8>> {
    let daemon = TestDaemon::with_config(
        [call_step("look", json!({})), Step::Think("hm", "seen"), Step::Say("again")],
        |config, _| config.roz.events = events,
    );
    daemon.model.set_model_names(&["fake"]);
    let mut client = daemon.open().await;
    use kontekst_pb::roz::{Ping, StartSession, UserMessage, session_request::Request};
    let mut frames = Vec::new();
    client
        .send(Request::Start(StartSession { tools: vec![pure_tool("look")], ..StartSession::default() }))
        .await;
    client.send(Request::Ping(Ping {})).await;
    client.send(Request::ToolResult(super::tool_result("x", "y"))).await;
    let message_id = Some("m1".to_owned());
    client.send(Request::UserMessage(UserMessage { message_id, ..super::user("go") })).await;
    let answer = |client: &TestClient, id: String| {
        let requests = client.requests.clone().unwrap();
        let request = kontekst_pb::roz::SessionRequest {
            request: Some(Request::ToolResult(super::tool_result(&id, "a tree"))),
        };
        async move { requests.send(request).await.unwrap() }
    };
    while let Some(frame) = client.next_frame().await {
        let bytes = frame.encode_to_vec();
        let id = requested(&frame);
        let finished = finished(&frame);
        frames.push(bytes);
        if let Some(id) = id {
            answer(&client, id).await;
        }
        if finished {
            client.half_close();
        }
    }
    frames
}

fn requested(frame: &SessionResponse) -> Option<String> {
    use kontekst_pb::roz::{session_event_envelope::TypedEvent, session_response::Response};
    if let Some(Response::ToolRequest(request)) = &frame.response {
        return Some(request.tool_call_id.clone());
    }
    match frame.session_event.as_ref()?.typed_event.as_ref()? {
        TypedEvent::ToolCallRequested(request) => Some(request.call_id.clone()),
        _ => None,
    }
}

fn finished(frame: &SessionResponse) -> bool {
    use kontekst_pb::roz::{session_event_envelope::TypedEvent, session_response::Response};
    let event = frame.session_event.as_ref().and_then(|event| event.typed_event.as_ref());
    matches!(frame.response, Some(Response::TurnComplete(_)))
        || matches!(event, Some(TypedEvent::TurnFinished(_)))
}

fn decode_first(frames: &[Vec<u8>]) -> Vec<String> {
    use first::Response;
    let name = |bytes: &Vec<u8>| {
        Some(match first::SessionResponse::decode(&bytes[..]).unwrap().response? {
            Response::SessionStarted(started) => format!("started {}", started.model),
            Response::TextDelta(delta) => format!("text {} {}", delta.message_id, delta.content),
            Response::ThinkingDelta(delta) => format!("thinking {} {}", delta.message_id, delta.content),
            Response::ToolRequest(request) => format!("request {} {}", request.tool_name, request.timeout_ms),
            Response::TurnComplete(complete) => {
                let usage = complete.usage.unwrap();
                assert!(usage.input > 0 && usage.cache_creation == 0);
                format!("complete {} {} {}", complete.message_id, complete.stop_reason, usage.output)
            }
            Response::Error(error) => format!("error {}", error.code),
            Response::Keepalive(()) => "keepalive".to_owned(),
            Response::Pong(()) => "pong".to_owned(),
            Response::ContextCompacted(()) => "compacted".to_owned(),
            Response::PresenceHint(hint) => format!("presence {}", hint.level),
            Response::ActivityUpdate(update) => format!("activity {}", update.state),
        })
    };
    frames.iter().filter_map(name).collect()
}

fn decode_second(frames: &[Vec<u8>]) -> Vec<String> {
    use second::{Response, Typed};
    let name = |bytes: &Vec<u8>| {
        let event = match second::SessionResponse::decode(&bytes[..]).unwrap().response? {
            Response::Keepalive(()) => return Some("keepalive".to_owned()),
            Response::Pong(()) => return Some("pong".to_owned()),
            Response::SessionEvent(event) => event,
        };
        assert!(event.timestamp.is_some());
        for id in [&event.event_id, &event.correlation_id] {
            assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 4);
        }
        let event_type = event.event_type.clone();
        let (kind, name) = match event.typed.unwrap() {
            Typed::SessionStarted(started) => {
                assert_eq!(started.mode, "local");
                ("session_started", format!("started {}", started.model_name.unwrap()))
            }
            Typed::SessionRejected(rejected) => ("session_rejected", format!("error {}", rejected.code)),
            Typed::TextDelta(delta) => {
                ("text_delta", format!("text {} {}", delta.message_id.unwrap(), delta.content))
            }
            Typed::ThinkingDelta(delta) => {
                ("thinking_delta", format!("thinking {} {}", delta.message_id.unwrap(), delta.content))
            }
            Typed::TurnFinished(end) => {
                assert!(end.input > 0 && end.cache_creation == 0);
                let (id, stop, output) = (end.message_id.unwrap(), end.stop_reason, end.output);
                ("turn_finished", format!("complete {id} {stop} {output}"))
            }
            Typed::ToolCallRequested(request) => {
                ("tool_call_requested", format!("request {} {}", request.tool_name, request.timeout_ms))
            }
            Typed::ActivityChanged(activity) => {
                let state = if activity.state == "planning" { "thinking" } else { &activity.state };
                ("activity_changed", format!("activity {state}"))
            }
            Typed::PresenceHinted(hint) => ("presence_hint", format!("presence {}", hint.level)),
            Typed::TurnStarted(turn) => ("turn_started", format!("turn {}", turn.turn_index)),
            Typed::SessionCompleted(end) => ("session_completed", end.summary),
        };
        assert_eq!(event_type, kind);
        Some(name)
    };
    frames.iter().filter_map(name).collect()
}

const EXPECTED: &[&str] = &[
    "started fake",
    "pong",
    "error no_active_turn",
    "presence full",
    "activity thinking",
    "activity calling_tool",
    "presence mini",
    "request look 120000",
    "activity thinking",
    "text m1 seen",
    "thinking m1 hm",
    "activity idle",
    "complete m1 end_turn 14",
];

#[tokio::test]
async fn one_stream_serves_both_generations() {
    let frames = recorded(RozEvents::Both).await;
    assert_eq!(decode_first(&frames), EXPECTED);
    let mut second = decode_second(&frames);
    assert_eq!(second.remove(3), "turn 1");
    assert_eq!(second.pop().unwrap(), "session completed");
    assert_eq!(second, EXPECTED);
    // All events of the turn have the same correlation id, and no others have it.
    let ids: Vec<String> = frames
        .iter()
        .filter_map(|bytes| match second::SessionResponse::decode(&bytes[..]).unwrap().response? {
            second::Response::SessionEvent(event) => Some(event.correlation_id),
            _ => None,
        })
        .collect();
    let turn = &ids[2];
    assert_eq!(ids.iter().filter(|id| *id == turn).count(), ids.len() - 3, "{ids:#?}");
}

#[tokio::test]
async fn one_generation_alone_can_be_selected() {
    let frames = recorded(RozEvents::First).await;
    assert_eq!(
        (decode_first(&frames).len(), decode_second(&frames)),
        (EXPECTED.len(), vec!["pong".to_owned()])
    );
    let frames = recorded(RozEvents::Second).await;
    assert_eq!(
        (decode_first(&frames), decode_second(&frames).len()),
        (vec!["pong".to_owned()], EXPECTED.len() + 2)
    );
}
