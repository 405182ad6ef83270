//! The engines, and the thread that ticks their epochs.

use wasmtime::component::Linker as ComponentLinker;
use wasmtime::{Engine, Linker, Result};

use host::RunState;

use crate::config::{self, EngineConfig};
use crate::failure::LoadError;
use crate::precheck::{Precheck, precheck};
use crate::ticker::{ActiveRun, Ticker};

/// Everything runs share: nothing of a guest.
pub struct Sandbox {
    pooled: Option<Allocator>,
    on_demand: Allocator,
    ticker: Ticker,
    memory_limit_bytes: u64,
}

/// One engine and what modules are linked to in it.
pub(crate) struct Allocator {
    pub(crate) engine: Engine,
    pub(crate) core: Linker<RunState>,
    pub(crate) component: ComponentLinker<RunState>,
}

impl Allocator {
    fn new(engine: Engine) -> Result<Self> {
        Ok(Self {
            core: host::core_linker(&engine)?,
            component: host::component_linker(&engine)?,
            engine,
        })
    }
}

impl Sandbox {
    /// Starts the engines. Without room for the pool's address space (`ulimit -v`) every run is
    /// on-demand; [`Sandbox::is_pooled`] tells.
    ///
    /// # Errors
    ///
    /// When wasmtime refuses the settings on this machine.
    pub fn new(config: &EngineConfig) -> Result<Self> {
        let pooled = config::pooling_engine(config).and_then(Allocator::new).ok();
        let on_demand = Allocator::new(config::on_demand_engine(config)?)?;
        let mut engines = vec![&on_demand.engine];
        engines.extend(pooled.as_ref().map(|pooled| &pooled.engine));
        let ticker = Ticker::start(&engines)?;
        Ok(Self {
            pooled,
            on_demand,
            ticker,
            memory_limit_bytes: config.memory_limit_bytes as u64,
        })
    }

    /// Whether the pool could be reserved.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.pooled.is_some()
    }

    /// Runs the structural pre-check with this sandbox's features and limits.
    ///
    /// # Errors
    ///
    /// [`LoadError::Invalid`].
    pub fn precheck(&self, bytes: &[u8]) -> Result<Precheck, LoadError> {
        let features = self.on_demand.engine.get_wasm_features();
        precheck(bytes, features, self.memory_limit_bytes)
    }

    pub(crate) fn pooled(&self) -> Option<&Allocator> {
        self.pooled.as_ref()
    }

    pub(crate) fn on_demand(&self) -> &Allocator {
        &self.on_demand
    }

    pub(crate) fn activate(&self) -> ActiveRun {
        self.ticker.activate()
    }
}
