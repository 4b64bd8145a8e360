//! Models that work in steps: what they are offered, how they write files, and what they say that they have done.

use kontekst_agent::{
    StartRun,
    protocol::{Event, FailureKind},
};
use kontekst_core::AnswerFormat;
use serde_json::json;

use super::{super::TestCore, Step, answer, edit, facts, failure, read, results};

/// Starts a run of a model in steps that says which kind of work the request is, if there is a kind.
async fn run(test: &TestCore, kind: Option<&'static str>, prompt: &str) -> Vec<Event> {
    test.model.set_kind(kind);
    test.agent("steps", "tool_role = \"steps\"\n");
    let mut request = StartRun { agent: "steps".to_owned(), ..test.request(prompt) };
    request.context.opening = true;
    request.tools.reading_is_free = true;
    test.run(request).await
}

fn write(path: &str) -> Step {
    Step::Call(vec![("write_file", json!({"path": path}))])
}

fn done(changed: &[&str], text: &str) -> Step {
    Step::Call(vec![("done", json!({"changed": changed, "text": text}))])
}

fn more() -> Step {
    Step::Call(vec![("more_tools", json!({}))])
}

/// Returns for each step the tools that were withheld, without requests for the content of a file and for the kind.
fn withheld(test: &TestCore) -> Vec<Vec<String>> {
    let requests = test.model.requests();
    let steps = requests.into_iter().filter(|request| !request.tools.is_empty());
    steps.map(|request| request.steps.withheld_tools).collect()
}

#[tokio::test]
async fn a_file_is_written_as_text_after_the_step_that_names_it() {
    let test = TestCore::new([
        write("a.ini"),
        Step::Say("Here it is:\n```ini\np = 2\n\nq = 1\n```\n"),
        done(&["a.ini"], "It is set."),
    ]);
    test.write("a.ini", "p = 1\n\nq = 1\n");
    test.write("b.ini", "r = 3\n");
    let events = run(&test, None, "set p to 2 in a.ini, not in b.ini").await;
    assert_eq!((answer(&events), test.read("a.ini").as_str()), ("It is set.", "p = 2\n\nq = 1\n"));
    let texts =
        events.iter().filter_map(|event| if let Event::Text(text) = event { Some(&**text) } else { None });
    assert_eq!(texts.collect::<String>(), "It is set.", "the file is not shown as an answer");
    let requests = test.model.requests();
    let asked = &requests[1].messages[0].content;
    assert_eq!((requests[1].messages.len(), requests[1].tools.len()), (1, 0), "a conversation of its own");
    let start =
        "b.ini:\n```\nr = 3\n```\n\na.ini:\n```\np = 1\n\nq = 1\n```\n\nWrite the whole content of a.ini";
    assert!(asked.starts_with(start) && asked.contains("with this change: set p to 2"), "{asked}");
    let call = requests[2].messages.iter().find_map(|message| message.tool_calls.first()).unwrap();
    assert_eq!(call.arguments, r#"{"path": "a.ini", "content": "p = 2\n\nq = 1\n"}"#);
    assert_eq!(facts(&events).changed_files, ["a.ini"]);
}

#[tokio::test]
async fn a_request_that_refers_to_an_earlier_one_is_read_with_it() {
    let steps =
        [Step::Say("I would set the port to 9000."), write("a.ini"), Step::Say("```\nport = 9000\n```")];
    let test = TestCore::new(steps.into_iter().chain([done(&["a.ini"], "It is set.")]));
    test.agent("steps", "tool_role = \"steps\"\n");
    test.write("a.ini", "port = 1\n");
    for prompt in ["What should the port in a.ini be?", "Yes, do that."] {
        let mut request = StartRun { agent: "steps".to_owned(), ..test.in_session("s", prompt) };
        request.tools.reading_is_free = true;
        test.run(request).await;
    }
    let asked = test.model.requests()[2].messages[0].content.clone();
    let earlier = "The user said before: What should the port in a.ini be?\n\nYou said before: I would set the port to 9000.\n\na.ini:";
    assert!(asked.starts_with(earlier) && asked.contains("with this change: Yes, do that."), "{asked}");
    assert_eq!(test.read("a.ini"), "port = 9000\n");
}

#[tokio::test]
async fn a_file_is_not_written_twice_with_nothing_done_between() {
    let content = || Step::Say("```\none\n```");
    let steps =
        [write("a.txt"), content(), write("a.txt"), more(), write("b.txt"), content(), write("a.txt")];
    let test = TestCore::new(steps.into_iter().chain([content(), done(&["a.txt", "b.txt"], "Both.")]));
    let events = run(&test, Some("write"), "make them").await;
    assert_eq!(
        (answer(&events), facts(&events).changed_files.as_slice()),
        ("Both.", ["a.txt", "b.txt"].map(str::to_owned).as_slice())
    );
    assert_eq!(results(&test, 9).len(), 3, "the step that wrote it again is no call");
    let withheld = &withheld(&test)[2];
    assert!(withheld.contains(&"write_file".to_owned()), "the model is to do something else: {withheld:?}");
}

#[tokio::test]
async fn an_answer_without_the_file_and_a_file_that_is_too_large_are_no_change() {
    let test = TestCore::new([write("a.ini"), Step::Say("I cannot."), Step::Say("It cannot be done.")]);
    test.write("a.ini", "p = 1\n");
    assert_eq!(answer(&run(&test, None, "set p to 2 in a.ini").await), "It cannot be done.");
    assert!(results(&test, 2)[0].starts_with("nothing was written: "), "{:?}", results(&test, 2));

    let test = TestCore::new([write("a.ini"), edit("a.ini", "p = 1", "p = 2"), done(&["a.ini"], "done")]);
    test.write("a.ini", &format!("p = 1\n{}", "# a comment\n".repeat(1000)));
    assert_eq!(answer(&run(&test, None, "set p to 2 in a.ini").await), "done");
    let is_withheld = |tools: &Vec<String>| tools.contains(&"edit_file".to_owned());
    assert_eq!(withheld(&test).iter().map(is_withheld).collect::<Vec<_>>(), [true, false, false]);
}

#[tokio::test]
async fn the_kind_of_work_chooses_the_tools_and_the_model_gets_the_others() {
    let test = TestCore::new([
        more(),
        more(),
        write("new.txt"),
        Step::Say("```\nx\n```"),
        done(&["new.txt"], "made"),
    ]);
    let events = run(&test, Some("talk"), "please, a new file").await;
    assert_eq!((answer(&events), test.read("new.txt").as_str()), ("made", "x\n"));
    let withheld = withheld(&test);
    assert!(
        ["read_file", "write_file"].iter().all(|name| withheld[0].contains(&(*name).to_owned())),
        "{withheld:?}"
    );
    // What only reads comes first.
    let is_withheld = |name: &str| withheld[1].contains(&name.to_owned());
    assert!(is_withheld("write_file") && !is_withheld("read_file"), "{withheld:?}");
    assert_eq!(withheld[2..], [Vec::<String>::new(), Vec::new()]);
    let kind = &test.model.requests()[0];
    assert!(matches!(kind.options.format, AnswerFormat::JsonSchema(_)) && kind.tools.is_empty());

    let test = TestCore::new([read("a.txt"), Step::Say("one")]);
    test.write("a.txt", "one\n");
    let events = run(&test, Some("read"), "what is in it?").await;
    assert_eq!((answer(&events), test.model.requests().len()), ("one", 3));
}

#[tokio::test]
async fn a_file_that_the_model_says_it_has_changed_is_looked_at() {
    let test = TestCore::new([
        done(&["a.txt"], "Changed."),
        edit("a.txt", "one", "two"),
        done(&["./a.txt"], "Changed."),
    ]);
    test.write("a.txt", "one\n");
    assert_eq!(answer(&run(&test, None, "say two in a.txt").await), "Changed.");
    let asked = test.model.requests()[1].messages.last().unwrap().content.clone();
    assert!(asked.starts_with("You say that a.txt was changed, and it is as it was before."), "{asked}");

    let test = TestCore::new([done(&["a.txt"], "Changed."), done(&["a.txt"], "Changed.")]);
    test.write("a.txt", "one\n");
    let events = run(&test, None, "say two in a.txt").await;
    let reason = "the model says that it has changed a.txt, and that is as it was";
    assert_eq!(failure(&events), (FailureKind::Model, reason));
    assert!(!events.contains(&Event::Text("Changed.".to_owned())), "what is untrue is not printed");
}

#[tokio::test]
async fn that_nothing_has_to_be_changed_is_an_answer() {
    let test = TestCore::new([Step::Say("It says two already.")]);
    test.write("a.txt", "two\n");
    let events = run(&test, Some("write"), "say two in a.txt").await;
    assert_eq!((answer(&events), test.model.requests().len()), ("It says two already.", 2));
    // A question to which the model knows the answer needs no work.
    let test = TestCore::new([Step::Say("Paris")]);
    assert_eq!(answer(&run(&test, Some("talk"), "one word: the capital of France").await), "Paris");
}

#[tokio::test]
async fn a_loop_ends_the_run_and_waiting_with_a_command_does_not() {
    let test = TestCore::new((0..10).map(|_| read("a.txt")));
    test.write("a.txt", "one\n");
    let events = run(&test, None, "what is in a.txt?").await;
    let reason = "the model called read_file 4 times with the same arguments and the same result";
    assert_eq!((failure(&events), test.model.requests().len()), ((FailureKind::Limit, reason), 4));
    let is_withheld = |tools: &Vec<String>| tools.contains(&"read_file".to_owned());
    assert_eq!(withheld(&test).iter().map(is_withheld).collect::<Vec<_>>(), [false, false, true, true]);

    let names = ["a1", "a2", "a3", "a4", "a5", "a6"];
    let test = TestCore::new(names.into_iter().map(read).chain([Step::Say("There are none.")]));
    assert_eq!(answer(&run(&test, Some("read"), "go").await), "There are none.", "other files are no loop");
}
