//! `kontekst web`: the page that the daemon serves.

use std::{
    fs,
    process::{Command, ExitCode, Stdio},
};

use crate::{
    client::{self, ClientError},
    config::Home,
    core::Environment,
    pb::GetStatusRequest,
};

use super::{error::CliError, on_stdout};

/// Open the page in a browser
///
/// The daemon serves it where `listen` in [http] of config.toml says, or `kontekst daemon --http ADDR`.
/// The address that is printed holds the token that lets the page in: it is as good as your terminal.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the address and open nothing
    #[arg(long)]
    no_open: bool,
}

pub(super) fn run(args: &Args, home: &Home, environment: &Environment) -> Result<ExitCode, CliError> {
    let connected = client::ensure(home)?;
    let status = client::runtime()?.block_on(async {
        let mut daemon = client::daemon(client::channel(connected.stream).await?);
        Ok::<_, ClientError>(daemon.get_status(GetStatusRequest {}).await?.into_inner())
    })?;
    if status.http.is_empty() {
        let hint =
            "put `listen = \"127.0.0.1:8787\"` under [http] in config.toml, then `kontekst daemon restart`";
        return Err(CliError::usage("the daemon does not serve HTTP").hint(hint));
    }
    let address = format!("http://{}/#token={}", status.http, read_token(home)?);
    if !args.no_open {
        open_browser(&address, environment);
    }
    on_stdout(|out, _| Ok(writeln!(out, "{address}")?))
}

/// The token of the HTTP door, as it stands in its file.
pub(super) fn read_token(home: &Home) -> Result<String, CliError> {
    let path = home.token();
    match fs::read_to_string(&path) {
        Ok(token) => Ok(token.trim().to_owned()),
        Err(error) => Err(CliError::usage(format!("there is no token in {}", path.display()))
            .cause(error.to_string())
            .hint("the daemon makes one when it serves HTTP: see `kontekst web --help`")),
    }
}

/// Opens the address where there is a desktop. Whoever sees this command line could read the token's file too.
fn open_browser(address: &str, environment: &Environment) {
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| environment.non_empty(name).is_some());
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if !desktop && !cfg!(target_os = "macos") {
        return;
    }
    // The address is printed anyway.
    Command::new(opener)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok();
}
