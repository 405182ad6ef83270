//! The outcome of a run, as it crosses to JavaScript.

use engine::{Line, Report, Source};
use napi::bindgen_prelude::{Buffer, BufferSlice, ToNapiValue};
use napi::{Env, sys};
use napi_derive::napi;

/// Up to this size copying is cheaper than handing over memory that V8 must track and give back.
const COPY_BYTES: usize = 64 << 10;

/// What the completion callback gets: `(id, response, report)`, see `RunDone` of native.ts.
pub struct Completion {
    pub id: u32,
    pub report: Report,
}

impl Completion {
    /// A run that only answered has no report.
    pub fn into_arguments(self) -> (u32, Response, Option<RunReport>) {
        let Report {
            answer,
            lines,
            dropped_lines,
            compute,
            peak_memory_bytes,
            memory_denials,
        } = self.report;
        let (response, failure) = match answer {
            Ok(bytes) => (Some(bytes), None),
            Err(failure) => (None, Some(failure)),
        };
        let plain =
            failure.is_none() && lines.is_empty() && dropped_lines == 0 && memory_denials == 0;
        let report = (!plain).then(|| RunReport {
            failure: failure.map(|failure| RunFailure {
                kind: failure.kind.name().to_owned(),
                detail: failure.detail,
                backtrace: failure.backtrace,
            }),
            lines: lines.into_iter().map(GuestLine::from).collect(),
            dropped_lines: as_number(dropped_lines),
            compute_ms: compute.as_secs_f64() * 1_000.0,
            peak_memory_bytes: as_number(peak_memory_bytes as u64),
            memory_denials,
        });
        (self.id, Response(response), report)
    }
}

#[allow(clippy::cast_precision_loss)]
fn as_number(count: u64) -> f64 {
    count as f64
}

/// Response bytes as a `Buffer`, or `null`.
pub struct Response(Option<Vec<u8>>);

impl ToNapiValue for Response {
    unsafe fn to_napi_value(env: sys::napi_env, response: Self) -> napi::Result<sys::napi_value> {
        // SAFETY: `env` is the live environment that napi calls us with, in both arms.
        unsafe {
            match response.0 {
                Some(bytes) if bytes.len() <= COPY_BYTES => {
                    let copy = BufferSlice::copy_from(&Env::from_raw(env), &bytes)?;
                    ToNapiValue::to_napi_value(env, &copy)
                }
                bytes => ToNapiValue::to_napi_value(env, bytes.map(Buffer::from)),
            }
        }
    }
}

/// `RunReport` of native.ts.
#[napi(object)]
pub struct RunReport {
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
