//! Integration tests of the record store.
