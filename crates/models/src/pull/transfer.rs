//! The download of one file: it is tried again after a failure and continues where the last attempt stopped.

use std::{fs, io, path::Path};

use kontekst_core::Cancel;
use kontekst_store::config::{PathContext as _, free_space};

use super::{
    DownloadConfig, PullError, PullEvent, RemoteFile,
    part::{PartFile, PartOrigin},
    request::{self, FileResponse, RequestError, ResumePoint},
};

use crate::digest;

/// The number of bytes that must stay free on the disk.
const RESERVE: u64 = 64 << 20;

/// The result of a successful [`fetch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `verified` says that the checksum was known before and is the same.
    Downloaded { bytes: u64, sha256: String, verified: bool },
    /// The same file existed before, so nothing was downloaded.
    AlreadyPresent,
}

/// The result of one attempt.
enum Attempt {
    Whole,
    /// Try again, from the start or from where the attempt failed. Holds the host and the error.
    Retry(String, io::Error),
}

/// Downloads a file into `dir`, which is created if it does not exist.
///
/// An existing file is never replaced. If it has another checksum, that is an error.
///
/// # Errors
///
/// [`PullError`]. After [`PullError::Cancelled`] and [`PullError::Unreachable`] the part file is kept, and calling this
/// again continues the download.
pub fn fetch(
    file: &RemoteFile,
    dir: &Path,
    config: &DownloadConfig,
    cancel: &Cancel,
    sink: &mut dyn FnMut(PullEvent),
) -> Result<Outcome, PullError> {
    fs::create_dir_all(dir).context(dir)?;
    let target = dir.join(&file.name);
    if fs::symlink_metadata(&target).is_ok() {
        return check_existing(file, &target, config, cancel);
    }
    let part = PartFile::open(&target)?;
    let mut transfer =
        Transfer { part, file, dir, config, cancel, expected: file.sha256.clone(), total: None };
    match transfer.receive_all(sink) {
        Ok(()) => {}
        Err(error) => {
            // A download without any bytes leaves no file behind.
            if transfer.part.have() == 0 {
                transfer.part.discard();
            }
            return Err(error);
        }
    }
    sink(PullEvent::Saving);
    transfer.finish(&target)
}

/// Checks whether the existing file `target` is the one to download.
fn check_existing(
    file: &RemoteFile,
    target: &Path,
    config: &DownloadConfig,
    cancel: &Cancel,
) -> Result<Outcome, PullError> {
    let expected = match &file.sha256 {
        Some(sha256) => Some(sha256.clone()),
        // The hub sends the checksum in a header. The body is not read.
        None => request::get(config, &file.url, None, cancel).ok().and_then(|answer| answer.sha256),
    };
    let exists = || PullError::Exists(target.to_owned());
    let expected = expected.filter(|_| target.is_file()).ok_or_else(exists)?;
    match digest::sha256(target, cancel, &mut |_| {})? {
        None => Err(PullError::Cancelled { name: file.name.clone(), have: 0, total: None }),
        Some(sha256) if sha256 == expected => Ok(Outcome::AlreadyPresent),
        Some(_) => Err(exists()),
    }
}

struct Transfer<'a> {
    part: PartFile,
    file: &'a RemoteFile,
    dir: &'a Path,
    config: &'a DownloadConfig,
    cancel: &'a Cancel,
    expected: Option<String>,
    total: Option<u64>,
}

impl Transfer<'_> {
    /// Repeats attempts until the file is complete, or none of the last ones received anything new.
    fn receive_all(&mut self, sink: &mut dyn FnMut(PullEvent)) -> Result<(), PullError> {
        let (mut left, mut best, mut wait) = (self.config.timing.tries, 0, self.config.timing.pause);
        loop {
            let (host, error) = match self.attempt(sink)? {
                Attempt::Whole => return Ok(()),
                Attempt::Retry(host, error) => (host, error),
            };
            if self.cancel.is_cancelled() {
                return Err(self.cancelled());
            }
            // Only new bytes reset the counter, so that a server that always starts over cannot keep us busy for ever.
            if self.part.have() > best {
                (best, left, wait) = (self.part.have(), self.config.timing.tries, self.config.timing.pause);
            }
            left = left.saturating_sub(1);
            if left == 0 {
                let (name, have) = (self.file.name.clone(), self.part.have());
                return Err(PullError::Unreachable { name, host, have, source: error });
            }
            sink(PullEvent::Retrying { why: error.to_string(), wait });
            self.cancel.is_cancelled_within(wait); // a cancel is noticed by the next attempt
            wait = wait.saturating_mul(2).min(self.config.timing.pause.saturating_mul(16));
        }
    }

    fn attempt(&mut self, sink: &mut dyn FnMut(PullEvent)) -> Result<Attempt, PullError> {
        if self.cancel.is_cancelled() {
            return Err(self.cancelled());
        }
        let origin = self.check_origin()?;
        let from = (self.part.have() > 0).then(|| ResumePoint {
            have: self.part.have(),
            // If the checksum identifies the file, the validator of a mirror does not matter.
            etag: origin
                .as_ref()
                .filter(|origin| origin.sha256.is_none())
                .and_then(|origin| origin.etag.clone()),
        });
        let mut answer = match request::get(self.config, &self.file.url, from.as_ref(), self.cancel) {
            Ok(answer) => answer,
            Err(RequestError::Final(error)) => return Err(error),
            Err(RequestError::Broken(host, error)) => return Ok(Attempt::Retry(host, error)),
        };
        self.check_checksum(&answer)?;
        let changed = origin.as_ref().is_some_and(|origin| !is_same_file(&answer, origin));
        match answer.status {
            // The server does not support ranges, or the file has changed.
            200 if from.is_some() => {
                self.part.clear()?;
                sink(PullEvent::Restarted { why: "the server sends it from the start" });
            }
            200 => {}
            206 if from.is_some() && answer.start == Some(self.part.have()) && !changed => {}
            206 if from.is_some() => {
                self.part.clear()?;
                let why = if changed { "the file has changed" } else { "the server sent another part of it" };
                sink(PullEvent::Restarted { why });
                return Ok(Attempt::Retry(answer.host, io::Error::other(why)));
            }
            416 if from.is_some() => {
                if answer.total == Some(self.part.have()) && !changed {
                    self.total = answer.total;
                    return Ok(Attempt::Whole);
                }
                self.part.clear()?;
                let why = "the server has no such part of it";
                sink(PullEvent::Restarted { why });
                return Ok(Attempt::Retry(answer.host, io::Error::other(why)));
            }
            408 | 425 | 429 | 500..=599 => {
                let error = io::Error::other(format!("it answered {}", answer.status));
                return Ok(Attempt::Retry(answer.host, error));
            }
            status => {
                let path = self.file.url.path().to_owned();
                return Err(PullError::Refused { host: answer.host, path, status });
            }
        }
        self.receive(&mut answer, sink)
    }

    /// Returns where the bytes in the part file are from. The part file is emptied if that is another file, or unknown.
    fn check_origin(&mut self) -> Result<Option<PartOrigin>, PullError> {
        let origin = self.part.origin().filter(|origin| match (&origin.sha256, &self.expected) {
            (Some(one), Some(other)) => one == other,
            // A validator has a meaning for its own server only.
            _ => origin.url == self.file.url.as_str() && (origin.sha256.is_some() || origin.etag.is_some()),
        });
        // Bytes without a record are used if the checksum of the whole file will be verified in the end.
        let foreign = origin.is_none() && (self.expected.is_none() || self.part.origin().is_some());
        if foreign && self.part.have() > 0 {
            self.part.clear()?;
        }
        Ok(origin)
    }

    /// Compares the checksum that the server reports with the expected one, or expects it from now on.
    fn check_checksum(&mut self, answer: &FileResponse) -> Result<(), PullError> {
        if let (Some(reported), Some(expected)) = (&answer.sha256, &self.expected)
            && reported != expected
        {
            // Fail before any byte is downloaded.
            let (name, expected, found) = (self.file.name.clone(), expected.clone(), reported.clone());
            return Err(PullError::Checksum { name, expected, found });
        }
        if self.expected.is_none() {
            self.expected.clone_from(&answer.sha256);
        }
        Ok(())
    }

    fn receive(
        &mut self,
        answer: &mut FileResponse,
        sink: &mut dyn FnMut(PullEvent),
    ) -> Result<Attempt, PullError> {
        let broken = |fact: &str| PullError::Answer { host: answer.host.clone(), fact: fact.to_owned() };
        if answer.is_encoded() {
            return Err(broken("it is compressed on the way, which was not asked for"));
        }
        self.total = answer.total.or(self.total.filter(|_| answer.status == 206));
        if self.total == Some(0) {
            return Err(broken("the file is empty"));
        }
        self.check_space(self.total)?;
        self.part.set_origin(&PartOrigin {
            url: self.file.url.as_str().to_owned(),
            sha256: self.expected.clone(),
            etag: answer.etag.clone(),
            total: self.total,
        })?;
        sink(PullEvent::Started { name: self.file.name.clone(), have: self.part.have(), total: self.total });
        let mut magic = Vec::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let count = match answer.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) => return Ok(Attempt::Retry(answer.host.clone(), error)),
            };
            let bytes = &buffer[..count];
            if self.part.have() < 4 {
                // A server may answer 200 with an HTML page, such as a login form.
                magic.extend_from_slice(&bytes[..count.min(4)]);
                if self.part.have() as usize + magic.len() >= 4 && self.is_other(&magic) {
                    self.part.clear()?;
                    let fact = "what it sends is not a GGUF file".to_owned();
                    return Err(PullError::Answer { host: answer.host.clone(), fact });
                }
            }
            if self.total.is_some_and(|total| self.part.have() + count as u64 > total) {
                self.part.clear()?;
                let fact = "it sent more than it had promised".to_owned();
                return Err(PullError::Answer { host: answer.host.clone(), fact });
            }
            self.part.write(bytes).map_err(|error| self.disk_full(error))?;
            sink(PullEvent::Received { have: self.part.have() });
        }
        match self.total {
            Some(total) if self.part.have() < total => {
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the connection broke");
                Ok(Attempt::Retry(answer.host.clone(), error))
            }
            _ => Ok(Attempt::Whole),
        }
    }

    /// Returns true if a file does not begin with the magic number of GGUF. A part file that already had one to three
    /// bytes is not checked here, because the header of the whole file is read in the end.
    fn is_other(&self, magic: &[u8]) -> bool {
        self.part.have() == 0 && !magic.starts_with(b"GGUF")
    }

    /// Checks that the disk has space for the rest of the file.
    fn check_space(&self, total: Option<u64>) -> Result<(), PullError> {
        let need = total.unwrap_or(0).saturating_sub(self.part.have());
        match free_space(self.dir)? {
            Some(free) if need.saturating_add(RESERVE) > free => {
                let (name, dir) = (self.file.name.clone(), self.dir.to_owned());
                Err(PullError::Space { name, need, free, dir })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Turns the error of a full disk into [`PullError::Space`].
    fn disk_full(&self, error: PullError) -> PullError {
        match error {
            PullError::Path(error) if error.source.kind() == io::ErrorKind::StorageFull => PullError::Space {
                name: self.file.name.clone(),
                need: self.total.unwrap_or(0).saturating_sub(self.part.have()),
                free: 0,
                dir: self.dir.to_owned(),
            },
            other => other,
        }
    }

    fn cancelled(&self) -> PullError {
        PullError::Cancelled { name: self.file.name.clone(), have: self.part.have(), total: self.total }
    }

    fn finish(mut self, target: &Path) -> Result<Outcome, PullError> {
        let Some(sha256) = self.part.sha256(self.cancel)? else { return Err(self.cancelled()) };
        if let Some(expected) = self.expected.clone().filter(|expected| *expected != sha256) {
            let name = self.file.name.clone();
            self.part.discard();
            return Err(PullError::Checksum { name, expected, found: sha256 });
        }
        let (bytes, verified) = (self.part.have(), self.expected.is_some());
        if let Err(error) = crate::gguf::Header::open(self.part.path())
            && !verified
        {
            self.part.discard();
            let host = self.file.url.host_str().unwrap_or_default().to_owned();
            return Err(PullError::Answer { host, fact: format!("a file that cannot be used: {error}") });
        }
        self.part.finish(target)?;
        Ok(Outcome::Downloaded { bytes, sha256, verified })
    }
}

/// Returns true if a response is about the file that the bytes in the part file are from.
fn is_same_file(answer: &FileResponse, origin: &PartOrigin) -> bool {
    let differ = |one: &Option<String>, other: &Option<String>| matches!((one, other), (Some(one), Some(other)) if one != other);
    if origin.sha256.is_some() && answer.sha256.is_some() {
        return origin.sha256 == answer.sha256;
    }
    let other_length = matches!((answer.total, origin.total), (Some(one), Some(other)) if one != other);
    !other_length && (origin.sha256.is_some() || !differ(&answer.etag, &origin.etag))
}
