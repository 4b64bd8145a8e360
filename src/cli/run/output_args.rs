//! The arguments that say what is printed, and in which form.

use crate::{
    cli::output::{ColorChoice, Verbosity},
    core::Environment,
};

use super::renderer::{Format, RunRenderer};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(in crate::cli) struct OutputArgs {
    /// Print every event as one line of JSON
    #[arg(long)]
    json: bool,

    /// When to use colours and to format the answer's Markdown; `NO_COLOR` and `CLICOLOR_FORCE` are understood
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: ColorChoice,

    /// Print the answer's Markdown as the model wrote it, also on a terminal
    #[arg(long)]
    raw: bool,

    /// Print nothing but errors on stderr
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Print the model's reasoning, the results of tools and the size of the context on stderr
    #[arg(short, long)]
    verbose: bool,
}

impl OutputArgs {
    /// Makes what prints the events of a run in this form.
    pub(super) fn renderer(&self, environment: &Environment) -> RunRenderer {
        let format = if self.json { Format::Json } else { Format::Text };
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        };
        let mut renderer = RunRenderer::new(format, verbosity, environment);
        renderer.choose_color(self.color, environment);
        if self.raw {
            renderer.keep_markdown();
        }
        renderer
    }
}
