//! What the compiler may use, set by itself before it reads the module.

use std::io;

use rustix::process::{Resource, Rlimit};

/// Below everything the server does.
const NICENESS: i32 = 10;
/// The kernel's out-of-memory killer takes the compiler before the server.
const OOM_SCORE: &str = "500";

/// Limits CPU time, address space and priority, and dies with the parent.
///
/// # Errors
///
/// When a limit cannot be set; the compile must not go on without it.
pub(crate) fn apply(cpu_seconds: u64, address_space_bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // Best effort: a container may not let us raise it.
        let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    }
    limit(Resource::Cpu, cpu_seconds)?;
    limit(Resource::As, address_space_bytes)?;
    // A core dump of the compiler would hold the module.
    limit(Resource::Core, 0)?;
    rustix::process::nice(NICENESS)?;
    Ok(())
}

fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    Ok(rustix::process::setrlimit(resource, limit)?)
}
