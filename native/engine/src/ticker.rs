//! The clock of the epochs: 1 ms ticks while something runs and a little longer, parked otherwise.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::Engine;

const TICK: Duration = Duration::from_millis(1);
/// Ticks without a run before the thread parks: waking it costs a run as much as a tiny guest does.
const LINGER_TICKS: u32 = 100;

/// Ticks the epochs of some engines as long as an [`ActiveRun`] lives. Dropped = the thread ends.
pub(crate) struct Ticker(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    active: usize,
    idle_ticks: u32,
    parked: bool,
    closed: bool,
}

impl Ticker {
    pub(crate) fn start(engines: &[&Engine]) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                active: 0,
                idle_ticks: 0,
                parked: false,
                closed: false,
            }),
            wake: Condvar::new(),
        });
        // Weak, so that the thread does not keep an engine alive.
        let engines: Vec<_> = engines.iter().map(|engine| engine.weak()).collect();
        let ticking = Arc::clone(&shared);
        thread::Builder::new()
            .name("epoch-ticker".to_owned())
            .spawn(move || {
                while ticking.wait_for_work() {
                    thread::sleep(TICK);
                    for engine in &engines {
                        if let Some(engine) = engine.upgrade() {
                            engine.increment_epoch();
                        }
                    }
                }
            })?;
        Ok(Self(shared))
    }

    /// Ticks go on until the guard is dropped.
    pub(crate) fn activate(&self) -> ActiveRun {
        let mut state = self.0.lock();
        state.active += 1;
        if state.parked {
            self.0.wake.notify_one();
        }
        ActiveRun(Arc::clone(&self.0))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.wake.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parks when nothing has run for a while; `false` once the ticker is closed and nothing runs
    /// any more.
    fn wait_for_work(&self) -> bool {
        let mut state = self.lock();
        if state.active > 0 {
            state.idle_ticks = 0;
            return true;
        }
        state.idle_ticks += 1;
        if state.idle_ticks < LINGER_TICKS && !state.closed {
            return true;
        }
        state.parked = true;
        while state.active == 0 {
            if state.closed {
                return false;
            }
            state = self
                .wake
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.parked = false;
        state.idle_ticks = 0;
        true
    }
}

/// Keeps the epochs ticking.
pub(crate) struct ActiveRun(Arc<Shared>);

impl Drop for ActiveRun {
    fn drop(&mut self) {
        self.0.lock().active -= 1;
    }
}
