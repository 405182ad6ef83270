//! One run of a module: a fresh store, the call, the answer, and nothing left of it.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use host::{Deadline, Line, MemoryBudget, Output, RunConfig, RunState};
use wasmtime::component::InstancePre as ComponentPre;
use wasmtime::{
    Error, Instance, InstancePre, Memory, PoolConcurrencyLimitError, ResourceLimiter, Store,
    TypedFunc,
};

use crate::failure::{Failure, FailureKind, stop_failure};
use crate::module::{CompiledModule, Linked};
use crate::response;
use crate::sandbox::Sandbox;

/// Bytes a guest may hand to the host in one call.
const HOSTCALL_BYTES: usize = 16 << 20;
/// Component handles, and tasks and streams of component async, that a guest may hold at once.
const MAX_HANDLES: usize = 10_000;
/// Every tick is a check and a turn for the others.
const EPOCH_DELTA_TICKS: u64 = 1;

/// The bounds of one run, and what it is given.
pub struct RunOptions {
    /// Names and values of the guest's environment, all of it.
    pub env: Vec<(String, String)>,
    /// Made when the run was asked for; the caller keeps a clone and can see how late the run is.
    pub deadline: Deadline,
    pub memory_limit_bytes: usize,
    pub max_response_bytes: usize,
}

/// What came of a run.
pub struct Report {
    /// RunFunctionResponse bytes.
    pub answer: Result<Vec<u8>, Failure>,
    pub lines: Vec<Line>,
    /// Lines that the caps dropped.
    pub dropped_lines: u64,
    /// Guest compute.
    pub compute: Duration,
    pub peak_memory_bytes: usize,
    pub memory_denials: u32,
}

impl Report {
    /// For a run that the sandbox itself lost.
    #[must_use]
    pub fn fault(detail: &str) -> Self {
        Self {
            answer: Err(Failure::new(FailureKind::Internal, detail)),
            lines: Vec::new(),
            dropped_lines: 0,
            compute: Duration::ZERO,
            peak_memory_bytes: 0,
            memory_denials: 0,
        }
    }
}

impl Sandbox {
    /// Runs `module` once with `request` (RunFunctionRequest bytes). Never panics, and ends soon
    /// after the earliest of its bounds; only one bulk memory instruction can hold it longer.
    pub async fn run(
        &self,
        module: &CompiledModule,
        request: &[u8],
        options: &RunOptions,
    ) -> Report {
        let _ticking = self.activate();
        let deadline = &options.deadline;
        deadline.begin();
        let mut run = Run {
            request,
            options,
            output: Output::default(),
            peak_memory_bytes: 0,
            memory_denials: 0,
        };
        let answer = AssertUnwindSafe(async {
            tokio::select! {
                biased;
                answer = run.attempt(self, module) => answer,
                stop = deadline.expired() => Err(stop_failure(stop)),
            }
        })
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(Failure::new(FailureKind::Internal, &panic_text(&*panic))));
        let (lines, dropped_lines) = run.output.take();
        Report {
            answer,
            lines,
            dropped_lines,
            compute: deadline.compute(),
            peak_memory_bytes: run.peak_memory_bytes,
            memory_denials: run.memory_denials,
        }
    }
}

struct Run<'a> {
    request: &'a [u8],
    options: &'a RunOptions,
    output: Output,
    peak_memory_bytes: usize,
    memory_denials: u32,
}

impl Run<'_> {
    async fn attempt(
        &mut self,
        sandbox: &Sandbox,
        module: &CompiledModule,
    ) -> Result<Vec<u8>, Failure> {
        // A caller that has gone, or whose time is up, costs nothing.
        if let Some(stop) = self.options.deadline.stop() {
            return Err(stop_failure(stop));
        }
        if let Some(linked) = module.pooled() {
            match self.call(linked).await {
                // Nothing of an attempt that could not be instantiated whole is the run's.
                Err(CallError::PoolFull) => {
                    self.output = Output::default();
                    self.memory_denials = 0;
                }
                Err(CallError::Failed(failure)) => return Err(failure),
                Ok(answer) => return Ok(answer),
            }
        }
        let linked = module
            .on_demand(sandbox)
            .map_err(|error| Failure::new(FailureKind::Internal, &error))?;
        match self.call(linked).await {
            Ok(answer) => Ok(answer),
            Err(CallError::Failed(failure)) => Err(failure),
            Err(CallError::PoolFull) => Err(Failure::new(
                FailureKind::Internal,
                "the on-demand engine has no pool",
            )),
        }
    }

    async fn call(&mut self, linked: &Linked) -> Result<Vec<u8>, CallError> {
        let called = match linked {
            Linked::Core(pre) => {
                let mut store = self.store(pre.module().engine());
                let called = call_core(&mut store, pre, self.request, self.options).await;
                self.account(&store.data().budget);
                called
            }
            Linked::Component(pre) => {
                let mut store = self.store(pre.engine());
                let called = call_component(&mut store, pre, self.request, self.options).await;
                self.account(&store.data().budget);
                called
            }
        };
        let answer = called.map_err(|error| match error {
            Called::Failed(failure) => CallError::Failed(failure),
            Called::Error(error) if error.is::<PoolConcurrencyLimitError>() => CallError::PoolFull,
            Called::Error(error) => {
                CallError::Failed(Failure::classify(&error, self.memory_denials))
            }
        })?;
        response::check(&answer)
            .map_err(|reason| CallError::Failed(Failure::new(FailureKind::Response, &reason)))?;
        Ok(answer)
    }

    fn store(&self, engine: &wasmtime::Engine) -> Store<RunState> {
        let state = RunState::new(RunConfig {
            env: &self.options.env,
            memory_limit_bytes: self.options.memory_limit_bytes,
            deadline: self.options.deadline.clone(),
            output: self.output.clone(),
        });
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.budget as &mut dyn ResourceLimiter);
        store.set_hostcall_fuel(HOSTCALL_BYTES.max(self.options.max_response_bytes));
        store.set_max_component_handles(MAX_HANDLES);
        if let Some(tasks) = store.concurrent_resource_table() {
            tasks.set_max_capacity(MAX_HANDLES);
        }
        store.set_epoch_deadline(EPOCH_DELTA_TICKS);
        store.epoch_deadline_callback(|cx| cx.data().deadline.on_tick());
        store
    }

    fn account(&mut self, budget: &MemoryBudget) {
        self.peak_memory_bytes = self.peak_memory_bytes.max(budget.peak_bytes());
        self.memory_denials = self.memory_denials.saturating_add(budget.denials());
    }
}

enum CallError {
    PoolFull,
    Failed(Failure),
}

enum Called {
    Error(Error),
    Failed(Failure),
}

impl From<Error> for Called {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

fn bad_response(detail: &str) -> Called {
    Called::Failed(Failure::new(FailureKind::Response, detail))
}

async fn call_core(
    store: &mut Store<RunState>,
    pre: &InstancePre<RunState>,
    request: &[u8],
    options: &RunOptions,
) -> Result<Vec<u8>, Called> {
    let instance = pre.instantiate_async(&mut *store).await?;
    let exports = Exports::find(store, &instance)?;
    if let Ok(initialize) = instance.get_typed_func::<(), ()>(&mut *store, "_initialize") {
        initialize.call_async(&mut *store, ()).await?;
    }
    let Ok(len) = i32::try_from(request.len()) else {
        return Err(bad_response(&format!(
            "a request of {} bytes is larger than a module's memory",
            request.len()
        )));
    };
    let ptr = exports.alloc.call_async(&mut *store, len).await?;
    let at = ptr.cast_unsigned() as usize;
    if exports.memory.write(&mut *store, at, request).is_err() {
        return Err(bad_response(&format!(
            "wasmfn_alloc({len}) returned {at}, expected a place inside the module's memory of {} bytes",
            exports.memory.data_size(&*store)
        )));
    }
    let packed = exports
        .run
        .call_async(&mut *store, (ptr, len))
        .await?
        .cast_unsigned();
    let (at, len) = ((packed >> 32) as usize, (packed & 0xffff_ffff) as usize);
    if len > options.max_response_bytes {
        return Err(too_large(len, options.max_response_bytes));
    }
    match exports.memory.data(&*store).get(at..at + len) {
        Some(answer) => Ok(answer.to_vec()),
        None => Err(bad_response(&format!(
            "wasmfn_run returned {len} bytes at {at}, expected a place inside the module's memory of {} bytes",
            exports.memory.data_size(&*store)
        ))),
    }
}

fn too_large(bytes: usize, limit_bytes: usize) -> Called {
    bad_response(&format!(
        "the response has {bytes} bytes, expected at most {limit_bytes}"
    ))
}

struct Exports {
    memory: Memory,
    alloc: TypedFunc<i32, i32>,
    run: TypedFunc<(i32, i32), i64>,
}

impl Exports {
    fn find(store: &mut Store<RunState>, instance: &Instance) -> Result<Self, Error> {
        let memory = instance
            .get_memory(&mut *store, "memory")
            .ok_or_else(|| Error::msg("the module exports no memory"))?;
        Ok(Self {
            memory,
            alloc: instance.get_typed_func(&mut *store, "wasmfn_alloc")?,
            run: instance.get_typed_func(&mut *store, "wasmfn_run")?,
        })
    }
}

async fn call_component(
    store: &mut Store<RunState>,
    pre: &ComponentPre<RunState>,
    request: &[u8],
    options: &RunOptions,
) -> Result<Vec<u8>, Called> {
    let instance = pre.instantiate_async(&mut *store).await?;
    let run =
        instance.get_typed_func::<(Vec<u8>,), (Result<Vec<u8>, String>,)>(&mut *store, "run")?;
    let request = request.to_vec();
    // The whole call is what the deadline wraps: a timer inside the closure could starve.
    let (answer,) = store
        .run_concurrent(async |accessor| run.call_concurrent(accessor, (request,)).await)
        .await??;
    match answer {
        Ok(answer) if answer.len() > options.max_response_bytes => {
            Err(too_large(answer.len(), options.max_response_bytes))
        }
        Ok(answer) => Ok(answer),
        Err(text) => Err(Called::Failed(Failure::new(FailureKind::Guest, &text))),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the sandbox panicked: {}", text.unwrap_or_default())
}
