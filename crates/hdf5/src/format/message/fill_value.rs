//! Fill value messages (specification IV.A.2.e and f): what unwritten elements read as.

use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

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

impl FillMessage {
    /// What holds where a dataset has no fill value message at all.
    pub const ABSENT: Self =
        Self { allocation: AllocationTime::Late, time: FillTime::IfSet, value: FillValue::Undefined };

    /// Parses a fill value message, versions 1 to 3.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "fill value message");
        match r.u8()? {
            version @ (1 | 2) => {
                let allocation = allocation_time(&r, r.clone().u8()?)?;
                r.skip(1)?;
                let time = fill_time(&r, r.clone().u8()?)?;
                r.skip(1)?;
                let defined = r.u8()? != 0;
                let value = if version == 1 || defined { sized_value(&mut r)? } else { FillValue::Undefined };
                Ok(Self { allocation, time, value })
            }
            3 => {
                let flags = r.u8()?;
                if flags & 0xc0 != 0 {
                    return Err(r.corrupt(format_args!("unknown flags {flags:#x}")));
                }
                let allocation = allocation_time(&r, flags & 3)?;
                let time = fill_time(&r, (flags >> 2) & 3)?;
                let value = match (flags & 0x10 != 0, flags & 0x20 != 0) {
                    (true, true) => return Err(r.corrupt("both undefined and given")),
                    (true, false) => FillValue::Undefined,
                    (false, true) => sized_value(&mut r)?,
                    (false, false) => FillValue::Default,
                };
                Ok(Self { allocation, time, value })
            }
            v => Err(r.corrupt(format_args!("version {v} is not known"))),
        }
    }

    /// Parses an old fill value message (type 4).
    ///
    /// # Errors
    /// `Corrupt` when bytes are missing.
    pub fn parse_old(body: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "old fill value message");
        let value = match r.u32()? {
            0 => FillValue::Undefined,
            len => FillValue::Value(r.bytes(usize::try_from(len).unwrap_or(usize::MAX))?.to_vec()),
        };
        Ok(Self { value, ..Self::ABSENT })
    }
}

fn allocation_time(r: &FieldReader<'_>, n: u8) -> Result<AllocationTime> {
    match n {
        1 => Ok(AllocationTime::Early),
        0 | 2 => Ok(AllocationTime::Late),
        3 => Ok(AllocationTime::Incremental),
        n => Err(r.corrupt(format_args!("space allocation time {n} is not known"))),
    }
}

fn fill_time(r: &FieldReader<'_>, n: u8) -> Result<FillTime> {
    match n {
        0 => Ok(FillTime::OnAllocation),
        1 => Ok(FillTime::Never),
        2 => Ok(FillTime::IfSet),
        n => Err(r.corrupt(format_args!("fill time {n} is not known"))),
    }
}

/// A signed size and that many bytes: none is the default value, -1 means undefined.
fn sized_value(r: &mut FieldReader<'_>) -> Result<FillValue> {
    match r.u32()? {
        0 => Ok(FillValue::Default),
        u32::MAX => Ok(FillValue::Undefined),
        len if len > i32::MAX as u32 => Err(r.corrupt("a negative size")),
        len => Ok(FillValue::Value(r.bytes(usize::try_from(len).unwrap_or(usize::MAX))?.to_vec())),
    }
}
