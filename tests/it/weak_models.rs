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
    let model = without_tool_template([
        Reply::text(&format!("I write it.\n{}", call_in_text("x"))),
        Reply::text("written"),
        Reply::text("again"),
    ]);
    let home = TestHome::new(&model.url());
    let output = run_go(&home);
    assert!(output.stderr.contains("write_file"), "{output:?}");
    assert!(output.success().ends_with("written\n"));
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
    model.assert_clean();
}

#[test]
fn tool_call_markup_is_never_shown() {
    let model =
        without_tool_template([Reply::text(&format!("Now: {}", call_in_text("x"))), Reply::text("done")]);
    let home = TestHome::new(&model.url());
    let stdout = home.run(&["run", "--json", "--auto-approve", "go"]).success();
    let shown: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        !shown.iter().any(|event| event["type"] == "token" && event.to_string().contains('<')),
        "{stdout}"
    );
    model.assert_clean();
}

#[test]
fn a_call_left_in_the_text_is_run() {
    for raw in [
        call_in_text("x"),
        "```json\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"f\", \"content\": \"x\"}}\n```"
            .to_owned(),
        "[TOOL_CALLS][{\"name\": \"write_file\", \"arguments\": {\"path\": \"f\", \"content\": \"x\"}}]"
            .to_owned(),
        "<function=write_file>{\"path\": \"f\", \"content\": \"x\"}</function>".to_owned(),
        "{\"name\": \"write_file\", \"parameters\": {\"path\": \"f\", \"content\": \"x\"}}".to_owned(),
    ] {
        let model = FakeLlama::start([Reply::text(&raw), Reply::text("done")]);
        let home = TestHome::new(&model.url());
        assert_eq!(run_go(&home).success(), "done\n", "{raw}");
        assert_eq!(written_file(&home), "x");
        let call = &model.chats()[1]["messages"][2]["tool_calls"][0]["function"];
        assert_eq!(call["name"], "write_file");
        model.assert_clean();
    }
}

#[test]
fn an_example_in_the_answer_is_not_run() {
    let answer = format!("You call it like this:\n```\n{}\n```", call_in_text("x"));
    let model = without_tool_template([Reply::text(&answer)]);
    let home = TestHome::new(&model.url());
    assert_eq!(run_go(&home).success(), format!("{answer}\n"));
    assert!(!home.work_dir().join("f").exists());
}

#[test]
fn an_unambiguous_malformed_call_is_repaired_and_run() {
    let model = FakeLlama::start([call("WriteFile", "{'path': 'f', content: \"x\",}"), Reply::text("done")]);
    let home = TestHome::new(&model.url());
    let stdout = home.run(&["run", "--session", "s", "--json", "--auto-approve", "go"]).success();
    let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
    model.assert_clean();
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
        model.assert_clean();
    }
}

#[test]
fn a_call_that_cannot_be_repaired_is_reported_to_the_model() {
    let model = FakeLlama::start([
        call("write_file", BROKEN),
        Reply::text("{\"path\": ").finish("length"),
        call("write_file", BROKEN),
        Reply::error(400, "no grammar"),
        Reply::text("then not"),
    ]);
    let home = TestHome::new(&model.url());
    assert_eq!(run_go(&home).success(), "then not\n");
    assert!(!home.work_dir().join("f").exists());
    let messages = messages_after(&model.chats()[4], 3);
    assert!(
        messages[0].starts_with("tool: the arguments are not valid JSON")
            && messages[2].starts_with(&messages[0]),
        "{messages:?}"
    );
    model.assert_clean();
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
    let model = FakeLlama::with(other(), script);
    let home = TestHome::new(&model.url());
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
    model.assert_clean();
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
        model.assert_clean();
    }
}

#[test]
fn a_call_cut_after_a_whole_one_is_reported_to_the_model() {
    let model = without_tool_template([
        Reply::text(&format!("{}\n<tool_call>{{\"name\": \"wri", call_in_text("x"))).finish("length"),
        Reply::text("done"),
    ]);
    let home = TestHome::new(&model.url());
    assert_eq!(run_go(&home).success(), "done\n");
    assert_eq!(written_file(&home), "x");
    let messages = messages_after(&model.chats()[1], 2);
    assert!(messages[1].contains("[your answer was cut behind this call"), "{messages:?}");
    model.assert_clean();
}
