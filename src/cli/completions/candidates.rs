//! The values that exist on this machine: agents, sessions, models, tools and skills.

use std::{ffi::OsStr, sync::Arc, time::SystemTime};

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::{
    cli::{run::tool_names, units::age},
    config::{Config, Home, agents},
    core::Environment,
    models::ModelCatalog,
    parked::ParkedRuns,
    sessions::Sessions,
    skills::Skills,
};

/// The most sessions that are offered, the newest first.
const MAX_SESSIONS: usize = 100;

/// The places in which values are looked up. No daemon is asked.
#[derive(Clone)]
pub(super) struct Lookup {
    pub(super) home: Home,
    pub(super) environment: Environment,
}

/// A kind of value, as a function that lists all of them with a description of each.
type Values = fn(&Lookup) -> Vec<(String, String)>;

/// Adds the values that exist on this machine to the definition of the command line.
pub(super) fn with_values(command: Command, lookup: Lookup) -> Command {
    let lookup = Arc::new(lookup);
    let of = |values: Values| {
        let lookup = Arc::clone(&lookup);
        move |arg: Arg| {
            let complete = move |typed: &OsStr| candidates(&lookup, values, typed);
            arg.add(ArgValueCompleter::new(complete))
        }
    };
    command
        .mut_subcommand("run", |run| {
            run.mut_arg("agent", of(agent_names))
                .mut_arg("model", of(model_names))
                .mut_arg("session", of(session_ids))
                .mut_arg("allow", of(tools))
                .mut_arg("words", of(skill_words))
        })
        .mut_subcommand("agents", |agents| {
            agents.mut_subcommand("show", |show| show.mut_arg("name", of(agent_names)))
        })
        .mut_subcommand("skills", |skills| {
            skills.mut_subcommand("show", |show| show.mut_arg("name", of(skill_names)))
        })
        .mut_subcommand("models", |models| {
            models
                .mut_subcommand("show", |show| show.mut_arg("name", of(model_names)))
                .mut_subcommand("use", |chosen| chosen.mut_arg("name", of(model_names)))
        })
        .mut_subcommand("approvals", |approvals| {
            approvals
                .mut_subcommand("show", |show| show.mut_arg("run", of(parked_runs)))
                .mut_subcommand("approve", |approve| approve.mut_arg("ids", of(parked_runs)))
                .mut_subcommand("deny", |deny| deny.mut_arg("ids", of(parked_runs)))
        })
        .mut_subcommand("sessions", |sessions| {
            let of_id = |sessions: Command, name: &'static str, id: &'static str| {
                sessions.mut_subcommand(name, |command| command.mut_arg(id, of(session_ids)))
            };
            let sessions = ["show", "rename", "fork", "export", "workers", "use"]
                .into_iter()
                .fold(sessions, |sessions, name| of_id(sessions, name, "id"));
            let sessions = of_id(sessions, "delete", "ids");
            of_id(sessions, "set-agent", "session")
                .mut_subcommand("set-agent", |command| command.mut_arg("name", of(agent_names)))
        })
}

fn candidates(lookup: &Lookup, values: Values, typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let fitting = values(lookup).into_iter().filter(|(value, _)| value.starts_with(typed));
    fitting
        .map(|(value, about)| CompletionCandidate::new(value).help((!about.is_empty()).then(|| about.into())))
        .collect()
}

fn agent_names(lookup: &Lookup) -> Vec<(String, String)> {
    agents::names(&lookup.home).into_iter().map(|name| (name.to_string(), String::new())).collect()
}

fn session_ids(lookup: &Lookup) -> Vec<(String, String)> {
    let sessions = Sessions::new(&lookup.home);
    let mut listed = sessions.list().unwrap_or_default();
    listed.retain(|session| session.parent.is_none() && session.bytes > 0);
    listed.truncate(MAX_SESSIONS);
    let overviews = sessions.overviews(&listed);
    let now = SystemTime::now();
    let about = listed.iter().zip(overviews).map(|(session, overview)| {
        (session.id.to_string(), format!("{} ({})", overview.title, age(now, session.modified)))
    });
    about.collect()
}

fn parked_runs(lookup: &Lookup) -> Vec<(String, String)> {
    let runs = ParkedRuns::new(&lookup.home).list().unwrap_or_default();
    runs.into_iter().map(|run| (run.id.to_string(), run.prompt)).collect()
}

fn tools(_: &Lookup) -> Vec<(String, String)> {
    tool_names().into_iter().map(|name| (name, String::new())).collect()
}

fn skill_names(lookup: &Lookup) -> Vec<(String, String)> {
    let skills = Skills::load(&lookup.home);
    skills.iter().map(|skill| (skill.name.to_string(), skill.description.clone())).collect()
}

/// Returns the skills as the first word of a prompt.
fn skill_words(lookup: &Lookup) -> Vec<(String, String)> {
    let skills = Skills::load(&lookup.home);
    let invocable = skills.iter().filter(|skill| skill.user_invocable);
    invocable.map(|skill| (format!("/{}", skill.name), skill.description.clone())).collect()
}

fn model_names(lookup: &Lookup) -> Vec<(String, String)> {
    let Ok(config) = Config::load(&lookup.home) else { return Vec::new() };
    let catalog = ModelCatalog::of_machine(config.model_dir, &lookup.environment);
    catalog.list().into_iter().map(|model| (model.name, model.origin.as_str().to_owned())).collect()
}
