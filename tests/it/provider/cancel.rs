//! Stopping: soon, wherever the answer is.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use kontekst::{
    core::Cancel,
    provider::{Delta, Progress, Provider as _, ProviderError},
};

use super::{TIMING, connect, prompt};
use crate::fake_llama::{FakeLlama, Reply};

/// Cancels after the `deltas`th delta has come, or once the request is there, and checks how long it takes.
#[track_caller]
fn cancelled_soon(reply: Reply, deltas: usize) {
    let fake = FakeLlama::start([reply]);
    let provider = connect(&fake.url(), TIMING);
    let cancel = Cancel::new();
    let (tx, rx) = mpsc::channel();
    let call = {
        let cancel = cancel.clone();
        thread::spawn(move || {
            let result = provider.generate(&prompt("hi"), &cancel, &mut |delta| tx.send(delta).unwrap());
            (result, Instant::now())
        })
    };
    fake.wait_for_chats(1);
    for _ in 0..deltas {
        rx.recv().unwrap();
    }
    let start = Instant::now();
    cancel.cancel();
    let (result, end) = call.join().unwrap();
    assert!(matches!(result, Err(ProviderError::Cancelled)), "{result:?}");
    assert!(end - start < Duration::from_millis(200), "{:?}", end - start);
    fake.wait_for_disconnect();
    assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
}

#[test]
fn while_there_is_not_even_a_status() {
    cancelled_soon(Reply::hang(), 0);
}

#[test]
fn while_the_prompt_is_read() {
    cancelled_soon(Reply::deltas([]).then_progress(1, 9).then_hang(), 1);
}

#[test]
fn between_two_tokens() {
    cancelled_soon(Reply::text("one ").then_hang(), 1);
}

#[test]
fn in_a_flood_of_tokens() {
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n".repeat(10);
    cancelled_soon(Reply::deltas([]).then_repeat(token, 20_000).then_hang(), 1);
}

#[test]
fn while_waiting_in_the_queue() {
    let fake = FakeLlama::start([Reply::text("busy").then_hang()]);
    let provider = std::sync::Arc::new(connect(&fake.url(), TIMING));
    let (first, second) = (Cancel::new(), Cancel::new());
    let busy = {
        let (provider, cancel) = (provider.clone(), first.clone());
        thread::spawn(move || provider.generate(&prompt("a"), &cancel, &mut |_| {}))
    };
    fake.wait_for_chats(1);
    let result = provider.generate(&prompt("b"), &second.clone(), &mut |delta| {
        assert_eq!(delta, Delta::Progress(Progress::Queued { position: 1 }));
        second.cancel();
    });
    assert!(matches!(result, Err(ProviderError::Cancelled)));
    first.cancel();
    assert!(matches!(busy.join().unwrap(), Err(ProviderError::Cancelled)));
    assert_eq!(fake.chats().len(), 1); // the second never left
}
