//! Who may use a session: one run at a time, in the order they came.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::core::SessionId;

/// The sessions that are in use.
#[derive(Default)]
pub(super) struct SessionLocks {
    locks: Mutex<HashMap<SessionId, Weak<AsyncMutex<()>>>>,
}

/// The right to use one session.
pub(super) struct SessionGuard {
    _guard: OwnedMutexGuard<()>,
}

impl SessionLocks {
    /// The session's turn, if nobody has it.
    pub(super) fn try_take(&self, id: &SessionId) -> Result<SessionGuard, Waiting> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() > 64 {
            locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = locks.get(id).and_then(Weak::upgrade).unwrap_or_else(|| {
            let lock = Arc::new(AsyncMutex::new(()));
            locks.insert(id.clone(), Arc::downgrade(&lock));
            lock
        });
        match Arc::clone(&lock).try_lock_owned() {
            Ok(guard) => Ok(SessionGuard { _guard: guard }),
            Err(_) => Err(Waiting { lock }),
        }
    }
}

/// A place in the queue, once it is awaited.
pub(super) struct Waiting {
    lock: Arc<AsyncMutex<()>>,
}

impl Waiting {
    pub(super) async fn turn(self) -> SessionGuard {
        SessionGuard { _guard: self.lock.lock_owned().await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_and_in_order() {
        let turns = SessionLocks::default();
        let (a, b): (SessionId, SessionId) = ("a".parse().unwrap(), "b".parse().unwrap());
        let first = turns.try_take(&a).ok().unwrap();
        assert!(turns.try_take(&b).is_ok());
        let waiting = turns.try_take(&a).err().unwrap();
        drop(first);
        let second = waiting.turn().await;
        assert!(turns.try_take(&a).is_err());
        drop(second);
        assert!(turns.try_take(&a).is_ok());
    }
}
