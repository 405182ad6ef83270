//! The addon: the sandbox as JavaScript sees it. Thin on purpose; what a value means is said in
//! `src/engine/native.ts`, in the same order.
//!
//! Every synchronous export catches panics: without that, one aborts the process.

mod error;
mod live;
mod promise;
mod report;
mod threads;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{
    ArtifactKey, CancelToken, CompiledModule, Deadline, EngineConfig, ModuleKind, Report,
    RunOptions, Sandbox, Trust,
};
use futures::FutureExt as _;
use napi::bindgen_prelude::{FnArgs, Function, Object, Uint8Array};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Error, Status};
use napi_derive::napi;
use tokio::runtime::{Builder, Runtime};

use crate::error::{EngineError, EngineResult};
use crate::live::LiveRuns;
use crate::report::{Completion, Response, RunReport};

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
    pub max_response_bytes: f64,
}

/// `ArtifactRef` of native.ts.
#[napi(object)]
pub struct ArtifactRef {
    pub file_path: String,
    pub digest: String,
}

/// `EnvVariable` of `src/ports.ts`.
#[napi(object)]
pub struct EnvVariable {
    pub name: String,
    pub value: String,
}

type DoneArguments = FnArgs<(u32, Response, Option<RunReport>)>;
/// One callback for all runs: a promise for each would cost more than a tiny guest. Weak, so that
/// it does not keep the process alive.
type Done = ThreadsafeFunction<Completion, (), DoneArguments, Status, false, true>;

/// The engine and the threads it runs on.
#[napi]
pub struct NativeEngine {
    /// `None` once closed.
    open: Option<Open>,
    key: ArtifactKey,
    trust: Trust,
    max_response_bytes: usize,
    compatibility_hash: String,
    pooled: bool,
}

struct Open {
    sandbox: Arc<Sandbox>,
    runtime: Runtime,
    live: LiveRuns,
    done: Arc<Done>,
}

/// A compiled module; freed when JavaScript disposes of it and the last run has ended.
#[napi]
pub struct NativeModule {
    module: Option<Arc<CompiledModule>>,
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
    pub fn new(
        settings: EngineSettings,
        #[napi(ts_arg_type = "RunDone")] done: Function<'_, DoneArguments, ()>,
    ) -> napi::Result<Self> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::from_reason(format!("cannot start the sandbox: {error:#}"))
        };
        let stack_limit_bytes = bytes(settings.stack_limit_bytes);
        let workers = settings.engine_workers.max(1) as usize;
        threads::probe(workers + BLOCKING_THREADS)
            .map_err(|error| failed(&format_args!("{workers} worker threads (--engine-workers): {error}")))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
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
        let done: Done = done
            .build_threadsafe_function::<Completion>()
            .weak::<true>()
            .build_callback(|call| Ok(FnArgs::from(call.value.into_arguments())))?;
        let compatibility_hash =
            engine::compatibility_hash(stack_limit_bytes).map_err(|error| failed(&error))?;
        Ok(Self {
            pooled: sandbox.is_pooled(),
            open: Some(Open {
                sandbox: Arc::new(sandbox),
                runtime,
                live: LiveRuns::default(),
                done: Arc::new(done),
            }),
            max_response_bytes: bytes(settings.max_response_bytes),
            key: ArtifactKey::new(settings.artifact_key.to_vec()),
            trust: if settings.trust_cache_dir {
                Trust::Directory
            } else {
                Trust::Key
            },
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
        self.pooled
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
        promise::settle(env, &self.open()?.runtime, async move {
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
        let Open {
            sandbox, runtime, ..
        } = self.open()?;
        let (sandbox, key, trust) = (Arc::clone(sandbox), self.key.clone(), self.trust);
        promise::settle(env, runtime, async move {
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

    /// Starts a run under a number that no other run under way has. Whatever happens in the sandbox,
    /// `done` is called with it once; `deadline_in_ms` may be infinite.
    ///
    /// This is the one place that decides where a run is first polled: on a worker.
    #[napi(catch_unwind)]
    // An object made for every run would cost more than its arguments one by one.
    #[allow(clippy::too_many_arguments)]
    pub fn run(
        &self,
        id: u32,
        module: &NativeModule,
        request: &[u8],
        timeout_ms: f64,
        deadline_in_ms: f64,
        memory_limit_bytes: f64,
        env: Vec<EnvVariable>,
    ) -> napi::Result<()> {
        let module = Arc::clone(module.get()?);
        let Open {
            sandbox,
            runtime,
            live,
            done,
        } = self.open()?;
        let (sandbox, live, done) = (Arc::clone(sandbox), live.clone(), Arc::clone(done));
        // Copied once, here: JavaScript may write to its buffer while the guest runs.
        let request = request.to_vec();
        let cancel = CancelToken::default();
        let request_deadline = deadline_in_ms
            .is_finite()
            .then(|| Instant::now() + millis(deadline_in_ms));
        let deadline = Deadline::new(millis(timeout_ms), request_deadline, cancel.clone());
        live.add(id, cancel, deadline.clone());
        let options = RunOptions {
            env: env
                .into_iter()
                .map(|EnvVariable { name, value }| (name, value))
                .collect(),
            deadline,
            memory_limit_bytes: bytes(memory_limit_bytes),
            max_response_bytes: self.max_response_bytes,
        };
        runtime.spawn(async move {
            let run = sandbox.run(&module, &request, &options);
            let report = AssertUnwindSafe(run)
                .catch_unwind()
                .await
                .unwrap_or_else(|_| Report::fault("the sandbox panicked"));
            live.remove(id);
            let _ = done.call(
                Completion { id, report },
                ThreadsafeFunctionCallMode::NonBlocking,
            );
        });
        Ok(())
    }

    /// Ends a run at its next epoch; nothing happens when it has ended.
    #[napi(catch_unwind)]
    pub fn cancel(&self, id: u32) {
        if let Some(open) = &self.open {
            open.live.cancel(id);
        }
    }

    /// Milliseconds a run may still go on; negative once it is overdue, infinite once it has ended.
    #[napi(catch_unwind)]
    #[must_use]
    pub fn remaining_ms(&self, id: u32) -> f64 {
        self.open
            .as_ref()
            .map_or(f64::INFINITY, |open| open.live.remaining_ms(id))
    }

    /// Ends the threads and frees the pool once the last module is gone; what still runs is dropped
    /// at its next epoch.
    #[napi(catch_unwind)]
    pub fn close(&mut self) {
        if let Some(open) = self.open.take() {
            open.runtime.shutdown_background();
        }
    }

    fn open(&self) -> napi::Result<&Open> {
        self.open
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
