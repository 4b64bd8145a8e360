//! The model and the engine that are part of the program, as `kontekst models` shows them.

use crate::{
    models::{
        Model, ModelInfo, ModelOrigin,
        gguf::{GgufError, Header},
    },
    provider::builtin,
};

pub use crate::provider::builtin::NAME;

/// The built-in model; `None` in a program that was built without it.
pub fn load() -> Option<(Model, Result<ModelInfo, GgufError>)> {
    let bytes = builtin::BYTES;
    let model = Model {
        origin: ModelOrigin::BuiltIn,
        name: builtin::NAME.to_owned(),
        repository: None,
        files: Vec::new(),
        missing: 0,
        bytes: bytes.len() as u64,
    };
    builtin::AVAILABLE.then(|| {
        (model, Header::read(bytes, bytes.len() as u64).map(|header| ModelInfo::from_header(&header)))
    })
}

/// Whether `name` means the built-in model.
pub fn is_builtin_name(name: &str) -> bool {
    builtin::AVAILABLE && name == builtin::NAME
}

/// Whether the built-in engine runs models of this kind; others need llama-server.
pub fn engine_can_run(facts: &ModelInfo) -> bool {
    builtin::AVAILABLE
        && !facts.is_embedding
        && facts.architecture.as_deref().is_some_and(|name| builtin::ARCHITECTURES.contains(&name))
}
