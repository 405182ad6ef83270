//! Checks or compiles one module under its own limits. Started by the function for each, with an
//! empty environment: it holds no secret, and a bomb costs the server nothing but the answer.
//!
//! Prints one line of JSON: `{"ok":true,"kind":…}`, or `{"ok":false,"code":…,"message":…}` with code
//! `invalid` (the module), `changed` (its file), `write` (the artifact) or `io` (anything else).

mod limits;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::{ModuleKind, SourceError, compiler_config, precheck, read_module};
use serde::{Deserialize, Serialize};
use wasmtime::Engine;

/// What to do, as JSON in the only argument. Sizes in bytes, times in seconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Job {
    task: Task,
    module_path: PathBuf,
    digest: String,
    size_bytes: u64,
    stack_limit_bytes: usize,
    cpu_limit_seconds: u64,
    address_space_bytes: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Task {
    /// Runs the structural pre-check.
    Check { memory_limit_bytes: u64 },
    /// Writes the artifact of a module that was checked; `artifact_path` must not exist.
    Compile {
        kind: String,
        artifact_path: PathBuf,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome {
    Done {
        ok: bool,
        kind: &'static str,
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
    let outcome = match job().and_then(|job| perform(&job)) {
        Ok(kind) => Outcome::Done {
            ok: true,
            kind: kind.name(),
        },
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

fn perform(job: &Job) -> Result<ModuleKind, Refusal> {
    limits::apply(job.cpu_limit_seconds, job.address_space_bytes)
        .map_err(|error| io("cannot limit the compiler", &error))?;
    let module = read_module(&job.module_path, &job.digest, job.size_bytes).map_err(|error| {
        let (code, message) = match error {
            SourceError::Changed(message) => ("changed", message),
            SourceError::Io(message) => ("io", message),
        };
        Refusal { code, message }
    })?;
    let engine = Engine::new(&compiler_config(job.stack_limit_bytes))
        .map_err(|error| io("cannot start the compiler", &error))?;
    match &job.task {
        Task::Check { memory_limit_bytes } => check(&module, &engine, *memory_limit_bytes),
        Task::Compile {
            kind,
            artifact_path,
        } => {
            let kind = ModuleKind::from_name(kind).ok_or_else(|| usage("unknown kind"))?;
            compile(&module, &engine, kind, artifact_path)?;
            Ok(kind)
        }
    }
}

fn check(module: &[u8], engine: &Engine, memory_limit_bytes: u64) -> Result<ModuleKind, Refusal> {
    precheck(module, engine, memory_limit_bytes)
        .map(|checked| checked.kind)
        .map_err(|error| Refusal {
            code: error.code(),
            message: error.message().to_owned(),
        })
}

fn compile(
    module: &[u8],
    engine: &Engine,
    kind: ModuleKind,
    artifact_path: &Path,
) -> Result<(), Refusal> {
    let artifact = match kind {
        ModuleKind::Core => engine.precompile_module(module),
        ModuleKind::Component => engine.precompile_component(module),
    }
    .map_err(|error| Refusal {
        code: "invalid",
        message: format!("{error:#}").replace('\n', " "),
    })?;
    if artifact.len() > max_artifact_bytes(module) {
        return Err(Refusal {
            code: "invalid",
            message: format!(
                "its compiled form has {} bytes, expected at most {}",
                artifact.len(),
                max_artifact_bytes(module)
            ),
        });
    }
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(artifact_path)?;
        // Sealing fsyncs it.
        file.write_all(&artifact)
    };
    write().map_err(|error| Refusal {
        code: "write",
        message: format!("cannot write the artifact: {error}"),
    })
}

/// Real modules compile to two to four times their size. Nested instances can make a few kilobytes
/// into megabytes of code, and of memory of the server that maps it.
fn max_artifact_bytes(module: &[u8]) -> usize {
    (1 << 20) + 16 * module.len()
}

fn io(what: &str, error: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        code: "io",
        message: format!("{what}: {error}"),
    }
}
