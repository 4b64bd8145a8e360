//! The conversations on disk.
