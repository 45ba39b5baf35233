//! Tests of the lane store as its users see it.
#![expect(clippy::print_stdout, reason = "crash tables print how many states they show")]

mod crash;
mod format2;
mod petektools;
mod residency;
