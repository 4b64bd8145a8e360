//! Answers for which the model is not asked.

use crate::{
    conversation::{Content, Conversation},
    plan::{Change, Plan},
    report::change_report,
    sentences::{DECLINED, TOO_LONG},
    tools::{EDIT, Tool, WRITE},
};

/// The longest request that the model answers, in bytes. It is not shown all of a longer one.
const MAX_REQUEST_BYTES: usize = 64 << 10;

/// The most bytes of the arguments of a call.
const MAX_ARGUMENTS: usize = 1 << 20;

/// The answer that needs no model, if there is one.
pub(crate) fn by_rule(conversation: &Conversation<'_>) -> Option<Content> {
    if conversation.forced.is_some() {
        return None;
    }
    let last = conversation.messages.last()?;
    if last.role == "tool" {
        let calls = conversation.messages.iter().rev().find_map(|message| message.tool_calls.first());
        let is_change = calls.is_some_and(|call| [WRITE, EDIT].contains(&call.function.name));
        return is_change.then(|| Content::Text(change_report(&last.content)));
    }
    match Plan::new(conversation.request) {
        Plan::Change(change) => Some(change_call(&change, conversation.tools)),
        Plan::Say(text) => Some(Content::Text(text)),
        Plan::AskModel if conversation.request.len() > MAX_REQUEST_BYTES => {
            Some(Content::Text(TOO_LONG.to_owned()))
        }
        Plan::AskModel => None,
    }
}

/// The call of a change, or the sentence that declines it if no tool can do it.
fn change_call(change: &Change, tools: &[Tool<'_>]) -> Content {
    let text = |text: &str| serde_json::Value::from(text);
    let (name, needed, arguments) = match change {
        Change::Write { path, content, replaces } => {
            let create = if *replaces { "" } else { ", \"create_only\": true" };
            let arguments = format!("{{\"path\": {}, \"content\": {}{create}}}", text(path), text(content));
            (WRITE, &["path", "content"][..], arguments)
        }
        Change::Edit { path, old, new, occurrence } => {
            let nth = occurrence.map(|nth| format!(", \"occurrence\": {nth}")).unwrap_or_default();
            let (path, old, new) = (text(path), text(old), text(new));
            let arguments = format!("{{\"path\": {path}, \"old_str\": {old}, \"new_str\": {new}{nth}}}");
            (EDIT, &["path", "old_str", "new_str"][..], arguments)
        }
    };
    let creates = matches!(change, Change::Write { replaces: false, .. });
    let fits = |tool: &&Tool<'_>| tool.name == name && tool.takes(needed) && (tool.own || !creates);
    match tools.iter().find(fits) {
        None => Content::Text(DECLINED.to_owned()),
        Some(_) if arguments.len() > MAX_ARGUMENTS => Content::Text(TOO_LONG.to_owned()),
        Some(_) => Content::Call { name: name.to_owned(), arguments },
    }
}
