//! The incidents that an editor reports: parsed, checked, and grouped by file. Pure.

use std::collections::HashSet;

use serde_json::{json, value::RawValue};

use super::{
    error::{Code, RpcError, bad_field},
    params::{Fields, items},
};

/// Source: the seed's "Maximum 1000 incidents per request".
pub(super) const MAX_INCIDENTS: usize = 1000;

/// One finding of a static analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Incident {
    pub(crate) id: String,
    pub(crate) rule_id: String,
    /// Relative to the workspace, in the client's spelling.
    pub(crate) file_path: String,
    /// Counts from 1.
    pub(crate) line_number: u64,
    pub(crate) severity: String,
    pub(crate) description: String,
    pub(crate) message: String,
    pub(crate) category: Option<String>,
    /// The JSON text of an object.
    pub(crate) metadata: Option<String>,
}

/// Parses the `incidents` of a request.
///
/// # Errors
///
/// [`Code::InvalidParams`] with the index and the field of the first incident that is wrong. None is used then.
pub(super) fn parse_all(json: &RawValue) -> Result<Vec<Incident>, RpcError> {
    let (raw, count) =
        items(json.get(), MAX_INCIDENTS).map_err(|_| bad_field("incidents", "is not an array"))?;
    if count == 0 || count > MAX_INCIDENTS {
        let data = json!({"limit": "incidents", "min": 1, "max": MAX_INCIDENTS, "actual": count});
        return Err(Code::InvalidParams.with(data));
    }
    let mut ids = HashSet::new();
    let mut incidents = Vec::with_capacity(count);
    for (index, raw) in raw.into_iter().enumerate() {
        let incident = parse_incident(raw).map_err(|error| with_position(index, raw, error))?;
        if !ids.insert(incident.id.clone()) {
            return Err(with_position(index, raw, bad_field("id", "is given twice")));
        }
        incidents.push(incident);
    }
    Ok(incidents)
}

/// Adds the index and the id of the incident to an error.
fn with_position(index: usize, raw: &RawValue, mut error: RpcError) -> RpcError {
    let id =
        Fields::read(Some(raw.get()), ["id"]).and_then(|fields| fields.optional_text("id")).ok().flatten();
    if let Some(data) = &mut error.data {
        data["index"] = json!(index);
        if let Some(id) = id {
            data["incident_id"] = json!(id);
        }
    }
    error
}

fn parse_incident(raw: &RawValue) -> Result<Incident, RpcError> {
    let fields = Fields::read(
        Some(raw.get()),
        [
            "id",
            "rule_id",
            "file_path",
            "line_number",
            "severity",
            "description",
            "message",
            "category",
            "metadata",
        ],
    )?;
    let file_path = fields.required_text("file_path")?;
    if let Err(why) = check_relative_path(&file_path) {
        return Err(bad_field("file_path", why));
    }
    let severity = fields.required_text("severity")?;
    if !["error", "warning", "info"].contains(&severity.as_str()) {
        return Err(bad_field("severity", "is not one of error, warning, info"));
    }
    Ok(Incident {
        id: fields.required_text("id")?,
        rule_id: fields.required_text("rule_id")?,
        file_path,
        line_number: fields
            .optional_integer("line_number", 1, u64::from(u32::MAX))?
            .ok_or_else(|| bad_field("line_number", "is missing"))?,
        severity,
        description: fields.required_text("description")?,
        message: fields.required_text("message")?,
        category: fields.optional_text("category")?,
        metadata: fields.optional_object("metadata")?.map(str::to_owned),
    })
}

/// Checks the text of a path: it must be relative and cannot lead out of the workspace. Links are checked later.
fn check_relative_path(path: &str) -> Result<(), &'static str> {
    let drive = path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    if path.starts_with(['/', '\\']) || drive {
        Err("is not relative to the workspace")
    } else if path.chars().any(char::is_control) {
        Err("has a control character in it")
    } else if path.split(['/', '\\']).any(|part| part == "..") {
        Err("has `..` in it")
    } else if path.ends_with('/') || path.split('/').all(|part| matches!(part, "" | ".")) {
        Err("is not a file")
    } else {
        Ok(())
    }
}

/// The incidents of one file, ordered by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileGroup {
    pub(crate) path: String,
    pub(crate) incidents: Vec<Incident>,
}

/// Groups incidents by file. The files keep the order in which they are first named.
pub(super) fn group_by_file(incidents: Vec<Incident>) -> Vec<FileGroup> {
    let mut groups: Vec<FileGroup> = Vec::new();
    for incident in incidents {
        let path = normalize_path(&incident.file_path);
        match groups.iter_mut().find(|group| group.path == path) {
            Some(group) => group.incidents.push(incident),
            None => groups.push(FileGroup { path, incidents: vec![incident] }),
        }
    }
    for group in &mut groups {
        group.incidents.sort_by_key(|incident| incident.line_number);
    }
    groups
}

/// Removes empty parts and `.` from a path, so that one file has one spelling.
fn normalize_path(path: &str) -> String {
    path.split('/').filter(|part| !matches!(*part, "" | ".")).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn sample() -> Value {
        json!({"id": "i", "rule_id": "r", "file_path": "src/main.rs", "line_number": 42, "severity": "warning",
            "description": "d", "message": "m"})
    }

    fn with(field: &str, value: Value) -> Value {
        let mut incident = sample();
        incident[field] = value;
        incident
    }

    fn reading(incidents: &Value) -> Result<Vec<Incident>, RpcError> {
        parse_all(&RawValue::from_string(incidents.to_string()).unwrap())
    }

    #[test]
    fn category_and_metadata_may_be_absent() {
        let mut rich = with("metadata", json!({"a": [1]}));
        rich["id"] = "j".into();
        rich["category"] = "c".into();
        rich["unknown"] = json!(5);
        let read = reading(&json!([sample(), rich])).unwrap();
        assert_eq!((read[0].category.as_deref(), read[0].metadata.as_deref()), (None, None));
        assert_eq!(
            (read[1].category.as_deref(), read[1].metadata.as_deref()),
            (Some("c"), Some(r#"{"a":[1]}"#))
        );
    }

    #[test]
    fn the_first_wrong_field_is_named() {
        let mut missing = sample();
        missing.as_object_mut().unwrap().remove("file_path");
        let cases = [
            (missing, "file_path"),
            (with("line_number", json!(0)), "line_number"),
            (with("line_number", json!(-1)), "line_number"),
            (with("line_number", json!(1.5)), "line_number"),
            (with("line_number", json!("42")), "line_number"),
            (with("severity", json!("fatal")), "severity"),
            (with("severity", json!("ERROR")), "severity"),
            (with("description", json!("")), "description"),
            (with("metadata", json!([])), "metadata"),
            (with("file_path", json!("../x")), "file_path"),
            (with("file_path", json!("a/../../x")), "file_path"),
            (with("file_path", json!("/etc/passwd")), "file_path"),
            (with("file_path", json!("C:\\x")), "file_path"),
            (with("file_path", json!("\\\\host\\x")), "file_path"),
            (with("file_path", json!("a\u{0}b")), "file_path"),
            (with("file_path", json!("src/")), "file_path"),
            (with("file_path", json!("")), "file_path"),
        ];
        for (bad, field) in cases {
            let mut good = sample();
            good["id"] = "good".into();
            let error = reading(&json!([good, bad])).unwrap_err();
            let data = error.data.unwrap();
            assert_eq!(error.code, Code::InvalidParams, "{bad}");
            assert_eq!(
                (&data["index"], &data["field"], &data["incident_id"]),
                (&json!(1), &json!(field), &json!("i"))
            );
        }
        assert_eq!(reading(&json!([sample(), sample()])).unwrap_err().data.unwrap()["field"], "id");
        assert_eq!(reading(&json!({})).unwrap_err().data.unwrap()["field"], "incidents");
    }

    #[test]
    fn there_are_one_to_a_thousand() {
        let many = |n: usize| Value::Array((0..n).map(|i| with("id", json!(i.to_string()))).collect());
        assert_eq!(reading(&many(1000)).unwrap().len(), 1000);
        for n in [0, 1001] {
            assert_eq!(reading(&many(n)).unwrap_err().data.unwrap()["actual"], n);
        }
    }

    #[test]
    fn groups_keep_the_order_of_files_and_sort_by_line() {
        let of = |path: &str, line: u64| {
            let mut incident = reading(&json!([sample()])).unwrap().remove(0);
            (incident.file_path, incident.line_number) = (path.to_owned(), line);
            incident
        };
        let groups = group_by_file(vec![of("b", 9), of("a", 1), of("./b", 2)]);
        let shape: Vec<_> = groups
            .iter()
            .map(|group| (group.path.as_str(), group.incidents.iter().map(|i| i.line_number).collect()))
            .collect();
        assert_eq!(shape, [("b", vec![2, 9]), ("a", vec![1])]);
    }
}
