//! Sessions from their start to their end, turn by turn.

use kontekst::{
    core::Role,
    pb::roz::{
        AgentPlacement, AnalyzeMediaRequest, CancelSession, ContentBlock, MessageFeedback, StartSession,
        UserMessage, content_block::Block, session_event_envelope::TypedEvent, session_request::Request,
        session_response::Response,
    },
};
use serde_json::json;

use super::{Room, Talk, call, names, pure, single, stop, text, user};
use crate::core::scripted::Step;

#[tokio::test]
async fn a_session_of_two_turns_with_a_tool_and_its_end() {
    let room = Room::new([
        call("read_file", json!({"path": "a.txt", "lines": 3})),
        Step::Think("hm", "it says hi"),
        Step::Say("again"),
    ]);
    // The headers are there before anything was said.
    let mut talk = room.open().await;
    talk.say(Request::Start(StartSession { tools: vec![pure("read_file")], ..StartSession::default() }))
        .await;
    let Some(Response::SessionStarted(started)) = talk.next().await else { panic!("no session") };
    assert_eq!(uuid::Uuid::parse_str(&started.session_id).unwrap().get_version_num(), 4);
    assert!(!started.model.is_empty());
    let rule = &started.permissions[0];
    assert_eq!((rule.tool_pattern.as_str(), rule.policy.as_str()), ("read_file", "allow"));

    talk.say(Request::UserMessage(UserMessage { message_id: Some("m1".to_owned()), ..user("read it") }))
        .await;
    let request = talk.request().await;
    assert_eq!((request.tool_name.as_str(), request.timeout_ms), ("read_file", 120_000));
    let asked = &room.model.requests();
    assert_eq!(asked.len(), 1);
    let fields = request.parameters.clone().unwrap().fields;
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["lines", "path"]);
    talk.answer(&request, "\"hi\\n\"").await;
    let frames = talk.turn().await;
    assert_eq!(names(&frames), ["thinking Analyzing results...", "text", "thinking", "idle", "end_turn"]);
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
    assert!(room.prompt(1).contains("<tool> hi\n"), "{}", room.prompt(1));
    assert_eq!(room.model.requests()[0].messages[0].role, Role::User);
    let called = room.model.requests()[1].messages[1].tool_calls[0].id.clone();
    assert_eq!(request.tool_call_id, called.as_str());

    talk.ping().await;
    talk.ask("and now?").await;
    let frames = talk.turn().await;
    assert_eq!(names(&frames), ["full", "thinking Processing...", "text", "idle", "end_turn"]);
    let Some(Response::TurnComplete(complete)) = frames.last() else { unreachable!() };
    assert!(uuid::Uuid::parse_str(&complete.message_id).is_ok(), "made up: {}", complete.message_id);
    // The prompt only grew at its end.
    assert!(room.prompt(2).starts_with(&room.prompt(1)), "{}", room.prompt(2));

    talk.say(Request::CancelSession(CancelSession::default())).await;
    let rest = talk.rest().await;
    assert!(rest.iter().all(|frame| frame.response.is_none()), "{rest:?}");
    let Some(TypedEvent::SessionCompleted(completed)) = rest[0].session_event.clone().unwrap().typed_event
    else {
        panic!("{rest:?}")
    };
    assert_eq!((completed.summary.as_str(), completed.output_tokens), ("cancelled by client", 21));
}

#[tokio::test]
async fn nobody_waits_for_session_started() {
    let room = Room::new([Step::Say("hello")]);
    let mut talk = room.open().await;
    talk.say(Request::Start(StartSession::default())).await;
    talk.ask("hi").await;
    assert_eq!((text(&talk.turn().await).as_str(), room.model.requests().len()), ("hello", 1));
}

#[tokio::test]
async fn the_prompt_is_the_agents_then_the_projects_then_the_messages() {
    let room = Room::new([Step::Say("one"), Step::Say("two")]);
    let mut talk = room.open().await;
    let project_context = vec!["Project: first".to_owned(), "  ".to_owned(), "Project: second".to_owned()];
    talk.say(Request::Start(StartSession { project_context, ..StartSession::default() })).await;
    let block = |label: Option<&str>, text: &str| ContentBlock {
        label: label.map(str::to_owned),
        block: Some(Block::Text(text.to_owned())),
    };
    let context =
        vec![block(Some("open file"), "fn main()"), block(None, "unlabelled"), block(Some("x"), " ")];
    talk.say(Request::UserMessage(UserMessage { context, ..user("what is this?") })).await;
    assert_eq!(stop(&talk.turn().await), "end_turn");
    let prompt = room.prompt(0);
    let at = |part: &str| prompt.find(part).unwrap_or_else(|| panic!("{part} in {prompt}"));
    let order = [
        at("Project: first\n\nProject: second"),
        at("[open file]\nfn main()"),
        at("[Context]\nunlabelled"),
        at("what is this?"),
    ];
    assert!(order.is_sorted() && order[0] > 0, "{prompt}");
    assert!(!prompt.contains("[x]"));

    // The project stays, what came with the message does not.
    talk.ask("and that?").await;
    talk.turn().await;
    let prompt = room.prompt(1);
    assert!(prompt.contains("Project: second") && prompt.contains("<user> what is this?\n"), "{prompt}");
    assert!(!prompt.contains("fn main()"), "{prompt}");
}

#[tokio::test]
async fn what_only_robots_have_does_not_keep_a_session_from_starting() {
    let room = Room::new([Step::Say("fine"), Step::Say("fine")]);
    let mut talk = room.open().await;
    talk.say(Request::Start(StartSession {
        environment_id: "whatever".to_owned(),
        host_id: Some("robot-1".to_owned()),
        camera_ids: vec!["front".to_owned()],
        enable_video: true,
        agent_placement: Some(AgentPlacement::Cloud.into()),
        ..StartSession::default()
    }))
    .await;
    assert_eq!(names(&[talk.next().await.unwrap()]), ["started"]);
    // Modes are said once to be none.
    let with_mode = || UserMessage { ai_mode: Some("ooda_re_act".to_owned()), ..user("go") };
    talk.say(Request::UserMessage(with_mode())).await;
    assert!(names(&talk.turn().await)[1].contains("runs as react"));
    talk.say(Request::UserMessage(with_mode())).await;
    assert_eq!(names(&talk.turn().await)[1], "thinking Processing...");
}

#[tokio::test]
async fn an_edge_is_refused_in_band() {
    let room = Room::new([]);
    let mut talk = room.open().await;
    let agent_placement = Some(AgentPlacement::Edge.into());
    talk.say(Request::Start(StartSession { agent_placement, ..StartSession::default() })).await;
    assert_eq!(talk.error().await, "invalid_argument");
    assert_eq!(talk.rest().await, []);
}

#[tokio::test]
async fn names_of_models_become_what_answers() {
    let config = |config: &mut kontekst::config::Config, _| config.roz.models.fast = "small".to_owned();
    let room = Room::with_config([], config);
    std::fs::write(room.core.home().agents().join("default/config.toml"), "model = \"large\"\n").unwrap();
    room.model.serves(&["large", "small"]);
    for (asked, became) in
        [(Some("fast"), "small"), (Some("large"), "large"), (Some("gpt-9"), "large"), (None, "large")]
    {
        let mut talk = room.open().await;
        let model = asked.map(str::to_owned);
        talk.say(Request::Start(StartSession { model, ..StartSession::default() })).await;
        let Some(Response::SessionStarted(started)) = talk.next().await else { panic!("no session") };
        assert_eq!(started.model, became, "{asked:?}");
    }
}

#[tokio::test]
async fn a_second_session_of_a_daemon_knows_nothing_of_the_first() {
    let room = Room::new([Step::Say("one"), Step::Say("two")]);
    let mut first = room.session([single("bash")]).await;
    first.ask("secret").await;
    first.turn().await;
    let mut second = room.session([]).await;
    second.ask("hello").await;
    second.turn().await;
    assert!(!room.prompt(1).contains("secret") && room.offered(1).is_empty());
    // Nothing of it is a stored session.
    assert_eq!(std::fs::read_dir(room.core.home().sessions()).unwrap().count(), 0);
}

#[tokio::test]
async fn opinions_are_kept() {
    let room = Room::new([]);
    let mut talk: Talk = room.session([]).await;
    let opinion = MessageFeedback {
        session_id: "s".to_owned(),
        message_id: "m\n1".to_owned(),
        rating: "up".to_owned(),
    };
    talk.say(Request::Feedback(opinion)).await;
    talk.ping().await;
    let line = std::fs::read_to_string(room.core.home().feedback()).unwrap();
    let line: serde_json::Value = serde_json::from_str(line.trim()).unwrap();
    assert_eq!((&line["rating"], &line["message"]), (&"up".into(), &"m\n1".into()));
}

#[tokio::test]
async fn media_are_not_analysed() {
    let room = Room::new([]);
    let refused = room.client().await.analyze_media(AnalyzeMediaRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unimplemented);
}
