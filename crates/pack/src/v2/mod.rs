//! Pack format 2: any detector, any scan, any count.

pub mod codec;
