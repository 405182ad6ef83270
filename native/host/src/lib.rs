//! What the host gives a guest: the data of one run, and the linkers that name every import a
//! guest may have.
//!
//! Owns the host functions, the memory budget, the deadline and the captured output of one run.
//! Never decides who may run, compiles anything, or talks to Node. It is a crate of its own
//! because instantiating the WASI linkers takes rustc most of a minute.

mod cancel;
mod deadline;
mod egress;
mod limiter;
mod linker;
mod log;
mod output;
mod state;

pub use cancel::CancelToken;
pub use deadline::{Credit, Deadline, Stop};
pub use limiter::MemoryBudget;
pub use linker::{component_linker, core_linker, is_known_component_import};
pub use output::{Line, Output, Source, printable};
pub use state::{RunConfig, RunState};
