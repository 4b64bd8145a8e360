//! Reads the arguments of a call. It is lenient, because weak models send numbers as text and floats for
//! integers.

use serde_json::Value;

/// Returns a required string.
///
/// # Errors
///
/// `missing NAME` if it is absent or of another type.
pub(super) fn text<'a>(args: &'a Value, name: &str) -> Result<&'a str, String> {
    args.get(name).and_then(Value::as_str).ok_or_else(|| format!("missing {name}"))
}

/// Returns a number. A float is truncated and text is parsed. Anything else counts as absent.
pub(super) fn number(args: &Value, name: &str) -> Option<i64> {
    let float = |value: f64| value.is_finite().then_some(value as i64); // saturates
    match args.get(name)? {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().and_then(float)),
        Value::String(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| text.parse().ok().and_then(float))
        }
        _ => None,
    }
}

/// Returns true if the flag is `true` or the text "true". Anything else counts as false.
pub(super) fn switch(args: &Value, name: &str) -> bool {
    match args.get(name) {
        Some(Value::Bool(on)) => *on,
        Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_from_floats_and_text() {
        let args = json!({"a": 3, "b": 3.9, "c": "3", "d": " 3.0 ", "e": null, "f": "x", "g": [3], "h": 1e300,
            "i": -2, "j": "inf", "k": "-1"});
        let got: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "none"]
            .iter()
            .map(|name| number(&args, name))
            .collect();
        let three = Some(3);
        let want =
            [three, three, three, three, None, None, None, Some(i64::MAX), Some(-2), None, Some(-1), None];
        assert_eq!(got, want);
    }

    #[test]
    fn strings_must_be_strings() {
        let args = json!({"a": "x", "b": 1});
        assert_eq!(text(&args, "a"), Ok("x"));
        assert_eq!(text(&args, "b"), Err("missing b".into()));
        assert_eq!(text(&args, "c"), Err("missing c".into()));
        assert!(switch(&json!({"on": true}), "on") && switch(&json!({"on": "True"}), "on"));
        assert!(!switch(&json!({"on": 1}), "on"));
    }
}
