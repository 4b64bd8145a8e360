//! A tool call as the model writes it.

use std::fmt;

use serde_json::{Map, Value};

/// A call of one of the five tools, its arguments in the order of the tool's definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: &'static str,
    pub arguments: Vec<(&'static str, Value)>,
}

impl Call {
    pub fn list(pattern: impl Into<String>) -> Self {
        Self::of("list_files", vec![("pattern", Value::String(pattern.into()))])
    }

    pub fn read(path: impl Into<String>) -> Self {
        Self::of("read_file", vec![("path", Value::String(path.into()))])
    }

    /// `end` is left out when everything to the end is wanted.
    pub fn read_lines(path: impl Into<String>, start: u32, end: Option<u32>) -> Self {
        let mut call = Self::read(path);
        call.arguments.push(("start_line", start.into()));
        call.arguments.extend(end.map(|end| ("end_line", end.into())));
        call
    }

    pub fn write(path: impl Into<String>, content: impl Into<String>) -> Self {
        let (path, content) = (Value::String(path.into()), Value::String(content.into()));
        Self::of("write_file", vec![("path", path), ("content", content)])
    }

    pub fn edit(path: impl Into<String>, old: impl Into<String>, new: impl Into<String>) -> Self {
        let [path, old, new] = [path.into(), old.into(), new.into()].map(Value::String);
        Self::of("edit_file", vec![("path", path), ("old_str", old), ("new_str", new)])
    }

    /// The same edit of the `nth` match, or of all when it is 0.
    #[must_use]
    pub fn occurrence(mut self, nth: u32) -> Self {
        self.arguments.push(("occurrence", nth.into()));
        self
    }

    pub fn fetch(url: impl Into<String>) -> Self {
        Self::of("web_fetch", vec![("url", Value::String(url.into()))])
    }

    fn of(name: &'static str, arguments: Vec<(&'static str, Value)>) -> Self {
        Self { name, arguments }
    }

    /// A text argument; empty when there is none of that name.
    pub fn text(&self, name: &str) -> &str {
        self.arguments
            .iter()
            .find(|(given, _)| *given == name)
            .and_then(|(_, value)| value.as_str())
            .unwrap_or("")
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.arguments.iter().find(|(given, _)| *given == name).and_then(|(_, value)| value.as_u64())
    }

    /// The call with its arguments as other programs spell them, without spaces.
    pub fn respelled(&self) -> String {
        let arguments = &self.value()["arguments"];
        format!("<tool_call>\n{{\"name\": \"{}\", \"arguments\": {arguments}}}\n</tool_call>", self.name)
    }

    /// `{"name": …, "arguments": …}` as a value.
    pub fn value(&self) -> Value {
        let arguments: Map<_, _> =
            self.arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let mut call = Map::new();
        call.insert("name".to_owned(), self.name.into());
        call.insert("arguments".to_owned(), Value::Object(arguments));
        Value::Object(call)
    }
}

/// The bytes that the model learns, spaced as Python's `json.dumps` does it.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<tool_call>\n{{\"name\": \"{}\", \"arguments\": {{", self.name)?;
        for (number, (name, value)) in self.arguments.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(f, "{separator}\"{name}\": {value}")?;
        }
        f.write_str("}}\n</tool_call>")
    }
}
