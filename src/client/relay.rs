//! Carries bytes between an editor and the daemon.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crate::config::Home;

use super::{ClientError, ensure, ensure::connect};

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEnd {
    /// The editor said `exit`; with this exit code.
    Exit(u8),
    /// The editor closed its side, or reads no more.
    EditorLeft,
    /// The daemon is gone.
    DaemonLeft,
}

/// Connects to the door for editors, starting the daemon if it is not there.
///
/// # Errors
///
/// [`ClientError`].
pub fn editor_stream(home: &Home) -> Result<UnixStream, ClientError> {
    let mut tries = 0;
    loop {
        drop(ensure(home)?);
        tries += 1;
        match connect(&home.kaiak_socket()) {
            // One that was just leaving; its successor is started next.
            Err(ClientError::NotRunning) if tries < 3 => {}
            connected => return connected,
        }
    }
}

/// Carries bytes until one side ends. `input` is read on a thread of its own, which ends with it.
///
/// # Errors
///
/// No second handle of the connection could be had.
pub fn relay(
    mut input: impl Read + Send + 'static,
    output: &mut impl Write,
    daemon: &UnixStream,
) -> io::Result<RelayEnd> {
    let mut to_daemon = daemon.try_clone()?;
    let left = Arc::new(AtomicBool::new(false));
    let leaving = left.clone();
    thread::spawn(move || {
        let copied = io::copy(&mut input, &mut to_daemon);
        // Only writing breaks a pipe: then it is the daemon that is gone. It is said before the daemon sees the
        // end, which it may answer at once.
        let daemon_left = copied.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        leaving.store(!daemon_left, Ordering::Release);
        to_daemon.shutdown(Shutdown::Write).ok();
    });
    let mut from_daemon = daemon;
    let mut buffer = vec![0; 64 * 1024];
    let mut last = None;
    loop {
        let count = match from_daemon.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        // No frame holds a control character but line ends: the byte behind the last one is the exit code.
        let (frames, end) = match buffer[count - 1] {
            code @ 0..=1 => (&buffer[..count - 1], Some(code)),
            _ => (&buffer[..count], None),
        };
        last = end.or(last);
        if output.write_all(frames).and_then(|()| output.flush()).is_err() {
            daemon.shutdown(Shutdown::Both).ok();
            return Ok(RelayEnd::EditorLeft);
        }
    }
    Ok(match last {
        Some(code) => RelayEnd::Exit(code),
        None if left.load(Ordering::Acquire) => RelayEnd::EditorLeft,
        None => RelayEnd::DaemonLeft,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Nothing more to read, and a thread that reads it is not done before it is told.
    struct Closed(mpsc::Receiver<()>);

    impl Read for Closed {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
    }

    impl Drop for Closed {
        fn drop(&mut self) {
            self.0.recv().ok();
        }
    }

    #[test]
    fn an_editor_that_leaves_is_no_error_however_fast_the_daemon_is() {
        let (ours, mut daemons) = UnixStream::pair().unwrap();
        let (done, wait) = mpsc::channel();
        let daemon = thread::spawn(move || daemons.read(&mut [0]).unwrap());
        assert_eq!(relay(Closed(wait), &mut Vec::new(), &ours).unwrap(), RelayEnd::EditorLeft);
        assert_eq!(daemon.join().unwrap(), 0);
        drop(done);
    }

    #[test]
    fn a_daemon_that_goes_first_is_told() {
        let (ours, daemons) = UnixStream::pair().unwrap();
        let (editor, _editors) = UnixStream::pair().unwrap();
        drop(daemons);
        assert_eq!(relay(editor, &mut Vec::new(), &ours).unwrap(), RelayEnd::DaemonLeft);
    }
}
