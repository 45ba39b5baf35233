//! Tests of the test kit, and with it of core's disks, sources and staged publishing.

mod conformance;
mod gather;
mod replay;
mod sources;
mod staged;
