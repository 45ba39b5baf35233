//! Tests of the `tensilo` program, run as a user runs it: arguments in; stdout, stderr and exit code out.

mod behaviour;
mod comparing;
mod corpus;
mod dumping;
mod generations;
mod images;
mod lanes;
mod packing;
mod packing_2;
mod program;
mod recording;
mod repack;
mod snapshots;
