//! The listing and the files that come with a prompt.

use kontekst_agent::{
    DaemonTools, StartRun,
    protocol::{Event, Outcome},
};

use super::{super::scripted_provider::Step, TestCore, answer, read};

/// Returns the request of a model that works in steps, as small ones do.
fn opening(test: &TestCore, session: &str, prompt: &str) -> StartRun {
    test.agent("steps", "tool_role = \"steps\"\n");
    let mut request = StartRun { agent: "steps".to_owned(), ..test.in_session(session, prompt) };
    request.context.opening = true;
    request
}

fn notices(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Notice(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_file_that_the_prompt_names_comes_with_it_and_stays_in_the_conversation() {
    let test = TestCore::new([read("b.txt"), Step::Say("It is one."), Step::Say("You are welcome.")]);
    test.write("a.txt", "one\n");
    test.write("b.txt", "two\n");
    let events = test.run(opening(&test, "s", "what is in a.txt?")).await;
    assert_eq!(answer(&events), "It is one.");
    assert_eq!(notices(&events), ["opening: listed 2 file(s), read a.txt"]);
    let events = test.run(opening(&test, "s", "thanks")).await;
    assert_eq!(notices(&events), Vec::<&str>::new(), "nothing is new");

    let requests = test.model.requests();
    let prompt = &requests[0].messages[0];
    assert_eq!(
        prompt.with_context(),
        "The files in the working directory:\na.txt\nb.txt\n\na.txt holds:\n```\none\n```\n\n---\n\nwhat is in a.txt?"
    );
    assert_eq!(prompt.content, "what is in a.txt?");
    assert_eq!(requests[1].messages[0], *prompt, "the prompt stays while the run grows");
    assert_eq!(requests[2].messages[0].with_context(), prompt.with_context(), "and in later runs");
    let stored = &test.stored_messages("s")[0];
    assert_eq!((&stored.content, &stored.context), (&prompt.content, &prompt.context));
}

#[tokio::test]
async fn only_what_the_conversation_does_not_have_comes_with_a_later_prompt() {
    let edit = serde_json::json!({"path": "a.txt", "old_str": "one", "new_str": "two"});
    let steps = [
        Step::Say("One."),
        Step::Say("Still one."),
        Step::Call(vec![("edit_file", edit)]),
        Step::Say("Done."),
        Step::Say("One again."),
    ];
    let test = TestCore::new(steps);
    test.write("a.txt", "one\n");
    let listing = "The files in the working directory:\na.txt";
    let file = "a.txt holds:\n```\none\n```";
    let context = async |prompt: &str| {
        let events = test.run(opening(&test, "s", prompt)).await;
        assert!(matches!(events.last(), Some(Event::Ended(Outcome::Completed { .. }))), "{events:?}");
        let messages = test.stored_messages("s");
        let stored = messages.iter().rfind(|message| message.content == prompt).unwrap().context.clone();
        (stored, notices(&events).join("; "))
    };
    let first = context("what is in a.txt?").await;
    assert_eq!(first, (format!("{listing}\n\n{file}"), "opening: listed 1 file(s), read a.txt".to_owned()));
    assert_eq!(context("and now in a.txt?").await, (String::new(), String::new()));
    test.write("b.txt", "");
    let third = context("replace one by two in a.txt").await;
    assert_eq!(third, (format!("{listing}\nb.txt"), "opening: listed 2 file(s)".to_owned()));
    test.write("a.txt", "one\n");
    let fourth = context("what is in a.txt now?").await;
    assert_eq!(fourth, (file.to_owned(), "opening: read a.txt".to_owned()), "a call has named it since");
}

#[tokio::test]
async fn the_opening_is_given_to_small_models_and_not_where_reading_is_asked_about() {
    let first_prompt = async |test: &TestCore, request: StartRun| {
        let events = test.run(request).await;
        assert!(matches!(events.last(), Some(Event::Ended(Outcome::Completed { .. }))), "{events:?}");
        test.model.requests()[0].messages[0].with_context().into_owned()
    };
    let new = || {
        let write = serde_json::json!({"path": "new.txt", "content": "x\n"});
        let test = TestCore::new([Step::Call(vec![("write_file", write)]), Step::Say("done")]);
        test.write("a.txt", "one\n");
        test
    };
    let prompt = "create new.txt with x";
    let test = new();
    assert!(
        first_prompt(&test, opening(&test, "s", prompt))
            .await
            .starts_with("The files in the working directory:\na.txt\n")
    );

    let test = new();
    assert_eq!(first_prompt(&test, test.request(prompt)).await, prompt, "the client would ask about reading");

    let test = new();
    let mut request = opening(&test, "s", prompt);
    request.tools.daemon = DaemonTools::Only(vec!["write_file".to_owned(), "edit_file".to_owned()]);
    assert_eq!(first_prompt(&test, request).await, prompt, "the run may not read");

    let test = new();
    test.agent("plain", "tool_role = \"steps\"\n[rails]\nopening = false\n");
    let request = StartRun { agent: "plain".to_owned(), ..opening(&test, "s", prompt) };
    assert_eq!(first_prompt(&test, request).await, prompt, "it is off");

    let test = new();
    let request = StartRun { agent: String::new(), ..opening(&test, "s", prompt) };
    assert_eq!(first_prompt(&test, request).await, prompt, "a large model reads what it needs");
}

#[tokio::test]
async fn a_file_with_secrets_does_not_come_with_a_prompt() {
    let test = TestCore::new([Step::Say("I have not read it.")]);
    test.write(".env", "KEY=abc\n");
    test.run(opening(&test, "s", "what is in .env and a.txt?")).await;
    assert!(!format!("{:?}", test.model.requests()).contains("KEY=abc"));
}
