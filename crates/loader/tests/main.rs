//! Integration tests of sampler and loader.
