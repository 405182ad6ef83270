//! The guest's structured log: `wasmfn.log` (ABI v1) and `log` (ABI v2).

use wasmtime::component::Val;
use wasmtime::component::types::ComponentFunc;
use wasmtime::{Caller, Extern, Result, StoreContextMut, bail};

use crate::output::{MAX_PAIRS, Source};
use crate::state::RunState;

/// One log document; the run keeps far less of it.
const MAX_DOCUMENT_BYTES: u32 = 64 << 10;

type Pairs = Vec<(String, String)>;

/// `wasmfn.log(level, ptr, len)`: JSON `{msg, kv}`; level 0 is info, anything else debug. What is
/// no such JSON is logged as the message itself, so that nothing a guest says is lost.
///
/// # Errors
///
/// Traps the run when the document lies outside memory or is larger than 64 KiB.
pub(crate) fn log_v1(
    mut caller: Caller<'_, RunState>,
    level: i32,
    ptr: i32,
    len: i32,
) -> Result<()> {
    let (ptr, len) = (ptr.cast_unsigned(), len.cast_unsigned());
    if len > MAX_DOCUMENT_BYTES {
        bail!("wasmfn.log: a document of {len} bytes exceeds {MAX_DOCUMENT_BYTES}");
    }
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        bail!("wasmfn.log: the module exports no memory");
    };
    let range = ptr as usize..ptr as usize + len as usize;
    let Some(document) = memory.data(&caller).get(range) else {
        bail!("wasmfn.log: the document at {ptr}+{len} lies outside memory");
    };
    let (message, pairs) = parse(document);
    let source = if level == 0 {
        Source::Info
    } else {
        Source::Debug
    };
    caller.data().output.log(source, &message, pairs);
    Ok(())
}

/// `log(level, msg, kv)`. Typed dynamically, because guests built against earlier drafts of the
/// world declare fewer levels and an enum only links to one with the same cases.
///
/// # Errors
///
/// Traps the run when the arguments have other types than the world says.
pub(crate) fn log_v2(
    cx: StoreContextMut<'_, RunState>,
    _ty: ComponentFunc,
    params: &[Val],
    _results: &mut [Val],
) -> Result<()> {
    let [Val::Enum(level), Val::String(message), Val::List(kv)] = params else {
        bail!("log: expected (level: enum, msg: string, kv: list<tuple<string, string>>)");
    };
    let source = match level.as_str() {
        "debug" => Source::Debug,
        "warn" => Source::Warn,
        "error" => Source::Error,
        _ => Source::Info,
    };
    let pairs = kv.iter().take(MAX_PAIRS).filter_map(pair).collect();
    cx.data().output.log(source, message, pairs);
    Ok(())
}

fn pair(value: &Val) -> Option<(String, String)> {
    match value {
        Val::Tuple(items) => match items.as_slice() {
            [Val::String(key), Val::String(value)] => Some((key.clone(), value.clone())),
            _ => None,
        },
        _ => None,
    }
}

fn parse(document: &[u8]) -> (String, Pairs) {
    use serde_json::Value;

    let raw = || (String::from_utf8_lossy(document).into_owned(), Vec::new());
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(document) else {
        return raw();
    };
    let Some(Value::String(message)) = fields.remove("msg") else {
        return raw();
    };
    let pairs = match fields.remove("kv") {
        Some(Value::Object(kv)) => kv.into_iter().map(|(k, v)| (k, text(v))).collect(),
        // The alternating list of Go's structured loggers.
        Some(Value::Array(kv)) => kv
            .chunks(2)
            .map(|kv| {
                let value = kv.get(1).cloned().unwrap_or(Value::Null);
                (text(kv[0].clone()), text(value))
            })
            .collect(),
        _ => Vec::new(),
    };
    (message, pairs)
}

fn text(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(pairs: &[(&str, &str)]) -> Pairs {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn reads_both_shapes_of_kv_and_loses_nothing_else() {
        let cases: [(&[u8], &str, Pairs); 6] = [
            (br#"{"msg":"hi"}"#, "hi", owned(&[])),
            (
                br#"{"msg":"hi","kv":{"a":"b"}}"#,
                "hi",
                owned(&[("a", "b")]),
            ),
            (
                br#"{"msg":"hi","kv":["a",1,"b"]}"#,
                "hi",
                owned(&[("a", "1"), ("b", "null")]),
            ),
            (br#"{"msg":7}"#, r#"{"msg":7}"#, owned(&[])),
            (b"not json", "not json", owned(&[])),
            (b"\xff", "\u{fffd}", owned(&[])),
        ];
        for (document, message, pairs) in cases {
            assert_eq!(parse(document), (message.to_owned(), pairs));
        }
    }
}
