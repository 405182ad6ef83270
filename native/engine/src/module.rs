//! A compiled module, linked and ready to be instantiated.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::OnceLock;

use host::{RunState, printable};
use wasmtime::component::{Component, InstancePre as ComponentPre};
use wasmtime::{Engine, InstancePre, Module, Result};

use crate::artifact::{self, ArtifactKey, Trust};
use crate::failure::LoadError;
use crate::precheck::ModuleKind;
use crate::sandbox::{Allocator, Sandbox};

/// Where the system names this process's open files.
const OPEN_FILES: &str = if cfg!(target_os = "linux") {
    "/proc/self/fd"
} else {
    "/dev/fd"
};

/// A module mapped from its artifact. Freed when the last run that uses it has ended.
pub struct CompiledModule {
    pub(crate) kind: ModuleKind,
    /// `None` when the module does not fit a slot of the pool.
    pooled: Option<Linked>,
    on_demand: OnceLock<Result<Linked, String>>,
    /// Kept open, so that the on-demand variant is mapped from the very file that was verified.
    artifact: File,
}

/// A module whose imports were resolved in one of the engines.
#[derive(Clone)]
pub(crate) enum Linked {
    Core(InstancePre<RunState>),
    Component(ComponentPre<RunState>),
}

impl CompiledModule {
    /// Verifies and maps the artifact at `path`.
    ///
    /// # Errors
    ///
    /// [`LoadError::Stale`] when it must be compiled again, [`LoadError::Invalid`] when it imports
    /// something with another type than the host's, [`LoadError::Io`] when it cannot be read.
    pub fn load(
        sandbox: &Sandbox,
        path: &Path,
        key: &ArtifactKey,
        trust: Trust,
        digest: &str,
    ) -> Result<Self, LoadError> {
        let (artifact, kind) = artifact::open(path, key, trust, digest)?;
        let pooled = match sandbox.pooled() {
            Some(pooled) => match map(&pooled.engine, &artifact, kind) {
                Ok(mapped) => Some(mapped.link(pooled)?),
                // Wrong for this pool or wrong altogether: the on-demand engine tells which.
                Err(_) => None,
            },
            None => None,
        };
        let module = Self {
            kind,
            pooled,
            on_demand: OnceLock::new(),
            artifact,
        };
        if module.pooled.is_none() {
            let on_demand = sandbox.on_demand();
            let mapped = map(&on_demand.engine, &module.artifact, kind).map_err(|error| {
                LoadError::Stale(format!("the artifact does not load: {}", text(&error)))
            })?;
            // Nobody else has the cell yet.
            let _ = module.on_demand.set(Ok(mapped.link(on_demand)?));
        }
        Ok(module)
    }

    /// The variant to run first.
    pub(crate) fn pooled(&self) -> Option<&Linked> {
        self.pooled.as_ref()
    }

    /// The variant for a module that does not fit the pool, or a moment when the pool is full.
    pub(crate) fn on_demand(&self, sandbox: &Sandbox) -> Result<&Linked, String> {
        let linked = self.on_demand.get_or_init(|| {
            let on_demand = sandbox.on_demand();
            let mapped =
                map(&on_demand.engine, &self.artifact, self.kind).map_err(|error| text(&error))?;
            mapped
                .link(on_demand)
                .map_err(|error| error.message().to_owned())
        });
        linked.as_ref().map_err(Clone::clone)
    }

    /// 1 for a core module, 2 for a component.
    #[must_use]
    pub fn abi(&self) -> u32 {
        match self.kind {
            ModuleKind::Core => 1,
            ModuleKind::Component => 2,
        }
    }

    /// Whether runs take their memory from the pool.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.pooled.is_some()
    }
}

enum Mapped {
    Core(Module),
    Component(Component),
}

impl Mapped {
    fn link(&self, allocator: &Allocator) -> Result<Linked, LoadError> {
        let linked = match self {
            Self::Core(module) => allocator.core.instantiate_pre(module).map(Linked::Core),
            Self::Component(component) => allocator
                .component
                .instantiate_pre(component)
                .map(Linked::Component),
        };
        linked.map_err(|error| {
            LoadError::Invalid(format!(
                "its imports do not fit this runtime: {}",
                text(&error)
            ))
        })
    }
}

fn map(engine: &Engine, artifact: &File, kind: ModuleKind) -> Result<Mapped> {
    match kind {
        ModuleKind::Core => {
            // SAFETY: the artifact was written by our own compiler: its MAC verified, or the
            // operator vouches for the directory. It is a file only we may write.
            let module = unsafe { Module::deserialize_open_file(engine, artifact.try_clone()?) }?;
            module.initialize_copy_on_write_image()?;
            Ok(Mapped::Core(module))
        }
        ModuleKind::Component => {
            // wasmtime opens components by path only; this path is the verified file itself.
            let path = format!("{OPEN_FILES}/{}", artifact.as_raw_fd());
            // SAFETY: as above.
            let component = unsafe { Component::deserialize_file(engine, path) }?;
            component.initialize_copy_on_write_image()?;
            Ok(Mapped::Component(component))
        }
    }
}

fn text(error: &wasmtime::Error) -> String {
    printable(&format!("{error:#}"), 1_000)
}
