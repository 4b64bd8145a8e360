//! `kontekst run`: one prompt to one ending.

use std::{collections::HashSet, io, path::PathBuf, process::ExitCode};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
};
use tokio_stream::wrappers::ReceiverStream;

use crate::{
    client::{self, ClientError},
    config::Home,
    core::SessionId,
    pb::{
        self, ApproveToolCommand, CancelRunCommand, DenyToolCommand, FailureKind, ProposedToolCall,
        RunCommand, StartRunCommand, run_command::Command, run_event::Event,
    },
    sessions::Sessions,
};

use super::{
    ask::{Answer, Terminal},
    error::CliError,
    prompt::{Stdin, question},
    render::{Format, Screen, Talk},
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OnDeny {
    End,
    Continue,
}

pub(super) fn run(mut args: Args, home: &Home) -> Result<ExitCode, CliError> {
    let format = if args.json { Format::Json } else { Format::Text };
    let talk = match (args.quiet, args.verbose) {
        (true, _) => Talk::Quiet,
        (_, true) => Talk::Verbose,
        _ => Talk::Normal,
    };
    let mut screen = Screen::new(format, talk);
    let start = start(&mut args, home, &mut screen)?;
    let mut conversation = Conversation {
        policy: Policy::new(&args),
        keep_active: args.session.is_none(),
        home,
        screen,
        started: None,
        signal: None,
        refused_without_terminal: false,
    };
    let runtime = client::runtime()?;
    // A daemon that was just leaving may have taken the connection; one more try finds its successor.
    let mut tries = 0;
    loop {
        let connected = client::ensure(home)?;
        if let Some(notice) = connected.notice {
            conversation.screen.say(Talk::Normal, &notice);
        }
        let result = runtime.block_on(conversation.hold(connected.stream, start.clone()));
        tries += 1;
        match result {
            Err(Broken::Transport(_)) if conversation.started.is_none() && tries < 3 => {}
            Err(Broken::Transport(error)) => {
                conversation.screen.close_line().ok();
                return Err(error);
            }
            Err(Broken::Stdout(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::SUCCESS);
            }
            Err(Broken::Stdout(error)) => {
                return Err(CliError::failed("cannot write to stdout").cause(error.to_string()));
            }
            Ok(ending) => return conversation.conclude(&ending),
        }
    }
}

/// What is asked of the daemon.
fn start(args: &mut Args, home: &Home, screen: &mut Screen) -> Result<StartRunCommand, CliError> {
    let stdin = if args.words.len() == 1 && args.words[0] == "-" {
        args.words.clear();
        Stdin::Forced
    } else if args.no_stdin {
        Stdin::Forbidden
    } else {
        Stdin::Auto
    };
    let question = question(&args.words, stdin, !args.no_skill, &mut |text| screen.say(Talk::Normal, text))?;
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

/// Which calls need no asking.
struct Policy {
    auto: bool,
    allowed: HashSet<String>,
    on_deny: OnDeny,
}

impl Policy {
    fn new(args: &Args) -> Self {
        Self {
            auto: args.auto_approve,
            allowed: args.allow.iter().map(|name| name.trim().to_owned()).collect(),
            on_deny: args.on_deny,
        }
    }

    fn covers(&self, call: &ProposedToolCall) -> bool {
        call.caution.is_empty() && (self.auto || self.allowed.contains(&call.name))
    }
}

/// What was said to the calls of a turn.
#[derive(Default)]
struct Decided {
    commands: Vec<Command>,
    /// Tools that need no asking for the rest of the run.
    always: Vec<String>,
}

/// Why a conversation ended without an ending.
enum Broken {
    Transport(CliError),
    Stdout(io::Error),
}

impl From<ClientError> for Broken {
    fn from(error: ClientError) -> Self {
        Self::Transport(error.into())
    }
}

impl From<tonic::Status> for Broken {
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

struct Conversation<'a> {
    policy: Policy,
    /// The run's session becomes the active one.
    keep_active: bool,
    home: &'a Home,
    screen: Screen,
    started: Option<pb::RunStartedEvent>,
    /// The signal that asked us to stop.
    signal: Option<u8>,
    refused_without_terminal: bool,
}

impl Conversation<'_> {
    /// Holds one conversation and gives its last event.
    async fn hold(
        &mut self,
        stream: std::os::unix::net::UnixStream,
        start: StartRunCommand,
    ) -> Result<Event, Broken> {
        let mut agent = client::agent(client::channel(stream).await?);
        let (commands, outbox) = mpsc::channel(64);
        let say = |command| RunCommand { command: Some(command) };
        commands.try_send(say(Command::Start(start))).expect("a new channel has room");
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ClientError::Runtime)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(ClientError::Runtime)?;
        let mut events = agent.run(ReceiverStream::new(outbox)).await?.into_inner();
        let mut answers: Option<oneshot::Receiver<Decided>> = None;
        loop {
            let number = tokio::select! {
                biased;
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
                decided = answer(&mut answers) => {
                    self.policy.allowed.extend(decided.always);
                    for command in decided.commands {
                        commands.send(say(command)).await.ok();
                    }
                    continue;
                }
                event = events.message() => {
                    let Some(event) = event?.and_then(|event| event.event) else {
                        return Err(ClientError::from(tonic::Status::unavailable("the stream ended")).into());
                    };
                    self.screen.show(&event).map_err(Broken::Stdout)?;
                    match event {
                        Event::Started(started) => self.begun(started),
                        Event::ToolsProposed(proposed) => answers = Some(self.decide(proposed.calls)),
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

    fn begun(&mut self, started: pb::RunStartedEvent) {
        if self.keep_active
            && let Ok(id) = started.session_id.parse::<SessionId>()
        {
            let sessions = Sessions::new(self.home);
            if sessions.active().as_ref() != Some(&id)
                && let Err(error) = sessions.set_active(&id)
            {
                self.screen.say(Talk::Normal, &format!("the session could not be made active: {error}"));
            }
        }
        self.started = Some(started);
    }

    /// Decides on the calls of a turn, asking on the terminal where the policy does not. The asking has
    /// a thread of its own, so that Ctrl-C is heard meanwhile.
    fn decide(&mut self, calls: Vec<ProposedToolCall>) -> oneshot::Receiver<Decided> {
        let (sender, receiver) = oneshot::channel();
        let all_covered = calls.iter().all(|call| self.policy.covers(call));
        let terminal = if all_covered { None } else { Terminal::open() };
        if all_covered || terminal.is_none() {
            let decided = calls.iter().map(|call| {
                if self.policy.covers(call) {
                    return approve(call);
                }
                self.refused_without_terminal |= self.policy.on_deny == OnDeny::End;
                deny(call, "there is no terminal to ask on", self.policy.on_deny)
            });
            sender.send(Decided { commands: decided.collect(), always: Vec::new() }).ok();
            return receiver;
        }
        let (auto, on_deny, palette) = (self.policy.auto, self.policy.on_deny, self.screen.palette());
        let allowed = self.policy.allowed.clone();
        let terminal = terminal.expect("looked at above");
        std::thread::spawn(move || {
            let (mut commands, mut always) = (Vec::new(), Vec::new());
            for call in &calls {
                let named = allowed.contains(&call.name) || always.contains(&call.name);
                let covered = call.caution.is_empty() && (auto || named);
                let answer =
                    if covered { Answer::Yes } else { terminal.ask(call, palette).unwrap_or(Answer::No) };
                commands.push(match answer {
                    Answer::Yes => approve(call),
                    Answer::Always => {
                        always.push(call.name.clone());
                        approve(call)
                    }
                    Answer::No => deny(call, "the user said no", on_deny),
                    Answer::Because(reason) => deny(call, &reason, OnDeny::Continue),
                });
            }
            sender.send(Decided { commands, always }).ok();
        });
        receiver
    }

    fn conclude(&self, ending: &Event) -> Result<ExitCode, CliError> {
        if let Some(number) = self.signal {
            return Ok(ExitCode::from(128 + number));
        }
        match ending {
            Event::Completed(completed) if completed.truncated => {
                Err(CliError::limit("the answer was cut: it reached max_tokens or the end of the window")
                    .hint("raise `max_tokens` of the agent or `context_size`, or ask it to continue"))
            }
            Event::Completed(_) => Ok(ExitCode::SUCCESS),
            Event::Cancelled(cancelled) if cancelled.denied && self.refused_without_terminal => {
                Err(CliError::waiting("a tool needs approval and there is no terminal to ask on").hint(
                    "--allow TOOL approves one tool, --auto-approve all; --on-deny continue goes on without",
                ))
            }
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

fn approve(call: &ProposedToolCall) -> Command {
    Command::ApproveTool(ApproveToolCommand { call_id: call.call_id.clone() })
}

fn deny(call: &ProposedToolCall, reason: &str, then: OnDeny) -> Command {
    Command::DenyTool(DenyToolCommand {
        call_id: call.call_id.clone(),
        reason: reason.to_owned(),
        continue_run: then == OnDeny::Continue,
    })
}

/// The decisions, once they are made; pending for ever while none are asked for.
async fn answer(answers: &mut Option<oneshot::Receiver<Decided>>) -> Decided {
    match answers {
        Some(receiver) => {
            let decided = receiver.await.unwrap_or_default();
            *answers = None;
            decided
        }
        None => std::future::pending().await,
    }
}
