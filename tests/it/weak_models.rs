//! Whole runs with models that call tools in text, or in a malformed way.

use std::fs;

use serde_json::{Value, json};

use crate::{
    fake_llama::{FakeLlama, Reply, Setup},
    test_home::TestHome,
};

/// Starts a server whose chat template does not support tools.
fn without_tool_template(script: impl IntoIterator<Item = Reply>) -> FakeLlama {
    FakeLlama::with(Setup { tools: false, ..Setup::default() }, script)
}

fn call_in_text(content: &str) -> String {
    let arguments = json!({"path": "f", "content": content});
    format!("<tool_call>\n{{\"name\": \"write_file\", \"arguments\": {arguments}}}\n</tool_call>")
}

/// Returns a native tool call with these arguments, valid JSON or not.
fn call(name: &str, arguments: &str) -> Reply {
    Reply::calls([(name, Value::from(arguments))])
}

fn run_go(home: &TestHome) -> crate::test_home::Output {
    home.run(&["run", "--session", "s", "--auto-approve", "go"])
}

fn written_file(home: &TestHome) -> String {
    fs::read_to_string(home.work_dir().join("f")).unwrap()
}

/// Returns the messages of a request after the first `skip`, as `role: content`.
fn messages_after(chat: &Value, skip: usize) -> Vec<String> {
    let messages = chat["messages"].as_array().unwrap();
    let line = |m: &Value| format!("{}: {}", m["role"].as_str().unwrap(), m["content"].as_str().unwrap());
    messages.iter().skip(skip).map(line).collect()
}

#[test]
fn a_template_without_tools_gets_them_in_the_prompt() {
    let (model, home) = TestHome::with_server(without_tool_template([
        Reply::text(&format!("I write it.\n{}", call_in_text("x"))),
        Reply::text("written"),
        Reply::text("again"),
    ]));
    let output = run_go(&home);
    assert!(output.stderr.contains("write_file"), "{output:?}");
    assert_eq!(output.success(), "I write it.\nwritten\n", "the markup of the call is not shown");
    assert_eq!(written_file(&home), "x");
    home.run(&["run", "--session", "s", "more"]).success();

    let chats = model.chats();
    for chat in &chats {
        assert!(chat.get("tools").is_none());
        assert_eq!(chat["messages"][0], chats[0]["messages"][0]);
    }
    let system = chats[0]["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.contains("<tools>\n{\"type\":\"function\",\"function\":{\"name\":\"read_file\""),
        "{system}"
    );
    let second_turn = messages_after(&chats[1], 2);
    assert_eq!(second_turn[0], format!("assistant: I write it.\n{}", call_in_text("x")));
    assert!(second_turn[1].starts_with("user: Tool: write_file\n\nResult:\n"), "{second_turn:?}");
    // The prompt of the next run begins with the same bytes.
    assert_eq!(messages_after(&chats[2], 2)[..2], second_turn);
}

#[test]
fn a_call_left_in_the_text_is_run() {
    let (model, home) = TestHome::with_model([Reply::text(&call_in_text("x")), Reply::text("done")]);
    assert_eq!(run_go(&home).success(), "done\n");
    assert_eq!(written_file(&home), "x");
    let call = &model.chats()[1]["messages"][2]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "write_file");
}

#[test]
fn an_unambiguous_malformed_call_is_repaired_and_run() {
    let (model, home) =
        TestHome::with_model([call("WriteFile", "{'path': 'f', content: \"x\",}"), Reply::text("done")]);
    let events = home.events(&["run", "--session", "s", "--json", "--auto-approve", "go"]);
    let proposed = events.iter().find(|event| event["type"] == "tools_proposed").unwrap().to_string();
    assert!(proposed.contains("write_file") && !proposed.contains("WriteFile"), "{proposed}");
    assert_eq!(written_file(&home), "x");
    // The model sees its own call again, with the name of the tool and the arguments as valid JSON, as strict servers want it.
    let call = &model.chats()[1]["messages"][2]["tool_calls"][0]["function"];
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&json!("write_file"), &json!("{\"path\":\"f\",\"content\":\"x\"}"))
    );
    // The session has what ran, so that every server takes the conversation.
    let stored = home.run(&["sessions", "show", "--json", "s"]).success();
    assert!(stored.contains("write_file") && !stored.contains("WriteFile"), "{stored}");
}

const BROKEN: &str = "{\"path\": \"f\", \"content\": \"say \"hi\"\"}";

#[test]
fn a_malformed_call_is_requested_again_with_a_grammar() {
    let sound = json!({"path": "f", "content": "say \"hi\""});
    let in_text = format!("<tool_call>{{\"name\": \"write_file\", \"arguments\": {BROKEN}}}</tool_call>");
    let again = || [Reply::text(&sound.to_string()), Reply::text("done")];
    for model in [
        FakeLlama::start([call("write_file", BROKEN)].into_iter().chain(again())),
        without_tool_template([Reply::text(&in_text)].into_iter().chain(again())),
    ] {
        let home = TestHome::new(&model.url());
        assert_eq!(run_go(&home).success(), "done\n");
        assert_eq!(written_file(&home), "say \"hi\"");
        // The prompt is the same, so that the cache is used. Only the answer is constrained.
        let chats = model.chats();
        assert_eq!(chats[1]["messages"], chats[0]["messages"]);
        assert_eq!(chats[1].get("tools"), chats[0].get("tools"));
        let none = if chats[0].get("tools").is_some() { json!("none") } else { Value::Null };
        assert_eq!(chats[1]["tool_choice"], none);
        let format = &chats[1]["response_format"];
        assert_eq!(
            (&format["type"], &format["json_schema"]["name"]),
            (&json!("json_schema"), &json!("write_file"))
        );
        assert!(chats[2].get("response_format").is_none() && chats[2].get("tool_choice").is_none());
        // From now on the history has the repaired call.
        assert!(chats[2]["messages"][2].to_string().contains("say \\"));
    }
}

#[test]
fn a_call_that_cannot_be_repaired_is_reported_to_the_model() {
    let (model, home) = TestHome::with_model([
        call("write_file", BROKEN),
        Reply::text("{\"path\": ").finish("length"),
        call("write_file", BROKEN),
        Reply::error(400, "no grammar"),
        Reply::text("then not"),
    ]);
    assert_eq!(run_go(&home).success(), "then not\n");
    assert!(!home.work_dir().join("f").exists());
    let messages = messages_after(&model.chats()[4], 3);
    assert!(
        messages[0].starts_with("tool: the arguments are not valid JSON")
            && messages[2].starts_with(&messages[0]),
        "{messages:?}"
    );
}

#[test]
fn invalid_calls_are_explained_and_do_not_end_the_run() {
    let other = || Setup { llama: false, ..Setup::default() };
    let script = [
        call("write_file", BROKEN),
        call("fly", "{}"),
        call("write_file", "{}"),
        call("write_file", "{}"),
        call("write_file", "{}"),
        Reply::text("fine"),
        Reply::text("fine"),
    ];
    let (model, home) = TestHome::with_server(FakeLlama::with(other(), script));
    assert_eq!(run_go(&home).success(), "fine\n");
    assert!(!home.work_dir().join("f").exists());
    let chats = model.chats();
    assert!(messages_after(&chats[1], 3)[0].starts_with("tool: the arguments are not valid JSON"));
    assert!(
        messages_after(&chats[2], 5)[0].starts_with("tool: there is no tool `fly`; the tools are: read_file")
    );
    assert_eq!(messages_after(&chats[3], 7)[0].lines().next(), Some("tool: missing `path`"));
    // The session is valid, and the next run continues it.
    assert_eq!(home.run(&["run", "--session", "s", "and now?"]).success(), "fine\n");
    assert!(messages_after(&model.chats()[5], 11)[0].starts_with("tool: missing `path`"));
}

#[test]
fn a_truncated_call_is_never_run() {
    let whole = call_in_text("x");
    let cut = &whole[..whole.len() - 12];
    for model in [
        FakeLlama::start([
            call("write_file", "{\"path\": \"f\", \"content\": \"x\"").finish("length"),
            Reply::text("fine"),
        ]),
        FakeLlama::start([Reply::text(cut).finish("length"), Reply::text("fine")]),
        without_tool_template([Reply::text(&format!("So: {cut}")).finish("length"), Reply::text("fine")]),
    ] {
        let home = TestHome::new(&model.url());
        let output = run_go(&home);
        assert!(!output.stdout.contains('<'), "{output:?}");
        assert!(output.fails(5).contains("max_tokens"));
        assert!(!home.work_dir().join("f").exists());
        assert_eq!(home.run(&["run", "--session", "s", "and now?"]).success(), "fine\n");
        assert!(!model.chats()[1].to_string().contains("tool_calls\":"));
    }
}

#[test]
fn a_call_cut_after_a_whole_one_is_reported_to_the_model() {
    let (model, home) = TestHome::with_server(without_tool_template([
        Reply::text(&format!("{}\n<tool_call>{{\"name\": \"wri", call_in_text("x"))).finish("length"),
        Reply::text("done"),
    ]));
    assert_eq!(run_go(&home).success(), "done\n");
    assert_eq!(written_file(&home), "x");
    let messages = messages_after(&model.chats()[1], 2);
    assert!(messages[1].contains("[your answer was cut behind this call"), "{messages:?}");
}
