//! When a run must end: its compute budget, the caller's deadline, and cancellation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wasmtime::UpdateDeadline;

use crate::cancel::CancelToken;

/// However busy the machine is, no run outlives its budget by more than Crossplane gives a whole
/// reconcile.
const MAX_CREDIT: Duration = Duration::from_mins(2);

/// Why the host ended a run that had not ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The caller went away.
    Cancelled,
    /// The caller's deadline passed.
    RequestDeadline,
    /// `limits.timeout` of guest compute is used up.
    ComputeBudget,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "cancelled by its caller",
            Self::RequestDeadline => "the request's deadline passed",
            Self::ComputeBudget => "the compute budget is used up",
        })
    }
}

impl std::error::Error for Stop {}

/// Time that passed during a run without being the guest's: host waits, and waits for the thread
/// while other runs had it. It is added back to the compute budget, a wait that is still going on
/// included.
#[derive(Clone)]
pub struct Credit(Arc<Waits>);

struct Waits {
    epoch: Instant,
    /// Nanoseconds of waits that ended.
    ended: AtomicU64,
    /// When the wait that is going on began, in nanoseconds since `epoch`; [`NOT_WAITING`] = none.
    since: AtomicU64,
}

const NOT_WAITING: u64 = u64::MAX;

impl Credit {
    /// A run waits from the moment it is asked for until its first poll.
    fn waiting_from(epoch: Instant) -> Self {
        Self(Arc::new(Waits {
            epoch,
            ended: AtomicU64::new(0),
            since: AtomicU64::new(0),
        }))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.epoch.elapsed().as_nanos()).unwrap_or(NOT_WAITING - 1)
    }

    fn begin(&self) {
        self.0.since.store(self.now(), Ordering::Release);
    }

    fn end(&self) {
        let since = self.0.since.swap(NOT_WAITING, Ordering::AcqRel);
        if since != NOT_WAITING {
            let waited = self.now().saturating_sub(since);
            self.0.ended.fetch_add(waited, Ordering::AcqRel);
        }
    }

    fn total(&self) -> Duration {
        let since = self.0.since.load(Ordering::Acquire);
        let going_on = match since {
            NOT_WAITING => 0,
            since => self.now().saturating_sub(since),
        };
        let nanos = self
            .0
            .ended
            .load(Ordering::Acquire)
            .saturating_add(going_on);
        Duration::from_nanos(nanos).min(MAX_CREDIT)
    }

    /// Awaits `future` and credits the time it took.
    pub async fn host_wait<F: Future>(&self, future: F) -> F::Output {
        self.begin();
        let output = future.await;
        self.end();
        output
    }
}

/// The clock of one run.
#[derive(Clone)]
pub struct Deadline {
    started: Instant,
    budget: Duration,
    ends_at: Option<Instant>,
    cancel: CancelToken,
    credit: Credit,
}

impl Deadline {
    #[must_use]
    pub fn new(budget: Duration, request_deadline: Option<Instant>, cancel: CancelToken) -> Self {
        let started = Instant::now();
        Self {
            started,
            budget,
            ends_at: request_deadline,
            cancel,
            credit: Credit::waiting_from(started),
        }
    }

    /// The run has a thread: what passes from now on is the guest's.
    pub fn begin(&self) {
        self.credit.end();
    }

    #[must_use]
    pub fn credit(&self) -> Credit {
        self.credit.clone()
    }

    /// Guest compute so far: the time since the start less what was credited.
    #[must_use]
    pub fn compute(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.credit.total())
    }

    /// Why the run must end now, if it must.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        if self.cancel.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        if self.ends_at.is_some_and(|at| Instant::now() >= at) {
            return Some(Stop::RequestDeadline);
        }
        (self.compute() > self.budget).then_some(Stop::ComputeBudget)
    }

    /// How long the run may still go on, by compute budget and request deadline; negative once it
    /// is overdue.
    #[must_use]
    pub fn remaining_seconds(&self) -> f64 {
        let budget = self.budget.as_secs_f64() - self.compute().as_secs_f64();
        let Some(at) = self.ends_at else {
            return budget;
        };
        let now = Instant::now();
        let left = at.saturating_duration_since(now).as_secs_f64();
        let late = now.saturating_duration_since(at).as_secs_f64();
        budget.min(left - late)
    }

    /// Ends with the reason once the run must end. The fence for a guest that is parked in a host
    /// call, where no epoch check runs.
    pub async fn expired(&self) -> Stop {
        loop {
            if let Some(stop) = self.stop() {
                return stop;
            }
            let budget_at = self.started + self.budget + self.credit.total();
            let at = self
                .ends_at
                .map_or(budget_at, |ends_at| ends_at.min(budget_at));
            // One tick later than the bound, so that `stop` agrees when this wakes up.
            let at = tokio::time::Instant::from_std(at + Duration::from_micros(500));
            tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = self.cancel.cancelled() => {}
            }
        }
    }

    /// What the epoch callback answers at each tick: end the run, or let others have the thread
    /// for a turn and go on.
    ///
    /// # Errors
    ///
    /// The [`Stop`] that ends the run.
    pub fn on_tick(&self) -> wasmtime::Result<UpdateDeadline> {
        if let Some(stop) = self.stop() {
            return Err(wasmtime::Error::new(stop));
        }
        let credit = self.credit();
        let turn = async move { credit.host_wait(tokio::task::yield_now()).await };
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(turn)))
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn deadline(budget: Duration, request: Option<Duration>) -> Deadline {
        let at = request.map(|left| Instant::now() + left);
        Deadline::new(budget, at, CancelToken::default())
    }

    #[test]
    fn waits_are_not_the_guests_time() {
        let deadline = deadline(30 * MS, None);
        sleep(40 * MS);
        assert_eq!(deadline.stop(), None, "waiting for the first poll");

        deadline.begin();
        deadline.credit.begin();
        sleep(40 * MS);
        assert_eq!(deadline.stop(), None, "a wait that is going on");
        deadline.credit.end();
        assert_eq!(deadline.stop(), None, "a wait that has ended");

        sleep(40 * MS);
        assert_eq!(deadline.stop(), Some(Stop::ComputeBudget));
        assert!(deadline.remaining_seconds() < 0.0);
    }

    #[test]
    fn the_request_deadline_is_never_credited() {
        let deadline = deadline(Duration::from_secs(9), Some(20 * MS));
        sleep(30 * MS);
        assert_eq!(deadline.stop(), Some(Stop::RequestDeadline));
        assert!(deadline.remaining_seconds() < 0.0);
    }

    #[test]
    fn cancellation_comes_first() {
        let cancel = CancelToken::default();
        let deadline = Deadline::new(Duration::ZERO, None, cancel.clone());
        cancel.cancel();
        assert_eq!(deadline.stop(), Some(Stop::Cancelled));
    }
}
