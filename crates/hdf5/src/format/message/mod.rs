//! Object header messages: one file per message type, parse and encode side by side.

pub mod data_layout;
pub mod dataspace;
pub mod fill_value;
