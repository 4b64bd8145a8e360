//! `kontekst web`: opens the page that the daemon serves.

use std::process::{Command, ExitCode, Stdio};

use crate::{client, config::Home, core::Environment};

use super::{
    error::CliError,
    output::to_stdout,
    status::{get_status, read_token},
};

/// Open the page in a browser
///
/// The daemon serves the page at the address that `listen` in [http] of config.toml sets, or that `kontekst
/// daemon --http ADDR` sets. The address that this command prints contains the token, and whoever has the
/// token can do what you can do in your terminal.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the address, but do not open a browser
    #[arg(long)]
    no_open: bool,
}

pub(super) fn run(args: &Args, home: &Home, environment: &Environment) -> Result<ExitCode, CliError> {
    let connected = client::ensure(home)?;
    let status = get_status(connected.stream)?;
    if status.http.is_empty() {
        return Err(CliError::usage("the daemon does not serve HTTP").hint(
            "put `listen = \"127.0.0.1:8787\"` under [http] in config.toml, and run `kontekst daemon restart`",
        ));
    }
    let address = format!("http://{}/#token={}", status.http, read_token(home)?);
    if !args.no_open {
        open_browser(&address, environment);
    }
    to_stdout(|out, _| Ok(writeln!(out, "{address}")?))
}

/// Opens the address if there is a desktop. The token becomes part of a command line, which other users may
/// be able to see for a moment.
fn open_browser(address: &str, environment: &Environment) {
    let is_macos = cfg!(target_os = "macos");
    let has_desktop =
        is_macos || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| environment.non_empty(name).is_some());
    if !has_desktop {
        return;
    }
    // A browser that does not start is no error: the address is printed as well.
    Command::new(if is_macos { "open" } else { "xdg-open" })
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok();
}
