//! A call as it was found in the text of an answer.

/// A call that was found in the text of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParsedCall {
    pub(crate) name: String,
    /// As the model wrote them. They may be invalid JSON.
    pub(crate) arguments: String,
}
