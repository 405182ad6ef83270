//! How a caller that has gone away stops a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Cancels a run from any thread: the epoch callback polls the flag, and whoever awaits a parked
/// guest awaits [`CancelToken::cancelled`].
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    notify: Notify,
}

impl CancelToken {
    /// Idempotent.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        self.0.notify.notify_waiters();
    }

    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Ends when the token is cancelled.
    pub async fn cancelled(&self) {
        // Registered before the flag is read, so a cancel in between is not lost.
        let notified = self.0.notify.notified();
        if !self.is_cancelled() {
            notified.await;
        }
    }
}
