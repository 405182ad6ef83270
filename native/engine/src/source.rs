//! Reads a module file whose digest is known.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};

/// Why a module file could not be read.
#[derive(Debug)]
pub enum SourceError {
    /// The file is readable but does not hold the bytes its digest names.
    Changed(String),
    Io(String),
}

/// Reads a regular file and checks its SHA-256. Never follows a link, never blocks on a FIFO, and
/// never reads more than `size_bytes`, which is what the file had when it was resolved.
///
/// `digest` is `sha256:` and 64 lower-case hex digits.
///
/// # Errors
///
/// [`SourceError::Changed`] when size or digest differ, [`SourceError::Io`] for anything else.
pub fn read_module(path: &Path, digest: &str, size_bytes: u64) -> Result<Vec<u8>, SourceError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| SourceError::Io(format!("cannot open the module file: {error}")))?;
    let file = File::from(fd);
    let read_failed = |error| SourceError::Io(format!("cannot read the module file: {error}"));
    let metadata = file.metadata().map_err(read_failed)?;
    if !metadata.is_file() || metadata.len() != size_bytes {
        return Err(SourceError::Changed(format!(
            "the file changed while it was loaded: expected a regular file of {size_bytes} bytes, got {} bytes",
            metadata.len()
        )));
    }
    let capacity = usize::try_from(size_bytes)
        .map_err(|_| SourceError::Io(format!("a file of {size_bytes} bytes is too large")))?;
    let mut bytes = Vec::with_capacity(capacity);
    file.take(size_bytes)
        .read_to_end(&mut bytes)
        .map_err(read_failed)?;
    let found = format!("sha256:{}", hex(&Sha256::digest(&bytes)));
    if found != digest {
        return Err(SourceError::Changed(format!(
            "the file changed while it was loaded: expected {digest}, got {found}"
        )));
    }
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
