//! Files that the request names and that the run leaves as they are.

use super::*;

const PROMPT: &str =
    "Set the port in a.toml to 90, and create a file NEWS.txt that contains the line: port 90";

fn project(steps: impl IntoIterator<Item = Step>) -> TestCore {
    let test = TestCore::new(steps);
    test.write("a.toml", "port = 80\n");
    test.write("b.toml", "port = 80\n");
    test
}

fn last_read(test: &TestCore, request: usize) -> String {
    let message = test.model.requests()[request].messages.last().unwrap().clone();
    message.tool_result.map_or(message.content, |result| result.output)
}

#[tokio::test]
async fn the_model_reads_which_file_is_as_it_was() {
    let steps = [
        edit("a.toml", "80", "90"),
        Step::Say("Both are done."),
        write("NEWS.txt", "port 90\n"),
        Step::Say("Now they are."),
    ];
    let test = project(steps);
    let events = test.run(test.request(PROMPT)).await;
    assert_eq!(answer(&events), "Now they are.");
    assert_eq!(
        last_read(&test, 2),
        "The request is not done: NEWS.txt was to be created and does not exist. Do this now: create a file NEWS.txt that \
         contains the line: port 90"
    );
    assert!(withheld(&test)[2].1, "a tool has to be called");
}

#[tokio::test]
async fn a_run_that_changes_another_file_fails_with_the_one_that_was_meant() {
    let steps = [edit("b.toml", "80", "90")];
    let test = project(steps.into_iter().chain((0..3).map(|_| Step::Say("It is set."))));
    let events = test.run(test.request("Set the port in a.toml to 90.")).await;
    assert_eq!(failure(&events), (FailureKind::Model, "a.toml was to be changed and is as it was"));
    assert_eq!(test.model.requests().len(), 4);
}

#[tokio::test]
async fn each_of_many_files_is_asked_for() {
    let files: Vec<String> = (0..5).map(|number| format!("f{number}.txt")).collect();
    let clauses: Vec<String> = files.iter().map(|file| format!("create {file} with the text x")).collect();
    let mut steps = Vec::new();
    for file in &files {
        steps.extend([write(file, "x\n"), Step::Say("It is done.")]);
    }
    let test = TestCore::new(steps);
    let events = test.run(test.request(&clauses.join(", and "))).await;
    assert_eq!(answer(&events), "It is done.");
    assert!(files.iter().all(|file| test.read(file) == "x\n"));
}

#[tokio::test]
async fn files_that_may_be_as_they_have_to_be_are_no_problem() {
    for (prompt, step) in [
        // The request has the wrong directory, or a name that does not exist.
        ("Set the port in conf/a.toml to 90.", edit("a.toml", "80", "90")),
        ("Set the port in c.toml to 90.", edit("a.toml", "80", "90")),
        // The file that is to be created is there.
        ("Set the port in a.toml to 90, and create b.toml.", edit("a.toml", "80", "90")),
        ("Set the port in a.toml to the one in b.toml.", edit("a.toml", "80", "90")),
    ] {
        let test = project([step, Step::Say("Done.")]);
        assert_eq!(answer(&test.run(test.request(prompt)).await), "Done.", "{prompt}");
    }
}

#[tokio::test]
async fn a_denied_call_and_a_rail_that_is_off_end_the_questions() {
    let test =
        project([edit("a.toml", "80", "90"), write("NEWS.txt", "port 90\n"), Step::Say("As you wish.")]);
    let mut run = test.start(test.request(PROMPT));
    let deny = |call: &ProposedCall| {
        Command::decision(call.call.id.clone(), call.call.name == "edit_file", String::new(), true)
    };
    let events = run_to_end(&mut run, |event| match event {
        Event::ToolsProposed(calls) => calls.iter().map(deny).collect(),
        _ => Vec::new(),
    })
    .await;
    assert_eq!(answer(&events), "As you wish.");

    let test = project([edit("a.toml", "80", "90"), Step::Say("Done.")]);
    test.agent("off", "[rails]\nunfinished = false\n");
    let request = StartRun { agent: "off".to_owned(), ..test.request(PROMPT) };
    assert_eq!(answer(&test.run(request).await), "Done.");
}

#[tokio::test]
async fn an_answer_that_only_repeats_the_result_is_replaced_by_what_was_changed() {
    let copy = "Successfully wrote 8 bytes to NEWS.txt\nNEWS.txt has 1 line now.";
    let test = project([edit("a.toml", "80", "90"), write("NEWS.txt", "port 90\n"), Step::Say(copy)]);
    let events = test.run(test.request(PROMPT)).await;
    assert_eq!(answer(&events), "Created NEWS.txt. Changed a.toml.");
    let is_seen = events
        .iter()
        .any(|event| matches!(event, Event::Text(text) if text == "Created NEWS.txt. Changed a.toml."));
    assert!(is_seen, "a client that prints the pieces of the answer has to see it: {events:?}");
}

/// A run of a very small model that works in steps.
async fn very_small(test: &TestCore, prompt: &str) -> Vec<Event> {
    test.model.set_parameters(494_032_768);
    test.agent("steps", "tool_role = \"steps\"\n");
    test.run(StartRun { agent: "steps".to_owned(), ..test.request(prompt) }).await
}

#[tokio::test]
async fn a_very_small_model_writes_the_files_that_it_has_left_out() {
    let steps = [
        edit("a.toml", "80", "90"),
        Step::Say("```\nport = 90\n```"),
        Step::Say("Both are done."),
        Step::Say("```\nport 90\n```"),
        Step::Say("Both are done."),
    ];
    let test = project(steps);
    assert_eq!(answer(&very_small(&test, PROMPT).await), "Both are done.");
    assert_eq!(
        (test.read("a.toml"), test.read("NEWS.txt")),
        ("port = 90\n".to_owned(), "port 90\n".to_owned())
    );
    assert!(last_read(&test, 1).contains("\n\nSet the port in a.toml to 90\n\nChange nothing else."));
    assert_eq!(
        last_read(&test, 3),
        "create a file NEWS.txt that contains the line: port 90\n\nWrite the content of NEWS.txt, all of it, in one code \
         block. Nothing else."
    );
}

#[tokio::test]
async fn a_very_small_model_does_not_change_a_file_again() {
    let steps = [
        edit("a.toml", "80", "90"),
        Step::Say("```\nport = 90\n```"),
        write("a.toml", "90\n"),
        Step::Say("It is set."),
    ];
    let test = project(steps);
    assert_eq!(answer(&very_small(&test, "Set the port in a.toml to 90.").await), "It is set.");
    assert_eq!(test.read("a.toml"), "port = 90\n");
    let result = last_read(&test, 3);
    assert!(result.contains("a.toml was changed as asked already"), "{result}");
}

#[tokio::test]
async fn a_file_that_the_request_does_not_name_is_left_alone_when_it_is_done() {
    let done = || [edit("a.toml", "80", "90"), write("NEWS.txt", "port 90\n")];
    for insists in [false, true] {
        let next = if insists { vec![edit("./b.toml", "80", "90")] } else { Vec::new() };
        let test = project(
            done().into_iter().chain([edit("./b.toml", "80", "90")]).chain(next).chain([Step::Say("Done.")]),
        );
        let events = test.run(test.request(PROMPT)).await;
        assert_eq!(answer(&events), "Done.");
        assert_eq!(
            last_read(&test, 3),
            "Nothing was changed: the request does not speak of b.toml. If what it speaks of is done, answer now. If it needs \
             this change, make this call again."
        );
        assert_eq!(withheld(&test)[3].0[..2], ["write_file", "edit_file"], "for one turn");
        assert_eq!(test.read("b.toml").contains("90"), insists);
    }
}

#[tokio::test]
async fn another_file_is_changed_where_the_request_may_mean_it() {
    for prompt in [
        "Set the port in a.toml to 90 and adapt what uses it",
        "Set the port in a.toml to 90, as in b",
        "Set the port to 90 everywhere, in a.toml, too",
        "Repair the port in a.toml",
    ] {
        let test = project([edit("a.toml", "80", "90"), edit("b.toml", "80", "90"), Step::Say("Done.")]);
        assert_eq!(answer(&test.run(test.request(prompt)).await), "Done.", "{prompt}");
        assert!(test.read("b.toml").contains("90"), "{prompt}");
    }
    // The first change may be of any file: the request can have a wrong name.
    let test = project([
        edit("b.toml", "80", "90"),
        Step::Say("Done."),
        edit("a.toml", "80", "90"),
        Step::Say("Done."),
    ]);
    answer(&test.run(test.request("Set the port in a.toml to 90")).await);
    assert!(test.read("a.toml").contains("90") && test.read("b.toml").contains("90"));
}
