//! Answers in which the model writes the same again and again.

use kontekst_provider::Delta;

use super::*;

#[tokio::test]
async fn an_answer_that_repeats_itself_is_cut_and_the_run_ends_with_what_was_good() {
    let test = TestCore::new([Step::RepeatForEver(Delta::Text, "It says one. ")]);
    let events = test.run(test.in_session("s", "what is in the file?")).await;
    assert_eq!(answer(&events), "It says one. It says one. ");
    let said = "the model began to repeat itself and was stopped; the answer is what came before";
    assert!(events.contains(&Event::Notice(said.to_owned())), "{events:?}");
    assert!(test.stored_messages("s").iter().all(|message| message.content.len() < 200));
}

#[tokio::test]
async fn a_call_or_a_thought_that_repeats_itself_is_stopped_and_an_answer_asked_for() {
    for delta in [Delta::Call, Delta::Reasoning] {
        let test = TestCore::new([Step::RepeatForEver(delta, "It says one. "), Step::Say("It says one.")]);
        assert_eq!(answer(&test.run(test.request("what is in the file?")).await), "It says one.");
        let note = test.model.requests()[1].messages.last().unwrap().content.clone();
        assert!(note.starts_with("You wrote the same text again and again"), "{note}");
    }
    let test = TestCore::new((0..3).map(|_| Step::RepeatForEver(Delta::Call, "the same, ")));
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
