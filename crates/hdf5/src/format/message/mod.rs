//! Object header messages: one file per message type or family, parse and encode side by side.

pub mod attribute;
pub mod data_layout;
pub mod dataspace;
pub mod encode;
pub mod external_files;
pub mod file;
pub mod fill_value;
pub mod filter_pipeline;
pub mod group;
mod kind;
pub mod link;
pub mod shared;

pub use kind::MessageKind;
