//! `kontekst models show`.

use std::{fmt::Write as _, io::Write};

use serde_json::json;

use super::{builtin_model, list, sources::ModelSources, units};
use crate::{
    cli::error::CliError,
    config::{AgentConfig, Config, Home},
    models::{
        Model, ModelCatalog, ModelInfo, ModelOrigin, catalog,
        memory::{Fitness, MemoryNeed, available},
        template::TemplateSupport,
    },
};

/// Show what a model is, what its chat template can do, and whether it fits this machine
///
/// All of it comes from the file; nothing is loaded. The chat template is judged by its text: `models check`
/// knows for sure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A name that `kontekst models` lists (without .gguf will do), or the path of such a file
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(
    args: &Args,
    home: &Home,
    config: &Config,
    sources: &ModelSources,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let built_in = builtin_model::load().filter(|_| builtin_model::is_builtin_name(&args.name));
    let (model, facts) = match built_in {
        Some(built_in) => built_in,
        None => {
            let model = find(&sources.places, &args.name)?;
            let facts = model.info();
            (model, facts)
        }
    };
    let file =
        model.files.first().map_or_else(|| "in the program".to_owned(), |file| file.display().to_string());
    let facts = facts.map_err(|error| {
        CliError::from_error(crate::cli::error::ExitStatus::Failed, &error)
            .cause(&file)
            .hint("a file that was cut short? `kontekst models pull` fetches it again once it is moved away")
    })?;
    let agents: Vec<AgentConfig> = AgentConfig::list(home).into_iter().flatten().collect();
    let window = u64::from(config.context_size);
    let need = MemoryNeed::new(model.bytes, facts.cache_bytes_per_token, window);
    let free = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    if args.json {
        let mut described = list::to_json(&model, &Ok(facts), &agents);
        described["memory"] = json!({
            "context_size": window,
            "weights": need.weights,
            "cache": need.cache,
            "needed": need.total(),
            "available": free,
            "fits": free.map(|free| need.fitness(free) != Fitness::TooLarge),
        });
        return Ok(writeln!(out, "{described:#}")?);
    }
    let unknown = || "unknown".to_owned();
    let users = list::agents_using(&model, &agents);
    let lines = [
        ("Model", model.name.clone()),
        ("Title", facts.title.clone().unwrap_or_else(unknown)),
        ("Where", list::describe_place(&model)),
        ("File", file),
        ("Size", units::bytes(model.bytes)),
        ("Architecture", facts.architecture.clone().unwrap_or_else(unknown)),
        ("Parameters", if facts.parameters == 0 { unknown() } else { units::parameters(facts.parameters) }),
        ("Quantisation", facts.quantisation.clone().unwrap_or_else(unknown)),
        (
            "Trained on",
            facts.context_window.map_or_else(unknown, |window| format!("texts of up to {window} tokens")),
        ),
        ("Layers", facts.layers.map_or_else(unknown, |layers| layers.to_string())),
        (
            "Cache",
            facts
                .cache_bytes_per_token
                .map_or_else(unknown, |cache| format!("{cache} bytes for each token, at most")),
        ),
        ("Tokenizer", facts.tokenizer.clone().unwrap_or_else(unknown)),
        ("Chat template", template(facts.template)),
        ("Memory", memory(&need, window, free)),
        (
            "Runs in",
            if builtin_model::engine_can_run(&facts) {
                "the built-in engine, and llama-server"
            } else {
                "llama-server"
            }
            .to_owned(),
        ),
        ("Used by", if users.is_empty() { "no agent".to_owned() } else { users.join(", ") }),
    ];
    for (label, value) in lines {
        writeln!(out, "{label:<14} {value}")?;
    }
    for note in notes(&model, &facts, window) {
        writeln!(out, "{:<14} {note}", "Note")?;
    }
    if matches!(model.origin, ModelOrigin::ModelDir | ModelOrigin::BuiltIn) {
        writeln!(out, "\nIn an agent's config.toml:\n\n    model = {}\n", toml_text(&model.name))?;
        writeln!(out, "or `kontekst models use {}`", model.name)?;
    } else {
        writeln!(out, "\nTo use it: `kontekst models use {}` links to it in model_dir", model.name)?;
    }
    Ok(())
}

/// The model of that name.
pub(super) fn find(places: &ModelCatalog, name: &str) -> Result<Model, CliError> {
    catalog::find(places, name).ok_or_else(|| {
        CliError::usage(format!("there is no model `{name}` on this machine"))
            .hint("`kontekst models` lists them, `kontekst models pull ORG/NAME` fetches one")
    })
}

fn toml_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn template(template: Option<TemplateSupport>) -> String {
    let Some(TemplateSupport { tools, tool_results, reasoning, system }) = template else {
        return "none in the file: the server falls back to a plain one".to_owned();
    };
    let parts =
        [(tools, "tools"), (tool_results, "tool results"), (reasoning, "reasoning"), (system, "system text")];
    let said = |wanted: bool| {
        let names: Vec<&str> =
            parts.iter().filter(|(has, _)| *has == wanted).map(|(_, name)| *name).collect();
        names.join(", ")
    };
    match (said(true), said(false)) {
        (has, lacks) if lacks.is_empty() => has,
        (has, lacks) if has.is_empty() => format!("without {lacks}"),
        (has, lacks) => format!("{has}; without {lacks}"),
    }
}

fn memory(need: &MemoryNeed, window: u64, free: Option<u64>) -> String {
    let mut text = format!("{} with a window of {window} tokens", units::bytes(need.total()));
    match need.cache {
        Some(cache) => write!(text, " ({} of it for the window)", units::bytes(cache)),
        None => write!(text, " and more for the window"),
    }
    .expect("a String takes everything");
    let Some(free) = free else { return text };
    let verdict = match need.fitness(free) {
        Fitness::Fits => "it fits",
        Fitness::Tight => "it is tight",
        Fitness::TooLarge => "too large, unless a GPU takes part of it",
    };
    format!("{text}; {} are free: {verdict}", units::bytes(free))
}

fn notes(model: &Model, facts: &ModelInfo, window: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if model.missing > 0 {
        notes.push(format!("{} of its files are missing: it cannot be loaded", model.missing));
    }
    if let Some(trained) = facts.context_window.filter(|&trained| trained < window) {
        notes
            .push(format!("`context_size` is {window}, and it was trained on no more than {trained} tokens"));
    }
    if facts.is_embedding {
        notes.push("it turns texts into vectors and does not answer".to_owned());
    } else if facts.template.is_some_and(|template| !template.tools) {
        notes.push("its template has no tools: it can answer, and will hardly work as an agent".to_owned());
    }
    notes
}
