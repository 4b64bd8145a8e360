//! What the model sees: the token budget and the window.
