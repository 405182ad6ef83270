//! Every import a guest may have. All of WASI is linked, because standard libraries import it
//! unused; with nothing granted, files and sockets answer with their own errors.

use wasmtime::component::Linker as ComponentLinker;
use wasmtime::{Engine, Linker, Result};

use crate::state::RunState;
use crate::{egress, log};

const P1_MODULE: &str = "wasi_snapshot_preview1";
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

/// Whether a core import can be linked, as far as its name tells.
#[must_use]
pub fn is_known_core_import(module: &str, name: &str) -> bool {
    match module {
        P1_MODULE => P1_FUNCTIONS.contains(&name),
        HOST_MODULE => matches!(name, "log" | "http"),
        _ => false,
    }
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

const P1_FUNCTIONS: &[&str] = &[
    "adapter_close_badfd",
    "adapter_open_badfd",
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_advise",
    "fd_allocate",
    "fd_close",
    "fd_datasync",
    "fd_fdstat_get",
    "fd_fdstat_set_flags",
    "fd_fdstat_set_rights",
    "fd_filestat_get",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pread",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_pwrite",
    "fd_read",
    "fd_readdir",
    "fd_renumber",
    "fd_seek",
    "fd_sync",
    "fd_tell",
    "fd_write",
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "poll_oneoff",
    "proc_exit",
    "proc_raise",
    "random_get",
    "reset_adapter_state",
    "sched_yield",
    "set_allocation_state",
    "set_state_ptr",
    "sock_accept",
    "sock_recv",
    "sock_send",
    "sock_shutdown",
];

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
