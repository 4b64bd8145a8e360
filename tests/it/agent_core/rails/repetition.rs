//! Answers in which the model writes the same again and again.

use kontekst::provider::Delta;

use super::*;

#[tokio::test]
async fn an_answer_that_repeats_itself_is_stopped_and_asked_for_again() {
    for delta in [Delta::Text, Delta::Call, Delta::Reasoning] {
        let test = TestCore::new([Step::RepeatForEver(delta, "It says one. "), Step::Say("It says one.")]);
        let events = test.run(test.in_session("s", "what is in the file?")).await;
        assert_eq!(answer(&events), "It says one.");
        let messages = &test.model.requests()[1].messages;
        let note = &messages.last().unwrap().content;
        assert!(note.starts_with("You wrote the same text again and again"), "{note}");
        // Neither the next request nor the session has the repetitions.
        let long = |message: &kontekst::core::Message| message.content.len() > 200;
        assert!(!messages.iter().any(long), "{messages:?}");
        assert!(!test.stored_messages("s").iter().any(long));
    }
}

#[tokio::test]
async fn a_model_that_goes_on_repeating_itself_ends_the_run() {
    let test = TestCore::new((0..3).map(|_| Step::RepeatForEver(Delta::Text, "the same, ")));
    let events = test.run(test.request("what is in the file?")).await;
    assert_eq!(failure(&events), (FailureKind::Model, "the model repeated itself"));
    assert_eq!(test.model.requests().len(), 3);
}

#[tokio::test]
async fn a_repetition_that_may_be_wanted_is_not_stopped() {
    let long: &'static str = "hello there\n".repeat(2000).leak();
    let test = TestCore::new([Step::SayInBlocks(long)]);
    assert_eq!(answer(&test.run(test.request("write hello there 2000 times")).await), long);

    let test = TestCore::new([Step::SayInBlocks(long)]);
    test.agent("off", "[rails]\nrepeats = false\n");
    let request = StartRun { agent: "off".to_owned(), ..test.request("greet me") };
    assert_eq!(answer(&test.run(request).await), long);
}
