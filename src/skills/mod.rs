//! Reusable prompt templates.
