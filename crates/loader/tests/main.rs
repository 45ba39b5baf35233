//! Integration tests of sampler and loader.

mod fairness;
mod golden;
mod loading;
mod order;
