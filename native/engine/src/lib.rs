//! The sandbox without Node: configuration, structural pre-check, artifacts, runs.
//!
//! Owns what a compiled module is and how one run of it begins and ends. Never decides who may
//! run, never fetches anything, and knows nothing of JavaScript. The compiler program and the
//! addon share it, so both agree on every setting that changes machine code.

mod artifact;
mod config;
mod failure;
mod module;
mod precheck;
mod response;
mod run;
mod sandbox;
mod source;
mod ticker;

pub use artifact::{ArtifactKey, Trust, seal};
pub use config::{EngineConfig, compatibility_hash, compiler_config};
pub use failure::{Failure, FailureKind, LoadError};
pub use host::{CancelToken, Deadline, Line, Source};
pub use module::CompiledModule;
pub use precheck::{ModuleKind, Precheck, precheck};
pub use run::{Report, RunOptions};
pub use sandbox::Sandbox;
pub use source::{SourceError, read_module};
