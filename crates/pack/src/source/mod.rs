//! Where a pack comes from: which files belong together, what they hold, and that they stay what they are.

pub mod authentication;
pub mod calibration;
pub mod catalog;
pub(crate) mod family;
pub mod inspect;
pub(crate) mod mask;
pub(crate) mod member;
pub(crate) mod prepare;
pub mod qh5_index;
