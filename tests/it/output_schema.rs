//! Checks what `kontekst run` prints as JSON against the schema that `docs/` publishes.

use serde_json::Value;

/// The compiled schema. It refuses members that it does not name.
pub(crate) struct OutputSchema {
    schemas: boon::Schemas,
    index: boon::SchemaIndex,
}

impl OutputSchema {
    pub(crate) fn new() -> Self {
        let mut schema = serde_json::from_str(include_str!("../../docs/run-output.schema.json")).unwrap();
        close(&mut schema);
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.add_resource("kontekst:output", schema).unwrap();
        let index = compiler.compile("kontekst:output", &mut schemas).unwrap();
        Self { schemas, index }
    }

    /// Reads a line that fits the schema.
    #[track_caller]
    pub(crate) fn read(&self, line: &str) -> Value {
        let value: Value = serde_json::from_str(line).unwrap();
        if let Err(error) = self.schemas.validate(&value, self.index) {
            panic!("{line}\n{error}");
        }
        value
    }
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.contains_key("properties") {
                members.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
