//! Made-up conversations to learn from: a request, the call it means, the tool's result, the report of it.
//!
//! Every conversation is drawn from a grammar of phrasings and from names that are made on the spot, so
//! that what can be learnt is how to copy and not what to remember. The same seed gives the same bytes.

mod answers;
mod call;
mod contents;
mod draw;
mod encode;
mod grammar;
mod requests;
mod results;
mod shorten;

pub use answers::{ABILITIES, DECLINED, TOO_LONG, report};
pub use call::Call;
pub use draw::Draw;
pub use encode::{ASSISTANT, END, Encoded, TOOL, USER, encode, prompt};
pub use shorten::{shortened_result, shown_request};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
    Tool,
}

/// The messages from the last one of the user's on, in full: [`encode`] shortens what is long.
pub type Conversation = Vec<(Role, String)>;

/// A conversation, and what it was made of.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The subject of the conversation, such as `read` or `read: failed`.
    pub kind: &'static str,
    pub conversation: Conversation,
    /// The meaning of the first message. `None` if it is answered at once.
    pub call: Option<Call>,
}

/// Conversations for training. Seven in ten end with the call: that is the harder half, and the shorter one.
pub fn conversation(rng: &mut fastrand::Rng) -> Conversation {
    let mut draw = Draw::for_training(rng.fork());
    let mut sample = sample(&mut draw);
    if let Some(call) = &sample.call {
        if draw.chance(70) {
            sample.conversation.truncate(2);
        } else if draw.chance(6) {
            // Some servers give a call back in their own spelling.
            sample.conversation[1].1 = call.respelled();
        }
    }
    sample.conversation
}

/// One whole conversation.
pub fn sample(draw: &mut Draw) -> Sample {
    let request = requests::request(draw);
    let mut conversation = vec![(Role::User, request.text)];
    let kind = request.kind;
    let call = match request.meaning {
        requests::Meaning::Say(answer) => {
            conversation.push((Role::Assistant, answer));
            None
        }
        requests::Meaning::Call(call) => {
            let result = results::result(draw, &call);
            let answer = report(&call, &shortened_result(&result.text), result.failed);
            conversation.push((Role::Assistant, call.to_string()));
            conversation.push((Role::Tool, result.text));
            conversation.push((Role::Assistant, answer));
            Some(call)
        }
    };
    Sample { kind, conversation, call }
}

#[cfg(test)]
mod tests;
