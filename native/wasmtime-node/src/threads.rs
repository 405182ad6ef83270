use std::thread::{Builder, park};

/// Says early and in words that there cannot be `count` threads: tokio panics when it cannot have
/// its own, and then waits for ever for those that it got.
///
/// # Errors
///
/// What the system said of the first one it refused.
pub fn probe(count: usize) -> std::io::Result<()> {
    let mut threads = Vec::with_capacity(count);
    let mut result = Ok(());
    for _ in 0..count {
        match Builder::new().spawn(park) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    for thread in &threads {
        thread.thread().unpark();
    }
    for thread in threads {
        // A thread that does nothing does not panic.
        let _ = thread.join();
    }
    result
}
