//! The Kolosal API: health, status, and `/v1/generate`.

mod content;
mod generate;
mod transcript;

use std::time::SystemTime;

use serde_json::{Value, json};

use kontekst_core::clock;

pub(super) use generate::generate;

/// Source: Kolosal seed, "GET /healthz".
pub(super) fn health() -> Value {
    json!({"status": "ok", "timestamp": clock::rfc3339_millis(SystemTime::now()), "mode": "server"})
}

/// Source: Kolosal seed, "GET /status".
pub(super) fn status() -> Value {
    json!({
        "status": "ready",
        "timestamp": clock::rfc3339_millis(SystemTime::now()),
        "version": env!("CARGO_PKG_VERSION"),
        "mode": "server-only",
        "endpoints": {"generate": "/v1/generate", "health": "/healthz", "status": "/status"},
        "features": {"streaming": true, "conversationHistory": true, "toolExecution": true},
    })
}
