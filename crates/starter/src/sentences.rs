//! The sentences that the model answers with instead of a call. It was trained to write the first three.

/// The answer to a greeting, and to the question what the model is or can do.
pub(crate) const ABILITIES: &str = "I am kontekst's small built-in model: I can list, read, write and edit files and \
                             fetch web pages; `kontekst models` shows how to get a larger model.";
/// The answer to everything that is not one call.
pub(crate) const DECLINED: &str =
    "The small built-in model cannot do that; `kontekst models` shows how to get a larger one.";
/// The answer where a part of the text is not seen.
pub(crate) const TOO_LONG: &str =
    "That text is too long for the small built-in model; `kontekst models` shows how to get a larger one.";
