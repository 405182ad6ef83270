//! Compiled artifacts on disk. An artifact is native code, so it is authenticated before it is
//! mapped: wasmtime's own checks only tell its versions apart.
//!
//! Layout: what wasmtime wrote, then a trailer of magic (7 bytes), kind (1), length of the former
//! (8, little-endian) and HMAC-SHA-256 (32) over kind, digest, length and those bytes. ELF ignores
//! what follows it, so the file is mapped as it is.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hmac::{Hmac, Mac};
use rustix::fs::{Mode, OFlags};
use sha2::Sha256;

use crate::failure::LoadError;
use crate::precheck::ModuleKind;

const MAGIC: &[u8; 7] = b"wasmfn1";
const MAC_BYTES: usize = 32;
const TRAILER_BYTES: usize = MAGIC.len() + 1 + 8 + MAC_BYTES;
const CHUNK_BYTES: usize = 1 << 20;

/// The key that artifacts are authenticated with.
#[derive(Clone)]
pub struct ArtifactKey(Vec<u8>);

impl ArtifactKey {
    #[must_use]
    pub fn new(key: Vec<u8>) -> Self {
        Self(key)
    }
}

/// When an artifact on disk may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its MAC must verify.
    Key,
    /// The operator vouches for the directory (`--trust-cache-dir`): being ours and complete is
    /// enough.
    Directory,
}

/// Authenticates what the compiler wrote to `written` and moves it to `artifact`, atomically and
/// fsynced.
///
/// # Errors
///
/// [`LoadError::Io`].
pub fn seal(
    written: &Path,
    artifact: &Path,
    key: &ArtifactKey,
    kind: ModuleKind,
    digest: &str,
) -> Result<(), LoadError> {
    let seal = || -> std::io::Result<()> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::open(written, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !is_ours(&metadata) {
            return Err(std::io::Error::other(
                "what the compiler wrote is not a file of ours that only we can write",
            ));
        }
        let length = metadata.len();
        let mac = mac_of(&mut file, length, key, kind, digest)?
            .finalize()
            .into_bytes();
        file.seek(SeekFrom::Start(length))?;
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        trailer.extend_from_slice(MAGIC);
        trailer.push(kind.tag());
        trailer.extend_from_slice(&length.to_le_bytes());
        trailer.extend_from_slice(&mac);
        file.write_all(&trailer)?;
        file.sync_all()?;
        std::fs::rename(written, artifact)?;
        match artifact.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    };
    seal().map_err(|error| LoadError::Io(format!("cannot store the compiled artifact: {error}")))
}

/// Opens an artifact that may be run, and tells its kind. The file that was verified is the file
/// that gets mapped.
///
/// # Errors
///
/// [`LoadError::Stale`] when there is none or it must not be trusted, [`LoadError::Io`] when it
/// cannot be read.
pub(crate) fn open(
    artifact: &Path,
    key: &ArtifactKey,
    trust: Trust,
    digest: &str,
) -> Result<(File, ModuleKind), LoadError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = match rustix::fs::open(artifact, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::NOENT) => return Err(stale("there is no artifact")),
        Err(error) => return Err(LoadError::Io(format!("cannot open the artifact: {error}"))),
    };
    let io_failed = |error| LoadError::Io(format!("cannot read the artifact: {error}"));
    let metadata = file.metadata().map_err(io_failed)?;
    // Somebody who may write to it could change it after it was verified.
    if !is_ours(&metadata) {
        return Err(stale(
            "the artifact is not a file of ours that only we can write",
        ));
    }
    let Trailer { kind, length, mac } = read_trailer(&mut file, metadata.len())
        .map_err(io_failed)?
        .ok_or_else(|| stale("the artifact is incomplete"))?;
    if trust == Trust::Key {
        mac_of(&mut file, length, key, kind, digest)
            .map_err(io_failed)?
            .verify_slice(&mac)
            .map_err(|_| stale("the artifact was not made with this key"))?;
    }
    file.rewind().map_err(io_failed)?;
    Ok((file, kind))
}

/// A regular file that only we can write and that has no other name.
fn is_ours(metadata: &Metadata) -> bool {
    metadata.is_file()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & 0o022 == 0
        && metadata.nlink() == 1
}

fn stale(reason: &str) -> LoadError {
    LoadError::Stale(reason.to_owned())
}

struct Trailer {
    kind: ModuleKind,
    length: u64,
    mac: [u8; MAC_BYTES],
}

/// `None` when the file does not end in a trailer of its own length.
fn read_trailer(file: &mut File, size: u64) -> std::io::Result<Option<Trailer>> {
    let Some(length) = size.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.seek(SeekFrom::Start(length))?;
    file.read_exact(&mut trailer)?;
    let (magic, rest) = trailer.split_at(MAGIC.len());
    let (tag, rest) = rest.split_at(1);
    let (stored, rest) = rest.split_at(8);
    let mut mac = [0; MAC_BYTES];
    mac.copy_from_slice(rest);
    let complete = magic == MAGIC && stored == length.to_le_bytes();
    let kind = ModuleKind::from_tag(tag[0]).filter(|_| complete);
    Ok(kind.map(|kind| Trailer { kind, length, mac }))
}

fn mac_of(
    file: &mut File,
    length: u64,
    key: &ArtifactKey,
    kind: ModuleKind,
    digest: &str,
) -> std::io::Result<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0)
        .map_err(|error| std::io::Error::other(error.to_string()))?;
    mac.update(MAGIC);
    mac.update(&[kind.tag()]);
    mac.update(digest.as_bytes());
    mac.update(&[0]);
    mac.update(&length.to_le_bytes());
    file.rewind()?;
    let mut reader = file.take(length);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match reader.read(&mut chunk)? {
            0 => return Ok(mac),
            read => mac.update(&chunk[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:00";

    struct Fixture(std::path::PathBuf);

    impl Fixture {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("wasmfn-artifact-{name}-{}", std::process::id()));
            let written = path.with_extension("tmp");
            std::fs::write(&written, vec![7; 3 << 20]).unwrap();
            std::fs::set_permissions(
                &written,
                std::os::unix::fs::PermissionsExt::from_mode(0o600),
            )
            .unwrap();
            seal(&written, &path, &key(), ModuleKind::Component, DIGEST).unwrap();
            Self(path)
        }

        fn open(
            &self,
            key: &ArtifactKey,
            trust: Trust,
            digest: &str,
        ) -> Result<ModuleKind, LoadError> {
            open(&self.0, key, trust, digest).map(|(_, kind)| kind)
        }
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn key() -> ArtifactKey {
        ArtifactKey::new(vec![1; 32])
    }

    fn is_stale<T>(result: Result<T, LoadError>) -> bool {
        matches!(result, Err(LoadError::Stale(_)))
    }

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let fixture = Fixture::new("sealed");

        assert_eq!(
            fixture.open(&key(), Trust::Key, DIGEST).unwrap(),
            ModuleKind::Component
        );
        assert!(is_stale(fixture.open(
            &ArtifactKey::new(vec![2; 32]),
            Trust::Key,
            DIGEST
        )));
        assert!(is_stale(fixture.open(&key(), Trust::Key, "sha256:01")));
        assert!(is_stale(open(
            Path::new("/nonexistent"),
            &key(),
            Trust::Key,
            DIGEST
        )));
    }

    #[test]
    fn any_changed_byte_makes_it_stale() {
        let fixture = Fixture::new("changed");
        let sealed = std::fs::read(&fixture.0).unwrap();
        for at in [
            0,
            3 << 19,
            (3 << 20) - 1,
            3 << 20,
            (3 << 20) + 7,
            (3 << 20) + 8,
            sealed.len() - 1,
        ] {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            std::fs::write(&fixture.0, changed).unwrap();
            assert!(
                is_stale(fixture.open(&key(), Trust::Key, DIGEST)),
                "byte {at}"
            );
        }
    }

    #[test]
    fn a_trusted_directory_still_needs_whole_files_of_ours() {
        let fixture = Fixture::new("trusted");
        let other = ArtifactKey::new(vec![2; 32]);
        assert!(fixture.open(&other, Trust::Directory, DIGEST).is_ok());

        let sealed = std::fs::read(&fixture.0).unwrap();
        std::fs::write(&fixture.0, &sealed[..sealed.len() - 1]).unwrap();
        assert!(is_stale(fixture.open(&other, Trust::Directory, DIGEST)));

        std::fs::write(&fixture.0, &sealed).unwrap();
        std::fs::set_permissions(
            &fixture.0,
            std::os::unix::fs::PermissionsExt::from_mode(0o666),
        )
        .unwrap();
        assert!(is_stale(fixture.open(&other, Trust::Directory, DIGEST)));
    }
}
