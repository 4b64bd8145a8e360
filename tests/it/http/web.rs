//! The web page and its API.

use serde_json::{Value, json};

use super::{Response, TestDaemon, read_all, read_until};
use crate::{
    fake_llama::{FakeLlama, Reply, gate},
    test_home::wait_with_output,
    wait::wait_until,
};

impl TestDaemon {
    fn api(&self, method: &str, path: &str) -> Response {
        self.request(method, path, &[("Authorization", &self.bearer())])
    }

    pub(super) fn api_post(&self, path: &str, body: &Value) -> Response {
        let origin = format!("http://{}", self.address);
        let headers =
            [("Authorization", &*self.bearer()), ("Content-Type", "application/json"), ("Origin", &origin)];
        self.send(path, &headers, body.to_string().as_bytes())
    }

    pub(super) fn api_open(&self, body: &Value) -> std::net::TcpStream {
        self.open_with("/api/runs", &[("Authorization", &*self.bearer())], body)
    }
}

#[test]
fn the_page_has_a_strict_content_security_policy() {
    let server = TestDaemon::start(&FakeLlama::start([]));
    let page = server.get("/").expect(200);
    assert!(page.body.starts_with("<!doctype html>"));
    let policy = &page.headers["content-security-policy"];
    for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"));
    for (path, kind) in [
        ("/page/main.js", "text/javascript"),
        ("/page/style.css", "text/css"),
        ("/page/icon.svg", "image/svg"),
    ] {
        let file = server.get(path).expect(200);
        assert!(file.headers["content-type"].starts_with(kind));
        assert_eq!(file.headers["x-content-type-options"], "nosniff");
    }
}

#[test]
fn a_browser_is_opened_with_a_code_that_works_once() {
    let server = TestDaemon::start(&FakeLlama::start([]));
    let dir = server.home.work_dir().join("bin");
    std::fs::create_dir(&dir).unwrap();
    let (opener, opened) = (dir.join("xdg-open"), dir.join("opened"));
    let script = format!("#!/bin/sh\necho \"$@\" > '{0}.new'\nmv '{0}.new' '{0}'\n", opened.display());
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let mut command = server.home.command(&["web"]);
    command.env("DISPLAY", ":9").env("PATH", format!("{}:/usr/bin:/bin", dir.display()));
    let printed = wait_with_output(command.spawn().unwrap()).success();
    assert!(printed.contains(&server.token));

    wait_until("the browser was opened", || opened.exists());
    let address = std::fs::read_to_string(opened).unwrap();
    assert!(!address.contains(&server.token), "{address}");
    let (_, code) = address.split_once("/#code=").unwrap();
    let code = code.split('&').next().unwrap();
    let exchange = |code: &str, headers: &[(&str, &str)]| {
        server.request("GET", "/api/token", &[&[("Kontekst-Code", code)], headers].concat())
    };
    exchange("", &[]).expect(401);
    exchange(&code.replace(|_| true, "0"), &[]).expect(401);
    exchange(code, &[("Origin", "https://evil.example")]).expect(403);
    exchange(code, &[("Sec-Fetch-Site", "cross-site")]).expect(403);
    let answer = exchange(code, &[("Sec-Fetch-Site", "same-origin")]).expect(200);
    assert_eq!(
        (&answer.json()["token"], &*answer.headers["cache-control"]),
        (&json!(server.token), "no-store")
    );
    exchange(code, &[]).expect(401);
}

#[test]
fn the_page_api_needs_the_token() {
    let server = TestDaemon::start(&FakeLlama::start([]));
    for (method, path) in
        [("GET", "/api/status"), ("GET", "/api/sessions"), ("POST", "/api/runs"), ("GET", "/api/nope")]
    {
        assert_eq!(server.request(method, path, &[]).expect(401).error(), "Unauthorized");
    }
    server.api("GET", "/api/nope").expect(404);
    let status = server.api("GET", "/api/status").expect(200).json();
    assert_eq!(status["agents"], json!(["default"]));
    assert_eq!(status["working_dir"], server.home.work_dir().to_str().unwrap());
}

#[test]
fn a_run_is_streamed_from_start_to_end() {
    let (_model, server) =
        TestDaemon::with_model([Reply::reasoning("hm", "Hello world"), Reply::text("again")]);
    let answer = server.api_post("/api/runs", &json!({"prompt": "hi\nthere"})).expect(200);
    let names = answer.names();
    assert_eq!(names[0], "started");
    assert_eq!(names[names.len() - 2..], ["turn", "completed"]);
    let piece =
        |data: &String| serde_json::from_str::<Value>(data).unwrap()["text"].as_str().unwrap().to_owned();
    assert_eq!(answer.data("text").iter().map(piece).collect::<String>(), "Hello world");
    assert_eq!(answer.data("reasoning").iter().map(piece).collect::<String>(), "hm");
    let turn: Value = serde_json::from_str(&answer.data("turn")[0]).unwrap();
    assert!(turn["context"]["context_size"].as_u64().unwrap() > 0);

    let started: Value = serde_json::from_str(&answer.data("started")[0]).unwrap();
    let id = started["session"].as_str().unwrap();
    let listed = server.api("GET", "/api/sessions").expect(200).json();
    assert_eq!((&listed["sessions"][0]["id"], &listed["sessions"][0]["title"]), (&json!(id), &json!("hi")));
    server.api_post("/api/runs", &json!({"prompt": "more", "session": id})).expect(200);
    let shown = server.api("GET", &format!("/api/sessions/{id}")).expect(200).json();
    let texts: Vec<_> =
        shown["entries"].as_array().unwrap().iter().map(|entry| entry["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["hi\nthere", "Hello world", "more", "again"]);

    server.api("DELETE", &format!("/api/sessions/{id}")).expect(204);
    server.api("GET", &format!("/api/sessions/{id}")).expect(404);
    for bad in ["..%2f", "x%00", "-"] {
        assert!([400, 404].contains(&server.api("GET", &format!("/api/sessions/{bad}")).status), "{bad}");
    }
    server.api_post("/api/runs", &json!({"prompt": "x", "working_dir": "relative"})).expect(400);
    server.api_post("/api/runs", &json!({"prompt": 5})).expect(400);
}

#[test]
fn the_page_can_decide_calls_and_cancel_runs() {
    let write = |name: &str| (String::from("write_file"), json!({"path": name, "content": "x\n"}));
    let (a, b) = (write("a.txt"), write("b.txt"));
    let (wait, _key) = gate();
    let (_model, server) = TestDaemon::with_model([
        Reply::calls([(&*a.0, a.1), (&*b.0, b.1)]),
        Reply::text("done"),
        Reply::text("slow").then_wait(wait),
    ]);
    let mut stream = server.api_open(&json!({"prompt": "go"}));
    let seen = String::from_utf8(read_until(&mut stream, "event: proposed\n")).unwrap();
    let data = String::from_utf8(read_until(&mut stream, "\n\n")).unwrap();
    let run = seen.split("\"run\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let proposed: Value = serde_json::from_str(data.trim().strip_prefix("data: ").unwrap()).unwrap();
    let calls = proposed["calls"].as_array().unwrap();
    assert!(calls[0]["preview"].as_str().unwrap().contains("+x"));
    let decide = |decision: Value| server.api_post(&format!("/api/runs/{run}/decisions"), &decision);
    decide(json!({"call": "nope", "approve": true})).expect(404);
    decide(json!({"call": calls[0]["id"], "approve": true})).expect(204);
    decide(json!({"call": calls[1]["id"], "approve": false, "reason": "no", "continue": true})).expect(204);
    read_until(&mut stream, "event: completed\n");
    assert!(server.file("a.txt").is_some() && server.file("b.txt").is_none());
    decide(json!({"call": calls[0]["id"], "approve": true})).expect(404);

    let mut stream = server.api_open(&json!({"prompt": "slow"}));
    let seen = String::from_utf8(read_until(&mut stream, "event: text\n")).unwrap();
    let run = seen.split("\"run\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    server.api_post(&format!("/api/runs/{run}/cancel"), &json!({})).expect(204);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut rest).unwrap();
    assert!(String::from_utf8(rest).unwrap().contains("event: cancelled\n"));
    server.api_post(&format!("/api/runs/{run}/cancel"), &json!({})).expect(404);
    drop(read_all(server.api_open(&json!({"prompt": ""}))));
}

/// Runs in Chromium if `KONTEKST_TEST_PAGE` names a folder with playwright-core.
#[test]
fn a_person_uses_the_page_from_start_to_approval() {
    let Some(playwright) = std::env::var_os("KONTEKST_TEST_PAGE") else { return };
    let (wait, _key) = gate();
    let edit = |new: &str| json!({"path": "a.txt", "old_str": "alpha", "new_str": new});
    let model = FakeLlama::start([
        Reply::text(
            "Hello <img src=x onerror=alert(1)> world\n\n```rust\nlet x = 1;\n```\nThe picture is \u{202e}gnp.exe\n",
        ),
        Reply::calls([
            ("edit_file", edit("beta")),
            ("write_file", json!({"path": "b.txt", "content": "b\n"})),
        ]),
        Reply::text("All done."),
        Reply::text("Slowly").then_wait(wait),
    ]);
    let server = TestDaemon::without_work_dir(&model);
    std::fs::write(server.home.work_dir().join("a.txt"), "alpha\n").unwrap();
    let shots = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    std::fs::create_dir_all(&shots).unwrap();
    let output = std::process::Command::new("node")
        .arg(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/drive.mjs"))
        .arg(format!(
            "http://{}/#token={}&dir={}",
            server.address,
            server.token,
            server.home.work_dir().display()
        ))
        .arg(&shots)
        .env("PLAYWRIGHT", playwright)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("all good"), "{printed}");
    assert_eq!(server.file("a.txt").as_deref(), Some("beta\n"));
    assert!(server.file("b.txt").is_none());
    assert!(model.chats()[2].to_string().contains("leave that one"));
}
