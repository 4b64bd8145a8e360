//! `kontekst run`: one prompt to one ending.

use std::{io, path::PathBuf, process::ExitCode};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
};
use tokio_stream::wrappers::ReceiverStream;

use crate::{
    client::{self, ClientError},
    config::Home,
    core::{Environment, SessionId},
    pb::{
        self, CancelRunCommand, FailureKind, RunCommand, StartRunCommand, run_command::Command,
        run_event::Event,
    },
    sessions::Sessions,
};

use super::{
    error::CliError,
    policy::{Decisions, OnDeny, Policy, answer},
    prompt::{StdinUse, read_prompt},
    render::{Format, RunRenderer, Verbosity},
};

/// Asks the model and prints its answer.
///
/// The prompt is the words given, what is piped in, or both: then the data comes first and the words
/// are the instruction. A prompt that starts with /NAME invokes a skill.
///
/// The answer goes to stdout as it comes, and nothing else does. Tools that the model wants to use are
/// shown with a preview and asked for on the terminal; without one they are refused (exit status 3)
/// unless --allow or --auto-approve says otherwise.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:
  kontekst run \"what does this project do?\"
  git diff | kontekst run \"review this change\"
  kontekst run --new \"let us start over\"
  kontekst run --allow read_file,list_files \"find the bug in src/\"
  kontekst run /summarize README.md
  answer=$(kontekst run --quiet \"one word: the capital of France\")",
    after_long_help = "Examples:
  kontekst run \"what does this project do?\"
  git diff | kontekst run \"review this change\"
  kontekst run --new \"let us start over\"
  kontekst run --allow read_file,list_files \"find the bug in src/\"
  kontekst run /summarize README.md
  answer=$(kontekst run --quiet \"one word: the capital of France\")

In cron there is no terminal and hardly an environment, so name the binary's directory, a session of its own and the
tools that may run:
  PATH=/home/ada/.local/bin:/usr/bin:/bin
  0 7 * * * cd ~/notes && kontekst run -q --session daily --allow read_file,list_files /digest > digest.md"
)]
pub(super) struct Args {
    /// The prompt. `-` stands for stdin
    #[arg(value_name = "PROMPT", trailing_var_arg = true)]
    words: Vec<String>,

    /// The agent to ask [default: the session's, else `default`]
    #[arg(short, long, value_name = "NAME")]
    agent: Option<String>,

    /// The session to continue, created if it does not exist [default: the active one]
    #[arg(short, long, value_name = "ID", conflicts_with = "new")]
    session: Option<String>,

    /// Start a new session and make it the active one
    #[arg(short, long)]
    new: bool,

    /// Where file tools work [default: the current directory]
    #[arg(short = 'C', long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    working_dir: Option<PathBuf>,

    /// Approve every tool call. Writes to files that run code or hold settings are still asked for
    #[arg(long)]
    auto_approve: bool,

    /// Approve calls of these tools without asking
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    allow: Vec<String>,

    /// Let the model start workers: runs of its own, as `[workers]` in config.toml limits them
    #[arg(long)]
    workers: bool,

    /// What a refusal means: the run ends, or the model goes on without the tool
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnDeny::End)]
    on_deny: OnDeny,

    /// Do not read stdin
    #[arg(long)]
    no_stdin: bool,

    /// Send a prompt that starts with `/` as it is
    #[arg(long)]
    no_skill: bool,

    /// Print every event as a JSON line
    #[arg(long)]
    json: bool,

    /// Say nothing on stderr but errors
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Show the model's thoughts, the tools' results and the context meter on stderr
    #[arg(short, long)]
    verbose: bool,
}

pub(super) fn run(mut args: Args, home: &Home, environment: &Environment) -> Result<ExitCode, CliError> {
    let format = if args.json { Format::Json } else { Format::Text };
    let talk = match (args.quiet, args.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    let mut screen = RunRenderer::new(format, talk, environment);
    let start = start(&mut args, home, &mut screen)?;
    let mut conversation = RunSession {
        policy: Policy::new(args.auto_approve, &args.allow, args.on_deny),
        make_active: args.session.is_none(),
        home,
        screen,
        started: None,
        signal: None,
    };
    let runtime = client::runtime()?;
    // A daemon that was just leaving may have taken the connection; one more try finds its successor.
    let mut tries = 0;
    loop {
        let connected = client::ensure(home)?;
        if let Some(notice) = connected.notice {
            conversation.screen.print_status(Verbosity::Normal, &notice);
        }
        let result = runtime.block_on(conversation.drive(connected.stream, start.clone()));
        tries += 1;
        match result {
            Err(ConnectionError::Transport(_)) if conversation.started.is_none() && tries < 3 => {}
            Err(ConnectionError::Transport(error)) => {
                conversation.screen.end_line().ok();
                return Err(error);
            }
            Err(ConnectionError::Stdout(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            Err(ConnectionError::Stdout(error)) => {
                return Err(CliError::failed("cannot write to stdout").cause(error.to_string()));
            }
            Ok(ending) => return conversation.exit_code(&ending),
        }
    }
}

/// What is asked of the daemon.
fn start(args: &mut Args, home: &Home, screen: &mut RunRenderer) -> Result<StartRunCommand, CliError> {
    let stdin = if args.words.len() == 1 && args.words[0] == "-" {
        args.words.clear();
        StdinUse::Forced
    } else if args.no_stdin {
        StdinUse::Forbidden
    } else {
        StdinUse::Auto
    };
    let question = read_prompt(&args.words, stdin, !args.no_skill, &mut |text| {
        screen.print_status(Verbosity::Normal, text);
    })?;
    let session = match &args.session {
        Some(id) => Some(id.parse::<SessionId>().map_err(|error| CliError::usage(error.to_string()))?),
        None if args.new => None,
        None => Sessions::new(home).active(),
    };
    Ok(StartRunCommand {
        prompt: question.prompt,
        session_id: session.map(|id| id.to_string()).unwrap_or_default(),
        agent_name: args.agent.clone().unwrap_or_default(),
        working_dir: working_dir(args.working_dir.take())?,
        skill: question.skill,
        workers: args.workers,
    })
}

#[expect(clippy::disallowed_methods, reason = "the client is where a current directory has a meaning")]
fn working_dir(chosen: Option<PathBuf>) -> Result<String, CliError> {
    let failed = |error: io::Error| CliError::usage("there is no working directory").cause(error.to_string());
    let dir = match chosen {
        Some(dir) => std::path::absolute(dir).map_err(failed)?,
        None => std::env::current_dir().map_err(failed)?,
    };
    dir.into_os_string().into_string().map_err(|dir| {
        CliError::usage(format!("the working directory `{}` is not UTF-8", dir.display()))
            .hint("rename it, or choose another with --working-dir")
    })
}

/// Why a conversation ended without an ending.
enum ConnectionError {
    Transport(CliError),
    Stdout(io::Error),
}

impl From<ClientError> for ConnectionError {
    fn from(error: ClientError) -> Self {
        Self::Transport(error.into())
    }
}

impl From<tonic::Status> for ConnectionError {
    fn from(status: tonic::Status) -> Self {
        // A status with a sentence of the daemon's own is worth showing; a broken pipe is not.
        let daemon_spoke = !matches!(
            status.code(),
            tonic::Code::Unknown | tonic::Code::Cancelled | tonic::Code::Unavailable
        );
        let error = CliError::unreachable("the daemon went away while it answered");
        Self::Transport(
            if daemon_spoke { error.cause(status.message()) } else { error }
                .hint("the next run starts a new one; `kontekst daemon logs` may say why"),
        )
    }
}

struct RunSession<'a> {
    policy: Policy,
    /// The run's session becomes the active one.
    make_active: bool,
    home: &'a Home,
    screen: RunRenderer,
    started: Option<pb::RunStartedEvent>,
    /// The signal that asked us to stop.
    signal: Option<u8>,
}

impl RunSession<'_> {
    /// Holds one conversation and gives its last event.
    async fn drive(
        &mut self,
        stream: std::os::unix::net::UnixStream,
        start: StartRunCommand,
    ) -> Result<Event, ConnectionError> {
        let mut agent = client::agent(client::channel(stream).await?);
        let (commands, outbox) = mpsc::channel(64);
        let say = |command| RunCommand { command: Some(command) };
        commands.try_send(say(Command::Start(start))).expect("a new channel has room");
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ClientError::Runtime)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(ClientError::Runtime)?;
        let mut events = agent.run(ReceiverStream::new(outbox)).await?.into_inner();
        let mut answers: Option<oneshot::Receiver<Decisions>> = None;
        loop {
            let number = tokio::select! {
                biased;
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
                decided = answer(&mut answers) => {
                    self.policy.allow(decided.always);
                    for command in decided.commands {
                        commands.send(say(command)).await.ok();
                    }
                    continue;
                }
                event = events.message() => {
                    let Some(event) = event?.and_then(|event| event.event) else {
                        return Err(ClientError::from(tonic::Status::unavailable("the stream ended")).into());
                    };
                    self.screen.render(&event).map_err(ConnectionError::Stdout)?;
                    match event {
                        Event::Started(started) => self.on_started(started),
                        Event::ToolsProposed(proposed) => answers = Some(self.policy.decide(proposed.calls, self.screen.palette())),
                        Event::Completed(_) | Event::Cancelled(_) | Event::Failed(_) => return Ok(event),
                        _ => {}
                    }
                    continue;
                }
            };
            if self.signal.replace(number).is_some() {
                // Asked twice: leave now. Dropping the stream cancels the run.
                return Ok(Event::Cancelled(pb::RunCancelledEvent::default()));
            }
            commands.send(say(Command::Cancel(CancelRunCommand {}))).await.ok();
        }
    }

    fn on_started(&mut self, started: pb::RunStartedEvent) {
        if self.make_active
            && let Ok(id) = started.session_id.parse::<SessionId>()
        {
            let sessions = Sessions::new(self.home);
            if sessions.active().as_ref() != Some(&id)
                && let Err(error) = sessions.set_active(&id)
            {
                self.screen.print_status(
                    Verbosity::Normal,
                    &format!("the session could not be made active: {error}"),
                );
            }
        }
        self.started = Some(started);
    }

    fn exit_code(&self, ending: &Event) -> Result<ExitCode, CliError> {
        if let Some(number) = self.signal {
            return Ok(ExitCode::from(128 + number));
        }
        match ending {
            Event::Completed(completed) if completed.truncated => {
                Err(CliError::limit("the answer was cut: it reached max_tokens or the end of the window")
                    .hint("raise `max_tokens` of the agent or `context_size`, or ask it to continue"))
            }
            Event::Completed(_) => Ok(ExitCode::SUCCESS),
            Event::Cancelled(cancelled) if cancelled.denied && self.policy.had_no_terminal => Err(
                CliError::needs_approval("a tool needs approval and there is no terminal to ask on").hint(
                    "--allow TOOL approves one tool, --auto-approve all; --on-deny continue goes on without",
                ),
            ),
            Event::Cancelled(cancelled) if cancelled.denied => Err(CliError::denied("a tool was denied")),
            Event::Cancelled(_) => Err(CliError::failed("the run was cancelled by the daemon")
                .hint("it is probably stopping; try again")),
            Event::Failed(failed) => {
                let error = match failed.kind() {
                    FailureKind::Request => CliError::usage(&failed.error),
                    FailureKind::Unreachable => CliError::unreachable(&failed.error),
                    FailureKind::Limit => CliError::limit(&failed.error),
                    FailureKind::Unspecified
                    | FailureKind::Model
                    | FailureKind::Storage
                    | FailureKind::Internal => CliError::failed(&failed.error),
                };
                Err(if failed.hint.is_empty() { error } else { error.hint(&failed.hint) })
            }
            _ => Err(CliError::failed("the daemon ended the run without an ending")),
        }
    }
}
