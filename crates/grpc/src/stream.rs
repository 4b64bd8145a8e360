//! One `Run` stream: commands in, events out, one run at a time.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use tokio_stream::Stream;
use tonic::{Status, Streaming};

use kontekst_agent::{AgentCore, Run, protocol::Event};
use kontekst_core::RunId;
use kontekst_pb::{RunCommand, RunEvent, run_command};

use super::{convert, own_decisions::OwnDecisions};

/// The maximum number of messages that are converted before the first of them is sent. They hold at most half a megabyte of
/// text, which no longer counts as unread by the run.
const BATCH: usize = 8;

/// The response stream of `Run`. It also reads the commands, so that a token passes through no task but the
/// connection's own.
pub struct RunStream {
    core: AgentCore,
    /// The commands of the client, or `None` once it has closed its side.
    commands: Option<Streaming<RunCommand>>,
    run: Option<Run>,
    /// The id of the run that has started on this stream. A stream has at most one.
    started_run: Option<RunId>,
    own_decisions: OwnDecisions,
    /// Messages that are ready to be sent.
    ready: VecDeque<RunEvent>,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl RunStream {
    pub(super) fn new(core: AgentCore, commands: Streaming<RunCommand>) -> Self {
        let stopped = {
            let core = core.clone();
            Box::pin(async move { core.stopped().await })
        };
        Self {
            core,
            commands: Some(commands),
            run: None,
            started_run: None,
            own_decisions: OwnDecisions::default(),
            ready: VecDeque::new(),
            stopped,
        }
    }

    fn handle_command(&mut self, command: RunCommand) {
        match command.command {
            None => {}
            Some(run_command::Command::Start(start)) => {
                if self.started_run.is_some() || self.run.is_some() {
                    self.ready.push_back(convert::refused(convert::already_started()));
                    return;
                }
                match convert::start_run(start) {
                    Ok(request) => {
                        let mut run = self.core.start(request);
                        if self.commands.is_none() {
                            run.close_commands();
                        }
                        self.run = Some(run);
                    }
                    Err(error) => self.ready.push_back(convert::refused(error)),
                }
            }
            Some(run_command::Command::Cancel(_)) => {
                if let Some(run) = &self.run {
                    run.cancel();
                }
            }
            Some(other) => {
                if let (Some(run), Some(command)) = (&self.run, convert::command(other)) {
                    self.own_decisions.add(&command);
                    run.send(command);
                }
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        if let Event::Started { run, .. } = &event {
            self.started_run = Some(run.clone());
        }
        if matches!(event, Event::Ended(_)) {
            self.run = None;
        }
        // A client that has closed its side knows that every call is denied.
        if self.own_decisions.cover(&event)
            || (self.commands.is_none() && matches!(event, Event::ToolDecided { .. }))
        {
            return;
        }
        convert::event(event, self.started_run.as_ref(), &mut self.ready);
    }
}

impl Stream for RunStream {
    type Item = Result<RunEvent, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(commands) = &mut this.commands {
                match Pin::new(commands).poll_next(cx) {
                    Poll::Ready(Some(Ok(command))) => {
                        this.handle_command(command);
                        continue;
                    }
                    Poll::Ready(Some(Err(status))) => {
                        // The connection broke, or a message could not be read, so no client controls the run.
                        this.run = None;
                        return Poll::Ready(Some(Err(status)));
                    }
                    Poll::Ready(None) => {
                        this.commands = None;
                        if let Some(run) = &mut this.run {
                            run.close_commands();
                        }
                        continue;
                    }
                    Poll::Pending => {}
                }
            }
            // Takes all events that are ready, so that adjacent text deltas become one message.
            let mut pending = false;
            while this.ready.len() < BATCH
                && let Some(run) = &mut this.run
            {
                match run.poll_event(cx) {
                    Poll::Ready(Some(event)) => this.handle_event(event),
                    Poll::Ready(None) => this.run = None,
                    Poll::Pending => {
                        pending = true;
                        break;
                    }
                }
            }
            if !this.ready.is_empty() {
                continue;
            }
            if pending {
                return Poll::Pending;
            }
            // Without a run, the stream ends when the client has closed its side or the daemon stops.
            let has_ended = this.commands.is_none() || this.stopped.as_mut().poll(cx).is_ready();
            return if has_ended { Poll::Ready(None) } else { Poll::Pending };
        }
    }
}
