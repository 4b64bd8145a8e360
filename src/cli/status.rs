//! `kontekst status`.

use std::process::ExitCode;

use serde_json::json;

use crate::{
    client::{self, ClientError},
    config::Home,
    pb::{GetStatusRequest, GetStatusResponse},
};

use super::{error::CliError, on_stdout, printable::printable, web};

/// Shows the daemon and the model server.
///
/// Never starts the daemon: if it is not running, the exit status is 6.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Print the token of the HTTP door, and nothing else
    #[arg(long, conflicts_with = "json")]
    token: bool,
}

pub(super) fn run(args: &Args, home: &Home) -> Result<ExitCode, CliError> {
    if args.token {
        let token = web::read_token(home)?;
        return on_stdout(|out, _| Ok(writeln!(out, "{token}")?));
    }
    let stream = client::probe(home).map_err(|error| match error {
        ClientError::NotRunning => CliError::unreachable("the daemon is not running")
            .hint("`kontekst run` starts it when it is needed, `kontekst daemon` runs it in this terminal"),
        other => other.into(),
    })?;
    let status = client::runtime()?.block_on(async {
        let mut daemon = client::daemon(client::channel(stream).await?);
        Ok::<_, ClientError>(daemon.get_status(GetStatusRequest {}).await?.into_inner())
    })?;
    on_stdout(|out, _| {
        let format_text = if args.json { format!("{:#}\n", to_json(&status)) } else { page(&status) };
        out.write_all(format_text.as_bytes())
            .map_err(|error| CliError::failed("cannot write to stdout").cause(error.to_string()))
    })
}

fn to_json(status: &GetStatusResponse) -> serde_json::Value {
    json!({
        "version": status.version, "pid": status.pid, "uptime_seconds": status.uptime_seconds,
        "started_at": status.started_at_rfc3339, "active_runs": status.active_runs,
        "socket": status.socket, "bind": status.bind, "data_dir": status.data_dir,
        "http": status.http, "warnings": status.warnings,
        "confinement": status.confinement, "warnings": status.warnings,
        "model_server": {
            "engine": status.engine, "endpoint": status.endpoint, "model": status.model,
            "model_dir": status.model_dir,
            "healthy": status.llama_server_healthy, "running": status.llama_server_running,
            "pid": status.llama_server_pid,
        },
    })
}

fn page(status: &GetStatusResponse) -> String {
    let model = if status.model.is_empty() { "unknown" } else { &status.model };
    let mut rows = vec![
        (
            "daemon",
            format!("{} (pid {}), up {}", status.version, status.pid, format_uptime(status.uptime_seconds)),
        ),
        ("runs", status.active_runs.to_string()),
        ("socket", status.socket.clone()),
        ("bind", status.bind.clone()),
        ("http", if status.http.is_empty() { "off".to_owned() } else { format!("http://{}", status.http) }),
        ("data", status.data_dir.clone()),
        ("model server", format_model_server(status)),
        ("model", model.to_owned()),
        ("models in", status.model_dir.clone()),
        ("file tools", status.confinement.clone()),
    ];
    rows.retain(|(name, value)| *name != "file tools" || !value.is_empty()); // an older daemon does not say
    rows.extend(status.warnings.iter().map(|warning| ("warning", warning.clone())));
    rows.iter().map(|(name, value)| format!("{name:<13} {}\n", printable(value))).collect()
}

fn format_model_server(status: &GetStatusResponse) -> String {
    let (healthy, running) = (status.llama_server_healthy, status.llama_server_running);
    if status.engine == "builtin" {
        return match (healthy, running) {
            (true, true) => "the built-in engine; its model is loaded".to_owned(),
            (true, false) => "the built-in engine; no model is loaded".to_owned(),
            (false, _) => "the built-in engine, which is not part of this program".to_owned(),
        };
    }
    let state = match (healthy, running) {
        (true, true) => format!("healthy, started by the daemon (pid {})", status.llama_server_pid),
        (true, false) => "healthy, not ours".to_owned(),
        (false, true) => format!("not answering (pid {})", status.llama_server_pid),
        (false, false) => "nothing answers there; the next run looks again".to_owned(),
    };
    format!("{}: {state}", status.endpoint)
}

/// `1h2m3s`.
fn format_uptime(seconds: i64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::format_uptime;

    #[test]
    fn durations_are_short() {
        for (seconds, expect) in [(5, "5s"), (65, "1m5s"), (3723, "1h2m3s"), (90_000, "25h0m0s")] {
            assert_eq!(format_uptime(seconds), expect);
        }
    }
}
