//! The queue in front of a server: so many requests at once, first come, first served, and in turns where
//! one session asks for more than others.
//!
//! It is ours because a request that waits inside llama-server cannot be cancelled reliably.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::core::{Cancel, SessionId};

/// The places at one server. Cheap to clone; all clones are one queue.
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
    /// Since when nobody is served.
    idle_since: Instant,
    /// Those who wait; the first is next.
    queue: BTreeSet<Ticket>,
    next_number: u64,
    /// The round that is being served.
    round: u64,
    /// The last round of each session that is ahead of [`State::round`].
    last_rounds: HashMap<Option<SessionId>, u64>,
    closed: bool,
}

/// A place in the queue. Each session has one request in a round, so that one with many requests waits
/// for everybody else between any two of them; within a round, the first who came is first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    round: u64,
    number: u64,
}

/// One place, given back when it is dropped.
#[must_use = "the place is given back when this is dropped"]
pub struct Permit {
    shared: Arc<Shared>,
}

/// Why no place was given.
#[derive(Debug, PartialEq, Eq)]
pub enum SlotError {
    Cancelled,
    /// The server behind this queue is going away.
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

    /// The server has been asked again and has this many slots.
    pub fn resize(&self, limit: usize) {
        self.shared.lock().limit = limit.max(1);
        self.shared.changed.notify_all();
    }

    /// Waits for a place, in the queue as one of `session`. `waiting` hears the place in the queue, 1 is
    /// next, each time it changes.
    ///
    /// # Errors
    ///
    /// [`NoPlace`], soon after `cancel` is given or [`Slots::close`] is called.
    pub fn acquire(
        &self,
        session: Option<&SessionId>,
        cancel: &Cancel,
        waiting: &mut dyn FnMut(usize),
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
            drop(woken.lock()); // so that a waiter between its look and its sleep is not missed
            woken.changed.notify_all();
        });
        let mut told = 0;
        let mut state = shared.lock();
        loop {
            let place = state.queue.range(..ticket).count() + 1;
            let refused = if cancel.is_cancelled() {
                Some(SlotError::Cancelled)
            } else if state.closed {
                Some(SlotError::Closed)
            } else {
                None
            };
            let ready = place == 1 && state.busy < state.limit;
            if refused.is_some() || ready {
                state.queue.remove(&ticket);
                if ready && refused.is_none() {
                    state.serve(ticket);
                }
                drop(state);
                shared.changed.notify_all(); // everybody behind has moved up
                return refused.map_or_else(|| Ok(Permit { shared: Arc::clone(shared) }), Err);
            }
            if place == told {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                told = place;
                drop(state);
                waiting(place); // may take its time: the lock is free
                state = shared.lock();
            }
        }
    }

    /// Lets nobody in any more; those who wait leave with [`NoPlace::Closed`].
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }

    /// Takes [`Slots::close`] back.
    pub fn reopen(&self) {
        self.shared.lock().closed = false;
    }

    /// Waits until nobody is being served, at most `patience`. Says whether it came to that.
    pub fn wait_idle(&self, cancel: &Cancel, patience: Duration) -> bool {
        let woken = Arc::clone(&self.shared);
        let _hook = cancel.on_cancel(move || {
            drop(woken.lock());
            woken.changed.notify_all();
        });
        let until = Instant::now() + patience;
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

    /// For how long nobody has been served or has waited.
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
                state.last_rounds.clear(); // whoever comes next is the first
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

    /// Joins the queue and says on the channel what happens to it.
    fn wait(
        slots: &Slots,
        cancel: &Cancel,
    ) -> (mpsc::Receiver<usize>, thread::JoinHandle<Result<Permit, SlotError>>) {
        let (tell, told) = mpsc::channel();
        let (slots, cancel) = (slots.clone(), cancel.clone());
        (told, thread::spawn(move || slots.acquire(None, &cancel, &mut |place| tell.send(place).unwrap())))
    }

    #[test]
    fn the_queue_is_first_come_first_served_and_everybody_hears_their_place() {
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
    fn a_session_that_floods_lets_others_have_their_turn() {
        let slots = Slots::new(1);
        let session = |name: &str| name.parse::<SessionId>().unwrap();
        let busy = slots.acquire(Some(&session("flood")), &Cancel::new(), &mut |_| {}).unwrap();
        let (tell, served) = mpsc::channel();
        let mut waiters = Vec::new();
        let mut join = |name: &'static str| {
            let (slots, tell, session) = (slots.clone(), tell.clone(), session(name));
            let (queued, is_queued) = mpsc::channel();
            waiters.push(thread::spawn(move || {
                let permit = slots.acquire(Some(&session), &Cancel::new(), &mut |place| {
                    queued.send(place).ok();
                });
                tell.send(name).unwrap();
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
