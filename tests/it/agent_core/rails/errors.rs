//! Calls that fail, and what helps.

use kontekst::agent::{StartRun, protocol::FailureKind};
use serde_json::{Value, json};

use super::{super::TestCore, Step, answer, edit, failure};

/// Runs these calls in a directory with `src/report.py` and `notes.txt`, and returns the results as the model read them.
async fn results(calls: Vec<(&'static str, Value)>) -> Vec<String> {
    let count = calls.len();
    let steps = calls.into_iter().map(|call| Step::Call(vec![call])).chain([Step::Say("done")]);
    let test = TestCore::new(steps);
    std::fs::create_dir(test.work_dir().join("src")).unwrap();
    test.write("src/report.py", "total = 1\nprint(total)\n");
    test.write("notes.txt", "a note\n");
    // The answer may follow a failed change.
    test.agent("brief", "[rails]\nunfinished = false\n");
    let request = StartRun { agent: "brief".to_owned(), ..test.request("go") };
    assert_eq!(answer(&test.run(request).await), "done");
    let last = &test.model.requests()[count];
    last.messages.iter().filter_map(|message| Some(message.tool_result.as_ref()?.output.clone())).collect()
}

#[tokio::test]
async fn an_edit_that_fails_again_shows_the_file_and_then_another_way() {
    let edit = |old: &str| ("edit_file", json!({"path": "src/report.py", "old_str": old, "new_str": "x"}));
    let read = results(vec![edit("sum = 1"), edit("sum = 2"), edit("sum = 3")]).await;
    assert_eq!(read[0], "old_str not found in src/report.py");
    assert_eq!(
        read[1],
        "old_str not found in src/report.py\n\nAll of src/report.py, between the lines:\n-----\ntotal = 1\n\
         print(total)\n-----\nCall it like this:\nedit_file(path: string, old_str: string, new_str: string, \
         replace_all?: boolean)"
    );
    assert!(
        read[2].contains("or call write_file with the whole new content of src/report.py"),
        "{}",
        read[2]
    );
    assert!(read[2].contains("Do not make the same call again."), "{}", read[2]);
}

#[tokio::test]
async fn after_two_failed_edits_the_next_one_chooses_a_line_of_the_file() {
    let steps = [edit("a.ini", "p=1", "p=2"), edit("a.ini", "p: 1", "p=2"), edit("a.ini", "p = 1", "p = 2")];
    let test = TestCore::new(steps.into_iter().chain([Step::Say("It is set.")]));
    test.write("a.ini", "p = 1\n\nq = 1\n");
    assert_eq!(answer(&test.run(test.request("set p to 2 in a.ini")).await), "It is set.");
    let narrowed: Vec<_> = test
        .model
        .requests()
        .into_iter()
        .map(|request| request.steps.narrowed.map(|call| (call.tool, call.values, request.steps.must_call)))
        .collect();
    let of =
        |name: &str, texts: &[&str]| (name.to_owned(), texts.iter().map(|&text| text.to_owned()).collect());
    let values = vec![of("path", &["a.ini"]), of("old_str", &["p = 1", "q = 1"])];
    assert_eq!(narrowed, [None, None, Some(("edit_file".to_owned(), values, true)), None]);
}

#[tokio::test]
async fn a_file_that_does_not_exist_has_similar_names() {
    let read = |path: &str| ("read_file", json!({"path": path}));
    let results = results(vec![read("lib/report.py"), read("reprt.py"), read("/srv/nots.txt")]).await;
    assert_eq!(results[0], "file does not exist: lib/report.py. Did you mean `src/report.py`?");
    assert!(
        results[1].starts_with("file does not exist: reprt.py. Did you mean `src/report.py`?"),
        "{}",
        results[1]
    );
    assert!(results[2].contains("relative to it. Did you mean `notes.txt`?"), "{}", results[2]);
}

#[tokio::test]
async fn the_fourth_failure_in_a_row_ends_the_run_and_a_success_starts_again() {
    let call = |name: &'static str, path: String| Step::Call(vec![(name, json!({"path": path}))]);
    let test = TestCore::new((0..9).map(|number| call("read_file", format!("missing{number}"))));
    let events = test.run(test.request("go")).await;
    let (kind, message) = failure(&events);
    assert_eq!(kind, FailureKind::Limit);
    assert!(
        message.starts_with("the model called read_file in 4 turns in a row without success"),
        "{message}"
    );
    assert_eq!(test.model.requests().len(), 4);

    let test = TestCore::new((0..9).map(|number| call("open_file", format!("a{number}"))));
    let message = failure(&test.run(test.request("go")).await).1.to_owned();
    assert!(message.contains("a tool that does not exist in 4 turns"), "{message}");

    let alternating = (0..8).map(|number| match number % 2 {
        0 => call("read_file", format!("missing{number}")),
        _ => call("read_file", format!("f{number}")),
    });
    let test = TestCore::new(alternating.chain([Step::Say("done")]));
    for number in [1, 3, 5, 7] {
        test.write(&format!("f{number}"), "x\n");
    }
    assert_eq!(answer(&test.run(test.request("go")).await), "done");
}

#[tokio::test]
async fn secrets_are_not_shown_as_help() {
    let test = TestCore::new(
        (0..3)
            .map(|number| {
                Step::Call(vec![(
                    "edit_file",
                    json!({"path": "token.txt", "old_str": format!("none{number}"), "new_str": "x"}),
                )])
            })
            .chain((0..3).map(|_| Step::Say("done"))),
    );
    test.write("token.txt", "hunter2\n");
    test.run(test.request("go")).await;
    let requests = format!("{:?}", test.model.requests());
    assert!(requests.contains("edit_file(path: string") && !requests.contains("hunter2"), "{requests}");
}
