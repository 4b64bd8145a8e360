//! The queue in front of a server. It limits the number of parallel requests, is first come, first served, and lets the
//! sessions alternate if one of them has more requests than the others.
//!
//! Requests wait here and not inside llama-server, where a waiting request cannot be cancelled reliably.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::core::{Cancel, SessionId};

/// The slots of one server. Cheap to clone; all clones share one queue.
#[derive(Clone)]
pub struct Slots {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    limit: usize,
    busy: usize,
    /// When the last request ended.
    idle_since: Instant,
    /// The waiting requests. The first one is next.
    queue: BTreeSet<Ticket>,
    next_number: u64,
    /// The current round.
    round: u64,
    /// The newest round of each session that is not behind [`State::round`].
    last_rounds: HashMap<Option<SessionId>, u64>,
    closed: bool,
}

/// A position in the queue. Each session has one request in a round, so a session with many requests waits for all other
/// sessions between any two of them. Within a round, the request that came first is served first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    round: u64,
    number: u64,
}

/// One slot, released when this is dropped.
#[must_use = "the slot is released when this is dropped"]
pub struct Permit {
    shared: Arc<Shared>,
}

/// Why there is no slot for a request.
#[derive(Debug, PartialEq, Eq)]
pub enum SlotError {
    Cancelled,
    /// The server of this queue is being stopped.
    Closed,
}

impl Slots {
    pub fn new(limit: usize) -> Self {
        let state = State {
            limit: limit.max(1),
            busy: 0,
            idle_since: Instant::now(),
            queue: BTreeSet::new(),
            next_number: 0,
            round: 0,
            last_rounds: HashMap::new(),
            closed: false,
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    pub fn limit(&self) -> usize {
        self.shared.lock().limit
    }

    /// Changes the number of slots.
    pub fn resize(&self, limit: usize) {
        self.shared.lock().limit = limit.max(1);
        self.shared.changed.notify_all();
    }

    /// Waits for a slot, as a request of `session`. `on_queued` is told the position in the queue each time it changes;
    /// 1 is next.
    ///
    /// # Errors
    ///
    /// [`SlotError`], soon after `cancel` is given or [`Slots::close`] is called.
    pub fn acquire(
        &self,
        session: Option<&SessionId>,
        cancel: &Cancel,
        on_queued: &mut dyn FnMut(usize),
    ) -> Result<Permit, SlotError> {
        let shared = &self.shared;
        let mut state = shared.lock();
        let ticket = state.ticket(session);
        if state.queue.is_empty() && state.busy < state.limit && !state.closed && !cancel.is_cancelled() {
            state.serve(ticket);
            return Ok(Permit { shared: Arc::clone(shared) });
        }
        state.queue.insert(ticket);
        drop(state);

        let woken = Arc::clone(shared);
        let _hook = cancel.on_cancel(move || {
            drop(woken.lock()); // wait for a thread that has checked the state but does not sleep yet
            woken.changed.notify_all();
        });
        let mut reported = 0;
        let mut state = shared.lock();
        loop {
            let position = state.queue.range(..ticket).count() + 1;
            let refused = if cancel.is_cancelled() {
                Some(SlotError::Cancelled)
            } else if state.closed {
                Some(SlotError::Closed)
            } else {
                None
            };
            let ready = position == 1 && state.busy < state.limit;
            if refused.is_some() || ready {
                state.queue.remove(&ticket);
                if ready && refused.is_none() {
                    state.serve(ticket);
                }
                drop(state);
                shared.changed.notify_all(); // the requests after this one have moved up
                return refused.map_or_else(|| Ok(Permit { shared: Arc::clone(shared) }), Err);
            }
            if position == reported {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                reported = position;
                drop(state);
                on_queued(position); // without the lock, because it may block
                state = shared.lock();
            }
        }
    }

    /// Refuses all requests from now on, including the waiting ones, with [`SlotError::Closed`].
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }

    /// Undoes [`Slots::close`].
    pub fn reopen(&self) {
        self.shared.lock().closed = false;
    }

    /// Waits until no request is running. Returns false if `timeout` passes or `cancel` is given before that.
    pub fn wait_idle(&self, cancel: &Cancel, timeout: Duration) -> bool {
        let woken = Arc::clone(&self.shared);
        let _hook = cancel.on_cancel(move || {
            drop(woken.lock());
            woken.changed.notify_all();
        });
        let until = Instant::now() + timeout;
        let mut state = self.shared.lock();
        while state.busy > 0 && !cancel.is_cancelled() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.busy == 0
    }

    /// Returns the time since the last request ended, or zero if any is running or waiting.
    pub fn idle_time(&self) -> Duration {
        let state = self.shared.lock();
        if state.busy == 0 && state.queue.is_empty() { state.idle_since.elapsed() } else { Duration::ZERO }
    }
}

impl State {
    fn ticket(&mut self, session: Option<&SessionId>) -> Ticket {
        let session = session.cloned();
        let round = self.last_rounds.get(&session).map_or(self.round, |last| (last + 1).max(self.round));
        self.last_rounds.insert(session, round);
        self.next_number += 1;
        Ticket { round, number: self.next_number }
    }

    fn serve(&mut self, ticket: Ticket) {
        self.busy += 1;
        if ticket.round > self.round {
            self.round = ticket.round;
            self.last_rounds.retain(|_, last| *last >= ticket.round);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.busy -= 1;
        if state.busy == 0 {
            state.idle_since = Instant::now();
            if state.queue.is_empty() {
                state.last_rounds.clear(); // the next request starts a new round
            }
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    /// Joins the queue on another thread, which sends its positions to the channel.
    fn wait(
        slots: &Slots,
        cancel: &Cancel,
    ) -> (mpsc::Receiver<usize>, thread::JoinHandle<Result<Permit, SlotError>>) {
        let (sender, positions) = mpsc::channel();
        let (slots, cancel) = (slots.clone(), cancel.clone());
        (
            positions,
            thread::spawn(move || {
                slots.acquire(None, &cancel, &mut |position| sender.send(position).unwrap())
            }),
        )
    }

    #[test]
    fn the_queue_is_first_come_first_served_and_reports_positions() {
        let (slots, cancel) = (Slots::new(1), Cancel::new());
        let first = slots.acquire(None, &cancel, &mut |_| panic!("nobody is ahead")).unwrap();
        let (second_place, second) = wait(&slots, &cancel);
        assert_eq!(second_place.recv(), Ok(1));
        let (third_place, third) = wait(&slots, &cancel);
        assert_eq!(third_place.recv(), Ok(2));
        drop(first);
        let second = second.join().unwrap().unwrap();
        assert_eq!(third_place.recv(), Ok(1));
        drop(second);
        drop(third.join().unwrap().unwrap());
        assert!(slots.wait_idle(&cancel, Duration::ZERO));
    }

    #[test]
    fn waiting_ends_on_cancel_and_on_close() {
        let slots = Slots::new(1);
        let _busy = slots.acquire(None, &Cancel::new(), &mut |_| {}).unwrap();
        let cancel = Cancel::new();
        let (place, cancelled) = wait(&slots, &cancel);
        place.recv().unwrap();
        let (place, closed) = wait(&slots, &Cancel::new());
        assert_eq!(place.recv(), Ok(2));
        cancel.cancel();
        assert_eq!(cancelled.join().unwrap().err(), Some(SlotError::Cancelled));
        assert_eq!(place.recv(), Ok(1));
        slots.close();
        assert_eq!(closed.join().unwrap().err(), Some(SlotError::Closed));
        assert!(!slots.wait_idle(&Cancel::new(), Duration::ZERO));
    }

    #[test]
    fn sessions_alternate_if_one_has_many_requests() {
        let slots = Slots::new(1);
        let session = |name: &str| name.parse::<SessionId>().unwrap();
        let busy = slots.acquire(Some(&session("flood")), &Cancel::new(), &mut |_| {}).unwrap();
        let (sender, served) = mpsc::channel();
        let mut waiters = Vec::new();
        let mut join = |name: &'static str| {
            let (slots, sender, session) = (slots.clone(), sender.clone(), session(name));
            let (queued, is_queued) = mpsc::channel();
            waiters.push(thread::spawn(move || {
                let permit = slots.acquire(Some(&session), &Cancel::new(), &mut |place| {
                    queued.send(place).ok();
                });
                sender.send(name).unwrap();
                drop(permit.unwrap());
            }));
            is_queued.recv().unwrap()
        };
        assert_eq!([join("flood"), join("flood"), join("flood")], [1, 2, 3]);
        assert_eq!([join("a"), join("b"), join("a")], [1, 2, 4]);
        drop(busy);
        let order: Vec<_> = served.iter().take(6).collect();
        assert_eq!(order, ["a", "b", "flood", "a", "flood", "flood"]);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        assert!(slots.shared.lock().last_rounds.is_empty());
    }
}
