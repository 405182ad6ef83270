//! The addon: the sandbox as JavaScript sees it. Thin on purpose; what a value means is said in
//! `src/engine/native.ts`, in the same order.
//!
//! Every synchronous export catches panics: without that, one aborts the process.

mod error;
mod promise;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{
    ArtifactKey, CancelToken, CompiledModule, Deadline, EngineConfig, ModuleKind, RunOptions,
    Sandbox, Trust,
};
use napi::bindgen_prelude::{Object, Uint8Array};
use napi::{Env, Error};
use napi_derive::napi;
use tokio::runtime::{Builder, Runtime};

use crate::error::{EngineError, EngineResult};
use crate::report::RunReport;

/// Threads for file work: hashing, verifying, mapping.
const BLOCKING_THREADS: usize = 4;

/// `EngineSettings` of native.ts.
#[napi(object)]
pub struct EngineSettings {
    pub engine_workers: u32,
    pub stack_limit_bytes: f64,
    pub memory_limit_bytes: f64,
    pub pool_slots: u32,
    pub artifact_key: Uint8Array,
    pub trust_cache_dir: bool,
}

/// `ModuleRef` of native.ts.
#[napi(object)]
pub struct ModuleRef {
    pub file_path: String,
    pub digest: String,
    pub size_bytes: f64,
}

/// `ArtifactRef` of native.ts.
#[napi(object)]
pub struct ArtifactRef {
    pub file_path: String,
    pub digest: String,
}

/// `RunSettings` of native.ts.
#[napi(object)]
pub struct RunSettings {
    pub memory_limit_bytes: f64,
    pub max_response_bytes: f64,
}

/// The engine and the threads it runs on.
#[napi]
pub struct NativeEngine {
    sandbox: Arc<Sandbox>,
    key: ArtifactKey,
    trust: Trust,
    runtime: Option<Runtime>,
    compatibility_hash: String,
}

/// A compiled module; freed when JavaScript disposes of it and the last run has ended.
#[napi]
pub struct NativeModule {
    module: Option<Arc<CompiledModule>>,
}

/// The bounds of one run, in the hands of its caller.
#[napi]
pub struct NativeDeadline {
    cancel: CancelToken,
    deadline: Deadline,
}

#[napi]
impl NativeDeadline {
    #[napi(constructor, catch_unwind)]
    #[must_use]
    pub fn new(timeout_ms: f64, deadline_in_ms: Option<f64>) -> Self {
        let cancel = CancelToken::default();
        let request_deadline = deadline_in_ms.map(|ms| Instant::now() + millis(ms));
        Self {
            deadline: Deadline::new(millis(timeout_ms), request_deadline, cancel.clone()),
            cancel,
        }
    }

    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Milliseconds the run may still go on; negative once it is overdue.
    #[napi(catch_unwind)]
    #[must_use]
    pub fn remaining_ms(&self) -> f64 {
        self.deadline.remaining_seconds() * 1_000.0
    }
}

#[napi]
impl NativeModule {
    #[napi(getter, catch_unwind)]
    pub fn abi(&self) -> napi::Result<u32> {
        Ok(self.get()?.abi())
    }

    #[napi(getter, catch_unwind)]
    pub fn pooled(&self) -> napi::Result<bool> {
        Ok(self.get()?.is_pooled())
    }

    /// Idempotent.
    #[napi(catch_unwind)]
    pub fn dispose(&mut self) {
        self.module = None;
    }

    fn get(&self) -> napi::Result<&Arc<CompiledModule>> {
        self.module
            .as_ref()
            .ok_or_else(|| Error::from_reason("the module was disposed of"))
    }
}

#[napi]
impl NativeEngine {
    #[napi(constructor, catch_unwind)]
    pub fn new(settings: EngineSettings) -> napi::Result<Self> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::from_reason(format!("cannot start the sandbox: {error:#}"))
        };
        let stack_limit_bytes = bytes(settings.stack_limit_bytes);
        let runtime = Builder::new_multi_thread()
            .worker_threads(settings.engine_workers.max(1) as usize)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("wasm-worker")
            .enable_time()
            .build()
            .map_err(|error| failed(&error))?;
        let sandbox = Sandbox::new(&EngineConfig {
            stack_limit_bytes,
            memory_limit_bytes: bytes(settings.memory_limit_bytes),
            pool_slots: settings.pool_slots,
        })
        .map_err(|error| failed(&error))?;
        let compatibility_hash =
            engine::compatibility_hash(stack_limit_bytes).map_err(|error| failed(&error))?;
        Ok(Self {
            sandbox: Arc::new(sandbox),
            key: ArtifactKey::new(settings.artifact_key.to_vec()),
            trust: if settings.trust_cache_dir {
                Trust::Directory
            } else {
                Trust::Key
            },
            runtime: Some(runtime),
            compatibility_hash,
        })
    }

    #[napi(getter, catch_unwind)]
    #[must_use]
    pub fn compatibility_hash(&self) -> String {
        self.compatibility_hash.clone()
    }

    #[napi(getter, catch_unwind)]
    #[must_use]
    pub fn pooled(&self) -> bool {
        self.sandbox.is_pooled()
    }

    /// Reads the file, compares its digest, checks its structure; resolves to its kind.
    #[napi(ts_return_type = "Promise<string>", catch_unwind)]
    pub fn precheck<'env>(&self, env: &'env Env, module: ModuleRef) -> napi::Result<Object<'env>> {
        let sandbox = Arc::clone(&self.sandbox);
        promise::settle(env, self.runtime()?, async move {
            blocking(move || {
                let path = PathBuf::from(module.file_path);
                let size_bytes = bytes(module.size_bytes) as u64;
                let bytes = engine::read_module(&path, &module.digest, size_bytes)?;
                Ok(sandbox.precheck(&bytes)?.kind.name().to_owned())
            })
            .await
        })
    }

    /// Authenticates what the compiler wrote to `written_path` and moves it into place.
    #[napi(ts_return_type = "Promise<null>", catch_unwind)]
    pub fn seal<'env>(
        &self,
        env: &'env Env,
        written_path: String,
        kind: String,
        artifact: ArtifactRef,
    ) -> napi::Result<Object<'env>> {
        let key = self.key.clone();
        promise::settle(env, self.runtime()?, async move {
            blocking(move || {
                let kind = ModuleKind::from_name(&kind)
                    .ok_or_else(|| EngineError::internal(&format!("unknown kind {kind}")))?;
                let (written, path) = (
                    PathBuf::from(written_path),
                    PathBuf::from(artifact.file_path),
                );
                Ok(engine::seal(&written, &path, &key, kind, &artifact.digest)?)
            })
            .await
        })
    }

    /// Verifies and maps an artifact.
    #[napi(ts_return_type = "Promise<NativeModule>", catch_unwind)]
    pub fn load<'env>(&self, env: &'env Env, artifact: ArtifactRef) -> napi::Result<Object<'env>> {
        let (sandbox, key, trust) = (Arc::clone(&self.sandbox), self.key.clone(), self.trust);
        promise::settle(env, self.runtime()?, async move {
            blocking(move || {
                let path = PathBuf::from(artifact.file_path);
                let module = CompiledModule::load(&sandbox, &path, &key, trust, &artifact.digest)?;
                Ok(NativeModule {
                    module: Some(Arc::new(module)),
                })
            })
            .await
        })
    }

    /// Runs a module once. The promise resolves to a report whatever happens in the sandbox.
    ///
    /// This is the one place that decides where a run is first polled: on a worker.
    #[napi(ts_return_type = "Promise<RunReport>", catch_unwind)]
    pub fn run<'env>(
        &self,
        env: &'env Env,
        module: &NativeModule,
        request: &[u8],
        settings: RunSettings,
        deadline: &NativeDeadline,
    ) -> napi::Result<Object<'env>> {
        let module = Arc::clone(module.get()?);
        let sandbox = Arc::clone(&self.sandbox);
        // Copied once, here: JavaScript may write to its buffer while the guest runs.
        let request = request.to_vec();
        let options = RunOptions {
            deadline: deadline.deadline.clone(),
            memory_limit_bytes: bytes(settings.memory_limit_bytes),
            max_response_bytes: bytes(settings.max_response_bytes),
        };
        promise::settle(env, self.runtime()?, async move {
            let report = sandbox.run(&module, &request, &options).await;
            Ok(RunReport::from(report))
        })
    }

    /// Ends the worker threads; what still runs is dropped at its next epoch.
    #[napi(catch_unwind)]
    pub fn close(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    fn runtime(&self) -> napi::Result<&Runtime> {
        self.runtime
            .as_ref()
            .ok_or_else(|| Error::from_reason("the sandbox is closed"))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> EngineResult<T> + Send + 'static,
) -> EngineResult<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(EngineError::internal(&format!(
            "a file task failed: {error}"
        ))),
    }
}

/// JavaScript counts in doubles; negative and NaN become 0, and no size here exceeds 2^53.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bytes(count: f64) -> usize {
    count as usize
}

fn millis(ms: f64) -> Duration {
    // A year: what is longer is as good as none, and cannot overflow an instant.
    Duration::from_secs_f64(ms.clamp(0.0, 3.2e10) / 1_000.0)
}
