//! The notice that tells the user about the model: once in each session, and again when it changes.

use kontekst_agent::protocol::Event;

use super::{TestCore, scripted_provider::Step};

/// Runs a prompt and returns the notices.
async fn notices(test: &TestCore, session: &str) -> Vec<String> {
    let events = test.run(test.in_session(session, "hi")).await;
    let notice = |event| match event {
        Event::Notice(text) => Some(text),
        _ => None,
    };
    events.into_iter().filter_map(notice).collect()
}

#[tokio::test]
async fn a_session_shows_a_notice_once() {
    let test = TestCore::new(std::iter::repeat_n((), 8).map(|()| Step::Say("hello")));
    test.model.set_notice(Some("a small model answers"));
    assert_eq!(notices(&test, "one").await, ["a small model answers"]);
    assert_eq!(notices(&test, "one").await, [""; 0]);
    assert_eq!(notices(&test, "two").await, ["a small model answers"]);
    // Another model has answered in between, so the user has to learn that the small one does again.
    test.model.set_notice(None);
    assert_eq!(notices(&test, "one").await, [""; 0]);
    test.model.set_notice(Some("a small model answers"));
    assert_eq!(notices(&test, "one").await, ["a small model answers"]);
}

#[tokio::test]
async fn a_session_says_once_that_its_model_is_on_another_machine() {
    let test = TestCore::new(std::iter::repeat_n((), 2).map(|()| Step::Say("hello")));
    test.model.set_remote_server("http://192.0.2.1:8080");
    let first = notices(&test, "one").await;
    assert!(first.len() == 1 && first[0].contains("http://192.0.2.1:8080"), "{first:?}");
    assert_eq!(notices(&test, "one").await, [""; 0]);
}
