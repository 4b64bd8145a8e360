//! Converts the conversation that a client of OpenAI's APIs sends. Pure.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use kontekst_agent::DaemonTools;
use kontekst_core::{CallId, Image, Message, Role, ToolCall, ToolDef, ToolResult};
use kontekst_tools::{ClientTool, Concurrency};

use super::{super::response::HttpError, content::UserContent};

/// A conversation, split at the last message of the user.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Added to the agent's own system text.
    pub(super) system: Vec<String>,
    pub(super) history: Vec<Message>,
    pub(super) prompt: String,
    /// The images that came with the prompt.
    pub(super) images: Vec<Image>,
    /// The model's calls and their results since the prompt.
    pub(super) after_prompt: Vec<Message>,
    pub(super) tools: OfferedTools,
}

/// The tools that a request lets the model use.
#[derive(Debug, Default)]
pub(super) enum OfferedTools {
    /// The request does not mention tools, so the agent uses its own.
    #[default]
    OfAgent,
    /// These and no others. An empty list means no tools at all.
    OfClient(Vec<ClientTool>),
}

impl OfferedTools {
    /// Reads the `tools` and the `tool_choice` of a request. `into_tool` converts one declaration, and returns `None` for one
    /// that is passed over.
    ///
    /// A request that lists no tools, or that forbids their use, is one without any tool. It must not run the agent's
    /// own, because their calls are approved automatically.
    ///
    /// # Errors
    ///
    /// A declaration is not one.
    pub(super) fn read<T>(
        declared: Option<Vec<T>>,
        choice: Option<&Value>,
        into_tool: impl Fn(T) -> Result<Option<ClientTool>, HttpError>,
    ) -> Result<Self, HttpError> {
        match (choice.is_some_and(|choice| choice == "none"), declared) {
            (true, _) => Ok(Self::OfClient(Vec::new())),
            (false, None) => Ok(Self::OfAgent),
            (false, Some(declared)) => {
                let tools = declared.into_iter().filter_map(|tool| into_tool(tool).transpose());
                Ok(Self::OfClient(tools.collect::<Result<_, _>>()?))
            }
        }
    }

    /// Returns true if the client runs the calls of the model.
    pub(super) fn run_at_client(&self) -> bool {
        matches!(self, Self::OfClient(tools) if !tools.is_empty())
    }

    /// Returns true if the client has a tool of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        matches!(self, Self::OfClient(tools) if tools.iter().any(|tool| tool.def.name == name))
    }

    /// Returns the daemon's tools and the client's tools of the run.
    pub(super) fn split(self) -> (DaemonTools, Vec<ClientTool>) {
        match self {
            Self::OfAgent => (DaemonTools::All, Vec::new()),
            Self::OfClient(tools) => (DaemonTools::Only(Vec::new()), tools),
        }
    }
}

/// Collects messages and checks that each call has a result and each result a call.
#[derive(Default)]
pub(super) struct ConversationBuilder {
    system: Vec<String>,
    messages: Vec<Message>,
    open_calls: Vec<(CallId, String)>,
}

impl ConversationBuilder {
    pub(super) fn system(&mut self, text: String) {
        self.system.push(text);
    }

    pub(super) fn user(&mut self, content: impl Into<UserContent>) -> Result<(), HttpError> {
        self.check_no_open_calls()?;
        let UserContent { text, images } = content.into();
        self.push_text(Role::User, text).images.extend(images);
        Ok(())
    }

    pub(super) fn assistant(&mut self, text: String, calls: Vec<ToolCall>) -> Result<(), HttpError> {
        self.check_no_open_calls()?;
        if !text.is_empty() || self.messages.last().is_none_or(|last| last.role != Role::Assistant) {
            self.push_text(Role::Assistant, text);
        }
        for call in calls {
            self.call(call)?;
        }
        Ok(())
    }

    /// Adds a call to the last answer.
    pub(super) fn call(&mut self, call: ToolCall) -> Result<(), HttpError> {
        if self.messages.iter().flat_map(|message| &message.tool_calls).any(|known| known.id == call.id) {
            return Err(HttpError::bad_request(format!("the tool call id `{}` occurs twice", call.id)));
        }
        if self.messages.last().is_none_or(|last| last.role != Role::Assistant) {
            self.messages.push(Message::text(Role::Assistant, ""));
        }
        self.open_calls.push((call.id.clone(), call.name.clone()));
        self.messages.last_mut().expect("pushed above").tool_calls.push(call);
        Ok(())
    }

    pub(super) fn result(&mut self, id: &str, output: String) -> Result<(), HttpError> {
        let Some(at) = self.open_calls.iter().position(|(open, _)| open.to_string() == id) else {
            return Err(HttpError::bad_request(format!(
                "there is no open tool call `{id}` that this result could answer"
            )));
        };
        let (call_id, name) = self.open_calls.remove(at);
        self.messages.push(Message::result(ToolResult { call_id, name, output, is_error: false }));
        Ok(())
    }

    /// Splits the conversation at the last message of the user.
    ///
    /// # Errors
    ///
    /// There is nothing to answer: there is no message of the user, a call has no result, or the last message is an
    /// answer.
    pub(super) fn finish(mut self, tools: OfferedTools) -> Result<Conversation, HttpError> {
        self.check_no_open_calls()?;
        if self.messages.last().is_some_and(|last| last.role == Role::Assistant) {
            return Err(HttpError::bad_request(
                "the last message must be the user's or a tool's: an answer that was begun cannot be continued, because \
                 the chat template of the model begins a new one",
            ));
        }
        let Some(at) = self.messages.iter().rposition(|message| message.role == Role::User) else {
            return Err(HttpError::bad_request("there must be a message of the user"));
        };
        let after_prompt = self.messages.split_off(at + 1);
        let Message { content: prompt, images, .. } = self.messages.pop().expect("it was found above");
        Ok(Conversation { system: self.system, history: self.messages, prompt, images, after_prompt, tools })
    }

    fn check_no_open_calls(&self) -> Result<(), HttpError> {
        match self.open_calls.first() {
            None => Ok(()),
            Some((id, _)) => Err(HttpError::bad_request(format!("the tool call `{id}` has no result"))),
        }
    }

    /// Adds text. Two messages in a row of one role become one, because chat templates want roles to alternate.
    /// Returns the message that has the text.
    fn push_text(&mut self, role: Role, text: String) -> &mut Message {
        let continues =
            self.messages.last().is_some_and(|last| last.role == role && last.tool_calls.is_empty());
        if !continues {
            self.messages.push(Message::text(role, text));
            return self.messages.last_mut().expect("pushed above");
        }
        let last = self.messages.last_mut().expect("it continues one");
        last.content.push_str("\n\n");
        last.content.push_str(&text);
        last
    }
}

/// The description of a function, the same in both APIs.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Function {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

/// Converts the declaration of a tool. Returns `None` for a type other than a function, such as a search that the server of
/// the model would do: the model is not told of it and so cannot call it.
///
/// # Errors
///
/// A function without a name.
pub(super) fn client_tool(kind: &str, function: Option<Function>) -> Result<Option<ClientTool>, HttpError> {
    match (kind, function) {
        ("function", Some(function)) => Ok(Some(function.into_tool())),
        ("function", None) => Err(HttpError::bad_request("a function has no name").param("tools")),
        _ => Ok(None),
    }
}

impl Function {
    /// Makes a tool that runs at the client. The client sends the result in another request, so the timeout has no effect.
    fn into_tool(self) -> ClientTool {
        let parameters =
            self.parameters.unwrap_or_else(|| serde_json::json!({"type": "object", "properties": {}}));
        let description = self.description.unwrap_or_default();
        let def = ToolDef { name: self.name, description, parameters, ..ToolDef::default() };
        ClientTool { def, timeout: Duration::from_secs(1), concurrency: Concurrency::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall { id: CallId::new(id), name: "f".to_owned(), arguments: "{}".to_owned() }
    }

    #[test]
    fn a_conversation_is_split_at_its_last_prompt() {
        let mut builder = ConversationBuilder::default();
        builder.system("be brief".into());
        builder.user("a".to_owned()).unwrap();
        builder.assistant("b".into(), Vec::new()).unwrap();
        builder.user("c".to_owned()).unwrap();
        builder.assistant(String::new(), vec![call("1"), call("2")]).unwrap();
        builder.result("2", "two".into()).unwrap();
        builder.result("1", "one".into()).unwrap();
        let got = builder.finish(OfferedTools::OfAgent).unwrap();
        assert_eq!((got.history.len(), got.prompt.as_str(), got.after_prompt.len()), (2, "c", 3));
        assert_eq!(got.system, ["be brief"]);
    }

    #[test]
    fn conversations_that_cannot_be_answered_are_refused() {
        let refusal = |build: &dyn Fn(&mut ConversationBuilder) -> Result<(), HttpError>| {
            let mut builder = ConversationBuilder::default();
            build(&mut builder)
                .and_then(|()| builder.finish(OfferedTools::OfAgent).map(drop))
                .unwrap_err()
                .message
        };
        assert!(refusal(&|_| Ok(())).contains("message of the user"));
        assert!(
            refusal(&|b| b.user("a".to_owned()).and_then(|()| b.assistant("b".into(), vec![])))
                .contains("last message")
        );
        assert!(
            refusal(&|b| b.user("a".to_owned()).and_then(|()| b.assistant("b".into(), vec![call("1")])))
                .contains("no result")
        );
        assert!(
            refusal(&|b| b.user("a".to_owned()).and_then(|()| b.result("1", "x".into()))).contains("no open")
        );
        let twice = refusal(&|b| {
            b.user("a".to_owned())?;
            b.assistant(String::new(), vec![call("1"), call("1")])
        });
        assert!(twice.contains("twice"));
    }
}
