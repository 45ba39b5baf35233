//! JSON lines: each names its schema first, so that a reader knows what it holds and which version.

use serde::Serialize;
use tensilo::{Error, Result};

#[derive(Serialize)]
struct Named<'a, T: Serialize> {
    schema: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

/// `{"schema":…, …}` on one line.
///
/// # Errors
/// When the body is no JSON object.
pub fn line<T: Serialize>(schema: &'static str, body: &T) -> Result<String> {
    serde_json::to_string(&Named { schema, body })
        .map_err(|e| Error::invalid(format!("{schema} cannot be shown as JSON: {e}")))
}

/// An error as data: `tensilo.error/1`.
#[derive(Debug, Serialize)]
pub struct ErrorView {
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl From<&Error> for ErrorView {
    fn from(e: &Error) -> Self {
        Self {
            kind: e.kind().name(),
            message: e.message().to_owned(),
            file: e.file().map(|f| f.display().to_string()),
            object: e.object().map(str::to_owned),
            offset: e.offset(),
            hint: e.hint_text().map(str::to_owned),
        }
    }
}
