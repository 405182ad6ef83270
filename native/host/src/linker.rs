//! Every import a guest may have. All of WASI is linked, because standard libraries import it
//! unused; with nothing granted, files and sockets answer with their own errors.

use wasmtime::component::Linker as ComponentLinker;
use wasmtime::{Engine, Linker, Result};

use crate::state::RunState;
use crate::{egress, log};

const HOST_MODULE: &str = "wasmfn";

/// Links WASI preview 1 and `wasmfn.*` for core modules (ABI v1).
///
/// # Errors
///
/// Only when two definitions clash.
pub fn core_linker(engine: &Engine) -> Result<Linker<RunState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p1::add_to_linker_async(&mut linker, RunState::p1)?;
    linker.func_wrap(HOST_MODULE, "log", log::log_v1)?;
    linker.func_wrap_async(HOST_MODULE, "http", |caller, (ptr, len): (i32, i32)| {
        Box::new(egress::http_v1(caller, ptr, len))
    })?;
    Ok(linker)
}

/// Links WASI 0.2 and 0.3, `wasi:http` and `log` for components (ABI v2).
///
/// # Errors
///
/// Only when two definitions clash.
pub fn component_linker(engine: &Engine) -> Result<ComponentLinker<RunState>> {
    let mut linker = ComponentLinker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    wasmtime_wasi::p3::add_to_linker(&mut linker)?;
    wasmtime_wasi_http::p3::add_to_linker(&mut linker)?;
    linker.root().func_new("log", log::log_v2)?;
    Ok(linker)
}

/// Whether a component import can be linked, as far as its name tells: the world's own imports, and
/// the interfaces of WASI 0.2 and 0.3.
#[must_use]
pub fn is_known_component_import(name: &str) -> bool {
    if matches!(name, "log" | "log-level") {
        return true;
    }
    let Some((interface, version)) = name.split_once('@') else {
        return false;
    };
    let known = match version.get(..4) {
        Some("0.2.") => P2_INTERFACES,
        Some("0.3.") => P3_INTERFACES,
        _ => return false,
    };
    known.contains(&interface)
}

const P2_INTERFACES: &[&str] = &[
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

const P3_INTERFACES: &[&str] = &[
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/types",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/system-clock",
    "wasi:clocks/types",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/client",
    "wasi:http/types",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/types",
];
