//! What a check has found so far.

use super::{Finding, Summary, Verdict};
use std::collections::HashSet;
use tensilo_core::{Error, ErrorKind, Result};

pub(super) struct Report<'a> {
    each: &'a mut dyn FnMut(&Finding) -> Result<()>,
    object: String,
    /// Places that something was said about, with the message where the error itself names no place.
    said: HashSet<(u64, Verdict, String)>,
    pub(super) summary: Summary,
}

impl<'a> Report<'a> {
    pub(super) fn new(each: &'a mut dyn FnMut(&Finding) -> Result<()>) -> Self {
        Self { each, object: String::new(), said: HashSet::new(), summary: Summary::default() }
    }

    /// What is found from now on belongs to this object.
    pub(super) fn enter(&mut self, object: impl Into<String>) {
        self.object = object.into();
    }

    /// Reports an error as a finding, once for each place; `at` is the place where the error names none. Errors that are
    /// no answer about the file are returned.
    pub(super) fn found(&mut self, e: &Error, at: u64) -> Result<()> {
        let verdict = match e.kind() {
            ErrorKind::Corrupt => Verdict::Damaged,
            ErrorKind::Unsupported | ErrorKind::Limit | ErrorKind::NotFound => Verdict::Unchecked,
            kind => {
                return Err(Error::new(kind, e.message())
                    .at(e.offset().unwrap_or(at))
                    .in_object(self.object.clone()));
            }
        };
        let offset = e.offset().unwrap_or(at);
        let message = if e.offset().is_some() { String::new() } else { e.message().to_owned() };
        if !self.said.insert((offset, verdict, message)) {
            return Ok(());
        }
        match verdict {
            Verdict::Damaged => self.summary.damaged += 1,
            Verdict::Unchecked => self.summary.unchecked += 1,
        }
        (self.each)(&Finding {
            verdict,
            object: self.object.clone(),
            offset: Some(offset),
            message: e.message().to_owned(),
        })
    }
}
