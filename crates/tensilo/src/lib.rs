//! tensilo
