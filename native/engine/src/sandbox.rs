//! The engines, and the thread that ticks their epochs.

use wasmtime::component::Linker as ComponentLinker;
use wasmtime::{Engine, Linker, Result};

use host::RunState;

use crate::config::{self, EngineConfig};
use crate::ticker::{ActiveRun, Ticker};

/// Everything runs share: nothing of a guest.
pub struct Sandbox {
    pooled: Option<Allocator>,
    on_demand: Allocator,
    ticker: Ticker,
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
        })
    }

    /// Whether the pool could be reserved.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.pooled.is_some()
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
