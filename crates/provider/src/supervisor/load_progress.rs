//! The progress of loading a model, which llama-server reports on its stdout to a llama.cpp router. This is an internal
//! protocol of llama.cpp, so nothing depends on it.

use serde::Deserialize;

const STATE: &str = "cmd_child_to_router:state:";

#[derive(Deserialize)]
struct State {
    state: String,
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    stages: Vec<String>,
    current: Option<String>,
    value: Option<f32>,
}

/// Returns how much of the model has been loaded, between 0 and 1, if the line reports it.
pub(super) fn fraction(line: &str) -> Option<f32> {
    let state: State = serde_json::from_str(line.trim().strip_prefix(STATE)?).ok()?;
    let payload = state.payload.filter(|_| state.state == "loading")?;
    let value = payload.value.filter(|value| value.is_finite())?.clamp(0.0, 1.0);
    let at = payload.stages.iter().position(|stage| Some(stage) == payload.current.as_ref());
    #[expect(clippy::cast_precision_loss, reason = "a handful of stages")]
    at.map_or(Some(value), |at| Some((at as f32 + value) / payload.stages.len() as f32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_count_alike() {
        let line = |text: &str| format!("{STATE}{text}");
        let loading = r#"{"state":"loading","payload":{"stages":["a","b"],"current":"b","value":0.5}}"#;
        assert_eq!(fraction(&line(loading)), Some(0.75));
        assert_eq!(fraction(&line(r#"{"state":"loading","payload":{"value":7}}"#)), Some(1.0));
        for other in [r#"{"state":"ready","payload":{"value":1}}"#, r#"{"state":"loading"}"#, "{", "[]"] {
            assert_eq!(fraction(&line(other)), None, "{other}");
        }
        assert_eq!(fraction("hello"), None);
    }
}
