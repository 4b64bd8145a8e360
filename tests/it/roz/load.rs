//! Many sessions at the same time with the real daemon, and a client in Python.

use std::time::Duration;

use kontekst_pb::roz::{StartSession, agent_service_client::AgentServiceClient, session_request::Request};

use kontekst::client;
use serde_json::json;

use super::{TestClient, pure_tool, sequential_tool, stop_reason, text};
use crate::{
    fake_llama::{FakeLlama, Reply, Setup},
    grpc::{client_in_python, tcp_address},
    test_home::TestHome,
};

const SESSIONS: usize = 200;
const TURNS: usize = 5;

/// Starts a model that calls two tools for each prompt and then repeats their results.
fn model() -> FakeLlama {
    let setup = Setup { slots: 8, ..Setup::default() };
    FakeLlama::with(setup, []).always(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let results: Vec<&str> = messages
            .iter()
            .rev()
            .take_while(|message| message["role"] == "tool")
            .filter_map(|message| message["content"].as_str())
            .collect();
        if results.is_empty() {
            Reply::calls([("look", json!({"n": 1})), ("look", json!({"n": 2}))])
        } else {
            Reply::text(&format!("{} {}", results[1], results[0]))
        }
    })
}

async fn session(channel: tonic::transport::Channel, number: usize) -> usize {
    let mut client = TestClient::open(AgentServiceClient::new(channel)).await;
    client
        .send(Request::Start(StartSession {
            tools: vec![pure_tool("look"), sequential_tool("bash")],
            ..StartSession::default()
        }))
        .await;
    for turn in 0..TURNS {
        client.send_message(&format!("turn {turn}")).await;
        let (first, second) = (client.next_tool_request().await, client.next_tool_request().await);
        client.send_result(&second, &format!("s{number}t{turn}b")).await;
        client.send_result(&first, &format!("s{number}t{turn}a")).await;
        let frames = client.finish_turn().await;
        assert_eq!(stop_reason(&frames), "end_turn");
        assert_eq!(text(&frames), format!("s{number}t{turn}a s{number}t{turn}b"), "nobody else's results");
    }
    client.half_close();
    client.drain().await;
    TURNS
}

#[test]
fn two_hundred_sessions_of_five_turns_at_a_time() {
    let model = model();
    let home = TestHome::new(&model.url());
    home.run(&["daemon", "restart"]).success();
    let runtime = client::runtime().unwrap();
    let turns = runtime.block_on(async {
        let home = kontekst_store::config::Home::find(Some(home.root())).unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for connection in 0..4 {
            let channel = client::channel(client::ensure(&home).unwrap().stream).await.unwrap();
            for number in 0..SESSIONS / 4 {
                tasks.spawn(session(channel.clone(), connection * 1000 + number));
            }
        }
        let all = async { tasks.join_all().await.into_iter().sum::<usize>() };
        tokio::time::timeout(Duration::from_secs(300), all).await.expect("hangs")
    });
    assert_eq!(turns, SESSIONS * TURNS);
    assert_eq!(model.chats().len(), SESSIONS * TURNS * 2);
    let status = home.json(&["status", "--json"]);
    assert_eq!(status["active_runs"], 0);
}

#[test]
fn reflection_and_health_list_both_services() {
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };
    let (_model, home) = TestHome::with_model([]);
    home.run(&["daemon", "restart"]).success();
    client::runtime().unwrap().block_on(async {
        let home = kontekst_store::config::Home::find(Some(home.root())).unwrap();
        let channel = client::channel(client::ensure(&home).unwrap().stream).await.unwrap();
        for message_request in [
            MessageRequest::FileByFilename("roz/v1/agent.proto".to_owned()),
            MessageRequest::FileContainingSymbol("roz.v1.AgentService".to_owned()),
        ] {
            let ask = ServerReflectionRequest { host: String::new(), message_request: Some(message_request) };
            let mut reflection = ServerReflectionClient::new(channel.clone());
            let mut answers =
                reflection.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
            let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
            assert!(matches!(answer, MessageResponse::FileDescriptorResponse(_)), "{answer:?}");
        }
        let check = HealthCheckRequest { service: "roz.v1.AgentService".to_owned() };
        assert_eq!(HealthClient::new(channel).check(check).await.unwrap().into_inner().status, 1);
    });
}

#[test]
fn a_client_in_python_has_a_whole_session_over_tcp() {
    let calls = ["a", "b", "c"].map(|at| ("look", json!({"at": at})));
    let writes = ["a.txt", "b.txt"].map(|path| ("write_file", json!({"path": path, "content": "x"})));
    let model = FakeLlama::start([
        Reply::calls(calls),
        Reply::reasoning("hm", "all seen"),
        Reply::calls(writes),
        Reply::text("written"),
        Reply::text("on and on").then_hang(),
    ]);
    let home = TestHome::with_config("");
    let dir = home.work_dir();
    let config = format!(
        "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"127.0.0.1:0\"\n[tools]\nworking_dir = {dir:?}\n\
         [roz]\ndaemon_tools = [\"write_file\"]\n",
        model.url()
    );
    home.write("config.toml", &config);
    let address = tcp_address(&home);
    let Some(worked) = client_in_python("session.py", &address, &home) else { return };
    assert_eq!(worked, ["session", "tools", "turn", "approvals", "cancel", "end"]);
    let messages = model.chats()[1]["messages"].as_array().unwrap().clone();
    let results: Vec<&str> =
        messages[messages.len() - 3..].iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(results, ["seen a", "seen b", "seen c"], "in the order of the calls");
}
