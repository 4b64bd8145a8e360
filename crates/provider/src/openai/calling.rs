//! The ways in which a model calls tools.

/// The way in which the model calls tools.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Calling {
    /// With the API's own fields for tools and calls.
    Native,
    /// In text: the tools are described in the system text.
    Text,
    /// In steps: the tools are described in the system text, and each answer is decoded under a schema.
    Steps,
}
