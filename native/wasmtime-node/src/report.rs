//! The report of a run, as it crosses to JavaScript.

use engine::{Line, Report, Source};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

/// `RunReport` of native.ts.
#[napi(object)]
pub struct RunReport {
    pub response: Option<Buffer>,
    pub failure: Option<RunFailure>,
    pub lines: Vec<GuestLine>,
    pub dropped_lines: f64,
    pub compute_ms: f64,
    pub peak_memory_bytes: f64,
    pub memory_denials: u32,
}

/// `RunFailure` of native.ts.
#[napi(object)]
pub struct RunFailure {
    pub kind: String,
    pub detail: String,
    pub backtrace: String,
}

/// `GuestLine` of native.ts.
#[napi(object)]
pub struct GuestLine {
    pub source: String,
    pub message: String,
    pub pairs: Vec<Vec<String>>,
}

impl From<Report> for RunReport {
    #[allow(clippy::cast_precision_loss)]
    fn from(report: Report) -> Self {
        let (response, failure) = match report.answer {
            Ok(response) => (Some(Buffer::from(response)), None),
            Err(failure) => {
                let failure = RunFailure {
                    kind: failure.kind.name().to_owned(),
                    detail: failure.detail,
                    backtrace: failure.backtrace,
                };
                (None, Some(failure))
            }
        };
        Self {
            response,
            failure,
            lines: report.lines.into_iter().map(GuestLine::from).collect(),
            dropped_lines: report.dropped_lines as f64,
            compute_ms: report.compute.as_secs_f64() * 1_000.0,
            peak_memory_bytes: report.peak_memory_bytes as f64,
            memory_denials: report.memory_denials,
        }
    }
}

impl From<Line> for GuestLine {
    fn from(line: Line) -> Self {
        Self {
            source: match line.source {
                Source::Debug => "debug",
                Source::Info => "info",
                Source::Warn => "warn",
                Source::Error => "error",
                Source::Stdout => "stdout",
                Source::Stderr => "stderr",
            }
            .to_owned(),
            message: line.message,
            pairs: line
                .pairs
                .into_iter()
                .map(|(key, value)| vec![key, value])
                .collect(),
        }
    }
}
