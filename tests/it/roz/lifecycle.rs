//! Sessions from start to end.

use kontekst_core::Role;
use kontekst_pb::roz::{
    AgentPlacement, AnalyzeMediaRequest, CancelSession, ContentBlock, MessageFeedback, StartSession,
    UserMessage, content_block::Block, session_event_envelope::TypedEvent, session_request::Request,
    session_response::Response,
};
use serde_json::json;

use super::{
    TestClient, TestDaemon, call_step, frame_names, pure_tool, sequential_tool, stop_reason, text, user,
};
use crate::agent_core::scripted_provider::Step;

#[tokio::test]
async fn a_session_of_two_turns_with_a_tool_and_its_end() {
    let daemon = TestDaemon::new([
        call_step("read_file", json!({"path": "a.txt", "lines": 3})),
        Step::Think("hm", "it says hi"),
        Step::Say("again"),
    ]);
    // The response headers come before the first message is sent.
    let mut client = daemon.open().await;
    client
        .send(Request::Start(StartSession { tools: vec![pure_tool("read_file")], ..StartSession::default() }))
        .await;
    let Some(Response::SessionStarted(started)) = client.next_response().await else { panic!("no session") };
    assert_eq!(uuid::Uuid::parse_str(&started.session_id).unwrap().get_version_num(), 4);
    assert!(!started.model.is_empty());
    let rule = &started.permissions[0];
    assert_eq!((rule.tool_pattern.as_str(), rule.policy.as_str()), ("read_file", "allow"));

    client
        .send(Request::UserMessage(UserMessage { message_id: Some("m1".to_owned()), ..user("read it") }))
        .await;
    let request = client.next_tool_request().await;
    assert_eq!((request.tool_name.as_str(), request.timeout_ms), ("read_file", 120_000));
    let asked = &daemon.model.requests();
    assert_eq!(asked.len(), 1);
    let fields = request.parameters.clone().unwrap().fields;
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["lines", "path"]);
    client.send_result(&request, "\"hi\\n\"").await;
    let frames = client.finish_turn().await;
    assert_eq!(
        frame_names(&frames),
        ["thinking Analyzing results...", "text", "thinking", "idle", "end_turn"]
    );
    for frame in &frames {
        let id = match frame {
            Response::TextDelta(delta) => &delta.message_id,
            Response::ThinkingDelta(delta) => &delta.message_id,
            Response::TurnComplete(complete) => &complete.message_id,
            _ => continue,
        };
        assert_eq!(id, "m1");
    }
    let Some(Response::TurnComplete(complete)) = frames.last() else { unreachable!() };
    let usage = complete.usage.as_ref().unwrap();
    assert!(usage.input_tokens > 0 && usage.output_tokens == 14, "two answers of seven: {usage:?}");
    assert!(daemon.prompt(1).contains("<tool> hi\n"), "{}", daemon.prompt(1));
    assert_eq!(daemon.model.requests()[0].messages[0].role, Role::User);
    let called = daemon.model.requests()[1].messages[1].tool_calls[0].id.clone();
    assert_eq!(request.tool_call_id, called.as_str());

    client.ping().await;
    let frames = client.turn("and now?").await;
    assert_eq!(frame_names(&frames), ["full", "thinking Processing...", "text", "idle", "end_turn"]);
    let Some(Response::TurnComplete(complete)) = frames.last() else { unreachable!() };
    assert!(uuid::Uuid::parse_str(&complete.message_id).is_ok(), "made up: {}", complete.message_id);
    // The new prompt begins with the old one.
    assert!(daemon.prompt(2).starts_with(&daemon.prompt(1)), "{}", daemon.prompt(2));

    client.send(Request::CancelSession(CancelSession::default())).await;
    let rest = client.drain().await;
    assert!(rest.iter().all(|frame| frame.response.is_none()), "{rest:?}");
    let Some(TypedEvent::SessionCompleted(completed)) = rest[0].session_event.clone().unwrap().typed_event
    else {
        panic!("{rest:?}")
    };
    assert_eq!((completed.summary.as_str(), completed.output_tokens), ("cancelled by client", 21));
}

#[tokio::test]
async fn a_message_may_be_sent_before_session_started() {
    let daemon = TestDaemon::new([Step::Say("hello")]);
    let mut client = daemon.open().await;
    client.send(Request::Start(StartSession::default())).await;
    assert_eq!((text(&client.turn("hi").await).as_str(), daemon.model.requests().len()), ("hello", 1));
}

#[tokio::test]
async fn the_prompt_is_the_agents_then_the_projects_then_the_messages() {
    let daemon = TestDaemon::new([Step::Say("one"), Step::Say("two")]);
    let mut client = daemon.open().await;
    let project_context = vec!["Project: first".to_owned(), "  ".to_owned(), "Project: second".to_owned()];
    client.send(Request::Start(StartSession { project_context, ..StartSession::default() })).await;
    let block = |label: Option<&str>, text: &str| ContentBlock {
        label: label.map(str::to_owned),
        block: Some(Block::Text(text.to_owned())),
    };
    let context =
        vec![block(Some("open file"), "fn main()"), block(None, "unlabelled"), block(Some("x"), " ")];
    client.send(Request::UserMessage(UserMessage { context, ..user("what is this?") })).await;
    assert_eq!(stop_reason(&client.finish_turn().await), "end_turn");
    let prompt = daemon.prompt(0);
    let at = |part: &str| prompt.find(part).unwrap_or_else(|| panic!("{part} in {prompt}"));
    let order = [
        at("Project: first\n\nProject: second"),
        at("[open file]\nfn main()"),
        at("[Context]\nunlabelled"),
        at("what is this?"),
    ];
    assert!(order.is_sorted() && order[0] > 0, "{prompt}");
    assert!(!prompt.contains("[x]"));

    // The project context stays, and the context of the message does not.
    client.turn("and that?").await;
    let prompt = daemon.prompt(1);
    assert!(prompt.contains("Project: second") && prompt.contains("<user> what is this?\n"), "{prompt}");
    assert!(!prompt.contains("fn main()"), "{prompt}");
}

#[tokio::test]
async fn robot_fields_are_ignored() {
    let daemon = TestDaemon::new([Step::Say("fine"), Step::Say("fine")]);
    let mut client = daemon.open().await;
    client
        .send(Request::Start(StartSession {
            environment_id: "whatever".to_owned(),
            host_id: Some("robot-1".to_owned()),
            camera_ids: vec!["front".to_owned()],
            enable_video: true,
            agent_placement: Some(AgentPlacement::Cloud.into()),
            ..StartSession::default()
        }))
        .await;
    assert_eq!(frame_names(&[client.next_response().await.unwrap()]), ["started"]);
    // The first message with an unsupported mode gets a notice, the next one does not.
    let with_mode = || UserMessage { ai_mode: Some("ooda_re_act".to_owned()), ..user("go") };
    client.send(Request::UserMessage(with_mode())).await;
    assert!(frame_names(&client.finish_turn().await)[1].contains("runs as react"));
    client.send(Request::UserMessage(with_mode())).await;
    assert_eq!(frame_names(&client.finish_turn().await)[1], "thinking Processing...");
}

#[tokio::test]
async fn edge_placement_is_refused_in_band() {
    let daemon = TestDaemon::new([]);
    let mut client = daemon.open().await;
    let agent_placement = Some(AgentPlacement::Edge.into());
    client.send(Request::Start(StartSession { agent_placement, ..StartSession::default() })).await;
    assert_eq!(client.next_error().await, "invalid_argument");
    assert_eq!(client.drain().await, []);
}

#[tokio::test]
async fn model_names_are_resolved() {
    let config = |config: &mut kontekst_store::config::Config, _| config.roz.models.fast = "small".to_owned();
    let daemon = TestDaemon::with_config([], config);
    std::fs::write(daemon.core.home().agents().join("default/config.toml"), "model = \"large\"\n").unwrap();
    daemon.model.set_model_names(&["large", "small"]);
    for (asked, became) in
        [(Some("fast"), "small"), (Some("large"), "large"), (Some("gpt-9"), "large"), (None, "large")]
    {
        let mut client = daemon.open().await;
        let model = asked.map(str::to_owned);
        client.send(Request::Start(StartSession { model, ..StartSession::default() })).await;
        let Some(Response::SessionStarted(started)) = client.next_response().await else {
            panic!("no session")
        };
        assert_eq!(started.model, became, "{asked:?}");
    }
}

#[tokio::test]
async fn sessions_are_isolated_from_each_other() {
    let daemon = TestDaemon::new([Step::Say("one"), Step::Say("two")]);
    let mut first = daemon.session([sequential_tool("bash")]).await;
    first.turn("secret").await;
    let mut second = daemon.session([]).await;
    second.turn("hello").await;
    assert!(!daemon.prompt(1).contains("secret") && daemon.offered(1).is_empty());
    // No session is stored.
    assert_eq!(std::fs::read_dir(daemon.core.home().sessions()).unwrap().count(), 0);
}

#[tokio::test]
async fn feedback_is_stored() {
    let daemon = TestDaemon::new([]);
    let mut client: TestClient = daemon.session([]).await;
    let opinion = MessageFeedback {
        session_id: "s".to_owned(),
        message_id: "m\n1".to_owned(),
        rating: "up".to_owned(),
    };
    client.send(Request::Feedback(opinion)).await;
    client.ping().await;
    let line = std::fs::read_to_string(daemon.core.home().feedback()).unwrap();
    let line: serde_json::Value = serde_json::from_str(line.trim()).unwrap();
    assert_eq!((&line["rating"], &line["message"]), (&"up".into(), &"m\n1".into()));
}

#[tokio::test]
async fn media_are_not_analysed() {
    let daemon = TestDaemon::new([]);
    let refused = daemon.connect().await.analyze_media(AnalyzeMediaRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unimplemented);
}
