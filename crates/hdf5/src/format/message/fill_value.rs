//! Fill value messages (specification IV.A.2.e and f): what unwritten elements read as.

/// When space for raw data is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationTime {
    /// When the dataset is created.
    Early,
    /// When data is first written.
    Late,
    /// Chunk by chunk.
    Incremental,
}

/// When fill values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillTime {
    /// On allocation.
    OnAllocation,
    /// Never.
    Never,
    /// On allocation if the user set a fill value.
    IfSet,
}

/// The fill value of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FillValue {
    /// The user asked for no fill value; unwritten elements read as zero bytes.
    Undefined,
    /// The library's default: zero bytes.
    Default,
    /// One element as stored (datatype's size in bytes).
    Value(Vec<u8>),
}

/// A parsed fill value message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillMessage {
    /// When space is allocated.
    pub allocation: AllocationTime,
    /// When the value is written.
    pub time: FillTime,
    /// The value.
    pub value: FillValue,
}
