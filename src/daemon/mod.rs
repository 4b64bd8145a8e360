//! The process that owns the model, the sessions and the tools.
