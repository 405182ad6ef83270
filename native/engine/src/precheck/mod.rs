//! What can be said about a module in milliseconds, before anything is compiled: is it one this
//! runtime runs, and is it of a size that the compiler may be given.
//!
//! Function bodies are not validated here; the compiler does that. Both run in the compiler's
//! process: the parser recurses over nested type declarations, and a few kilobytes of those are
//! enough to overflow a stack.

mod bounds;
mod component;
mod core_module;
mod kind;

use std::fmt::Write as _;

use host::printable;
use wasmparser::{Encoding, Parser, Payload, ValidPayload, Validator};
use wasmtime::Engine;

use crate::failure::LoadError;
use bounds::Bounds;
use component::{TopLevelNames, check_component};
use core_module::{CoreHost, check_core};
pub use kind::ModuleKind;

/// What a refusal lists at most of unknown imports or of exports.
const MAX_NAMES: usize = 5;
const MAX_NAME_BYTES: usize = 80;

/// What the pre-check learnt of a module it let pass.
#[derive(Debug, PartialEq, Eq)]
pub struct Precheck {
    pub kind: ModuleKind,
}

/// Checks kind, counts, exports, imports and their types. May overflow the stack: never call it
/// in a process that must live.
///
/// # Errors
///
/// [`LoadError::Invalid`] that says what was found and what was expected.
pub fn precheck(
    bytes: &[u8],
    engine: &Engine,
    memory_limit_bytes: u64,
) -> Result<Precheck, LoadError> {
    if !bytes.starts_with(b"\0asm") {
        return Err(invalid(format!(
            "expected a WebAssembly module or component, got {}",
            describe_other(bytes)
        )));
    }
    let mut bounds = Bounds::new(memory_limit_bytes);
    let mut validator = Validator::new_with_features(engine.get_wasm_features());
    let mut kind = ModuleKind::Core;
    let mut names = TopLevelNames::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| malformed(&error))?;
        if let Payload::Version { num, encoding, .. } = &payload {
            check_version(*num, *encoding, bounds.depth() == 0)?;
            if bounds.depth() == 0 && *encoding == Encoding::Component {
                kind = ModuleKind::Component;
            }
        }
        // Counts first: the validator allocates by them.
        bounds.check(&payload)?;
        if bounds.depth() == 1 {
            names.collect(&payload)?;
        }
        match validator
            .payload(&payload)
            .map_err(|error| malformed(&error))?
        {
            ValidPayload::End(types) if bounds.depth() == 0 => {
                match kind {
                    ModuleKind::Core => check_core(types.as_ref(), &mut CoreHost::new(engine)?)?,
                    ModuleKind::Component => check_component(types.as_ref(), &names)?,
                }
                return Ok(Precheck { kind });
            }
            _ => {}
        }
    }
    Err(invalid("the file ends before its module does".to_owned()))
}

fn invalid(text: String) -> LoadError {
    LoadError::Invalid(text)
}

fn malformed(error: &wasmparser::BinaryReaderError) -> LoadError {
    invalid(format!(
        "not a valid WebAssembly module: {} (at offset {:#x})",
        printable(error.message(), 400),
        error.offset()
    ))
}

fn describe_other(bytes: &[u8]) -> String {
    let text = bytes.trim_ascii_start();
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    if bytes.starts_with(b"\x7fELF") {
        return "precompiled native code, which is never run: supply the WebAssembly it was made from"
            .to_owned();
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return "a gzip archive".to_owned();
    }
    if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return "a zstd archive".to_owned();
    }
    if text.starts_with(b"<") {
        return format!("an HTML or XML page beginning {}", quote(text));
    }
    if text.starts_with(b"(module") || text.starts_with(b"(component") {
        return "WebAssembly text (WAT): assemble it first".to_owned();
    }
    format!("{} bytes beginning {}", bytes.len(), quote(bytes))
}

fn quote(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(24)];
    format!("\"{}\"", printable(&String::from_utf8_lossy(head), 60))
}

fn check_version(num: u16, encoding: Encoding, top: bool) -> Result<(), LoadError> {
    let expected = match encoding {
        Encoding::Module => 1,
        Encoding::Component => 13,
    };
    if num == expected || !top {
        return Ok(());
    }
    Err(invalid(format!(
        "expected binary format version {expected}, got {num}"
    )))
}

fn refuse_unknown(unknown: &[String], known: &str) -> Result<(), LoadError> {
    if unknown.is_empty() {
        return Ok(());
    }
    Err(invalid(format!(
        "unknown import {}: this runtime provides {known}",
        listed(unknown)
    )))
}

/// At most [`MAX_NAMES`] of `names`, sorted and printable.
fn listed(names: &[String]) -> String {
    let mut sorted: Vec<_> = names
        .iter()
        .map(|name| printable(name, MAX_NAME_BYTES))
        .collect();
    sorted.sort();
    let more = sorted.len().saturating_sub(MAX_NAMES);
    sorted.truncate(MAX_NAMES);
    let mut text = sorted.join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}
