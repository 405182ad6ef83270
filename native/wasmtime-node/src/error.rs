//! Errors with a code that JavaScript switches on.

use std::fmt;

use engine::LoadError;

pub type EngineResult<T> = Result<T, EngineError>;

/// An error that crosses as `[code] text`; the code is `invalid`, `stale`, `io` or `internal`.
#[derive(Debug)]
pub struct EngineError {
    code: &'static str,
    text: String,
}

impl EngineError {
    pub fn internal(text: &str) -> Self {
        Self {
            code: "internal",
            text: text.to_owned(),
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.code, self.text)
    }
}

impl From<LoadError> for EngineError {
    fn from(error: LoadError) -> Self {
        Self {
            code: error.code(),
            text: error.message().to_owned(),
        }
    }
}
