//! A model server that tells its clients to ask again later.

use std::time::Duration;

use kontekst_agent::{
    StartRun,
    protocol::{Event, FailureKind, Outcome},
};
use kontekst_provider::{Progress, ProviderError};
use tokio::time::timeout;

use super::{TestCore, events_until, run_to_end, scripted_provider::Step};

fn busy(retry_after: Option<u32>) -> Step {
    Step::Fail(ProviderError::Status { status: 429, message: "later".to_owned(), retry_after })
}

fn patient(test: &TestCore) -> StartRun {
    StartRun { waits_when_busy: true, ..test.request("go") }
}

fn waits(events: &[Event]) -> Vec<u32> {
    let seconds = |event: &Event| match event {
        Event::Progress(Progress::Postponed { seconds }) => Some(*seconds),
        _ => None,
    };
    events.iter().filter_map(seconds).collect()
}

#[tokio::test(start_paused = true)]
async fn the_server_is_asked_again_when_it_wants_to_be() {
    let test = TestCore::new([busy(Some(12)), busy(Some(60)), Step::Say("here")]);
    let mut run = test.start(patient(&test));
    let mut events = Vec::new();
    for (asked, seconds) in [(1, 12), (2, 60)] {
        events.extend(events_until(&mut run, |event| matches!(event, Event::Progress(_))).await);
        // The clock of the test stands still until everybody waits for it.
        assert!(timeout(Duration::from_secs(seconds - 1), run.next_event()).await.is_err());
        assert_eq!(test.model.requests().len(), asked);
    }
    events.extend(run_to_end(&mut run, |_| Vec::new()).await);
    assert!(matches!(events.last(), Some(Event::Ended(Outcome::Completed { .. }))), "{events:?}");
    assert_eq!((waits(&events), test.model.requests().len()), (vec![12, 60], 3));
}

#[tokio::test(start_paused = true)]
async fn long_and_endless_waits_are_errors_and_so_is_any_for_other_clients() {
    for (waits_when_busy, retry_after, expect) in [
        (true, Some(2), vec![2, 2, 2]),
        (true, Some(61), vec![]),
        (true, None, vec![1, 2, 4]),
        (false, Some(2), vec![]),
    ] {
        let test = TestCore::new((0..9).map(|_| busy(retry_after)));
        let events = test.run(StartRun { waits_when_busy, ..test.request("go") }).await;
        let Some(Event::Ended(Outcome::Failed(error))) = events.last() else { panic!("{events:?}") };
        assert_eq!((error.kind, error.retry_after, error.busy), (FailureKind::Model, retry_after, true));
        assert_eq!(test.model.requests().len(), expect.len() + 1);
        assert_eq!(waits(&events), expect);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_can_be_cancelled() {
    let test = TestCore::new([busy(Some(60)), Step::Say("too late")]);
    let mut run = test.start(patient(&test));
    events_until(&mut run, |event| matches!(event, Event::Progress(Progress::Postponed { .. }))).await;
    run.cancel();
    let events = run_to_end(&mut run, |_| Vec::new()).await;
    assert!(matches!(events.last(), Some(Event::Ended(Outcome::Cancelled))), "{events:?}");
    assert_eq!(test.model.requests().len(), 1);
}
