//! The runs that are offered commands.

use serde_json::{Value, json};

use super::home_with;
use crate::{fake_llama::Reply, test_home::TestHome};

fn tool_names(chat: &Value) -> Vec<&str> {
    let tools = chat["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

#[test]
fn a_run_is_offered_commands_unless_the_configuration_says_never() {
    for (config, expect) in [("", true), ("approval = \"never\"\n", false)] {
        let (model, home) = home_with(config, [Reply::text("hi")]);
        home.run(&["run", "hello"]).success();
        assert_eq!(tool_names(&model.chats()[0]).contains(&"run_command"), expect, "{config}");
        let status = home.run(&["status"]).success();
        assert_eq!(status.contains("\ncommands "), expect, "{status}");
    }
}

#[test]
fn a_hello_with_all_tools_is_a_small_request() {
    let (model, home) = TestHome::with_model([Reply::text("hi")]);
    home.run(&["run", "hello"]).success();
    let requests = model.requests();
    let chat = requests.iter().find(|request| request.is_chat()).unwrap();
    assert!(tool_names(&chat.body).contains(&"run_command"));
    let bytes = chat.body.to_string().len();
    assert!(bytes <= 4500, "{bytes} bytes");
}

#[test]
fn a_worker_has_the_commands_of_its_parent() {
    for (config, expect) in [("", true), ("approval = \"never\"\n", false)] {
        let spawn = Reply::calls([("spawn_worker", json!({"prompt": "look"}))]);
        let (model, home) = home_with(config, [spawn, Reply::text("seen"), Reply::text("done")]);
        home.run(&["run", "--workers", "--allow", "spawn_worker", "go"]).success();
        let chats = model.chats();
        let offered: Vec<bool> =
            chats[..2].iter().map(|chat| tool_names(chat).contains(&"run_command")).collect();
        assert_eq!(offered, [expect, expect], "{config}");
    }
}
