//! An open model: its template, its tokens, and one answer at a time.

use std::{
    ops::ControlFlow,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    answer::Answer,
    bytewise::Bytewise,
    call::Call,
    grammar::Grammar,
    grounds::Grounds,
    report::Report,
    template::{Conversation, Guard, Piece, Rendered, Source, Template},
};
use crate::{
    core::{Cancel, Message, Role, Sampling},
    engine::{Constraint, End, Engine, EngineError, Job, Limits},
    provider::{
        ChatRequest, Delta, FinishReason, Progress, ProviderError, ToolRole, Turn, Usage,
        chat::{CALL_LIMIT, prompted},
        slots::{SlotError, Slots},
    },
};

/// Conversations without a name of their own share one cache: it is right as far as they begin alike.
const NAMELESS: &str = "";

/// Bytes of what was read of conversations that one model keeps.
const KEPT: usize = 512 << 20;

/// Tokens of one answer of a model that knows its tools by heart, which are bytes: twice what it has to say at most.
/// A copy that runs in circles ends there.
const BY_HEART_REPLY: u32 = 1024;

/// Answers to a request that such a model looks at. Most take one, and calls get no better behind the fourth; with
/// twelve, none of the examined requests was left without an answer.
const TRIES: usize = 12;

/// A model that is loaded, until its memory is wanted back.
pub struct Model {
    name: String,
    template: Template,
    window: u32,
    /// `None` once it was given up.
    engine: Mutex<Option<Arc<Engine>>>,
    slots: Slots,
    used: Mutex<Instant>,
    /// Given when it is given up.
    gone: Cancel,
}

impl Model {
    /// Loads a file. Takes as long as reading it.
    ///
    /// # Errors
    ///
    /// As for [`Engine::open`].
    pub fn open(file: &Path, context: u32) -> Result<Self, EngineError> {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Engine::open(file, limits(context)).map(|engine| Self::new(name, engine))
    }

    /// Loads a model that is part of the program.
    ///
    /// # Errors
    ///
    /// As for [`Engine::from_bytes`].
    pub fn from_bytes(name: &str, bytes: &'static [u8], context: u32) -> Result<Self, EngineError> {
        Engine::from_bytes(bytes, limits(context)).map(|engine| Self::new(name.to_owned(), engine))
    }

    fn new(name: String, engine: Engine) -> Self {
        let tokens = engine.tokens();
        let ids = 0..u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let text = |id: Option<u32>| id.map_or_else(String::new, |id| tokens.text(id).into_owned());
        // Some files call the token that ends an answer a part of the text.
        let steers = |id: &u32| tokens.is_control(*id) || tokens.ends(*id);
        let control = ids.filter(steers).map(|id| tokens.text(id).into_owned());
        let template = Template::new(Source {
            template: engine.facts().template.clone(),
            bos: text(tokens.bos()),
            eos: text(tokens.eos()),
            control: control.filter(|text| tokens.id(text).is_some()).collect(),
        });
        Self {
            name,
            template,
            window: engine.facts().context,
            engine: Mutex::new(Some(Arc::new(engine))),
            slots: Slots::new(1),
            used: Mutex::new(Instant::now()),
            gone: Cancel::new(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tokens that it can see.
    pub fn window(&self) -> u32 {
        self.window
    }

    pub fn template(&self) -> &Template {
        &self.template
    }

    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Somebody is about to use it.
    pub fn touch(&self) {
        *self.used() = Instant::now();
    }

    /// For how long nobody has used it; zero while somebody does.
    pub fn idle_for(&self) -> Duration {
        self.used().elapsed().min(self.slots.idle_time())
    }

    /// Lets nobody in any more and gives its memory back, as soon as who is in there is out.
    pub fn give_up(&self) {
        self.slots.close();
        self.lock().take();
        self.gone.cancel();
    }

    /// Given when it is given up.
    pub fn gone(&self) -> &Cancel {
        &self.gone
    }

    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Engine>>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn engine(&self) -> Option<Arc<Engine>> {
        self.lock().clone()
    }

    /// See [`crate::provider::Provider::generate`].
    pub fn generate(
        &self,
        request: &ChatRequest,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError> {
        let waiting = &mut |place| sink(Delta::Progress(Progress::Queued { position: place }));
        let _permit =
            self.slots.acquire(request.session.as_ref(), cancel, waiting).map_err(|why| match why {
                SlotError::Cancelled => ProviderError::Cancelled,
                SlotError::Closed => given_up(),
            })?;
        let engine = self.engine().ok_or_else(given_up)?;
        let forced = request.forced_tool();
        let mut rendered = self.render(request)?;
        if let Some(tool) = forced {
            // Its trained form up to where the arguments begin, so that it is led to what it knows.
            rendered.text.push_str(if rendered.thinking { "</think>\n\n" } else { "" });
            rendered.text.push_str(&prompted::call_prefix(&tool.name));
        }
        let prompt = tokens(&engine, self.template.guard(), &rendered.text);
        let length = count(prompt.len());
        if length >= self.window {
            return Err(ProviderError::Overflow { prompt_tokens: length, window: self.window });
        }
        let session = request.session.as_ref().map_or_else(|| NAMELESS.to_owned(), ToString::to_string);
        let cached = count(engine.cached(&session, &prompt).min(prompt.len() - 1));
        let mut job = Job {
            sampling: self.sampling(request, self.window - length),
            session: Some(session),
            prompt,
            ..Job::default()
        };
        let traits = self.template.traits();
        let (mut answer, mut constraint): (_, Option<Box<dyn Constraint>>) = match forced {
            // A forced answer is arguments and nothing else.
            Some(tool) => (Answer::new(&[], false), Some(Box::new(Grammar::object(&tool.parameters)))),
            None if traits.by_heart() => match self.report(request, &rendered) {
                Some(report) => (Answer::new(&[], false), Some(Box::new(Bytewise::new(report)))),
                None => {
                    job.tries = TRIES;
                    let call = Call::new(&request.tools, self.grounds(request));
                    (Answer::by_heart(&request.tools), Some(Box::new(Bytewise::new(call))))
                }
            },
            None => (Answer::new(&request.tools, rendered.thinking), None),
        };
        let constraint = constraint.as_mut().map(|constraint| &mut **constraint as &mut dyn Constraint);
        let done = engine.generate(&job, cancel, constraint, &mut |piece| {
            let fine = match piece {
                crate::engine::Piece::Read { read, of } => {
                    sink(Delta::Progress(Progress::Prefill { processed: read, total: of, cached }));
                    true
                }
                crate::engine::Piece::Text(text) => answer.push(text, sink),
                crate::engine::Piece::Control(id) => answer.push(&engine.tokens().text(id), sink),
            };
            if fine { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        self.touch();
        let done = done.map_err(|error| failed(&error))?;
        let finish = finish(done.end)?;
        let usage = Usage { prompt: done.prompt, completion: done.completion, cached: done.cached };
        let turn = answer.into_turn(finish, usage, sink);
        Ok(match forced {
            Some(tool) => prompted::into_forced_call(&tool.name, turn),
            None => turn,
        })
    }

    fn render(&self, request: &ChatRequest) -> Result<Rendered, ProviderError> {
        let conversation = Conversation {
            system: &request.system,
            messages: &request.messages,
            tools: &request.tools,
            tool_role: request.tool_role,
        };
        self.template.render(conversation).map_err(|error| {
            ProviderError::Engine(format!("the model's chat template refuses this: {error}"))
        })
    }

    /// Where a model copies from that is shown the last request and nothing else.
    fn grounds(&self, request: &ChatRequest) -> Option<Grounds> {
        let last = request.messages.iter().rfind(|message| message.role == Role::User)?;
        if self.template.traits().history { None } else { Grounds::new(&last.content) }
    }

    /// What a model has to say that sees the last request, one call and its result, once it sees that.
    fn report(&self, request: &ChatRequest, rendered: &Rendered) -> Option<Report> {
        request
            .messages
            .last()
            .filter(|last| last.tool_result.is_some() && !self.template.traits().history)?;
        let call = request.messages.iter().rev().find_map(|message| message.tool_calls.first())?;
        let pieces = self.template.guard().pieces(&rendered.text);
        let shown = pieces.iter().rev().find_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Control(_) => None,
        })?;
        Some(Report::new(shown, &call.arguments))
    }

    /// What chooses the tokens. A model that knows its tools by heart copies names and texts letter by letter:
    /// nothing but its likeliest word is right.
    fn sampling(&self, request: &ChatRequest, room: u32) -> Sampling {
        let max_tokens = Some(request.max_tokens.min(room).max(1));
        if self.template.traits().by_heart() {
            let max_tokens = max_tokens.map(|most| most.min(BY_HEART_REPLY));
            Sampling { temperature: Some(0.0), max_tokens, ..Sampling::default() }
        } else {
            Sampling { max_tokens, ..request.sampling.clone() }
        }
    }

    /// Tokens of each text, as this model is shown it; `None` once it was given up.
    pub fn count(&self, texts: &[&str]) -> Option<Vec<u32>> {
        let engine = self.engine()?;
        let plain = |text: &str| count(engine.tokens().encode(text, false).len());
        if !self.template.traits().by_heart() {
            return Some(texts.iter().map(|text| plain(text)).collect());
        }
        // Its template may shorten what it is given, each speaker's words in its own way.
        let whole = |messages: &[Message]| self.rendered_tokens(&engine, messages);
        let shown = |text: &str| {
            let alone = whole(&[Message::text(Role::User, text)])? - whole(&[Message::text(Role::User, "")])?;
            let result = whole(&called(text))? - whole(&called(""))?;
            u32::try_from(alone.max(result)).ok()
        };
        Some(texts.iter().map(|text| shown(text).unwrap_or_else(|| plain(text))).collect())
    }

    /// Tokens that stand around the texts of so many messages.
    pub fn overhead(&self, messages: usize) -> Option<u32> {
        let engine = self.engine()?;
        let (user, assistant) = (Message::text(Role::User, "a"), Message::text(Role::Assistant, "a"));
        let one = self.rendered_tokens(&engine, std::slice::from_ref(&user))?;
        let three = self.rendered_tokens(&engine, &[user.clone(), assistant, user])?;
        let each = ((three - one) / 2 - 1).max(0);
        let fixed = (one - 1 - each).max(0);
        u32::try_from(fixed + each * i64::try_from(messages).ok()?).ok()
    }

    fn rendered_tokens(&self, engine: &Engine, messages: &[Message]) -> Option<i64> {
        let conversation = Conversation { system: "", messages, tools: &[], tool_role: ToolRole::Auto };
        let rendered = self.template.render(conversation).ok()?;
        i64::try_from(tokens(engine, self.template.guard(), &rendered.text).len()).ok()
    }
}

fn limits(context: u32) -> Limits {
    Limits { context, kept: KEPT, ..Limits::default() }
}

/// A call and what it gave.
fn called(output: &str) -> [Message; 3] {
    use crate::core::{CallId, ToolCall, ToolResult};
    let id = CallId::new("a1b2c3d4e");
    let call = ToolCall { id: id.clone(), name: "a".to_owned(), arguments: "{}".to_owned() };
    let result = ToolResult { call_id: id, name: "a".to_owned(), output: output.to_owned(), is_error: false };
    [
        Message::text(Role::User, "a"),
        Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") },
        Message::result(result),
    ]
}

/// A rendered prompt as tokens: those that steer the model where the template wrote them, and nowhere else.
fn tokens(engine: &Engine, guard: &Guard, rendered: &str) -> Vec<u32> {
    let known = engine.tokens();
    let mut tokens = known.prompt(""); // the token that starts a text, where the model wants one
    let start = tokens.first().copied();
    for piece in guard.pieces(rendered) {
        match piece {
            Piece::Control(name) => tokens.extend(known.id(name)),
            Piece::Text(text) => tokens.extend(known.encode(&text, false)),
        }
    }
    if start.is_some() && tokens.get(1) == start.as_ref() {
        tokens.remove(0);
    }
    tokens
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// What an answer's end means.
fn finish(end: End) -> Result<FinishReason, ProviderError> {
    match end {
        End::Stop | End::Complete => Ok(FinishReason::Stop),
        End::Length => Ok(FinishReason::Length),
        End::Cancelled => Err(ProviderError::Cancelled),
        End::Sink => Err(ProviderError::Engine(format!("more than {CALL_LIMIT} tool calls in one answer"))),
        End::Stuck => Err(ProviderError::Engine(
            "the model's answer led nowhere: it fits neither the tool nor what was asked; say it in other words, or \
             ask a larger model (`kontekst models`)"
                .to_owned(),
        )),
    }
}

fn given_up() -> ProviderError {
    ProviderError::Unreachable {
        endpoint: "the built-in engine".to_owned(),
        started: false,
        source: std::io::Error::new(std::io::ErrorKind::NotConnected, "its model was unloaded"),
    }
}

fn failed(error: &EngineError) -> ProviderError {
    match error {
        EngineError::TooLong { prompt, context } => {
            ProviderError::Overflow { prompt_tokens: *prompt, window: *context }
        }
        other => ProviderError::Engine(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_leads_nowhere_is_not_taken_for_a_long_one() {
        let error = finish(End::Stuck).unwrap_err().to_string();
        assert!(error.contains("led nowhere") && error.contains("kontekst models"), "{error}");
        assert!(matches!(finish(End::Length), Ok(FinishReason::Length)));
        assert!(matches!(finish(End::Cancelled), Err(ProviderError::Cancelled)));
    }
}
