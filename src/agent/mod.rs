//! The one agent core that every door stands on.
