//! Waiting a little, unless cancelled.

use std::{sync::mpsc, time::Duration};

use crate::core::Cancel;

/// Waits for `time`. `false` says that `cancel` was given and ended it.
pub fn pause(cancel: &Cancel, time: Duration) -> bool {
    let (wake, woken) = mpsc::channel::<()>();
    let _hook = cancel.on_cancel(move || drop(wake));
    // The hook holds the sender, so that this ends by its drop or by the time.
    matches!(woken.recv_timeout(time), Err(mpsc::RecvTimeoutError::Timeout))
}
