//! `kontekst models check`.

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::mpsc,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use super::{
    measure::{Cache, Call, Measured, measure},
    pull::say,
    signals::Signals,
    surroundings::Surroundings,
};
use crate::{
    cli::{
        error::{CliError, Kind},
        on_stdout,
    },
    client::{self, ClientError},
    config::{AgentConfig, Config, Home, agents},
    core::{Cancel, Name},
    models::shelf,
    pb::GetStatusRequest,
    provider::{Models as _, Progress, ProviderError, router},
};

/// For all questions together, once the model is loaded.
const LIMIT: Duration = Duration::from_secs(60);

/// Measure a model: reading, writing, cache, and whether it can call a tool
///
/// Takes a minute at most once the model is loaded. Asks what a run would ask: the server at `endpoint`
/// if there is one, or a llama-server that is started for this and stopped again. No daemon is needed.
///
/// The exit status is 1 if the model could not call a tool, and 6 if there is no model server.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kontekst models check
  kontekst models check Qwen3-8B-Q4_K_M
  kontekst models check --json | jq .decode_tokens_per_second")]
pub struct Args {
    /// The model [default: the one of the agent `default`]
    name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, home: &Home, config: &Config, around: &Surroundings) -> Result<ExitCode, CliError> {
    let (model, config) = subject(args, home, config, around)?;
    let signals = Signals::listen()?;
    if daemon_has_a_model(home) {
        say(
            "note: the daemon has a model loaded too; `kontekst daemon stop --if-idle` makes the figures better",
        );
    }
    let router = router::Router::new(&config, surroundings(&config));
    let checked = check(&router, &model, &signals.cancel);
    let endpoint = router.status().endpoint;
    router.stop();
    let (measured, window, took) = checked.map_err(|error| refused(error, &signals))?;
    if let Some(kind) = signals.kind() {
        return Err(CliError::new(kind, "the check was interrupted"));
    }
    let report = Report { model: &model, endpoint: &endpoint, window, took, measured: &measured };
    on_stdout(|out, _| {
        let page = if args.json { format!("{:#}\n", report.json()) } else { report.page() };
        Ok(out.write_all(page.as_bytes())?)
    })?;
    match &measured.call {
        Some(Call::Invalid(why)) => {
            Err(CliError::failed("the model did not call the tool it was asked to call")
                .cause(why)
                .hint("it can answer questions; for work with files choose one that was trained on tools"))
        }
        Some(Call::Valid) => Ok(ExitCode::SUCCESS),
        None => Err(CliError::failed("a minute was not enough for this model")
            .hint("a smaller one, or one with fewer bits, is quicker")),
    }
}

/// The model to measure, and the settings that it would run with.
fn subject(
    args: &Args,
    home: &Home,
    config: &Config,
    around: &Surroundings,
) -> Result<(String, Config), CliError> {
    let mut config = config.clone();
    let Some(name) = &args.name else {
        let name: Name = agents::DEFAULT.parse().expect("a constant is a name");
        let agent = AgentConfig::load(home, &name)?;
        config.context_size = agent.context_size.unwrap_or(config.context_size);
        config.endpoint = agent.endpoint.unwrap_or(config.endpoint);
        return Ok((agent.model, config));
    };
    if let Some(model) = shelf::find(&around.places, name)
        && model.place != crate::models::Place::ModelDir
    {
        return Err(CliError::usage(format!("{name} is in the cache of {}", model.place.as_str()))
            .hint(format!("`kontekst models use {name}` links to it in model_dir")));
    }
    Ok((name.clone(), config))
}

fn surroundings(config: &Config) -> router::Surroundings {
    let link = PathBuf::from("/proc/self/exe");
    router::Surroundings {
        search_path: std::env::var_os("PATH"),
        llama_server: std::env::var_os("KONTEKST_LLAMA_SERVER").map(PathBuf::from),
        api_key: config.api_key_env.as_deref().and_then(|name| std::env::var(name).ok()),
        launcher: if link.exists() { Some(link) } else { std::env::current_exe().ok() },
    }
}

/// Whether the daemon runs a model server of its own, which takes memory and cores from ours.
fn daemon_has_a_model(home: &Home) -> bool {
    let Ok(stream) = client::probe(home) else { return false };
    let status = client::runtime().and_then(|runtime| {
        runtime.block_on(async {
            let mut daemon = client::daemon(client::channel(stream).await?);
            Ok::<_, ClientError>(daemon.get_status(GetStatusRequest {}).await?.into_inner())
        })
    });
    status.is_ok_and(|status| status.llama_server_running)
}

/// What was measured, the window, and how long it took.
type Checked = (Measured, Option<u32>, Duration);

fn check(router: &router::Router, model: &str, cancel: &Cancel) -> Result<Checked, ProviderError> {
    let mut said = false;
    let provider = router.open(model, cancel, &mut |progress| {
        if let Progress::Loading { .. } = progress
            && !std::mem::replace(&mut said, true)
        {
            say("the model is being loaded");
        }
    })?;
    let start = Instant::now();
    let limited = cancel.child();
    let (done, end) = mpsc::channel::<()>();
    let late = limited.clone();
    thread::spawn(move || {
        if end.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            late.cancel();
        }
    });
    let nonce = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let measured = measure(&*provider, nonce, &limited, &mut |step| say(&format!("measuring: {step}")))?;
    drop(done);
    Ok((measured, provider.window(), start.elapsed()))
}

fn refused(error: ProviderError, signals: &Signals) -> CliError {
    match error {
        ProviderError::NoServer(no_server) => CliError::unreachable(no_server.fact).hint(no_server.hint),
        ProviderError::Cancelled => {
            CliError::new(signals.kind().unwrap_or(Kind::Interrupted), "the check was interrupted")
        }
        ProviderError::Unreachable { .. } => CliError::of(Kind::Unreachable, &error),
        ProviderError::Status { .. } | ProviderError::Overflow { .. } | ProviderError::Protocol(_) => {
            CliError::of(Kind::Failed, &error)
        }
    }
}

struct Report<'a> {
    model: &'a str,
    endpoint: &'a str,
    window: Option<u32>,
    took: Duration,
    measured: &'a Measured,
}

impl Report<'_> {
    fn json(&self) -> Value {
        let measured = self.measured;
        let rounded = |value: Option<f64>| value.map(|value| (value * 10.0).round() / 10.0);
        json!({
            "model": self.model,
            "endpoint": self.endpoint,
            "window": self.window,
            "prompt_tokens": measured.read,
            "prefill_tokens_per_second": rounded(measured.prefill),
            "decode_tokens_per_second": rounded(measured.decode),
            "second_turn_first_word_ms": measured.first_word.map(|wait| wait.as_millis() as u64),
            "cached_tokens": measured.cache.map(|cache| cache.cached),
            "cache_reuse": measured.cache.map(|cache| (cache.share() * 1000.0).round() / 1000.0),
            "tool_call_valid": measured.call.as_ref().map(|call| *call == Call::Valid),
            "tool_call_problem": match &measured.call {
                Some(Call::Invalid(why)) => Some(why),
                _ => None,
            },
            "seconds": self.took.as_secs_f64(),
            "verdict": verdict(measured),
        })
    }

    fn page(&self) -> String {
        let measured = self.measured;
        let rate = |rate: Option<f64>| {
            rate.map_or_else(|| "not measured".to_owned(), |rate| format!("{rate:.1} tokens a second"))
        };
        let model = if self.model.is_empty() { "(the server's own choice)" } else { self.model };
        let cache = match measured.cache {
            None => "not measured: the server counts no tokens".to_owned(),
            Some(Cache { cached: 0, .. }) => "nothing: each turn is read from its start".to_owned(),
            Some(cache) => format!(
                "{} of the {} tokens before were not read again ({:.0} %)",
                cache.cached.min(cache.possible),
                cache.possible,
                (cache.share() * 100.0).min(100.0)
            ),
        };
        let call = match &measured.call {
            None => "not measured".to_owned(),
            Some(Call::Valid) => "valid".to_owned(),
            Some(Call::Invalid(why)) => format!("invalid: {why}"),
        };
        let window = self
            .window
            .map_or_else(|| "the server does not say".to_owned(), |window| format!("{window} tokens"));
        let reading = match measured.read {
            0 => rate(measured.prefill),
            read => format!("{} (of a prompt of {read})", rate(measured.prefill)),
        };
        let first = measured.first_word.map_or_else(
            || "not measured".to_owned(),
            |wait| format!("first word after {:.2} s", wait.as_secs_f64()),
        );
        let rows = [
            ("Model", model.to_owned()),
            ("Server", self.endpoint.to_owned()),
            ("Window", window),
            ("Reading", reading),
            ("Writing", rate(measured.decode)),
            ("Second turn", first),
            ("Cache", cache),
            ("Tool call", call),
        ];
        let mut page: String = rows
            .iter()
            .map(|(label, value)| format!("{label:<13} {}\n", crate::cli::printable::printable(value)))
            .collect();
        page.push_str(&format!("\n{}\n", verdict(measured)));
        page
    }
}

/// A few sentences. People read some five to seven tokens a second.
fn verdict(measured: &Measured) -> String {
    let mut parts = Vec::new();
    parts.push(match measured.decode {
        None if measured.call.is_some() => "How fast it writes is not known: it said nothing.".to_owned(),
        None => "It was too slow to be measured.".to_owned(),
        Some(rate) if rate >= 30.0 => "It writes much faster than you read.".to_owned(),
        Some(rate) if rate >= 7.0 => "It writes faster than you read.".to_owned(),
        Some(rate) if rate >= 3.0 => "It writes about as slowly as you read aloud.".to_owned(),
        Some(_) => "It writes too slowly to wait for: use it from cron, or take a smaller model.".to_owned(),
    });
    if let Some(rate) = measured.prefill {
        let wait = 4000.0 / rate;
        parts.push(match wait {
            wait if wait < 2.0 => "A long file is read at once.".to_owned(),
            wait if wait < 100.0 => format!("A file of 4000 tokens takes {wait:.0} s to read."),
            wait => format!("A file of 4000 tokens takes {:.0} minutes to read.", wait / 60.0),
        });
    }
    if let Some(cache) = measured.cache.filter(|cache| cache.share() < 0.5) {
        let what = if cache.cached == 0 { "nothing" } else { "little" };
        parts.push(format!("The server keeps {what} between turns, so long conversations become slow."));
    }
    parts.push(match measured.call {
        Some(Call::Valid) => "It can use tools.".to_owned(),
        Some(Call::Invalid(_)) => "It cannot use tools.".to_owned(),
        None => "Whether it can use tools is not known.".to_owned(),
    });
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_a_sentence() {
        let good = Measured {
            read: 2000,
            prefill: Some(650.0),
            decode: Some(42.0),
            first_word: Some(Duration::from_millis(150)),
            cache: Some(Cache { cached: 1990, possible: 2000 }),
            call: Some(Call::Valid),
        };
        assert_eq!(
            verdict(&good),
            "It writes much faster than you read. A file of 4000 tokens takes 6 s to read. It can use tools."
        );
        let bad = Measured {
            decode: Some(1.0),
            prefill: Some(5.0),
            cache: Some(Cache { cached: 0, possible: 2000 }),
            call: Some(Call::Invalid("x".to_owned())),
            ..good
        };
        assert_eq!(
            verdict(&bad),
            "It writes too slowly to wait for: use it from cron, or take a smaller model. A file of 4000 tokens takes \
             13 minutes to read. The server keeps nothing between turns, so long conversations become slow. It cannot \
             use tools."
        );
        assert_eq!(
            verdict(&Measured::default()),
            "It was too slow to be measured. Whether it can use tools is not known."
        );
    }
}
