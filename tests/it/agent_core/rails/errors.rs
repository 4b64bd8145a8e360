//! Calls that fail, and what helps.

use kontekst::agent::{
    StartRun,
    protocol::{Event, FailureKind},
};
use serde_json::{Value, json};

use super::{super::TestCore, Step, answer, edit, failure, write};

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

/// Asks an agent that works in steps for a change of `a.ini`.
async fn change_in_steps(test: &TestCore) -> Vec<Event> {
    test.agent("steps", "tool_role = \"steps\"\n");
    test.run(StartRun { agent: "steps".to_owned(), ..test.request("set p to 2 in a.ini") }).await
}

#[tokio::test]
async fn after_a_failed_edit_in_steps_the_model_writes_the_file_anew() {
    let steps = [edit("a.ini", "p=1", "p=2"), Step::Say("```\np = 2\n\nq = 1\n```"), Step::Say("It is set.")];
    let test = TestCore::new(steps);
    test.write("a.ini", "p = 1\n\nq = 1\n");
    let events = change_in_steps(&test).await;
    assert_eq!((answer(&events), test.read("a.ini").as_str()), ("It is set.", "p = 2\n\nq = 1\n"));
    let texts: String = events
        .iter()
        .filter_map(|event| if let Event::Text(text) = event { Some(&**text) } else { None })
        .collect();
    assert_eq!(texts, "It is set.", "the file is not shown as an answer");
    let requests = test.model.requests();
    let sizes: Vec<_> =
        requests.iter().map(|request| (request.messages.len(), request.tools.is_empty())).collect();
    assert_eq!(
        sizes,
        [(1, false), (1, true), (5, false)],
        "a conversation of its own, of which the other has the edit"
    );
    let asked = &requests[1].messages[0].content;
    assert!(asked.starts_with("a.ini:\n```\np = 1\n\nq = 1\n```\n\nset p to 2 in a.ini\n\n"), "{asked}");
    let call = &requests[2].messages[3].tool_calls[0];
    assert_eq!(call.arguments, r#"{"new_str":"p = 2","old_str":"p = 1","path":"a.ini"}"#);
}

#[tokio::test]
async fn an_answer_without_the_file_is_followed_by_the_next_step() {
    let steps = [
        edit("a.ini", "p=1", "p=2"),
        Step::Say("I cannot."),
        edit("a.ini", "p = 1", "p = 2"),
        Step::Say("It is set."),
    ];
    let test = TestCore::new(steps);
    test.write("a.ini", "p = 1\n");
    assert_eq!(answer(&change_in_steps(&test).await), "It is set.");
    assert_eq!(test.model.requests().len(), 4);
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

/// The names of the tools that the third answer could not call: the one after a file that was written anew.
fn withheld_after_a_rewrite(test: &TestCore) -> Vec<String> {
    test.model.requests()[2].steps.withheld_tools.clone()
}

#[tokio::test]
async fn a_very_small_model_writes_the_file_of_its_first_change_anew() {
    for first in [edit("a.ini", "p = 1", "p = 1"), write("a.ini", "p = 1\n")] {
        let file = Step::Say("```\np = 2\nq = 1\n```");
        let test = TestCore::new([first, file, Step::Say("It is set.")]);
        test.model.set_parameters(494_032_768);
        test.write("a.ini", "p = 1\nq = 1\n");
        assert_eq!(answer(&change_in_steps(&test).await), "It is set.");
        assert_eq!(test.read("a.ini"), "p = 2\nq = 1\n");
        assert!(withheld_after_a_rewrite(&test).contains(&"edit_file".to_owned()));
        let calls: usize =
            test.model.requests()[2].messages.iter().map(|message| message.tool_calls.len()).sum();
        assert_eq!(calls, 1, "its own edit is not in the conversation");
    }
}

#[tokio::test]
async fn a_file_that_the_run_has_changed_is_not_written_anew() {
    let steps = [edit("a.ini", "p = 1", "p = 2"), edit("a.ini", "p = 1", "p = 2"), Step::Say("It is set.")];
    let test = TestCore::new(steps);
    test.write("a.ini", "p = 1\n");
    assert_eq!(answer(&change_in_steps(&test).await), "It is set.");
    assert!(test.model.requests().iter().all(|request| !request.tools.is_empty()));
}
