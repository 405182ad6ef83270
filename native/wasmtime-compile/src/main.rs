//! Compiles one module under its own limits and writes the artifact. Started by the function for
//! each compile, with an empty environment: it holds no secret, and a compile bomb costs the
//! server nothing but the answer.
//!
//! Prints one line of JSON: `{"ok":true}`, or `{"ok":false,"code":…,"message":…}` with code
//! `invalid` (the module), `changed` (its file), `write` (the artifact) or `io` (anything else).

mod limits;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use engine::{ModuleKind, SourceError, compiler_config, read_module};
use serde::{Deserialize, Serialize};
use wasmtime::Engine;

/// What to compile, as JSON in the only argument. Sizes in bytes, times in seconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Job {
    module_path: PathBuf,
    digest: String,
    size_bytes: u64,
    kind: String,
    /// Must not exist.
    artifact_path: PathBuf,
    stack_limit_bytes: usize,
    cpu_limit_seconds: u64,
    address_space_bytes: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome {
    Done {
        ok: bool,
    },
    Refused {
        ok: bool,
        code: &'static str,
        message: String,
    },
}

struct Refusal {
    code: &'static str,
    message: String,
}

fn main() -> ExitCode {
    let outcome = match job().and_then(|job| compile(&job)) {
        Ok(()) => Outcome::Done { ok: true },
        Err(Refusal { code, message }) => Outcome::Refused {
            ok: false,
            code,
            message,
        },
    };
    let failed = matches!(outcome, Outcome::Refused { .. });
    match serde_json::to_string(&outcome) {
        Ok(line) => println!("{line}"),
        Err(error) => eprintln!("wasmtime-compile: {error}"),
    }
    if failed {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

fn job() -> Result<Job, Refusal> {
    let mut arguments = std::env::args().skip(1);
    let (Some(argument), None) = (arguments.next(), arguments.next()) else {
        return Err(usage("expected one argument: the job as JSON"));
    };
    serde_json::from_str(&argument).map_err(|error| usage(&error.to_string()))
}

fn usage(reason: &str) -> Refusal {
    Refusal {
        code: "io",
        message: format!("wasmtime-compile is started by function-wasm: {reason}"),
    }
}

fn compile(job: &Job) -> Result<(), Refusal> {
    limits::apply(job.cpu_limit_seconds, job.address_space_bytes)
        .map_err(|error| io("cannot limit the compiler", &error))?;
    let module = read_module(&job.module_path, &job.digest, job.size_bytes).map_err(|error| {
        let (code, message) = match error {
            SourceError::Changed(message) => ("changed", message),
            SourceError::Io(message) => ("io", message),
        };
        Refusal { code, message }
    })?;
    let artifact = Engine::new(&compiler_config(job.stack_limit_bytes))
        .and_then(|engine| match ModuleKind::from_name(&job.kind) {
            Some(ModuleKind::Core) => engine.precompile_module(&module),
            Some(ModuleKind::Component) => engine.precompile_component(&module),
            None => Err(wasmtime::Error::msg("unknown kind of module")),
        })
        .map_err(|error| Refusal {
            code: "invalid",
            message: format!("{error:#}").replace('\n', " "),
        })?;
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&job.artifact_path)?;
        file.write_all(&artifact)?;
        // Sealing fsyncs it.
        Ok(())
    };
    write().map_err(|error| Refusal {
        code: "write",
        message: format!("cannot write the artifact: {error}"),
    })
}

fn io(what: &str, error: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        code: "io",
        message: format!("{what}: {error}"),
    }
}
