//! The one error type of Tensilo: what went wrong, who must act, and where in which file.
//!
//! An error is made where the trouble is seen, with what was expected and what was found; callers on the way
//! up add the file, the object path and the byte offset, whichever they know. Its text is one line.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Result of every fallible function in Tensilo.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who must act on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused: permission, disk, network.
    Io,
    /// The file breaks its own format; whoever made it must act.
    Corrupt,
    /// The file is valid, but this version cannot handle it; we must act.
    Unsupported,
    /// The named thing does not exist.
    NotFound,
    /// Something is in the way and nothing is overwritten unasked.
    AlreadyExists,
    /// Another process or handle holds a lock.
    Locked,
    /// The caller's request makes no sense.
    InvalidArgument,
    /// A configured limit would be passed.
    Limit,
    /// The plan needs more memory than it was given.
    InsufficientMemory,
    /// The plan needs more disk space than there is.
    InsufficientDisk,
    /// The source changed while, or since, it was examined.
    SourceChanged,
    /// The caller asked to stop.
    Cancelled,
    /// The byte source does not hold these bytes yet; fetch [`Error::missing_ranges`] and call again.
    Missing,
}

impl ErrorKind {
    /// The stable, lower-case name used in `--json` output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::NotFound => "not-found",
            Self::AlreadyExists => "already-exists",
            Self::Locked => "locked",
            Self::InvalidArgument => "invalid-argument",
            Self::Limit => "limit",
            Self::InsufficientMemory => "insufficient-memory",
            Self::InsufficientDisk => "insufficient-disk",
            Self::SourceChanged => "source-changed",
            Self::Cancelled => "cancelled",
            Self::Missing => "missing",
        }
    }
}

/// What went wrong, who must act, and where.
///
/// ```
/// use tensilo_core::{Error, ErrorKind};
/// let e = Error::corrupt("chunk rank 5 does not match dataspace rank 4")
///     .at(2048)
///     .in_object("/entry/data")
///     .in_file("scan.h5");
/// assert_eq!(e.kind(), ErrorKind::Corrupt);
/// assert_eq!(e.to_string(), "scan.h5: /entry/data: chunk rank 5 does not match dataspace rank 4 (at byte 2048)");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    file: Option<PathBuf>,
    object: Option<String>,
    offset: Option<u64>,
    record: Option<u64>,
    hint: Option<String>,
    missing: Vec<Range<u64>>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error of a kind with a message that says what was expected and what was found.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            file: None,
            object: None,
            offset: None,
            record: None,
            hint: None,
            missing: Vec::new(),
            source: None,
        }))
    }

    /// The file breaks its own format.
    #[cold]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// The file is valid, but this is not supported; the message names it.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// The named thing does not exist.
    #[cold]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Something is in the way.
    #[cold]
    pub fn already_exists(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::AlreadyExists, message)
    }

    /// The request makes no sense.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// A configured limit would be passed.
    #[cold]
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// The source changed while, or since, it was examined.
    #[cold]
    pub fn source_changed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::SourceChanged, message)
    }

    /// The caller asked to stop.
    #[cold]
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled")
    }

    /// The byte source does not hold these ranges yet.
    #[cold]
    pub fn missing(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_unstable_by_key(|r| r.start);
        ranges.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        let mut e = Self::new(ErrorKind::Missing, format!("{} byte ranges are not loaded yet", ranges.len()));
        e.0.missing = ranges;
        e
    }

    /// Wraps an operating-system error, saying what was being done; `NotFound`, `AlreadyExists` and
    /// storage-full errors get their own kinds.
    #[cold]
    pub fn io(doing: impl fmt::Display, source: std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let kind = match source.kind() {
            K::NotFound => ErrorKind::NotFound,
            K::AlreadyExists => ErrorKind::AlreadyExists,
            K::StorageFull | K::QuotaExceeded => ErrorKind::InsufficientDisk,
            K::WouldBlock => ErrorKind::Locked,
            _ => ErrorKind::Io,
        };
        Self::new(kind, format!("{doing}: {source}")).with_source(source)
    }

    /// Adds the byte offset, if none is set yet (the innermost one is the most exact).
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Adds the file, if none is set yet.
    #[must_use]
    pub fn in_file(mut self, file: impl AsRef<Path>) -> Self {
        self.0.file.get_or_insert_with(|| file.as_ref().to_path_buf());
        self
    }

    /// Adds the path of the object inside the file, if none is set yet.
    #[must_use]
    pub fn in_object(mut self, object: impl Into<String>) -> Self {
        self.0.object.get_or_insert_with(|| object.into());
        self
    }

    /// Adds the record id, if none is set yet.
    #[must_use]
    pub fn in_record(mut self, record: u64) -> Self {
        self.0.record.get_or_insert(record);
        self
    }

    /// Puts words in front of the message: `context: message`.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// Adds what the reader of the message could do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    /// Who must act.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without its location.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file in question, if known.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The path of the object inside the file, if known.
    pub fn object(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// The absolute byte offset in the file, if known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The record id, if known.
    pub fn record(&self) -> Option<u64> {
        self.0.record
    }

    /// What the reader of the message could do about it, if we know.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The byte ranges to fetch before calling again; empty unless the kind is [`ErrorKind::Missing`].
    pub fn missing_ranges(&self) -> &[Range<u64>] {
        &self.0.missing
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.0.file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some(object) = &self.0.object {
            write!(f, "{object}: ")?;
        }
        f.write_str(&self.0.message)?;
        if let Some(record) = self.0.record {
            write!(f, " (record {record})")?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, " (at byte {offset})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)?;
        if let Some(hint) = &self.0.hint {
            write!(f, " [hint: {hint}]")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, " [cause: {source}]")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}
