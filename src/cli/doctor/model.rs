//! Checks what would answer a run of the default agent.

use std::path::Path;

use super::{Checked, finding::Finding};
use crate::{
    cli::{process_env::process_env, units},
    config::{AgentConfig, Config},
    core::error_chain,
    models::{
        Model,
        memory::{Fitness, MemoryNeed, available_now, fitting_window},
    },
    provider::{
        ModelSelector, NoServer, ProviderError, builtin,
        router::{Forecast, Router},
    },
};

const SUBJECT: &str = "model";

pub(super) fn check(checked: &Checked<'_>) -> Vec<Finding> {
    let Some(config) = &checked.config else {
        return vec![Finding::warning(SUBJECT, "not checked, because config.toml cannot be used")];
    };
    let Ok(agent) = AgentConfig::load_default(checked.home) else {
        return vec![Finding::warning(SUBJECT, "not checked, because the agent `default` cannot be used")];
    };
    let (model, endpoint, window) =
        agent.map(|agent| (agent.model, agent.endpoint, agent.context_size)).unwrap_or_default();
    let is_own_server = checked.status.as_ref().is_some_and(|status| status.llama_server_running);
    if is_own_server && endpoint.is_none() {
        // The daemon's model server could be taken for one that somebody else has started.
        return Vec::new();
    }
    let router = Router::new(config, process_env(checked.environment));
    let wanted = ModelSelector { model: &model, endpoint: endpoint.as_deref(), is_required: false };
    let window = window.or(config.context_size);
    vec![match router.forecast(wanted) {
        Ok(forecast) => describe(&forecast, &model, window, config),
        Err(ProviderError::NoServer(NoServer { fact, hint })) => {
            Finding::problem(SUBJECT, format!("nothing can answer: {fact}")).remedy(hint)
        }
        Err(error) => Finding::problem(SUBJECT, format!("nothing can answer: {}", error_chain(&error))),
    }]
}

/// Describes what would answer. `asked` is the model that the agent names, and `window` the configured one in tokens.
fn describe(forecast: &Forecast, asked: &str, window: Option<u32>, config: &Config) -> Finding {
    match forecast {
        Forecast::Server { url, model, window: served, is_loading, was_found } => {
            let model = model.as_deref().unwrap_or(asked);
            let model = if model.is_empty() { String::new() } else { format!(" with {model}") };
            let found = if *was_found { " (found on this machine)" } else { "" };
            let message = match (is_loading, served) {
                (true, _) => format!("{url} answers{model}, after loading it{found}"),
                (false, Some(served)) => format!("{url} answers{model}, {served} tokens at most{found}"),
                (false, None) => format!("{url} answers{model}{found}"),
            };
            match (window, served) {
                (Some(window), Some(served)) if window > *served => {
                    let message = format!("{message}; the configuration asks for {window} tokens");
                    Finding::warning(SUBJECT, message).remedy(format!(
                        "kontekst config set context_size {served}, or start the server with more"
                    ))
                }
                _ => Finding::ok(SUBJECT, message),
            }
        }
        Forecast::LlamaServer { binary, file } => {
            describe_file(file, &format!("{} runs it", binary.display()), window)
        }
        Forecast::Engine { file } => describe_file(file, "the built-in engine runs it", window),
        Forecast::BuiltIn { .. } if asked == builtin::NAME => {
            Finding::ok(SUBJECT, "the small built-in model answers, as the agent `default` asks")
        }
        Forecast::BuiltIn { why, better } => {
            let why = match why {
                Some(why) => format!(": {why}"),
                None if asked.is_empty() => {
                    ": no model server answers, and no other model fits this machine".to_owned()
                }
                None => format!(": there is no {asked} in {}", config.model_dir.display()),
            };
            Finding::warning(SUBJECT, format!("only the small built-in model answers{why}"))
                .remedy(better.clone())
        }
    }
}

/// Checks that a model file is whole and fits into memory.
fn describe_file(file: &Path, runner: &str, window: Option<u32>) -> Finding {
    let name = file.display();
    let Some(model) = Model::with_first_file(file) else {
        return Finding::problem(SUBJECT, format!("{name} cannot be read")).remedy("kontekst models");
    };
    let fetch = "move it away and fetch it again with `kontekst models pull`";
    let info = match model.info() {
        Ok(info) => info,
        Err(error) => {
            return Finding::problem(SUBJECT, format!("{name} is no usable model: {error}")).remedy(fetch);
        }
    };
    if model.missing > 0 || info.missing_bytes > 0 {
        return Finding::problem(SUBJECT, format!("{name} is not whole")).remedy(fetch);
    }
    let available = available_now();
    let window = window.unwrap_or_else(|| fitting_window(&info, model.bytes, available));
    let need = MemoryNeed::new(&info, model.bytes, u64::from(window));
    let size = units::bytes(need.total());
    let message = format!("{name} answers, {runner}; with {window} tokens it takes {size} of memory");
    match available.map(|available| (need.fitness(available), units::bytes(available))) {
        Some((Fitness::TooLarge, available)) => {
            Finding::warning(SUBJECT, format!("{message}, and {available} are available"))
                .remedy("choose a smaller model (`kontekst models`), or set `context_size` to fewer tokens")
        }
        Some((Fitness::Fits | Fitness::Tight, available)) => {
            Finding::ok(SUBJECT, format!("{message} ({available} are available)"))
        }
        None => Finding::ok(SUBJECT, message),
    }
}
