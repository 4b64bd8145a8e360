//! `kontekst rpc --socket`: any number of editors, one after the other or at once.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _},
        net::{UnixListener, UnixStream},
    },
    path::Path,
    process::ExitCode,
    thread,
};

use rustix::net::sockopt::socket_peercred;

use crate::{client, config::Home};

use super::super::{error::CliError, printable::printable};

/// Listens until this process is ended. The socket file goes with the next one that listens there.
pub(super) fn listen(path: &Path, home: &Home) -> Result<ExitCode, CliError> {
    let shown = path.display();
    remove_stale_socket(path)?;
    // Nobody else may connect, not even before the mode could be changed.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path)
        .map_err(|error| CliError::failed(format!("cannot listen on `{shown}`")).cause(error.to_string()))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    // The first editor should not wait for the daemon, and a daemon that cannot start is told here.
    drop(client::editor_stream(home)?);
    // Whoever started us may wait for this line.
    writeln!(io::stderr(), "listening on {}", printable(&shown.to_string())).ok();
    for editor in listener.incoming() {
        let editor = editor.map_err(|error| {
            CliError::failed(format!("cannot accept on `{shown}`")).cause(error.to_string())
        })?;
        if !socket_peercred(&editor).is_ok_and(|peer| peer.uid == rustix::process::geteuid()) {
            continue;
        }
        let home = home.clone();
        thread::spawn(move || serve_editor(editor, &home));
    }
    Ok(ExitCode::SUCCESS)
}

/// One editor. What goes wrong with it is told on stderr and ends no other.
fn serve_editor(mut editor: UnixStream, home: &Home) {
    let told = |error: CliError| {
        error.write(&mut io::stderr().lock()).ok();
    };
    let daemon = match client::editor_stream(home) {
        Ok(daemon) => daemon,
        Err(error) => return told(error.into()),
    };
    if let Ok(input) = editor.try_clone() {
        client::relay(input, &mut editor, &daemon).ok();
        editor.shutdown(std::net::Shutdown::Both).ok();
    }
}

/// Removes a socket that nobody listens on any more, and nothing else.
fn remove_stale_socket(path: &Path) -> Result<(), CliError> {
    let taken = |why: &str| CliError::usage(format!("`{}` {why}", path.display()));
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(taken("exists and is not a socket of this user"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| taken("cannot be removed").cause(error.to_string()))
        }
        _ => Err(taken("is in use by another process")),
    }
}
