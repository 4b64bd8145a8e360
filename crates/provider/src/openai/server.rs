//! A model server, and what is shared by the providers of its models.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use kontekst_core::{Cancel, SessionId};

use super::{Timing, http::ServerClient, kv_cache::SlotCache, token_counter::TokenCounter};

use crate::slots::{Permit, SlotError, Slots};

/// A server: how it is reached, the queue of its requests, and what is known about it.
pub struct Server {
    client: ServerClient,
    slots: Slots,
    token_counter: TokenCounter,
    /// False after a request failed, until the server has been found again.
    healthy: AtomicBool,
    timing: Timing,
    /// The prompt cache on disk. Only a server that we started has one.
    kv_cache: Option<SlotCache>,
}

impl Server {
    pub fn new(client: ServerClient, slots: usize, timing: Timing) -> Self {
        Self {
            client,
            slots: Slots::new(slots),
            token_counter: TokenCounter::default(),
            healthy: AtomicBool::new(true),
            timing,
            kv_cache: None,
        }
    }

    pub(crate) fn with_kv_cache(self, kv_cache: Option<SlotCache>) -> Self {
        Self { kv_cache, ..self }
    }

    pub(crate) fn client(&self) -> &ServerClient {
        &self.client
    }

    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) fn timing(&self) -> &Timing {
        &self.timing
    }

    pub(super) fn token_counter(&self) -> &TokenCounter {
        &self.token_counter
    }

    /// Returns true if no request has failed since the server was found.
    pub(crate) fn is_healthy(&self) -> bool {
        self.healthy.load(SeqCst)
    }

    pub(crate) fn set_healthy(&self, healthy: bool) {
        self.healthy.store(healthy, SeqCst);
    }

    /// Waits for a free slot and loads the cache of `session` into it. `on_queued` is told the position in the queue
    /// each time it changes; 1 is next.
    pub(super) fn acquire_slot(
        &self,
        session: Option<&SessionId>,
        cancel: &Cancel,
        on_queued: &mut dyn FnMut(usize),
    ) -> Result<Permit, SlotError> {
        let permit = self.slots.acquire(session, cancel, on_queued)?;
        if let Some(kv_cache) = &self.kv_cache {
            kv_cache.prepare(&self.client, session, cancel);
        }
        Ok(permit)
    }

    /// Saves the prompt cache to disk if the server is idle. Takes at most `timeout`.
    pub(crate) fn save_kv_cache(&self, timeout: Duration) {
        if let Some(kv_cache) = &self.kv_cache
            && self.slots.wait_idle(&Cancel::new(), Duration::ZERO)
        {
            kv_cache.save_current(&self.client, timeout);
        }
    }
}
