//! The arguments that say what is printed, and in which form.

use std::path::{Path, PathBuf};

use crate::{
    cli::{
        error::CliError,
        output::{ColorChoice, Verbosity},
    },
    core::Environment,
};

use super::{
    output_file::OutputFile,
    renderer::{Format, RunRenderer},
    whole_answer::WholeAnswer,
};

/// A form of the output on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum OutputForm {
    /// The answer, as it arrives
    #[default]
    Text,
    /// One JSON object when the run is over, also if it failed
    Json,
    /// Every event as one line of JSON
    StreamJson,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(in crate::cli) struct OutputArgs {
    /// The form of the output on stdout
    #[arg(long, value_name = "FORM", value_enum, default_value_t, conflicts_with = "json")]
    output: OutputForm,

    /// Print every event as one line of JSON, as `--output stream-json` does
    #[arg(long)]
    json: bool,

    /// Print only the first fenced code block of the answer, without its fences; exit status 1 if there is none
    #[arg(short = 'x', long)]
    extract: bool,

    /// Write the answer to this file when the run has completed, and print nothing on stdout; `-` is stdout
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output_file: Option<PathBuf>,

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
    /// Returns what is done with the answer when all of it is there. `None` if it is printed while it arrives.
    ///
    /// # Errors
    ///
    /// The file for the answer cannot be written, or it is wanted together with JSON.
    pub(super) fn whole_answer(&self) -> Result<Option<WholeAnswer>, CliError> {
        if self.format() != Format::Text && self.wants_whole_answer() {
            let error = "--extract and --output-file are for the output as text";
            return Err(CliError::usage(error)
                .hint("`--output json` has the answer as `answer`, and `> FILE` writes the JSON to a file"));
        }
        let file = self.file().map(OutputFile::new).transpose()?;
        Ok(self.wants_whole_answer().then_some(WholeAnswer { extract: self.extract, file }))
    }

    pub(super) fn format(&self) -> Format {
        match self.output {
            _ if self.json => Format::StreamJson,
            OutputForm::Text => Format::Text,
            OutputForm::Json => Format::Json,
            OutputForm::StreamJson => Format::StreamJson,
        }
    }

    fn wants_whole_answer(&self) -> bool {
        self.extract || self.file().is_some()
    }

    fn file(&self) -> Option<&Path> {
        self.output_file.as_deref().filter(|file| *file != Path::new("-"))
    }

    /// Makes what prints the events of a run in this form.
    pub(super) fn renderer(&self, environment: &Environment) -> RunRenderer {
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        };
        let mut renderer = RunRenderer::new(self.format(), verbosity, environment);
        renderer.choose_color(self.color, environment);
        if self.raw {
            renderer.keep_markdown();
        }
        if self.wants_whole_answer() || self.format() == Format::Json {
            renderer.wait_for_whole_answer();
        }
        renderer
    }
}
