//! Texts that still stand somewhere although they were to be replaced everywhere.

use super::*;

const PROMPT: &str = "Rename the function calc to subtotal, everywhere it is used.";

/// A project in which `calc` stands in two files, and in two more where it does not count.
fn project(steps: impl IntoIterator<Item = Step>) -> TestCore {
    let test = TestCore::new(steps);
    test.write("shop.py", "def calc(n):\n    return n\n");
    test.write("cart.py", "from shop import calc\n\nprint(calc(1))\n");
    test.write("notes.md", "calculate with my-calc, see calc.py\n");
    test.write(".env", "calc=1\n");
    test
}

fn edit_all(path: &str, old: &str, new: &str) -> Step {
    let args = json!({"path": path, "old_str": old, "new_str": new, "occurrence": 0});
    Step::Call(vec![("edit_file", args)])
}

fn last_read(test: &TestCore) -> String {
    test.model.requests().last().unwrap().messages.last().unwrap().content.clone()
}

#[tokio::test]
async fn the_model_reads_where_the_old_name_still_stands() {
    let steps = [
        edit_all("shop.py", "calc", "subtotal"),
        Step::Say("It is renamed everywhere."),
        edit_all("cart.py", "calc", "subtotal"),
        Step::Say("Now it is."),
    ];
    let test = project(steps);
    let events = test.run(test.in_session("s", PROMPT)).await;
    assert_eq!(answer(&events), "Now it is.");
    let note = test.model.requests()[2].messages.last().unwrap().content.clone();
    assert_eq!(
        note,
        "`calc` still stands in cart.py:1, cart.py:3. Replace it there by `subtotal`, too. Call edit_file with path \
         \"cart.py\", old_str \"from shop import calc\" and new_str \"from shop import subtotal\"."
    );
    assert!(withheld(&test)[2].1, "a tool has to be called");
    assert!(test.stored_messages("s").iter().all(|message| !message.content.contains("still stands")));
}

#[tokio::test]
async fn a_run_after_which_the_old_name_still_stands_fails_with_the_places() {
    let steps = [edit_all("shop.py", "calc", "subtotal")];
    let test = project(steps.into_iter().chain((0..3).map(|_| Step::Say("It is renamed everywhere."))));
    let events = test.run(test.request(PROMPT)).await;
    assert_eq!(failure(&events), (FailureKind::Model, "`calc` still stands in cart.py:1, cart.py:3"));
    assert_eq!(test.model.requests().len(), 4);
}

#[tokio::test]
async fn only_the_files_that_the_request_names_are_looked_at() {
    for (prompt, expected) in [
        ("rename calc to subtotal in shop.py", "Done."),
        ("in shop.py, replace every `calc` with `subtotal`", "Done."),
        // Without a place, the files that the run has changed.
        ("replace every `calc` with `subtotal`", "Done."),
    ] {
        let test = project([edit_all("shop.py", "calc", "subtotal"), Step::Say("Done.")]);
        assert_eq!(answer(&test.run(test.request(prompt)).await), expected, "{prompt}");
    }

    let steps = [
        edit("cart.py", "import calc", "import subtotal"),
        Step::Say("Done."),
        edit("cart.py", "calc", "subtotal"),
        Step::Say("Now."),
    ];
    let test = project(steps);
    let events = test.run(test.request("replace every `calc` with `subtotal`")).await;
    assert_eq!(answer(&events), "Now.");
    assert_eq!(
        test.model.requests()[2].messages.last().unwrap().content,
        "`calc` still stands in cart.py:3. Replace it there by `subtotal`, too. Call edit_file with path \"cart.py\", old_str \
         \"print(calc(1))\" and new_str \"print(subtotal(1))\"."
    );
}

#[tokio::test]
async fn a_denied_call_and_a_rail_that_is_off_end_the_search() {
    let test = project([edit_all("shop.py", "calc", "subtotal"), Step::Say("You did not want it.")]);
    let mut run = test.start(test.request(PROMPT));
    let deny = |call: &ProposedCall| Command::decision(call.call.id.clone(), false, String::new(), true);
    let events = run_to_end(&mut run, |event| match event {
        Event::ToolsProposed(calls) => calls.iter().map(deny).collect(),
        _ => Vec::new(),
    })
    .await;
    assert_eq!(answer(&events), "You did not want it.");

    let test = project([edit_all("shop.py", "calc", "subtotal"), Step::Say("Done.")]);
    test.agent("off", "[rails]\nunfinished = false\n");
    let request = StartRun { agent: "off".to_owned(), ..test.request(PROMPT) };
    assert_eq!(answer(&test.run(request).await), "Done.");
}

#[tokio::test]
async fn ignored_and_binary_files_and_many_places_are_no_problem() {
    let steps = [
        edit_all("shop.py", "calc", "subtotal"),
        edit_all("cart.py", "calc", "subtotal"),
        Step::Say("Done."),
    ];
    let test = project(steps);
    test.write(".gitignore", "built.py\n");
    test.write("built.py", "calc(1)\n");
    test.write("image.bin", "\u{1}\0\u{2}\0calc\n");
    assert_eq!(answer(&test.run(test.request(PROMPT)).await), "Done.");

    let test = project((0..3).map(|_| Step::Say("Done.")).collect::<Vec<_>>().into_iter().chain([]));
    test.write("many.py", &"calc(1)\n".repeat(100_000));
    let events = test.run(test.request(PROMPT)).await;
    assert_eq!(failure(&events).1, "the model was asked for a change and changed no file");
    assert!(last_read(&test).starts_with("No file has been changed yet."));

    let steps = [edit_all("shop.py", "calc", "subtotal")];
    let test = project(steps.into_iter().chain((0..3).map(|_| Step::Say("Done."))));
    test.write("many.py", &"calc(1)\n".repeat(100_000));
    let events = test.run(test.request(PROMPT)).await;
    assert_eq!(failure(&events).1.matches(".py:").count(), 8, "{}", failure(&events).1);
}
