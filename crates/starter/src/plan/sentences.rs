//! The sentences that are answered instead of a change that no rule can check.

/// The answer to a change that the request does not give in full.
pub(crate) const UNCLEAR: &str = "The small built-in model cannot do that. It writes text that is in quotes, after a \
                                  colon or from a pipe, and replaces one text by another, as in: replace \"old\" with \
                                  \"new\" in a.txt. `kontekst models` shows how to get a larger one.";
/// The answer to a request for several things.
pub(crate) const ONE_THING: &str = "The small built-in model does one thing at a time: ask for each in a prompt of its own. `kontekst models` shows \
     how to get a larger one.";
/// The answer to a name that may have a space in it.
pub(crate) const NAME: &str = "It is not clear which file is meant: put its name in quotes. The small built-in model takes names as they are; \
     `kontekst models` shows how to get a larger one.";
