//! Answers that the run itself contradicts.

use super::*;

/// Returns the last thing that the model read before each answer.
fn last_read(test: &TestCore) -> Vec<String> {
    let last = |request: kontekst::provider::ChatRequest| request.messages.last().unwrap().content.clone();
    test.model.requests().into_iter().map(last).collect()
}

#[tokio::test]
async fn an_answer_is_none_while_the_last_change_is_a_failed_one() {
    let steps = [
        edit("a.txt", "one", "two"),
        edit("a.txt", "four", "five"),
        Step::Say("Both are changed."),
        edit("a.txt", "three", "five"),
        Step::Say("Both are changed now."),
    ];
    let test = TestCore::new(steps);
    test.write("a.txt", "one\nthree\n");
    let events = test.run(test.request("replace one with two and three with five in a.txt")).await;
    assert_eq!(answer(&events), "Both are changed now.");
    assert!(last_read(&test)[3].starts_with("Your last change failed: "), "{:?}", last_read(&test));
    assert!(withheld(&test)[3].1, "it has to try again before it may say that it was not done");
}

#[tokio::test]
async fn a_run_whose_last_change_failed_fails_with_that_name() {
    let steps = [edit("a.txt", "one", "two"), edit("a.txt", "four", "five")];
    let test = TestCore::new(steps.into_iter().chain((0..3).map(|_| Step::Say("Both are changed."))));
    test.write("a.txt", "one\nthree\n");
    let events = test.run(test.request("replace one with two and three with five in a.txt")).await;
    let (kind, message) = failure(&events);
    assert_eq!(kind, FailureKind::Model);
    assert!(message.starts_with("the last change failed and was not repaired: "), "{message}");
    let must_call: Vec<bool> = withheld(&test).into_iter().map(|(_, must_call)| must_call).collect();
    assert_eq!(must_call, [false, false, false, true, false]);
}

#[tokio::test]
async fn a_change_that_is_made_twice_is_no_failed_one() {
    let steps = [edit("a.txt", "one", "two"), edit("a.txt", "one", "two"), Step::Say("It is changed.")];
    let test = TestCore::new(steps);
    test.write("a.txt", "one\n");
    let events = test.run(test.request("replace one with two in a.txt")).await;
    assert_eq!(answer(&events), "It is changed.");
}

#[tokio::test]
async fn an_answer_is_none_before_the_file_parses_again() {
    let broken = edit("a.json", "80", "90,,");
    let test =
        TestCore::new([broken, Step::Say("Done."), edit("a.json", "90,,", "90"), Step::Say("Done now.")]);
    test.write("a.json", "{\"port\": 80}\n");
    let request = || test.request("set the port to 90 in a.json");
    assert_eq!(answer(&test.run(request()).await), "Done now.");
    assert!(withheld(&test)[2].1, "a tool has to be called");
    assert!(last_read(&test)[2].starts_with("Since your change a.json is no longer valid JSON"));

    // A second change that leaves it broken does not make it a file that was broken before.
    let steps = [edit("a.json", "80", "90,,"), edit("a.json", "90,,", "90,,,")];
    let test = TestCore::new(steps.into_iter().chain((0..3).map(|_| Step::Say("Done."))));
    test.write("a.json", "{\"port\": 80}\n");
    let events = test.run(test.request("set the port to 90 in a.json")).await;
    let message = failure(&events).1;
    assert!(message.starts_with("the run left a file that does not parse: a.json"), "{message}");

    // A file that never parsed is none of the run's making.
    let test = TestCore::new([edit("a.json", "80", "90"), Step::Say("Done.")]);
    test.write("a.json", "{\"port\": 80,,}\n");
    assert_eq!(answer(&test.run(test.request("set the port to 90 in a.json")).await), "Done.");
}

#[tokio::test]
async fn files_that_are_as_before_are_not_changed() {
    let steps = [write("a.txt", "one\n"), Step::Say("Done."), edit("a.txt", "one", "two"), Step::Say("Now.")];
    let test = TestCore::new(steps);
    test.write("a.txt", "one\n");
    assert_eq!(answer(&test.run(test.request("replace one with two in a.txt")).await), "Now.");

    let steps = [edit("a.txt", "one", "two"), edit("a.txt", "two", "one")];
    let test = TestCore::new(steps.into_iter().chain((0..3).map(|_| Step::Say("Done."))));
    test.write("a.txt", "one\n");
    let events = test.run(test.request("replace one with two in a.txt")).await;
    assert_eq!(failure(&events).1, "the model was asked for a change and changed no file");
}
