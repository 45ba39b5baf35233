//! Integration tests of the front crate: the digest against libhdf5's, over every file of the corpus.

mod corpus;
mod generations;
