//! The runs under way, by the number JavaScript gave them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{CancelToken, Deadline};

/// Clones share the runs.
#[derive(Clone, Default)]
pub struct LiveRuns(Arc<Mutex<HashMap<u32, LiveRun>>>);

struct LiveRun {
    cancel: CancelToken,
    deadline: Deadline,
}

impl LiveRuns {
    pub fn add(&self, id: u32, cancel: CancelToken, deadline: Deadline) {
        self.lock().insert(id, LiveRun { cancel, deadline });
    }

    pub fn remove(&self, id: u32) {
        self.lock().remove(&id);
    }

    pub fn cancel(&self, id: u32) {
        if let Some(run) = self.lock().get(&id) {
            run.cancel.cancel();
        }
    }

    /// Infinite for a run that has ended.
    pub fn remaining_ms(&self, id: u32) -> f64 {
        self.lock().get(&id).map_or(f64::INFINITY, |run| {
            run.deadline.remaining_seconds() * 1_000.0
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, LiveRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
