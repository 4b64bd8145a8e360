//! The arguments that say what is printed, and in which form.

use std::path::{Path, PathBuf};

use kontekst_core::Environment;

use crate::cli::{
    error::CliError,
    output::{ColorChoice, Verbosity},
};

use super::{
    answer_schema::AnswerSchema,
    output_file::OutputFile,
    renderer::{Format, RunRenderer},
    whole_answer::{AnswerPart, Target, WholeAnswer},
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

    /// Print only the first fenced code block of the answer, without its fences; exit status 1 if there is none. Tools that
    /// change something are not offered to the model, unless --allow or --auto-approve is given
    #[arg(short = 'x', long)]
    extract: bool,

    /// Write the answer to this file when the run has completed, and print nothing on stdout; `-` is stdout. Tools as with
    /// --extract
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output_file: Option<PathBuf>,

    /// Have the model answer with JSON that fits a schema; exit status 1 if it does not. SCHEMA is a file, a JSON object, or
    /// fields such as `name, age int, note: what to say` (types: str, int, float, bool)
    #[arg(long, value_name = "SCHEMA", conflicts_with = "extract", value_hint = clap::ValueHint::FilePath)]
    schema: Option<String>,

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
    /// The file for the answer cannot be written, or it is wanted together with JSON, or the schema cannot be used.
    pub(super) fn whole_answer(&self) -> Result<Option<WholeAnswer>, CliError> {
        let is_text = self.format() == Format::Text;
        if !is_text && self.writes_answer() {
            let error = "--extract and --output-file are for the output as text";
            return Err(CliError::usage(error)
                .hint("`--output json` has the answer as `answer`, and `> FILE` writes the JSON to a file"));
        }
        if !self.wants_whole_answer() {
            return Ok(None);
        }
        let part = match &self.schema {
            Some(schema) => AnswerPart::Json(AnswerSchema::read(schema)?),
            None if self.extract => AnswerPart::Code,
            None => AnswerPart::All,
        };
        let target = match self.file() {
            Some(file) => Target::File(OutputFile::new(file)?),
            None if is_text => Target::Stdout,
            None => Target::Nowhere,
        };
        Ok(Some(WholeAnswer { part, target }))
    }

    /// Returns true if this program writes the answer, or a part of it, where the user wants it.
    pub(super) fn writes_answer(&self) -> bool {
        self.extract || self.file().is_some()
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
        self.writes_answer() || self.schema.is_some()
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
