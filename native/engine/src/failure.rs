//! What can go wrong, as values. The sentence a user reads is made by the caller, which knows the
//! module's name and the limits in force.

use host::{Stop, printable};
use wasmtime::{Error, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

const MAX_DETAIL_BYTES: usize = 2 << 10;
const MAX_BACKTRACE_BYTES: usize = 4 << 10;

/// How a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// `limits.timeout` is used up.
    Timeout,
    /// The caller's deadline passed.
    Deadline,
    /// The caller went away.
    Cancelled,
    /// The memory budget refused a growth, and the run failed.
    Memory,
    /// The guest trapped.
    Trap,
    /// The guest called `proc_exit`; the detail is the exit code.
    Exit,
    /// The guest returned an error; the detail is its text.
    Guest,
    /// The answer lies outside memory, is too large, or is no RunFunctionResponse.
    Response,
    /// A fault of the sandbox itself.
    Internal,
}

impl FailureKind {
    /// The name that crosses to JavaScript.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::Memory => "memory",
            Self::Trap => "trap",
            Self::Exit => "exit",
            Self::Guest => "guest",
            Self::Response => "response",
            Self::Internal => "internal",
        }
    }
}

/// A failed run.
#[derive(Debug)]
pub struct Failure {
    pub kind: FailureKind,
    /// One printable line.
    pub detail: String,
    /// The guest's frames, for the operator; empty when there are none.
    pub backtrace: String,
}

impl Failure {
    #[must_use]
    pub fn new(kind: FailureKind, detail: &str) -> Self {
        Self {
            kind,
            detail: printable(detail, MAX_DETAIL_BYTES),
            backtrace: String::new(),
        }
    }

    /// Sorts an error of wasmtime's. `memory_denials` are the growths the budget refused before:
    /// a guest that was refused memory and then fails has failed for want of memory.
    #[must_use]
    pub fn classify(error: &Error, memory_denials: u32) -> Self {
        let mut failure = if let Some(stop) = error.downcast_ref::<Stop>() {
            return stop_failure(*stop);
        } else if let Some(I32Exit(code)) = error.downcast_ref() {
            Self::new(FailureKind::Exit, &code.to_string())
        } else if memory_denials > 0 {
            Self::new(FailureKind::Memory, &root_text(error))
        } else {
            // Errors that host functions raise are traps for the guest, too.
            Self::new(FailureKind::Trap, &root_text(error))
        };
        if let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() {
            let frames: Vec<_> = backtrace
                .frames()
                .iter()
                .map(|frame| {
                    frame.func_name().map_or_else(
                        || format!("function {}", frame.func_index()),
                        |name| printable(name, 120),
                    )
                })
                .collect();
            failure.backtrace = printable(&frames.join(" < "), MAX_BACKTRACE_BYTES);
        }
        failure
    }
}

/// The failure for a run that the host ended.
#[must_use]
pub(crate) fn stop_failure(stop: Stop) -> Failure {
    let kind = match stop {
        Stop::Cancelled => FailureKind::Cancelled,
        Stop::RequestDeadline => FailureKind::Deadline,
        Stop::ComputeBudget => FailureKind::Timeout,
    };
    Failure::new(kind, &stop.to_string())
}

fn root_text(error: &Error) -> String {
    match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    }
}

/// Why a module could not be checked or loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The module is not one this runtime runs; the text says what was found and expected.
    Invalid(String),
    /// There is no artifact, or it does not verify; compiling again makes a good one.
    Stale(String),
    /// Reading or mapping failed.
    Io(String),
}

impl LoadError {
    /// The code that crosses to JavaScript.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Stale(_) => "stale",
            Self::Io(_) => "io",
        }
    }

    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Invalid(text) | Self::Stale(text) | Self::Io(text) => text,
        }
    }
}
