//! Answers one request with the starter model.

use std::{ops::ControlFlow, path::Path};

use kontekst_engine::{
    Constraint, DecodeError, Engine, EngineError, FinishReason, GenerateRequest, Limits, Prompt, Sampling,
    chat::Message,
    gguf::Header,
    grammar::Grammar,
    template::{InThisProcess, Segment, Template, TemplateSource},
};

use crate::{
    MODEL,
    by_rule::by_rule,
    byte_rules::RuleConstraint,
    call::{self, CallRules},
    conversation::{Answer, AnswerError, Content, Conversation, Event},
    copy::CopyRules,
    plan::{self, ONE_THING, UNCLEAR},
    report::{FAILED, ReportRules},
    search::{self, likeliest_answer},
    sentences::{DECLINED, TOO_LONG},
};

/// `general.name` in the model's file.
const NAME: &str = "kontekst";

/// The most tokens of an answer, which are bytes: twice what the model has to say. A copy that runs in circles ends
/// there.
const MAX_ANSWER_TOKENS: u32 = 1024;

/// The most candidates for an answer. Most answers take one, and calls get no better after the fourth; with twelve, none
/// of the requests in the examination was left without an answer.
const MAX_CANDIDATES: usize = 12;

/// An open starter model.
pub struct Starter {
    engine: Engine,
    template: Template,
}

impl Starter {
    /// Opens the model that is part of the program.
    ///
    /// # Errors
    ///
    /// [`EngineError`] if there is not enough memory, or the program was built with a broken file.
    pub fn built_in(limits: Limits) -> Result<Self, EngineError> {
        Engine::from_bytes(MODEL, limits).map(Self::of)
    }

    /// Opens a file that holds such a model, as the training writes it.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`].
    pub fn open(file: &Path, limits: Limits) -> Result<Self, EngineError> {
        Engine::open(file, limits).map(Self::of)
    }

    /// Returns true if a model that was opened as any other is a starter model. It must have the same chat template,
    /// which is run in this process: that of a stranger could end the process.
    pub fn recognizes(engine: &Engine) -> bool {
        let own = || Header::read(MODEL, MODEL.len() as u64).expect("it is a model");
        engine.info().name.as_deref() == Some(NAME)
            && engine.info().chat_template.as_deref() == own().string("tokenizer.chat_template")
    }

    /// Uses an open model as a starter model.
    pub fn of(engine: Engine) -> Self {
        let template = Template::new(TemplateSource::of(&engine), &InThisProcess);
        Self { template: template.expect("its template is part of the program"), engine }
    }

    /// The size of the context window, in tokens.
    pub fn context_size(&self) -> u32 {
        self.engine.info().context_size
    }

    /// Answers a request. `stop` is called often and cancels the answer when it returns true.
    ///
    /// # Errors
    ///
    /// [`AnswerError`].
    pub fn answer(
        &self,
        conversation: &Conversation<'_>,
        stop: &dyn Fn() -> bool,
        sink: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Answer, AnswerError> {
        if let Some(content) = by_rule(conversation) {
            return said(Answer::of_rules(content), sink);
        }
        let rendered = self.template.render(conversation.messages, &[], &InThisProcess);
        let mut rendered = rendered.map_err(|error| AnswerError::Template(error.to_string()))?.text;
        if let Some(tool) = conversation.forced {
            rendered.push_str(&call::opening(tool.name));
        }
        let tokens = self.template.tokenize(self.engine.vocabulary(), &rendered);
        let (prompt, window) = (to_u32(tokens.len()), self.context_size());
        if prompt >= window {
            return Err(AnswerError::Overflow { prompt, window });
        }
        let cached = self.engine.cached_tokens(conversation.session, &tokens).min(tokens.len() - 1);
        let task = Task {
            engine: &self.engine,
            prompt: Prompt { tokens: &tokens, session: Some(conversation.session) },
            max_tokens: conversation.max_tokens.min(window - prompt).clamp(1, MAX_ANSWER_TOKENS),
            cached: to_u32(cached),
            stop,
        };
        let answer = match (conversation.forced, self.report(conversation.messages, &rendered)) {
            (Some(tool), _) => {
                let mut answer = task.write(&mut Grammar::object(tool.parameters), sink)?;
                if let Content::Text(arguments) = answer.content {
                    answer.content = Content::Call { name: tool.name.to_owned(), arguments };
                }
                answer
            }
            (None, Some(report)) => task.write(&mut RuleConstraint::new(report), sink)?,
            (None, None) => {
                let rules = CallRules::new(conversation.tools, CopyRules::new(conversation.request));
                return said(task.search(rules, sink)?, sink);
            }
        };
        Ok(answer)
    }

    /// The rules for what the model says about the result of a call, if a result came last.
    fn report(&self, messages: &[Message<'_>], rendered: &str) -> Option<ReportRules> {
        messages.last().filter(|last| last.role == "tool")?;
        let call = messages.iter().rev().find_map(|message| message.tool_calls.first())?;
        let segments = self.template.segments(rendered);
        let shown = segments.iter().rev().find_map(|segment| match segment {
            Segment::Text(text) => Some(text),
            Segment::Control(_) => None,
        })?;
        Some(ReportRules::new(shown, &call.function.arguments))
    }
}

/// A prompt and how it is continued.
struct Task<'a> {
    engine: &'a Engine,
    prompt: Prompt<'a>,
    max_tokens: u32,
    /// Tokens of the prompt that are in the session's cache.
    cached: u32,
    stop: &'a dyn Fn() -> bool,
}

impl Task<'_> {
    /// Writes an answer of the likeliest tokens that `constraint` allows.
    fn write(
        &self,
        constraint: &mut dyn Constraint,
        sink: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Answer, DecodeError> {
        let request = GenerateRequest {
            prompt: self.prompt,
            sampling: Sampling::greedy(),
            max_tokens: self.max_tokens,
            seed: None,
            speculation: false,
        };
        let mut text = String::new();
        let generation =
            self.engine.generate(&request, Some(constraint), self.stop, &mut |event| match event {
                kontekst_engine::Event::Prefill(progress) => {
                    sink(Event::Prefill { progress, cached: self.cached })
                }
                kontekst_engine::Event::Text(more) => {
                    text.push_str(more);
                    sink(Event::Text(more))
                }
                kontekst_engine::Event::Control(_) => ControlFlow::Continue(()),
            })?;
        Ok(Answer {
            content: Content::Text(text),
            finish: generation.finish,
            prompt_tokens: generation.prompt_tokens,
            cached_tokens: generation.cached_tokens,
            completion_tokens: generation.completion_tokens,
        })
    }

    /// Finds the likeliest answer that the rules for calls allow.
    fn search(
        &self,
        rules: CallRules,
        sink: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Answer, DecodeError> {
        let mut constraint = RuleConstraint::new(rules);
        let limits = search::Limits { candidates: MAX_CANDIDATES, tokens: self.max_tokens as usize };
        let on_progress = &mut |progress| sink(Event::Prefill { progress, cached: self.cached });
        self.engine.decode(self.prompt, self.stop, on_progress, |decoder| {
            let found = likeliest_answer(decoder, &mut constraint, limits)?;
            let tokens = found.as_ref().map_or(&[][..], |found| &found.tokens);
            let bytes: Vec<u8> =
                tokens.iter().flat_map(|&id| decoder.vocabulary().bytes(id)).copied().collect();
            Ok(Answer {
                content: content(&String::from_utf8_lossy(&bytes)),
                finish: match found.as_ref().map(|found| found.finish) {
                    Some(FinishReason::Length) => FinishReason::Length,
                    _ => FinishReason::EndOfAnswer,
                },
                prompt_tokens: to_u32(decoder.prompt_tokens()),
                cached_tokens: to_u32(decoder.cached_tokens()),
                completion_tokens: to_u32(tokens.len()),
            })
        })
    }
}

/// Passes on the text of an answer that was made as a whole, unless it declines the request or says that a change failed.
fn said(answer: Answer, sink: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>) -> Result<Answer, AnswerError> {
    if let Content::Text(text) = &answer.content {
        let refusals = [DECLINED, TOO_LONG, UNCLEAR, ONE_THING, plan::NAME];
        if refusals.contains(&text.as_str()) || text.starts_with(FAILED) {
            return Err(AnswerError::Declined(text.clone()));
        }
        if sink(Event::Text(text)).is_break() {
            return Err(DecodeError::SinkClosed.into());
        }
    }
    Ok(answer)
}

/// The answer of a text that the rules for calls allowed. If they led nowhere, the request is declined.
fn content(text: &str) -> Content {
    match call::call(text) {
        Some(call) => Content::Call { name: call.name.to_owned(), arguments: call.arguments.to_owned() },
        None if text.starts_with(call::TAG) => Content::Text(UNCLEAR.to_owned()),
        None if text.is_empty() => Content::Text(DECLINED.to_owned()),
        None => Content::Text(text.to_owned()),
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
