//! A cancel ends a request at once, wherever the answer is.

use std::{sync::mpsc, thread};

use kontekst_core::Cancel;
use kontekst_provider::{Delta, Progress, Provider as _, ProviderError};

use super::{TIMING, Timing, connect, prompt};
use crate::{
    fake_llama::{FakeLlama, Reply},
    wait::{HOUR, TIMEOUT},
};

/// Cancels a request once the server has it and `deltas` deltas have come.
///
/// The server then sends nothing more, and the client would wait for it for an hour. So nothing but the cancel
/// can end the request and close its connection. Returns how many bytes of text came after the cancel.
#[track_caller]
fn check_cancel(reply: Reply, deltas: usize) -> usize {
    let fake = FakeLlama::start([reply]);
    let timing = Timing { first_token: HOUR, between_tokens: HOUR, after_finish: HOUR, ..TIMING };
    let provider = connect(&fake.url(), timing);
    let cancel = Cancel::new();
    let (tx, rx) = mpsc::channel();
    let (result_tx, result_rx) = mpsc::channel();
    let token = cancel.clone();
    thread::spawn(move || {
        let result = provider.generate(&prompt("hi"), &token, &mut |delta| tx.send(delta).unwrap());
        result_tx.send(result).ok();
    });
    fake.wait_for_chats(1);
    for _ in 0..deltas {
        rx.recv_timeout(TIMEOUT).unwrap();
    }
    cancel.cancel();
    let result = result_rx.recv_timeout(TIMEOUT).expect("the cancel ends the request");
    assert!(matches!(result, Err(ProviderError::Cancelled)), "{result:?}");
    fake.wait_for_disconnect();
    let late = rx.iter().map(|delta| if let Delta::Text(text) = delta { text.len() } else { 0 });
    late.sum()
}

#[test]
fn while_there_is_not_even_a_status() {
    check_cancel(Reply::hang(), 0);
}

#[test]
fn while_the_prompt_is_read() {
    check_cancel(Reply::deltas([]).then_progress(1, 9).then_hang(), 1);
}

#[test]
fn between_two_tokens() {
    check_cancel(Reply::text("one ").then_hang(), 1);
}

#[test]
fn in_a_flood_of_tokens() {
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(1000));
    let late = check_cancel(Reply::deltas([]).then_repeat(event, 40_000).then_hang(), 1);
    assert!(late < 4_000_000, "{late} of 40 MB were read after the cancel");
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
    assert_eq!(fake.chats().len(), 1); // the second request was never sent
}
