//! Where a pack comes from: which files belong together, what they hold, and that they stay what they are.

pub mod authentication;
pub mod calibration;
pub mod catalog;
pub mod inspect;
