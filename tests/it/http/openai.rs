//! The OpenAI-compatible endpoints.

use std::{ffi::OsStr, io::Write as _, net::TcpStream, path::Path, process::Command};

use serde_json::{Value, json};

use super::{TestDaemon, read_all};
use crate::fake_llama::{FakeLlama, Reply, Request, Setup};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

fn weather() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

#[test]
fn models_are_agents() {
    let server = TestDaemon::start(&FakeLlama::start([]));
    server.home.write("agents/brief/config.toml", "");
    server.home.write("agents/brief/agent.md", "Be brief.");
    let listed = server.get("/v1/models").expect(200).json();
    let ids: Vec<_> =
        listed["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["brief", "default"]);
    assert_eq!(server.get("/v1/models/brief").expect(200).json()["object"], "model");
    let missing = server
        .post(CHAT, &json!({"model": "gpt-9", "messages": [{"role": "user", "content": "x"}]}))
        .expect(404);
    assert_eq!(missing.json()["error"]["code"], "model_not_found");
    server.get("/v1/models/gpt-9").expect(404);
    assert_eq!(server.get("/v1/models/").expect(200).json(), listed);
}

/// Clients in C, Java and .NET reach an IPv4 address with a socket of IPv6.
#[test]
fn a_program_of_this_user_needs_no_key_also_with_a_socket_of_ipv6() {
    let server = TestDaemon::start(&FakeLlama::start([]));
    for key in ["", "Authorization: Bearer sk-not-needed\r\n"] {
        let mut stream = TcpStream::connect(("::ffff:127.0.0.1", server.address.port())).unwrap();
        let head = format!("GET /v1/models HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", server.address);
        stream.write_all(format!("{head}{key}\r\n").as_bytes()).unwrap();
        let answer = read_all(stream).expect(200).json();
        assert_eq!(answer["data"][0]["id"], "default");
    }
}

#[test]
fn tools_that_are_no_functions_are_passed_over() {
    let (model, server) = TestDaemon::with_model(std::iter::repeat_with(|| Reply::text("a")).take(4));
    let others = [
        json!({"type": "web_search"}),
        json!({"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}),
        json!({"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "x"}]}),
        json!({"type": "local_shell"}),
    ];
    let function = json!({"name": "get_weather", "parameters": weather()});
    let mut flat = function.clone();
    flat["type"] = json!("function");
    let nested = json!({"type": "function", "function": function});
    for (path, of_client) in [(CHAT, nested), (RESPONSES, flat)] {
        for tools in [others.to_vec(), [&others[..], &[of_client]].concat()] {
            let messages = json!([{"role": "user", "content": "x"}]);
            let key = if path == CHAT { "messages" } else { "input" };
            server.post(path, &json!({"model": "default", "tools": tools, key: messages})).expect(200);
        }
    }
    // Without a function, a request that lists tools has none, and not those of the agent.
    let offered: Vec<_> =
        model.chats().iter().map(|chat| chat["tools"][0]["function"]["name"].clone()).collect();
    assert_eq!(offered, [json!(null), json!("get_weather"), json!(null), json!("get_weather")]);
}

#[test]
fn a_negative_limit_is_none_and_a_whole_float_is_one() {
    let (model, server) = TestDaemon::with_model(std::iter::repeat_with(|| Reply::text("a")).take(6));
    let messages = json!([{"role": "user", "content": "x"}]);
    for limit in [json!(-1), json!(null), json!(50.0)] {
        let chat = json!({"model": "default", "messages": messages, "max_tokens": limit});
        server.post(CHAT, &chat).expect(200);
        let response = json!({"model": "default", "input": "x", "max_output_tokens": limit});
        server.post(RESPONSES, &response).expect(200);
    }
    let sent: Vec<_> = model.chats().iter().map(|chat| chat["max_tokens"].clone()).collect();
    assert!(sent[..4].iter().all(|limit| *limit == sent[0] && *limit != json!(-1)), "{sent:?}");
    assert_eq!(sent[4..], [json!(50), json!(50)]);
}

#[test]
fn a_chat_is_answered_whole_and_in_chunks() {
    let (model, server) =
        TestDaemon::with_model([Reply::text("Hello world").usage(10, 5, 4), Reply::text("Hello world")]);
    let mut body = json!({"model": "default", "temperature": 0.5, "max_tokens": 7, "messages": [
        {"role": "system", "content": "BE KIND"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    ]});
    let whole = server.post(CHAT, &body).expect(200).json();
    assert_eq!(whole["choices"][0]["message"]["content"], "Hello world");
    assert_eq!(
        (&whole["object"], &whole["choices"][0]["finish_reason"]),
        (&json!("chat.completion"), &json!("stop"))
    );
    assert_eq!(
        whole["usage"],
        json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4}})
    );
    let asked = &model.chats()[0];
    assert_eq!((&asked["temperature"], &asked["max_tokens"]), (&json!(0.5), &json!(7)));
    assert!(asked["messages"][0]["content"].as_str().unwrap().contains("BE KIND"));

    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let streamed = server.post(CHAT, &body).expect(200);
    let mut events = streamed.data("");
    assert_eq!(events.pop().unwrap(), "[DONE]");
    let chunks: Vec<Value> = events.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let text: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "Hello world");
    assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "stop");
    assert_eq!(chunks.last().unwrap()["usage"]["total_tokens"], 15);
}

#[test]
fn calls_of_client_tools_are_returned_to_the_client() {
    let (model, server) = TestDaemon::with_model([
        Reply::calls([("get_weather", json!({"city": "Bern"})), ("get_weather", json!({"city": "Rom"}))]),
        Reply::text("Sunny."),
        Reply::text("let me see ").then_calls([("get_weather", json!({"city": "Oslo"}))]),
    ]);
    let tools = json!([{"type": "function", "function": {"name": "get_weather", "parameters": weather()}}]);
    let mut messages = json!([{"role": "user", "content": "weather?"}]);
    let first = server.post(CHAT, &json!({"messages": messages, "tools": tools})).expect(200).json();
    let choice = &first["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &Value::Null)
    );
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1]["function"], json!({"name": "get_weather", "arguments": "{\"city\":\"Rom\"}"}));
    // Only the tools of the client are offered.
    assert_eq!(model.chats()[0]["tools"].as_array().unwrap().len(), 1);

    let list = messages.as_array_mut().unwrap();
    list.push(choice["message"].clone());
    for call in calls {
        list.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "sun"}));
    }
    let second = server.post(CHAT, &json!({"messages": messages, "tools": tools})).expect(200).json();
    assert_eq!(second["choices"][0]["message"]["content"], "Sunny.");
    let roles: Vec<_> = model.chats()[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);

    let streamed = server
        .post(CHAT, &json!({"messages": [{"role": "user", "content": "x"}], "tools": tools, "stream": true}));
    let joined = streamed.expect(200).data("").join("\n");
    assert!(
        joined.contains("\"index\":0")
            && joined.contains("Oslo")
            && joined.contains("\"finish_reason\":\"tool_calls\""),
        "{joined}"
    );
}

/// The model calls a tool of the daemon although it was not offered any.
#[test]
fn a_request_that_forbids_tools_or_lists_none_gets_none() {
    let chat_tools =
        json!([{"type": "function", "function": {"name": "get_weather", "parameters": weather()}}]);
    let tools = json!([{"type": "function", "name": "get_weather", "parameters": weather()}]);
    let user = json!([{"role": "user", "content": "sum up"}]);
    for (path, body) in [
        (CHAT, json!({"messages": user, "tools": chat_tools, "tool_choice": "none"})),
        (CHAT, json!({"messages": user, "tool_choice": "none"})),
        (CHAT, json!({"messages": user, "tools": []})),
        (RESPONSES, json!({"input": "sum up", "tools": tools, "tool_choice": "none"})),
        (RESPONSES, json!({"input": "sum up", "tool_choice": "none"})),
        (RESPONSES, json!({"input": "sum up", "tools": []})),
    ] {
        let (model, server) = TestDaemon::with_model([
            Reply::calls([("write_file", json!({"path": "none.txt", "content": "x"}))]),
            Reply::text("All done."),
        ]);
        let answer = server.post(path, &body).expect(200);
        assert!(answer.body.contains("All done."), "{body}: {}", answer.body);
        assert_eq!(model.chats()[0].get("tools"), None, "{body}");
        assert_eq!(server.file("none.txt"), None, "{body}");
    }
}

#[test]
fn images_of_the_user_reach_a_model_that_sees() {
    let part = json!({"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlh"}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let chat = json!({"messages": [
        {"role": "user", "content": [text("what is it?"), part]},
        {"role": "assistant", "content": "a cat"},
        {"role": "user", "content": [part]},
    ]});
    let seeing = Setup { vision: Some(true), ..Setup::default() };
    let model = FakeLlama::with(seeing, [Reply::text("the same cat"), Reply::text("a cat")]);
    let server = TestDaemon::start(&model);
    assert!(server.post(CHAT, &chat).expect(200).body.contains("the same cat"));
    let input = json!([{"role": "user", "content": [
        {"type": "input_image", "image_url": "data:image/gif;base64,R0lGODlh"}, {"type": "input_text", "text": "what?"}]}]);
    server.post(RESPONSES, &json!({"input": input})).expect(200);
    for (chat, expected) in model.chats().iter().zip([&["what is it?", ""][..], &["what?"]]) {
        let users = chat["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
        for (user, expected) in users.zip(expected) {
            let content = user["content"].to_string();
            assert!(content.contains("R0lGODlh") && content.contains(expected), "{content}");
        }
    }

    let blind = FakeLlama::with(Setup { vision: Some(false), ..Setup::default() }, []);
    let refused = TestDaemon::start(&blind).post(CHAT, &chat).expect(400);
    assert!(refused.body.contains("takes no images"), "{}", refused.body);
}

#[test]
fn unsupported_requests_get_an_openai_error() {
    let (model, server) = TestDaemon::with_model([Reply::error(500, "boom")]);
    let user = json!([{"role": "user", "content": "x"}]);
    let image = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]);
    for (body, says) in [
        (json!({"messages": []}), "user"),
        (json!({"messages": user, "n": 2}), "n must be 1"),
        (json!({"messages": user, "temperature": 9}), "temperature"),
        (json!({"messages": image}), "image_url"),
        (
            json!({"messages": user, "tools": [{"type": "function", "function": {"name": "bad name"}}]}),
            "not a tool name",
        ),
        (json!({"messages": "x"}), "Invalid JSON body"),
    ] {
        let error = server.post(CHAT, &body).expect(400).json()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
        assert_eq!(error["type"], "invalid_request_error");
    }
    assert!(model.chats().is_empty());
    let error = server.post(CHAT, &json!({"messages": user})).expect(500).json()["error"].clone();
    assert_eq!(error["type"], "server_error");
    server.post(RESPONSES, &json!({"input": "x", "previous_response_id": "resp_1"})).expect(400);
}

#[test]
fn a_response_is_answered_whole_and_in_events() {
    let (model, server) = TestDaemon::with_model([
        Reply::text("Hello"),
        Reply::text("Hello you"),
        Reply::calls([("get_weather", json!({"city": "Bern"}))]),
        Reply::text("Sunny."),
    ]);
    let whole =
        server.post(RESPONSES, &json!({"model": "default", "input": "hi", "instructions": "BE KIND"}));
    let whole = whole.expect(200).json();
    assert_eq!((&whole["object"], &whole["status"]), (&json!("response"), &json!("completed")));
    assert_eq!(whole["output"][0]["content"][0]["text"], "Hello");
    assert!(model.chats()[0]["messages"][0]["content"].as_str().unwrap().contains("BE KIND"));

    let streamed = server.post(RESPONSES, &json!({"input": "hi", "stream": true})).expect(200);
    let names = streamed.names();
    assert_eq!(
        names[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    assert_eq!(
        names[names.len() - 4..],
        [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    for (at, (name, data)) in streamed.events().iter().enumerate() {
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!((&data["type"], &data["sequence_number"]), (&json!(name), &json!(at)));
    }

    let tools = json!([{"type": "function", "name": "get_weather", "parameters": weather()}]);
    let called = server.post(RESPONSES, &json!({"input": "weather?", "tools": tools})).expect(200).json();
    let call = &called["output"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("get_weather")));
    let items = json!([
        {"role": "user", "content": "weather?"}, call,
        {"type": "function_call_output", "call_id": call["call_id"], "output": "sun"},
    ]);
    let after = server.post(RESPONSES, &json!({"input": items, "tools": tools})).expect(200).json();
    assert_eq!(after["output"][0]["content"][0]["text"], "Sunny.");
}

/// Returns a model server that answers what the scripts of other clients ask.
fn server_for_clients() -> FakeLlama {
    FakeLlama::start([]).always(|request| {
        let schema = request.body["response_format"]["json_schema"]["schema"]["properties"].to_string();
        let messages = request.body["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        match (last["role"].as_str(), text) {
            _ if schema.contains("city") => Reply::text("{\"city\": \"Bern\"}"),
            _ if !request.body["response_format"].is_null() => {
                Reply::text("{\"name\": \"Ada\", \"age\": 36}")
            }
            (_, "think") => Reply::reasoning("Hm.", "Hello world"),
            (_, status) if status.starts_with('!') => Reply::raw(format!(
                "HTTP/1.1 {} No\r\nretry-after: 7\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                &status[1..]
            )),
            (Some("user"), "weather?") => Reply::calls([("get_weather", json!({"city": "Bern"}))]),
            _ => Reply::text("Hello world").usage(10, 5, 4),
        }
    })
}

/// Runs a script with the address and the token of the server, and checks that it succeeds.
#[track_caller]
fn drive(program: impl AsRef<std::ffi::OsStr>, script: &str, server: &TestDaemon) {
    let output = Command::new(program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script))
        .args([format!("http://{}/v1", server.address), server.token.clone()])
        .arg(server.home.work_dir())
        .env("PACKAGES", std::env::var_os("KONTEKST_TEST_AI_SDK").unwrap_or_default())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("all good"), "{printed}");
}

/// Runs if `KONTEKST_TEST_PYTHON` names a Python with OpenAI's own package.
#[test]
fn the_official_openai_client_works() {
    let Some(python) = std::env::var_os("KONTEKST_TEST_PYTHON") else { return };
    drive(python, "openai/drive.py", &TestDaemon::start(&server_for_clients()));
}

/// Runs if `KONTEKST_TEST_PYTHON` names a Python with LangChain and `llm`.
#[test]
fn langchain_and_llm_get_structured_output() {
    let Some(python) = std::env::var_os("KONTEKST_TEST_PYTHON") else { return };
    let has_both = Command::new(&python).args(["-c", "import langchain_openai, llm"]).output().unwrap();
    if has_both.status.success() {
        drive(python, "openai/frameworks.py", &TestDaemon::start(&server_for_clients()));
    }
}

/// Runs for each agent of other makers that is in the folder `KONTEKST_TEST_AGENTS`. Their keys are none of ours.
#[test]
fn agents_of_other_makers_work_with_a_key_of_their_own() {
    let Some(agents) = std::env::var_os("KONTEKST_TEST_AGENTS") else { return };
    for agent in ["codex", "opencode", "pi"] {
        let bin = Path::new(&agents).join(agent).join("node_modules/.bin");
        // One that does not start here was reported by the gate.
        let path =
            std::env::join_paths([&*bin, "/usr/local/bin".as_ref(), "/usr/bin".as_ref(), "/bin".as_ref()]);
        let run = |program: &Path, words: &[&OsStr]| {
            let mut command = Command::new(program);
            command.args(words).env("AGENTS", &agents).env("PATH", path.as_ref().unwrap()).output()
        };
        if !run(&bin.join(agent), &["--version".as_ref()]).is_ok_and(|output| output.status.success()) {
            continue;
        }
        let model = FakeLlama::start([]).always(answer_to_agents);
        let server = TestDaemon::start(&model);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/drive.sh");
        let url = format!("http://{}/v1", server.address);
        let output = run(&script, &[agent.as_ref(), url.as_ref(), server.home.work_dir().as_ref()]).unwrap();
        let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && printed.contains("all good"), "{agent}: {printed}");
    }
}

/// Runs a command with the shell that an agent offers, if the prompt asks for a file.
fn answer_to_agents(request: &Request) -> Reply {
    let last = request.body["messages"].as_array().unwrap().last().unwrap();
    if last["role"] != "user" || !last["content"].to_string().contains("make a file") {
        return Reply::text("Hello world").usage(10, 5, 4);
    }
    let tools = request.body["tools"].as_array().into_iter().flatten();
    let mut shells =
        tools.filter_map(|tool| tool["function"]["name"].as_str()).filter_map(|name| match name {
            "exec_command" => Some((name, json!({"cmd": "echo made > made.txt"}))),
            "shell_command" | "bash" => {
                Some((name, json!({"command": "echo made > made.txt", "description": "makes a file"})))
            }
            _ => None,
        });
    shells.next().map_or_else(|| Reply::text("no shell"), |call| Reply::calls([call]))
}

/// Runs if `KONTEKST_TEST_AI_SDK` names a folder with Vercel's packages.
#[test]
fn the_ai_sdk_of_vercel_works() {
    if std::env::var_os("KONTEKST_TEST_AI_SDK").is_some() {
        drive("node", "ai-sdk/drive.mjs", &TestDaemon::start(&server_for_clients()));
    }
}

#[test]
fn commands_are_offered_only_where_the_section_says_so() {
    for (settings, expect) in [("", false), ("commands = true\n", true)] {
        let model = FakeLlama::start([Reply::text("a"), Reply::text("b")]);
        let server = TestDaemon::with(&model.url(), settings);
        let messages = json!([{"role": "user", "content": "hi"}]);
        server.post(CHAT, &json!({"model": "default", "messages": messages})).expect(200);
        server.generate(&json!({"input": "hi"})).expect(200);
        for chat in model.chats() {
            assert_eq!(chat["tools"].to_string().contains("run_command"), expect, "{settings}");
        }
    }
}
