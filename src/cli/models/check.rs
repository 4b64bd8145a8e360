//! `kontekst models check`.

use std::{
    process::ExitCode,
    sync::mpsc,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{
    builtin_model,
    measure::{Measurements, ToolCallCheck, measure},
    pull::print_status,
    report::CheckReport,
    signals::Signals,
    sources::ModelSources,
};
use crate::{
    cli::{
        error::{CliError, ExitStatus},
        on_stdout,
    },
    client::{self, ClientError},
    config::{AgentConfig, Config, Home, agents},
    core::{Cancel, Environment, Name},
    models::catalog,
    pb::GetStatusRequest,
    provider::{ModelSelector, Models as _, Progress, ProviderError, router},
};

/// For all questions together, once the model is loaded.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Measure a model: reading, writing, cache, and whether it can call a tool
///
/// Takes a minute at most once the model is loaded. Asks what a run would ask: the server at `endpoint`
/// if there is one, or a llama-server that is started for this and stopped again, or the built-in engine. No
/// daemon is needed.
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

pub fn run(
    args: &Args,
    home: &Home,
    config: &Config,
    sources: &ModelSources,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let (model, config, named) = model_to_check(args, home, config, sources)?;
    let signals = Signals::listen()?;
    if daemon_has_model_loaded(home) {
        print_status(
            "note: the daemon has a model loaded too; `kontekst daemon stop --if-idle` makes the figures better",
        );
    }
    let router = router::Router::new(&config, crate::cli::daemon::process_env(environment));
    let wanted = ModelSelector { model: &model, endpoint: named.as_deref() };
    let checked = check(&router, wanted, &signals.cancel);
    let endpoint = named.clone().unwrap_or_else(|| router.status().endpoint);
    let endpoint = if endpoint.is_empty() { "the built-in engine".to_owned() } else { endpoint };
    router.stop();
    let CheckResult { measured, window, took, used_builtin_model: stands_in } =
        checked.map_err(|error| check_failed(error, &signals))?;
    let (model, endpoint) = match stands_in {
        true => (builtin_model::NAME.to_owned(), "the built-in engine".to_owned()),
        false => (model, endpoint),
    };
    if let Some(kind) = signals.exit_status() {
        return Err(CliError::new(kind, "the check was interrupted"));
    }
    let report = CheckReport { model: &model, endpoint: &endpoint, window, took, measured: &measured };
    on_stdout(|out, _| {
        let page = if args.json { format!("{:#}\n", report.to_json()) } else { report.to_text() };
        Ok(out.write_all(page.as_bytes())?)
    })?;
    match &measured.tool_call {
        Some(ToolCallCheck::Invalid(why)) => {
            Err(CliError::failed("the model did not call the tool it was asked to call")
                .cause(why)
                .hint("it can answer questions; for work with files choose one that was trained on tools"))
        }
        Some(ToolCallCheck::Valid) => Ok(ExitCode::SUCCESS),
        None => Err(CliError::failed("a minute was not enough for this model")
            .hint("a smaller one, or one with fewer bits, is quicker")),
    }
}

/// The model to measure, the settings that it would run with, and the server that its agent names.
fn model_to_check(
    args: &Args,
    home: &Home,
    config: &Config,
    sources: &ModelSources,
) -> Result<(String, Config, Option<String>), CliError> {
    let mut config = config.clone();
    let Some(name) = &args.name else {
        let name: Name = agents::DEFAULT.parse().expect("a constant is a name");
        let agent = AgentConfig::load(home, &name)?;
        config.context_size = agent.context_size.unwrap_or(config.context_size);
        return Ok((agent.model, config, agent.endpoint));
    };
    if let Some(model) = catalog::find(&sources.places, name)
        && model.origin != crate::models::ModelOrigin::ModelDir
    {
        return Err(CliError::usage(format!("{name} is in the cache of {}", model.origin.as_str()))
            .hint(format!("`kontekst models use {name}` links to it in model_dir")));
    }
    Ok((name.clone(), config, None))
}

/// Whether the daemon runs a model server of its own, which takes memory and cores from ours.
fn daemon_has_model_loaded(home: &Home) -> bool {
    let Ok(stream) = client::probe(home) else { return false };
    let status = client::runtime().and_then(|runtime| {
        runtime.block_on(async {
            let mut daemon = client::daemon(client::channel(stream).await?);
            Ok::<_, ClientError>(daemon.get_status(GetStatusRequest {}).await?.into_inner())
        })
    });
    status.is_ok_and(|status| status.llama_server_running)
}

/// What was measured, and of what.
struct CheckResult {
    measured: Measurements,
    window: Option<u32>,
    took: Duration,
    /// The built-in model answered.
    used_builtin_model: bool,
}

fn check(
    router: &router::Router,
    wanted: ModelSelector<'_>,
    cancel: &Cancel,
) -> Result<CheckResult, ProviderError> {
    let mut said = false;
    let provider = router.open(wanted, cancel, &mut |progress| {
        if let Progress::Loading { .. } = progress
            && !std::mem::replace(&mut said, true)
        {
            print_status("the model is being loaded");
        }
    })?;
    let notice = provider.notice();
    notice.iter().for_each(|notice| print_status(&format!("note: {notice}")));
    let start = Instant::now();
    let limited = cancel.child();
    let (done, end) = mpsc::channel::<()>();
    let late = limited.clone();
    thread::spawn(move || {
        if end.recv_timeout(TIME_LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            late.cancel();
        }
    });
    let nonce = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let measured =
        measure(&*provider, nonce, &limited, &mut |step| print_status(&format!("measuring: {step}")))?;
    drop(done);
    Ok(CheckResult {
        measured,
        window: provider.window(),
        took: start.elapsed(),
        used_builtin_model: notice.is_some(),
    })
}

fn check_failed(error: ProviderError, signals: &Signals) -> CliError {
    match error {
        ProviderError::NoServer(no_server) => CliError::unreachable(no_server.fact).hint(no_server.hint),
        ProviderError::Cancelled => CliError::new(
            signals.exit_status().unwrap_or(ExitStatus::Interrupted),
            "the check was interrupted",
        ),
        ProviderError::Unreachable { .. } => CliError::from_error(ExitStatus::Unreachable, &error),
        ProviderError::Status { .. }
        | ProviderError::Overflow { .. }
        | ProviderError::Protocol(_)
        | ProviderError::Engine(_) => CliError::from_error(ExitStatus::Failed, &error),
    }
}
