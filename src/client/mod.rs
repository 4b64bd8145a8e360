//! Finds or starts the daemon and talks to it.
