//! The gRPC door on the wire: the real daemon and a raw client.

use std::{future::Future, io::Read as _, os::unix::process::CommandExt as _, time::Duration};

use kontekst_pb::{
    ApproveToolCommand, CancelRunCommand, DecideRequest, DenyToolCommand, GetStatusRequest,
    ListApprovalsRequest, RunCommand, RunEvent, ShutdownRequest, StartRunCommand, run_command::Command,
    run_event::Event,
};

use kontekst::client;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming, transport::Channel};
use tower::Service as _;

use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::TestHome,
};

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = client::runtime().unwrap();
    // The limit only keeps a hang from blocking the other tests.
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), future).await.expect("hangs") })
}

pub(crate) async fn connect(home: &TestHome) -> Channel {
    let home = kontekst_store::config::Home::find(Some(home.root())).unwrap();
    client::channel(client::ensure(&home).unwrap().stream).await.unwrap()
}

/// Starts a daemon that uses this model. The binary under test starts it, not the test process.
pub(crate) fn daemon(model: &FakeLlama) -> TestHome {
    let home = TestHome::new(&model.url());
    home.run(&["daemon", "restart"]).success();
    home
}

pub(crate) struct TestClient {
    commands: Option<mpsc::Sender<RunCommand>>,
    events: Streaming<RunEvent>,
}

impl TestClient {
    pub(crate) async fn open(home: &TestHome) -> Self {
        let (commands, outbox) = mpsc::channel(64);
        let mut agent = client::agent(connect(home).await);
        let events = agent.run(ReceiverStream::new(outbox)).await.unwrap().into_inner();
        Self { commands: Some(commands), events }
    }

    pub(crate) async fn send(&self, command: Command) {
        let command = RunCommand { command: Some(command) };
        self.commands.as_ref().unwrap().send(command).await.unwrap();
    }

    pub(crate) async fn start(&self, home: &TestHome, prompt: &str) {
        self.send(Command::Start(start(home, prompt))).await;
    }

    async fn next(&mut self) -> Option<Event> {
        self.events.message().await.unwrap().map(|event| event.event.unwrap())
    }

    /// Returns the events up to and including the first for which `last` is true.
    pub(crate) async fn events_until(&mut self, last: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            // These tests are not about how the model gets ready.
            if matches!(event, Event::Progress(_)) {
                continue;
            }
            let found = last(&event);
            events.push(event);
            if found {
                return events;
            }
        }
        panic!("the stream ended: {events:?}");
    }

    pub(crate) async fn run_to_end(&mut self) -> Vec<Event> {
        self.events_until(|event| {
            matches!(event, Event::Completed(_) | Event::Cancelled(_) | Event::Failed(_))
        })
        .await
    }
}

fn start(home: &TestHome, prompt: &str) -> StartRunCommand {
    StartRunCommand {
        prompt: prompt.to_owned(),
        session_id: "s".to_owned(),
        agent_name: "default".to_owned(),
        working_dir: home.work_dir().display().to_string(),
        ..StartRunCommand::default()
    }
}

pub(crate) fn event_names(events: &[Event]) -> Vec<&'static str> {
    events
        .iter()
        .filter(|event| !matches!(event, Event::Facts(_)))
        .map(|event| match event {
            Event::Started(_) => "started",
            Event::Token(_) => "token",
            Event::Reasoning(_) => "reasoning",
            Event::TurnCompleted(_) => "turn_completed",
            Event::TurnedBack(_) => "turned_back",
            Event::ToolsProposed(_) => "tools_proposed",
            Event::ToolDecided(_) => "tool_decided",
            Event::ToolStarted(_) => "tool_started",
            Event::ToolCompleted(_) => "tool_completed",
            Event::ToolFailed(_) => "tool_failed",
            Event::ToolsCompleted(_) => "tools_completed",
            Event::Completed(_) => "completed",
            Event::Cancelled(_) => "cancelled",
            Event::Failed(_) => "failed",
            Event::ContextSnapshot(_) => "context_snapshot",
            Event::Progress(_) => "progress",
            Event::Notice(_) => "notice",
            Event::Compacted(_) => "compacted",
            Event::ToolOutput(_) => "output",
            Event::Check(_) => "check",
            Event::Facts(_) => "facts",
            Event::Worker(_) => "worker",
        })
        .collect()
}

#[test]
fn events_come_in_the_documented_order() {
    let model = FakeLlama::start([Reply::reasoning("hm", "hello")]);
    let home = daemon(&model);
    block_on(async {
        let mut client = TestClient::open(&home).await;
        client.start(&home, "hi").await;
        let events = client.run_to_end().await;
        assert_eq!(
            event_names(&events),
            ["started", "reasoning", "token", "turn_completed", "context_snapshot", "completed"]
        );
        let Event::Started(started) = &events[0] else { unreachable!() };
        let Event::TurnCompleted(turn) = &events[3] else { unreachable!() };
        let Event::Completed(completed) = &events[6] else { unreachable!() };
        assert_eq!((started.session_id.as_str(), started.agent_name.as_str()), ("s", "default"));
        assert_eq!(completed.run_id, started.run_id);
        assert_eq!((turn.content.as_str(), turn.reasoning.as_str()), ("hello", "hm"));
        assert_eq!((completed.content.as_str(), completed.reasoning.as_str()), ("hello", "hm"));
        let context = turn.context.as_ref().unwrap();
        assert_eq!(
            context.total_tokens,
            context.system_tokens + context.tool_tokens + context.history_tokens + context.memory_tokens
        );
        assert_eq!(context.remaining_tokens, context.context_size - context.total_tokens);
        assert_eq!(context.messages.len(), usize::try_from(context.total_messages).unwrap());
        // The stream stays open until the client closes its side.
        client.commands = None;
        assert_eq!(client.next().await, None);
    });
}

#[test]
fn one_run_on_each_stream() {
    let model = FakeLlama::start([Reply::text("half ").then_hang()]);
    let home = daemon(&model);
    block_on(async {
        let mut client = TestClient::open(&home).await;
        // A path that cannot be opened is not sent back.
        let mut long = start(&home, "hi");
        long.working_dir = format!("/{}", "x".repeat(10_000_000));
        client.send(Command::Start(long)).await;
        let events = client.run_to_end().await;
        let [Event::Failed(failed)] = &events[..] else { panic!("{} events", events.len()) };
        assert!(failed.error.contains("longer than 4096 bytes") && failed.error.len() < 100);

        // A run that could not start does not use up the stream.
        let mut unknown = start(&home, "hi");
        unknown.agent_name = "nobody".to_owned();
        client.send(Command::Start(unknown)).await;
        let events = client.run_to_end().await;
        let [Event::Failed(failed)] = &events[..] else { panic!("{events:?}") };
        assert!(failed.run_id.is_empty() && failed.error.contains("default"), "{failed:?}");

        client.start(&home, "hi").await;
        client.events_until(|event| matches!(event, Event::Token(_))).await;
        client.start(&home, "again").await;
        let events = client.run_to_end().await;
        let Some(Event::Failed(failed)) = events.last() else { panic!("{events:?}") };
        assert_eq!((failed.run_id.as_str(), failed.error.as_str()), ("", "run already started"));

        client.send(Command::Cancel(CancelRunCommand {})).await;
        assert_eq!(event_names(&client.run_to_end().await), ["cancelled"]);
        client.start(&home, "after").await;
        assert_eq!(event_names(&client.run_to_end().await), ["failed"]);
    });
    model.wait_for_disconnect();
}

#[test]
fn half_close_is_not_a_cancel() {
    let write = Reply::calls([("write_file", json!({"path": "f", "content": "x"}))]);
    let model = FakeLlama::start([Reply::text("hello"), write]);
    let home = daemon(&model);
    block_on(async {
        let mut client = TestClient::open(&home).await;
        client.start(&home, "hi").await;
        client.commands = None;
        let events = client.run_to_end().await;
        assert_eq!(*event_names(&events).last().unwrap(), "completed");
        assert_eq!(client.next().await, None);

        // Pending calls are denied, because the client can no longer approve them.
        let mut client = TestClient::open(&home).await;
        client.start(&home, "hi").await;
        client.commands = None;
        let events = client.run_to_end().await;
        let Some(Event::Cancelled(cancelled)) = events.last() else { panic!("{events:?}") };
        assert!(cancelled.denied);
    });
    assert!(!home.work_dir().join("f").exists());
}

#[test]
fn approve_and_deny_by_call() {
    let calls = [
        ("write_file", json!({"path": "a", "content": "a"})),
        ("write_file", json!({"path": "b", "content": "b"})),
    ];
    let model = FakeLlama::start([Reply::calls(calls.clone()), Reply::calls(calls), Reply::text("fine")]);
    let home = daemon(&model);
    block_on(async {
        for continue_run in [false, true] {
            let mut client = TestClient::open(&home).await;
            client.start(&home, "go").await;
            let events = client.events_until(|event| matches!(event, Event::ToolsProposed(_))).await;
            let Some(Event::ToolsProposed(proposed)) = events.last() else { unreachable!() };
            assert_eq!(proposed.calls.len(), 2);
            assert!(proposed.calls[0].arguments_json.contains("\"a\""));
            let (a, b) = (proposed.calls[0].call_id.clone(), proposed.calls[1].call_id.clone());
            client
                .send(Command::DenyTool(DenyToolCommand { call_id: a, reason: String::new(), continue_run }))
                .await;
            client
                .send(Command::ApproveTool(ApproveToolCommand { call_id: b.clone(), remember: false }))
                .await;
            let events = client.run_to_end().await;
            let ending = if continue_run { "completed" } else { "cancelled" };
            assert_eq!(&event_names(&events)[..3], ["tool_started", "tool_completed", "tools_completed"]);
            assert_eq!(*event_names(&events).last().unwrap(), ending);
            let Event::ToolStarted(started) = &events[0] else { unreachable!() };
            assert_eq!((started.call_id.as_str(), started.name.as_str()), (b.as_str(), "write_file"));
        }
    });
    assert!(!home.work_dir().join("a").exists() && home.work_dir().join("b").exists());
}

#[test]
fn dropping_the_call_cancels_the_run() {
    let model = FakeLlama::start([Reply::text("half ").then_hang()]);
    let home = daemon(&model);
    block_on(async {
        let mut client = TestClient::open(&home).await;
        client.start(&home, "hi").await;
        client.events_until(|event| matches!(event, Event::Token(_))).await;
    });
    model.wait_for_disconnect();
}

#[test]
fn shutdown_ends_idle_streams_too() {
    let model = FakeLlama::start([]);
    let home = daemon(&model);
    block_on(async {
        let mut idle = TestClient::open(&home).await;
        let mut admin = client::daemon(connect(&home).await);
        let answer = admin.shutdown(ShutdownRequest { if_idle: false }).await.unwrap().into_inner();
        assert_eq!(answer.message, "shutting down");
        assert_eq!(idle.next().await, None);
    });
    // `stop` waits for the daemon's lock, which is released when the process exits.
    home.run(&["daemon", "stop"]).success();
    assert!(home.daemon().is_none());
}

#[test]
fn a_busy_daemon_is_not_replaced() {
    let model = FakeLlama::start([Reply::text("half ").then_hang()]);
    let home = daemon(&model);
    block_on(async {
        let mut client = TestClient::open(&home).await;
        client.start(&home, "hi").await;
        client.events_until(|event| matches!(event, Event::Token(_))).await;
        let mut admin = client::daemon(connect(&home).await);
        let answer = admin.shutdown(ShutdownRequest { if_idle: true }).await.unwrap().into_inner();
        assert!(answer.refused, "{answer:?}");
        assert_eq!(admin.get_status(GetStatusRequest {}).await.unwrap().into_inner().active_runs, 1);
    });
}

#[test]
fn outputs_of_any_size_and_any_bytes_arrive_as_text() {
    let read = |path| Reply::calls([("read_file", json!({"path": path}))]);
    let model = FakeLlama::start([read("bytes"), Reply::text("a"), read("large"), Reply::text("b")]);
    let home = daemon(&model);
    std::fs::write(home.work_dir().join("bytes"), b"caf\xe9 \xff\xfe ol\xe9\n").unwrap();
    std::fs::write(home.work_dir().join("large"), "0123456789\n".repeat(500_000)).unwrap();
    for _ in 0..2 {
        home.run(&["run", "--auto-approve", "read"]).success();
    }
}

/// Starts the daemon of a home that has `bind`, and returns its address.
pub(crate) fn tcp_address(home: &TestHome) -> String {
    home.run(&["daemon", "restart"]).success();
    let status = home.run(&["status", "--json"]).success();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    status["bind"].as_str().unwrap().to_owned()
}

fn home_on_tcp(model: &FakeLlama) -> TestHome {
    let endpoint = format!("provider = \"endpoint\"\nendpoint = \"{}\"\n", model.url());
    TestHome::with_config(&format!("{endpoint}bind = \"127.0.0.1:0\"\n"))
}

/// Runs a script of `tests/grpcio` against a daemon, and returns what it printed: one line for each thing that worked. `None`
/// if `KONTEKST_TEST_PYTHON` names no Python with grpcio.
pub(crate) fn client_in_python(script: &str, target: &str, home: &TestHome) -> Option<Vec<String>> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = std::process::Command::new(std::env::var_os("KONTEKST_TEST_PYTHON")?);
    python
        .arg(here.join("tests/grpcio").join(script))
        .arg(here.join("proto"))
        .arg(target)
        .arg(home.work_dir());
    let output = python.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn a_client_in_python_has_whole_runs_over_tcp() {
    let model = FakeLlama::start([]).always(|request| {
        let last = request.body["messages"].as_array().unwrap().last().unwrap();
        match (last["role"].as_str(), last["content"].as_str().unwrap_or_default()) {
            (Some("user"), text) if text.ends_with("!tool") => {
                Reply::calls([("read_file", json!({"path": "README.md"}))])
            }
            (Some("user"), text) if text.ends_with("!long") => Reply::text("on and on").then_hang(),
            _ => Reply::text("hello"),
        }
    });
    let home = home_on_tcp(&model);
    let address = tcp_address(&home);
    if let Some(worked) = client_in_python("drive.py", &address, &home) {
        assert_eq!(worked, ["status", "run", "approve", "deny", "cancel", "shutdown"]);
    }
}

#[test]
fn tcp_serves_this_user_and_no_web_page() {
    let model = FakeLlama::start([]);
    let home = home_on_tcp(&model);
    let address = tcp_address(&home);
    block_on(async {
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}")).unwrap();
        let mut admin = client::daemon(endpoint.connect().await.unwrap());
        admin.get_status(GetStatusRequest {}).await.unwrap();
        let mut page = tonic::Request::new(ShutdownRequest::default());
        page.metadata_mut().insert("origin", "http://evil.example".parse().unwrap());
        assert_eq!(admin.shutdown(page).await.unwrap_err().code(), Code::PermissionDenied);
        admin.get_status(GetStatusRequest {}).await.unwrap();
    });

    // The connection of another user is closed without a byte. An accepted one begins with a SETTINGS frame.
    let port = address.rsplit(':').next().unwrap();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; head -c 1 <&3 | wc -c");
    let bytes = |uid: Option<u32>| {
        let mut bash = std::process::Command::new("bash");
        bash.arg("-c").arg(&script);
        if let Some(uid) = uid {
            bash.uid(uid);
        }
        String::from_utf8(bash.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    if rustix::process::geteuid().is_root() {
        assert_eq!(bytes(Some(65_534)), "0");
    }
    assert_eq!(bytes(None), "1");

    // Clients in C, Java and .NET reach an IPv4 address with a socket of IPv6.
    let mut over_v4 = std::net::TcpStream::connect(("::ffff:127.0.0.1", port.parse().unwrap())).unwrap();
    over_v4.read_exact(&mut [0]).unwrap();
}

#[test]
fn reflection_and_health_are_served() {
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    use tonic_reflection::pb::{
        v1::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        },
        v1alpha,
    };
    let model = FakeLlama::start([]);
    let home = daemon(&model);
    block_on(async {
        let channel = connect(&home).await;
        let list = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let mut reflection = ServerReflectionClient::new(channel.clone());
        let mut answers =
            reflection.server_reflection_info(tokio_stream::once(list)).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
        let MessageResponse::ListServicesResponse(services) = answer else { panic!("{answer:?}") };
        let names: Vec<_> = services.service.iter().map(|service| service.name.as_str()).collect();
        for name in ["kontekst.AgentService", "kontekst.DaemonService"] {
            assert!(names.contains(&name), "{names:?}");
        }

        let mut old = v1alpha::server_reflection_client::ServerReflectionClient::new(channel.clone());
        let symbol = v1alpha::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(v1alpha::server_reflection_request::MessageRequest::FileContainingSymbol(
                "kontekst.AgentService".to_owned(),
            )),
        };
        let mut answers = old.server_reflection_info(tokio_stream::once(symbol)).await.unwrap().into_inner();
        assert!(answers.message().await.unwrap().unwrap().message_response.is_some());

        let mut health = HealthClient::new(channel);
        for name in names.iter().filter(|name| !name.starts_with("grpc.")) {
            let check = HealthCheckRequest { service: (*name).to_owned() };
            assert_eq!(health.check(check).await.unwrap().into_inner().status, 1, "{name}");
        }
    });
}

#[test]
fn a_client_learns_of_decisions_that_it_did_not_make() {
    let calls = ["a", "b"].map(|path| ("write_file", json!({"path": path, "content": "x"})));
    let model = FakeLlama::start([Reply::calls(calls), Reply::text("done")]);
    let home = daemon(&model);
    block_on(async {
        let mut client = TestClient::open(&home).await;
        client.start(&home, "hi").await;
        let events = client.events_until(|event| matches!(event, Event::ToolsProposed(_))).await;
        let Some(Event::ToolsProposed(proposed)) = events.last() else { unreachable!() };
        let [own, other] = &proposed.calls[..] else { panic!("{proposed:?}") };
        let approve = ApproveToolCommand { call_id: own.call_id.clone(), remember: false };
        client.send(Command::ApproveTool(approve)).await;
        let mut approvals = client::approvals(connect(&home).await);
        let pending = approvals.list_approvals(ListApprovalsRequest {}).await.unwrap().into_inner();
        let request = DecideRequest {
            run_id: pending.approvals[0].run_id.clone(),
            call_id: other.call_id.clone(),
            approve: false,
            reason: "no".to_owned(),
            continue_run: true,
        };
        assert!(approvals.decide(request).await.unwrap().into_inner().taken);
        let events = client.run_to_end().await;
        let decided = events.iter().filter_map(|event| match event {
            Event::ToolDecided(decided) => Some((decided.call_id.as_str(), decided.approved)),
            _ => None,
        });
        assert_eq!(decided.collect::<Vec<_>>(), [(other.call_id.as_str(), false)], "{events:?}");
        assert!(matches!(events.last(), Some(Event::Completed(_))), "{events:?}");
    });
}

#[test]
fn content_that_is_not_grpc_gets_the_status_415() {
    let home = daemon(&FakeLlama::start([]));
    block_on(async {
        let mut channel = connect(&home).await;
        for (content_type, status) in
            [("application/json", 415), ("application/grpc-web", 415), ("application/grpc", 200)]
        {
            let request = http::Request::post("http://localhost/kontekst.DaemonService/GetStatus")
                .header("content-type", content_type)
                .body(tonic::body::Body::empty())
                .unwrap();
            std::future::poll_fn(|cx| channel.poll_ready(cx)).await.unwrap();
            let response = channel.call(request).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{content_type}");
        }
    });
}

#[test]
fn calls_that_rules_allow_or_deny_are_not_proposed() {
    let write = |path: &str| ("write_file", json!({"path": path, "content": "x"}));
    let model = FakeLlama::start([
        Reply::calls([write("a.txt"), write("b.txt"), write("c.txt")]),
        Reply::text("done"),
    ]);
    let home = daemon(&model);
    home.write("policy.toml", "allow = [\"write_file(a.txt)\"]\ndeny = [\"write_file(b.txt)\"]\n");
    block_on(async {
        let mut client = TestClient::open(&home).await;
        client.start(&home, "go").await;
        let events = client.events_until(|event| matches!(event, Event::ToolsProposed(_))).await;
        let Some(Event::ToolsProposed(proposed)) = events.last() else { unreachable!() };
        let [call] = &proposed.calls[..] else { panic!("{proposed:?}") };
        assert!(call.arguments_json.contains("c.txt") && call.asked_by.is_empty());
        assert_eq!(call.rules, ["write_file"]);
        let approve = ApproveToolCommand { call_id: call.call_id.clone(), remember: false };
        client.send(Command::ApproveTool(approve)).await;
        let events = client.run_to_end().await;
        let failed: Vec<_> = events.iter().filter(|event| matches!(event, Event::ToolFailed(_))).collect();
        let [Event::ToolFailed(failed)] = failed[..] else { panic!("{events:?}") };
        assert!(failed.error.contains("deny `write_file(b.txt)`"), "{failed:?}");
    });
    let there = ["a.txt", "b.txt", "c.txt"].map(|name| home.work_dir().join(name).exists());
    assert_eq!(there, [true, false, true]);
}
