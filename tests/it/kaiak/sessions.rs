//! Creating, inspecting and terminating sessions, their limits, and the ways to connect.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{TIMEOUT, TestProject, assert_time, frame, incident, is_uuid, read_frames};
use crate::fake_llama::{FakeLlama, Reply};

#[test]
fn a_session_is_created_as_documented() {
    let (project, mut editor) = TestProject::with_editor([]);
    let params = json!({"workspace_path": project.workspace(), "session_name": "migration-session-1"});
    let created = editor.result("kaiak/session/create", &params);
    let session = created["session_id"].as_str().unwrap();
    assert!(is_uuid(session), "{session}");
    assert_eq!(created["status"], "created");
    assert_time(&created["created_at"]);
    let status = editor.result("kaiak/session/status", &json!({"session_id": session}));
    assert_eq!(
        (&status["status"], &status["active_request_id"], &status["message_count"], &status["error_count"]),
        (&json!("created"), &Value::Null, &json!(0), &json!(0))
    );
    assert_time(&status["created_at"]);
    assert!(status["created_at"].as_str().unwrap() <= status["updated_at"].as_str().unwrap());
    for name in [json!("migration-session-1"), Value::Null] {
        let params = json!({"workspace_path": project.workspace(), "session_name": name});
        assert_ne!(editor.result("kaiak/session/create", &params)["session_id"], session);
    }
}

#[test]
fn invalid_session_parameters_are_refused() {
    let (project, mut editor) = TestProject::with_editor([]);
    let create = "kaiak/session/create";
    editor.error(create, &json!({}), -32602);
    for path in [json!(5), json!(""), json!("relative/dir"), json!("/a\u{0}b")] {
        let data = editor.error(create, &json!({"workspace_path": path}), -32602);
        assert_eq!(data["field"], "workspace_path");
    }
    let data = editor.error(create, &json!({"workspace_path": "/nonexistent/path"}), -32002);
    assert_eq!(data["workspace_path"], "/nonexistent/path");
    editor.error(create, &json!({"workspace_path": project.path("src/main.rs")}), -32002);
    for system in ["/", "/etc", "/proc/self"] {
        editor.error(create, &json!({"workspace_path": system}), -32002);
    }
    let secret = project.path("secret");
    fs::create_dir(&secret).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&secret).is_err() {
        editor.error(create, &json!({"workspace_path": secret}), -32002);
    }
    for (field, value, code) in [
        ("timeout", json!("300"), -32602),
        ("timeout", json!(-1), -32602),
        ("max_turns", json!(0), -32602),
        ("provider", json!("no-such"), -32602),
        ("provider", json!("anthropic"), -32014),
    ] {
        let params = json!({"workspace_path": project.workspace(), "configuration": {field: value}});
        editor.error(create, &params, code);
    }
    let params = json!({"workspace_path": project.workspace(), "configuration": []});
    editor.error(create, &params, -32602);
    project.home.write("agents/default/config.toml", "model = 5\n");
    editor.error(create, &json!({"workspace_path": project.workspace()}), -32001);
}

#[test]
fn unknown_sessions_are_not_found_and_ids_are_texts() {
    let (_project, mut editor) = TestProject::with_editor([]);
    for method in ["kaiak/session/status", "kaiak/session/terminate"] {
        let data = editor.error(method, &json!({"session_id": "nope"}), -32003);
        assert_eq!(data["session_id"], "nope");
        for params in [json!({}), json!({"session_id": 5}), json!({"session_id": ""})] {
            editor.error(method, &params, -32602);
        }
    }
}

#[test]
fn a_terminated_session_stays_terminated() {
    let (project, mut editor) = TestProject::with_editor([]);
    let session = editor.create(&project);
    let id = json!({"session_id": session});
    let ended = editor.result("kaiak/session/terminate", &id);
    assert_eq!((&ended["status"], &ended["message_count"]), (&json!("terminated"), &json!(0)));
    assert_time(&ended["terminated_at"]);
    editor.error("kaiak/session/terminate", &id, -32004);
    let generate = json!({"session_id": session, "incidents": [incident("src/main.rs", 2)]});
    editor.error("kaiak/fix/generate", &generate, -32004);
    assert_eq!(editor.result("kaiak/session/status", &id)["status"], "terminated");
}

#[test]
fn of_twenty_terminates_one_succeeds() {
    let (_project, mut editor, session) = TestProject::with_session([]);
    let ids: Vec<u64> = (0..20)
        .map(|_| editor.send_request("kaiak/session/terminate", &json!({"session_id": session})))
        .collect();
    let codes: Vec<Value> = ids.iter().map(|id| editor.response(*id)["error"]["code"].clone()).collect();
    let of = |code: Value| codes.iter().filter(|found| **found == code).count();
    assert_eq!((of(Value::Null), of(json!(-32004))), (1, 19));
}

#[test]
fn there_are_ten_sessions_at_a_time() {
    let (project, mut editor) = TestProject::with_editor([]);
    let sessions: Vec<String> = (0..10).map(|_| editor.create(&project)).collect();
    let params = json!({"workspace_path": project.workspace()});
    let data = editor.error("kaiak/session/create", &params, -32015);
    assert_eq!((&data["limit"], &data["max"]), (&json!("sessions"), &json!(10)));
    editor.result("kaiak/session/terminate", &json!({"session_id": sessions[3]}));
    editor.create(&project);
    // Sessions whose editor has disconnected are dropped when a new one needs the place.
    assert_eq!(editor.close().0, 0);
    let mut editor = project.editor();
    editor.create(&project);
    let status = editor.result("kaiak/session/status", &json!({"session_id": sessions[9]}));
    assert_eq!(status["status"], "created", "a session outlives its connection");
}

#[test]
fn status_is_limited_to_a_hundred_calls_a_minute() {
    let (project, mut editor) = TestProject::with_editor([]);
    let (busy, other) = (editor.create(&project), editor.create(&project));
    let ids: Vec<u64> =
        (0..101).map(|_| editor.send_request("kaiak/session/status", &json!({"session_id": busy}))).collect();
    let answers: Vec<Value> = ids.iter().map(|id| editor.response(*id)).collect();
    let refused: Vec<&Value> = answers.iter().filter(|answer| answer.get("error").is_some()).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["error"]["code"], -32015);
    assert_eq!(refused[0]["error"]["data"]["limit"], "status_rate");
    editor.result("kaiak/session/status", &json!({"session_id": other}));
}

#[test]
fn a_provider_comes_from_the_configuration_and_keys_never_from_a_client() {
    let other = FakeLlama::start([Reply::text("nothing to do")]);
    let config = format!("[kaiak.providers.openai]\nendpoint = \"{}\"\nmodel = \"gpt-4\"\n", other.url());
    let project = TestProject::with_config([], &config);
    let mut editor = project.editor();
    let session =
        editor.create_with(&project, &json!({"provider": "openai", "api_key": "stolen", "timeout": 60}));
    editor.generate(&session);
    assert_eq!(editor.completion_status(), "success");
    assert_eq!(other.chats()[0]["model"], "gpt-4");
    assert!(other.requests().iter().all(|request| request.header("authorization").is_none()));
    assert!(project.model.chats().is_empty());

    let config = "[kaiak.providers.far]\nendpoint = \"http://127.0.0.1:1\"\napi_key_env = \"NOT_SET\"\n";
    let project = TestProject::with_config([], config);
    let mut editor = project.editor();
    let params = json!({"workspace_path": project.workspace(), "configuration": {"provider": "far"}});
    editor.error("kaiak/session/create", &params, -32014);
}

#[test]
fn rpc_can_connect_to_a_listening_editor() {
    let project = TestProject::new([]);
    let path = project.path("editor.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut child = project.home.spawn(&["rpc", "--pipe", path.to_str().unwrap()]);
    let (mut server, _) = listener.accept().unwrap();
    let frames = read_frames(server.try_clone().unwrap());
    server.write_all(&frame(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#)).unwrap();
    assert_eq!(frames.recv_timeout(TIMEOUT).unwrap()["id"], 0);
    drop(server.shutdown(std::net::Shutdown::Both));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_home_directory_is_not_a_workspace() {
    let project = TestProject::new([]);
    let home = project.home.work_dir();
    let daemon = project.home.command(&["run", "-q", "/nothing"]).env("HOME", &home).output().unwrap();
    assert_eq!(daemon.status.code(), Some(2), "it has started the daemon and found no skill");
    let mut editor = project.editor();
    editor.error("kaiak/session/create", &json!({"workspace_path": home}), -32002);
    let params = json!({"workspace_path": home.join("src")});
    editor.result("kaiak/session/create", &params);
}

#[test]
fn a_socket_serves_several_editors_of_this_user() {
    let project = TestProject::new([]);
    let path = project.path("kaiak.sock");
    let name = path.to_str().unwrap();
    for bad in ["6009", &"x".repeat(120), project.path("src/main.rs").to_str().unwrap()] {
        project.home.run(&["rpc", "--socket", bad]).fails(2);
    }
    let listen = || {
        let mut child = project.home.spawn(&["rpc", "--socket", name]);
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, format!("listening on {name}\n"));
        child
    };
    let mut child = listen();
    let connect = || UnixStream::connect(&path).unwrap();
    let mut editors = [connect(), connect()];
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for editor in &mut editors {
        let frames = read_frames(editor.try_clone().unwrap());
        editor.write_all(&frame(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#)).unwrap();
        assert_eq!(frames.recv_timeout(TIMEOUT).unwrap()["id"], 0);
    }
    // Another process already serves this socket.
    project.home.run(&["rpc", "--socket", name]).fails(2);
    child.kill().unwrap();
    child.wait().unwrap();
    // The socket file of a killed process is replaced, and a process that is told to stop removes its own.
    let mut child = listen();
    drop(connect());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(!path.exists());
}

#[test]
fn rpc_exits_with_the_watched_process() {
    let project = TestProject::new([]);
    let mut client = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let mut editor = project.editor_with(&["rpc", "--stdio", &format!("--clientProcessId={}", client.id())]);
    editor.create(&project);
    client.kill().unwrap();
    client.wait().unwrap();
    assert_eq!(editor.child.wait().unwrap().code(), Some(0));
    // A client process that has already exited ends it at once.
    let mut late = project.editor_with(&["rpc", "--clientProcessId", &client.id().to_string()]);
    assert_eq!(late.child.wait().unwrap().code(), Some(0));
}
