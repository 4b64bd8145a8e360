//! A provider that answers what the test tells it to.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, mpsc},
};

use kontekst_core::{AnswerFormat, AnswerOption, CallId, Cancel, ModelIdentity, ToolCall};
use kontekst_provider::{
    Capabilities, ChatRequest, Delta, FinishReason, ModelSelector, Models, Progress, Provider, ProviderError,
    ServerStatus, ToolRole, Turn, Usage,
};
use serde_json::Value;

/// The behaviour of the model for one request.
pub(crate) enum Step {
    Say(&'static str),
    /// The same in pieces of 4 KiB. The text must be ASCII.
    SayInBlocks(&'static str),
    /// Reasoning, then the answer.
    Think(&'static str, &'static str),
    /// Reasoning in pieces, without end: until it is cancelled.
    ThinkForEver,
    /// This text again and again, as text or as a call that is never complete: until it is cancelled.
    RepeatForEver(fn(String) -> Delta, &'static str),
    Call(Vec<(&'static str, Value)>),
    /// A call with exactly these arguments.
    RawCall(&'static str, &'static str),
    /// The same with this id, which comes first.
    CallWithId(&'static str, &'static str, &'static str),
    /// Sends this text and then nothing until it is cancelled.
    Hang(&'static str),
    /// Sends this text, which is cut at `max_tokens`.
    StopAtMaxTokens(&'static str),
    /// Sends this text, by a server that has left this many tokens of the prompt out.
    SayWithCutPrompt(&'static str, u32),
    Fail(ProviderError),
    /// Sends this text, then the server is unreachable.
    Disconnect(&'static str),
    /// Chooses the step by the beginning of the first message.
    ByPrompt(Vec<(&'static str, Step)>),
}

/// The script, shared by all providers that are opened from it.
#[derive(Clone)]
pub(crate) struct ScriptedProvider {
    state: Arc<Mutex<State>>,
    /// Held during each answer if the model has one slot only.
    slot: Option<Arc<Mutex<()>>>,
    identity: Option<ModelIdentity>,
}

struct State {
    steps: VecDeque<Step>,
    requests: Vec<ChatRequest>,
    open_count: u32,
    /// The models that were requested.
    requested_models: Vec<String>,
    names: Vec<String>,
    notice: Option<String>,
    remote_server: Option<String>,
    /// The answer of the model about the kind of its work. `None` if it cannot answer in a format.
    kind: Option<&'static str>,
}

impl ScriptedProvider {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().collect();
        Self {
            state: Arc::new(Mutex::new(State {
                steps,
                requests: Vec::new(),
                open_count: 0,
                requested_models: Vec::new(),
                names: Vec::new(),
                notice: None,
                remote_server: None,
                kind: None,
            })),
            slot: None,
            identity: None,
        }
    }

    /// Returns a provider that answers one request at a time.
    pub(crate) fn with_one_slot(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { slot: Some(Arc::default()), ..Self::new(steps) }
    }

    /// Says which model it is.
    pub(crate) fn with_identity(self, identity: ModelIdentity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<ChatRequest> {
        self.state.lock().unwrap().requests.clone()
    }

    /// Sets the names of the available models.
    pub(crate) fn set_model_names(&self, names: &[&str]) {
        self.state.lock().unwrap().names = names.iter().map(|&name| name.to_owned()).collect();
    }

    /// Sets what the provider says about its model.
    pub(crate) fn set_notice(&self, notice: Option<&str>) {
        self.state.lock().unwrap().notice = notice.map(str::to_owned);
    }

    /// Sets the machine on which the model is.
    pub(crate) fn set_remote_server(&self, address: &str) {
        self.state.lock().unwrap().remote_server = Some(address.to_owned());
    }

    /// Sets what the model says about the kind of its work, which takes no step of the script.
    pub(crate) fn set_kind(&self, kind: Option<&'static str>) {
        self.state.lock().unwrap().kind = kind;
    }

    /// Returns the models that were requested so far.
    pub(crate) fn requested_models(&self) -> Vec<String> {
        self.state.lock().unwrap().requested_models.clone()
    }

    /// Returns how often a provider was opened.
    pub(crate) fn open_count(&self) -> u32 {
        self.state.lock().unwrap().open_count
    }
}

impl Models for ScriptedProvider {
    fn open(
        &self,
        wanted: ModelSelector<'_>,
        _: &Cancel,
        _: &mut dyn FnMut(Progress),
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        let mut state = self.state.lock().unwrap();
        state.open_count += 1;
        state.requested_models.push(wanted.model.to_owned());
        Ok(Arc::new(self.clone()))
    }

    fn names(&self) -> Vec<String> {
        self.state.lock().unwrap().names.clone()
    }

    fn status(&self) -> ServerStatus {
        ServerStatus::default()
    }

    fn stop(&self) {}
}

impl Provider for ScriptedProvider {
    fn works_in_steps(&self, tool_role: ToolRole) -> bool {
        tool_role == ToolRole::Steps
    }

    fn capabilities(&self) -> Capabilities {
        let state = self.state.lock().unwrap();
        Capabilities {
            identity: self.identity.clone(),
            slots: 1,
            options: state.kind.map(|_| AnswerOption::Format).into_iter().collect(),
            thinking_switch: true,
            remote_server: state.remote_server.clone(),
            notice: state.notice.clone(),
            ..Capabilities::default()
        }
    }

    fn generate(
        &self,
        request: &ChatRequest,
        cancel: &Cancel,
        sink: &mut dyn FnMut(Delta),
    ) -> Result<Turn, ProviderError> {
        let _slot = self.slot.as_ref().map(|slot| slot.lock().unwrap());
        let step = {
            let mut state = self.state.lock().unwrap();
            state.requests.push(request.clone());
            if let (Some(kind), AnswerFormat::JsonSchema(_)) = (state.kind, &request.options.format) {
                let content = format!("{{\"kind\": \"{kind}\"}}");
                return Ok(Turn { content, ..Turn::default() });
            }
            state.steps.pop_front().expect("the script has a step for each request")
        };
        let mut send_text = |text: &str| sink(Delta::Text(text.to_owned()));
        let mut turn = Turn {
            usage: Some(Usage { prompt: prompt_tokens(request), completion: 7, cached: 0 }),
            ..Turn::default()
        };
        let step = match step {
            Step::ByPrompt(steps) => {
                let begins = |prompt: &str| request.messages[0].content.starts_with(prompt);
                steps.into_iter().find(|(prompt, _)| begins(prompt)).expect("a step for each prompt").1
            }
            step => step,
        };
        match step {
            Step::ByPrompt(_) => unreachable!("taken apart above"),
            Step::Say(text) => {
                text.split_inclusive(' ').for_each(&mut send_text);
                turn.content = text.to_owned();
            }
            Step::SayInBlocks(text) => {
                for start in (0..text.len()).step_by(4096) {
                    send_text(&text[start..text.len().min(start + 4096)]);
                }
                turn.content = text.to_owned();
            }
            Step::Think(thought, text) => {
                send_text(text);
                sink(Delta::Reasoning(thought.to_owned()));
                turn.content = text.to_owned();
                turn.reasoning = thought.to_owned();
            }
            Step::ThinkForEver => {
                while !cancel.is_cancelled() {
                    sink(Delta::Reasoning("hm, ".to_owned()));
                }
                return Err(ProviderError::Cancelled);
            }
            Step::RepeatForEver(delta, text) => {
                while !cancel.is_cancelled() {
                    sink(delta(text.to_owned()));
                }
                return Err(ProviderError::Cancelled);
            }
            Step::Call(calls) => {
                turn.calls = calls.iter().map(|(name, args)| call(name, &args.to_string())).collect();
            }
            Step::RawCall(name, args) => turn.calls = vec![call(name, args)],
            Step::CallWithId(id, name, args) => {
                turn.calls = vec![ToolCall { id: CallId::new(id), ..call(name, args) }];
            }
            Step::Hang(text) => {
                send_text(text);
                let (tx, rx) = mpsc::channel();
                let _hook = cancel.on_cancel(move || {
                    tx.send(()).ok();
                });
                rx.recv().ok();
                return Err(ProviderError::Cancelled);
            }
            Step::StopAtMaxTokens(text) => {
                send_text(text);
                turn.content = text.to_owned();
                turn.finish_reason = FinishReason::Length;
            }
            Step::SayWithCutPrompt(text, tokens) => {
                send_text(text);
                turn.content = text.to_owned();
                turn.truncated_tokens = Some(tokens);
            }
            Step::Fail(error) => return Err(error),
            Step::Disconnect(text) => {
                send_text(text);
                return Err(unreachable_error(true));
            }
        }
        Ok(turn)
    }

    fn count_tokens(&self, texts: &[&str], _: &Cancel) -> Vec<u32> {
        texts.iter().map(|text| u32::try_from(text.len().div_ceil(4)).unwrap()).collect()
    }
}

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: CallId::local(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn prompt_tokens(request: &ChatRequest) -> u32 {
    let messages: u32 = request.messages.iter().map(|message| message.tokens).sum();
    messages + u32::try_from(request.system.len() / 4).unwrap()
}

/// Returns the error of an unreachable server. `started` says whether part of an answer had come.
pub(crate) fn unreachable_error(started: bool) -> ProviderError {
    ProviderError::Unreachable {
        endpoint: "http://127.0.0.1:1".to_owned(),
        started,
        source: io::ErrorKind::ConnectionRefused.into(),
    }
}
