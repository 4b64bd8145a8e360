//! The results of calls as the model reads them.

use kontekst_agent::{RunOverrides, StartRun, protocol::Event};
use serde_json::{Value, json};

use super::{super::TestCore, Step, first_result};

/// Runs one call on `before`, the content of `f.json`, and returns what the model read and what the client got.
async fn results(before: Option<&str>, tool: &'static str, args: Value, bare: bool) -> (String, String) {
    let test =
        TestCore::new([Step::Call(vec![(tool, args)])].into_iter().chain((0..3).map(|_| Step::Say("done"))));
    if let Some(before) = before {
        test.write("f.json", before);
    }
    let overrides = RunOverrides { bare, ..RunOverrides::default() };
    let events = test.run(StartRun { overrides, ..test.request("replace all of it") }).await;
    let shown = events.iter().find_map(|event| match event {
        Event::ToolFinished { outcome, .. } => Some(outcome.text().to_owned()),
        _ => None,
    });
    (first_result(&test), shown.unwrap())
}

#[tokio::test]
async fn an_edit_shows_its_place_to_the_model_alone() {
    let file = "{\n  \"a\": 1,\n  \"b\": 2\n}\n";
    let edit = |old: &str, new: &str| json!({"path": "f.json", "old_str": old, "new_str": new});
    let done = "Replaced 1 occurrence(s) in f.json";
    let (read, shown) = results(Some(file), "edit_file", edit("1", "10"), false).await;
    assert_eq!(shown, done);
    assert_eq!(
        read,
        format!("{done}\n\nLines 1 to 4 of f.json are now:\n1: {{\n2:   \"a\": 10,\n3:   \"b\": 2\n4: }}")
    );
    let (read, _) = results(Some(file), "edit_file", edit("1", "10"), true).await;
    assert_eq!(read, done);
    let write = json!({"path": "f.json", "content": "[\n]\n"});
    let wrote = "Successfully wrote 4 bytes to f.json\n\nf.json has 2 lines now.";
    assert_eq!(results(None, "write_file", write.clone(), false).await.0, wrote);
    assert_eq!(
        results(Some("[\n]\n"), "write_file", write, false).await.0,
        "no change: f.json already has this content"
    );
}

#[tokio::test]
async fn a_result_takes_its_share_of_the_window_and_says_how_to_get_the_rest() {
    for (window, most) in [(32_768, 8_192), (4_096, 2_048)] {
        let read = |args| Step::Call(vec![("read_file", args)]);
        let test = TestCore::with_config(
            [read(json!({"path": "f"})), read(json!({"path": "f", "start_line": 4000})), Step::Say("long")],
            |config| config.context_size = Some(window),
        );
        test.write("f", &"a line of a large file\n".repeat(5000));
        test.run(test.request("read f")).await;
        let requests = test.model.requests();
        let result = requests[1].messages.last().unwrap();
        assert!(result.tokens <= most, "{} tokens", result.tokens);
        let output = &result.tool_result.as_ref().unwrap().output;
        assert!(
            output.starts_with("   1: a line") && output.ends_with("\n5000: a line of a large file"),
            "{output}"
        );
        let next = output.split("call read_file with start_line ").nth(1).unwrap();
        let next: usize = next.split(' ').next().unwrap().parse().unwrap();
        assert!(output.contains(&format!("\n{:>4}: a line of a large file\n", next - 1)), "{next}: {output}");
        assert!(!output.contains(&format!("\n{next:>4}: ")), "{output}");
    }
}
