//! `kaiak/interaction/respond`.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use kontekst_core::clock;

use super::super::{
    Shared,
    error::{Code, RpcError, bad_field},
    interaction::CloseReason,
    params::Fields,
};

/// The fields that an answer can have, and the longest JSON text of each, in bytes.
const RESPONSE_FIELDS: [(&str, usize); 4] = [
    ("approved", 16),
    ("comment", 64 * 1024),
    ("selected_indices", 64 * 1024),
    // A text of 1 MiB fits, even if every byte of it is escaped.
    ("text", 6 * 1024 * 1024 + 2),
];

/// Takes the user's answer to a question. The reply says whether what the user approved has been done.
pub(super) async fn respond(shared: &Shared, params: Option<&str>) -> Result<Value, RpcError> {
    let fields = Fields::read(params, ["interaction_id", "response_type", "response_data"])?;
    let id = fields.required_text("interaction_id")?;
    let response_type = fields.required_text("response_type")?;
    let data =
        fields.optional_object("response_data")?.ok_or_else(|| bad_field("response_data", "is missing"))?;
    let interaction = shared
        .interactions
        .find(&id)
        .ok_or_else(|| Code::InteractionNotFound.with(json!({"interaction_id": id})))?;
    let outcome = interaction.respond(&response_type, &Value::Object(response_data(data)?))?;
    match outcome.await {
        Ok(outcome) => outcome?,
        // The request ended before the answer took effect.
        Err(_) => return Err(interaction.already_closed(CloseReason::Cancelled)),
    }
    let responded_at = clock::rfc3339_seconds(SystemTime::now());
    Ok(json!({"interaction_id": id, "status": "processed", "responded_at": responded_at}))
}

/// Parses the fields that answers have, and nothing else that was sent. A field that is too long is left out.
fn response_data(json: &str) -> Result<Map<String, Value>, RpcError> {
    let fields = Fields::read(Some(json), RESPONSE_FIELDS.map(|(name, _)| name))?;
    let mut data = Map::new();
    for (name, max) in RESPONSE_FIELDS {
        if let Some(raw) = fields.raw(name).filter(|raw| raw.get().len() <= max) {
            data.insert(name.to_owned(), serde_json::from_str(raw.get()).unwrap_or_default());
        }
    }
    Ok(data)
}
