//! The profile that `models check` makes of the ways of calling tools, and its use.

use kontekst_core::ModelIdentity;
use kontekst_models::profile::{Calling, Profile, TaskResults};
use kontekst_store::config::Home;
use serde_json::{Value, json};

use super::{TestCatalog, UNREACHABLE_URL, gguf};
use crate::fake_llama::{FakeLlama, Reply, Request};

/// Returns the right step of six of the twelve tasks, and the answer to one other prompt.
fn solution(request: &Request) -> Option<Value> {
    let prompt = request.body["messages"][1]["content"].as_str().unwrap_or_default();
    let read = |path: &str| json!({"tool": "read_file", "path": path});
    let lines = json!({"tool": "read_file", "path": "server.log", "start_line": 20, "end_line": 40});
    let solutions = [
        ("Read the file notes.txt", read("notes.txt")),
        ("List the files", json!({"tool": "list_files", "pattern": "src/*.rs"})),
        ("Read the lines 20", lines),
        ("prices-2023.txt", read("prices-2023.txt")),
        ("Read the file conf.toml", read("config.toml")),
        ("Read the file meeting", read("meeting notes/März 2024.txt")),
        ("greet", json!({"tool": "answer", "text": "Hello."})),
    ];
    solutions.into_iter().find(|(part, _)| prompt.contains(part)).map(|(_, step)| step)
}

/// Answers as a model that needs the schema of a step and a low temperature. Without both it only talks, which solves the
/// one task that is over.
fn steps_only(request: &Request) -> Reply {
    let is_step = request.body["response_format"]["json_schema"]["name"] == "step";
    if !is_step || request.body["temperature"].as_f64() != Some(0.1) {
        return Reply::text("I would like to, but I do not know how.");
    }
    let wrong = json!({"tool": "read_file", "path": "wrong"});
    Reply::text(&solution(request).unwrap_or(wrong).to_string())
}

#[test]
fn a_model_that_needs_steps_is_found_and_used_so() {
    let fake = FakeLlama::start([]).always(steps_only);
    let catalog = TestCatalog::new(&fake.url());
    let checked = catalog.run(&["check", "--json"]);
    let result: Value = serde_json::from_str(&checked.stdout).unwrap();
    let tasks = json!({"tried": 12, "native": 1, "text": 1, "steps": 6, "own_sampling": 1});
    // It did not make the one native call that it was asked for.
    assert_eq!(
        (checked.code, &result["tool_call_valid"], &result["can_use_tools"]),
        (0, &json!(false), &json!(true))
    );
    assert!(result["verdict"].as_str().unwrap().ends_with("It can use tools."), "{result}");
    assert_eq!((&result["tasks"], &result["calling"]), (&tasks, &json!("steps")), "{checked:?}");
    assert_eq!((&result["temperature"], &result["stored"]), (&json!(0.1), &json!(true)));
    // Each way begins all its requests with the same bytes, which the server reads once.
    let chats = fake.chats();
    let starts = |is_way: &dyn Fn(&Value) -> bool| {
        let mut starts: Vec<String> = chats
            .iter()
            .filter(|chat| chat["messages"][0]["content"].as_str().unwrap().starts_with("You work on"))
            .filter(|chat| is_way(chat))
            .map(|chat| format!("{}{}", chat["messages"][0], chat["tools"]))
            .collect();
        let requests = starts.len();
        starts.dedup();
        (requests, starts.len())
    };
    assert_eq!(starts(&|chat| chat.get("tools").is_some()), (12, 1));
    assert_eq!(starts(&|chat| chat.get("response_format").is_some()), (24, 1));
    assert_eq!(starts(&|chat| chat.get("tools").or(chat.get("response_format")).is_none()), (12, 1));

    catalog.home.write("agents/default/config.toml", "");
    assert_eq!(catalog.home.run(&["run", "--session", "s", "greet me"]).success(), "Hello.\n");
    let last = fake.chats().pop().unwrap();
    assert_eq!(
        (&last["temperature"], &last["response_format"]["type"]),
        (&json!(0.1), &json!("json_schema"))
    );
    let bare = catalog.home.run(&["run", "--bare", "--session", "t", "greet me"]).success();
    assert!(bare.starts_with("I would like to"), "{bare}");
    let last = fake.chats().pop().unwrap();
    assert_eq!((last.get("temperature"), last.get("response_format")), (None, None));
}

#[test]
fn a_model_that_calls_no_tool_in_any_way_fails_the_check() {
    let fake = FakeLlama::start([]).always(|_| Reply::text("I would like to, but I do not know how."));
    let catalog = TestCatalog::new(&fake.url());
    let checked = catalog.run(&["check", "--json"]);
    let result: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!((checked.code, &result["can_use_tools"]), (1, &json!(false)), "{checked:?}");
    let why = "in none of the three ways of calling tools did the model solve more than 1 of 12 tasks";
    assert!(checked.stderr.contains(why), "{checked:?}");
}

#[test]
fn a_quick_check_stores_nothing() {
    let fake = FakeLlama::start([]).always(steps_only);
    let catalog = TestCatalog::new(&fake.url());
    let checked = catalog.run(&["check", "--quick", "--json"]);
    let result: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!((&result["tasks"], &result["stored"]), (&Value::Null, &json!(false)), "{checked:?}");
    assert_eq!((checked.code, &result["can_use_tools"]), (1, &json!(false)), "one call decides");
    assert!(!catalog.home.root().join("profiles").exists());
}

#[test]
fn a_server_that_refuses_schemas_and_tools_has_calls_in_text() {
    let fake = FakeLlama::start([]).always(|request| {
        if request.body.get("response_format").is_some() {
            return Reply::error(400, "response_format is not supported");
        }
        if request.body.get("tools").is_some() {
            return Reply::error(400, "this model does not support tools");
        }
        let mut arguments = solution(request).unwrap_or_else(|| json!({"tool": "none"}));
        let name = arguments["tool"].take();
        arguments.as_object_mut().unwrap().remove("tool");
        Reply::text(&format!("<tool_call>\n{}\n</tool_call>", json!({"name": name, "arguments": arguments})))
    });
    let catalog = TestCatalog::new(&fake.url());
    let checked = catalog.run(&["check", "--json"]);
    let result: Value = serde_json::from_str(&checked.stdout).unwrap();
    let tasks = json!({"tried": 12, "native": 0, "text": 6, "steps": 0, "own_sampling": 6});
    assert_eq!((&result["tasks"], &result["calling"]), (&tasks, &json!("text")), "{checked:?}");
    assert_eq!(result["temperature"], Value::Null, "the model's own sampling is as good");
}

#[test]
fn the_profile_of_a_file_is_shown() {
    let catalog = TestCatalog::new(UNREACHABLE_URL);
    catalog.write_model("models/m.gguf", &gguf("llama", 3000));
    catalog.write_model("models/qwen2.5-coder-1.5b.gguf", &gguf("qwen2", 3000));
    let shown = catalog.run(&["show", "m"]).success();
    assert!(shown.contains("Best calls     not known; `models check` finds out"), "{shown}");
    let shown = catalog.run(&["show", "qwen2.5-coder-1.5b"]).success();
    assert!(shown.contains("Best calls     steps, by its family"), "{shown}");

    let home = Home::find(Some(catalog.home.root())).unwrap();
    let tasks =
        TaskResults { tried: 12, native: Some(3), text: Some(2), steps: Some(10), own_sampling: Some(8) };
    let profile = Profile {
        kontekst: "9.9".to_owned(),
        checked: "2026-01-02T03:04:05Z".to_owned(),
        calling: Some(Calling::Steps),
        temperature: Some(0.1),
        window: Some(8192),
        read_tokens_per_second: Some(650.0),
        write_tokens_per_second: Some(42.25),
        tasks,
    };
    profile.store(&home, &ModelIdentity::File(catalog.dir().join("m.gguf")), "abc").unwrap();
    let shown = catalog.run(&["show", "m"]).success();
    for line in [
        "Best calls     steps: 10 of 12 tasks; native 3, text 2",
        "Sampling       temperature 0.1: 10 tasks; the model's own 8",
        "Speed          reads 650.0 and writes 42.2 tokens a second, with a window of 8192 tokens",
        "Checked        2026-01-02T03:04:05Z by kontekst 9.9",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let shown: Value = serde_json::from_str(&catalog.run(&["show", "m", "--json"]).success()).unwrap();
    assert_eq!(
        (&shown["profile"]["calling"], &shown["profile"]["tasks"]["steps"]),
        (&json!("steps"), &json!(10))
    );
}
