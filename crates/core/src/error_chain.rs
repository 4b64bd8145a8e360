//! The causes of an error as text.

use std::{error::Error, iter::successors};

/// Returns the messages of the causes of `error`, the direct cause first.
pub fn error_causes(error: &dyn Error) -> impl Iterator<Item = String> + '_ {
    successors(error.source(), |&cause| cause.source()).map(ToString::to_string)
}

/// Returns the messages of `error` and of its causes in one line.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in error_causes(error) {
        text.push_str(": ");
        text.push_str(&cause);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_causes_follow_the_error() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] Inner);

        #[derive(Debug, thiserror::Error)]
        #[error("inner")]
        struct Inner(#[source] std::fmt::Error);

        let error = Outer(Inner(std::fmt::Error));
        assert_eq!(error_chain(&error), format!("outer: inner: {}", std::fmt::Error));
        assert_eq!(error_chain(&std::fmt::Error), std::fmt::Error.to_string());
    }
}
