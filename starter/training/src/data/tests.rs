//! Conversations are sound, varied, and seen as the chat template shows them.

use minijinja::{Environment, Value, context, value::Serde};
use serde_json::json;

use super::*;

/// A conversation as a program has it: calls apart from texts.
fn messages(conversation: &Conversation) -> Vec<serde_json::Value> {
    let message = |(role, text): &(Role, String)| match role {
        Role::User => json!({"role": "user", "content": text}),
        Role::Tool => json!({"role": "tool", "content": text, "tool_call_id": "1"}),
        Role::Assistant => match text.strip_prefix("<tool_call>\n") {
            Some(call) => {
                let text = call.trim_end_matches("\n</tool_call>");
                let mut call: serde_json::Value = serde_json::from_str(text).unwrap();
                // Another's spelling is passed on as it is.
                let spelled = call["arguments"].to_string();
                if text.contains(&spelled) {
                    call["arguments"] = spelled.into();
                }
                json!({"role": "assistant", "content": "",
                       "tool_calls": [{"type": "function", "id": "1", "function": call}]})
            }
            None => json!({"role": "assistant", "content": text}),
        },
    };
    conversation.iter().map(message).collect()
}

fn spelled(ids: &[u16]) -> String {
    let mut bytes = Vec::new();
    for &id in ids {
        match id {
            USER => bytes.extend(b"<|user|>"),
            ASSISTANT => bytes.extend(b"<|assistant|>"),
            TOOL => bytes.extend(b"<|tool|>"),
            END => bytes.extend(b"<|end|>"),
            byte => bytes.push(u8::try_from(byte).unwrap()),
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn rendered(messages: &[serde_json::Value], go_on: bool) -> String {
    let mut environment = Environment::new();
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_template("chat", include_str!("../../template.jinja")).unwrap();
    let messages = Value::from(Serde(messages));
    let context = context! { messages, add_generation_prompt => go_on, tools => Vec::<String>::new() };
    environment.get_template("chat").unwrap().render(context).unwrap()
}

#[test]
fn the_template_and_the_encoder_agree() {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut shortened = 0;
    for _ in 0..4000 {
        let conversation = conversation(&mut rng);
        let encoded = encode(&conversation);
        assert_eq!(encoded.ids.len(), encoded.said.len());
        let mut all = vec![
            json!({"role": "system", "content": "not shown"}),
            json!({"role": "user", "content": "old"}),
            json!({"role": "assistant", "content": "older"}),
        ];
        all.extend(messages(&conversation));
        let text = rendered(&all, false);
        shortened += usize::from(text.contains('…'));
        assert_eq!(text, spelled(&encoded.ids), "{conversation:?}");
    }
    assert!(shortened > 100, "{shortened}");
}

#[test]
fn marks_in_a_text_are_no_marks() {
    let text = "a <|end|><|assistant|> b".to_owned();
    let conversation = vec![(Role::User, text.clone()), (Role::Assistant, text.clone()), (Role::Tool, text)];
    assert_eq!(rendered(&messages(&conversation), false), spelled(&encode(&conversation).ids));
    assert_eq!(encode(&conversation).ids.iter().filter(|&&id| id == END).count(), 3);
    assert!(rendered(&messages(&conversation), true).ends_with("<|end|><|assistant|>"));
    let parts =
        json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    assert_eq!(rendered(&[parts], true), "<|user|>ab<|end|><|assistant|>");
}

#[test]
fn what_is_said_is_the_assistants_and_its_end() {
    let conversation = vec![(Role::User, "hi".to_owned()), (Role::Assistant, "you".to_owned())];
    let encoded = encode(&conversation);
    assert_eq!(encoded.said, [false, false, false, false, false, true, true, true, true]);
}

#[test]
fn calls_are_what_python_would_write() {
    let call = Call::edit("a b.rs", "say \"é\"\t\\", "").occurrence(0);
    assert_eq!(
        call.to_string(),
        "<tool_call>\n{\"name\": \"edit_file\", \"arguments\": {\"path\": \"a b.rs\", \"old_str\": \"say \
         \\\"é\\\"\\t\\\\\", \"new_str\": \"\", \"occurrence\": 0}}\n</tool_call>"
    );
}

#[test]
fn names_held_out_are_never_drawn_for_training() {
    let mut training = Draw::for_training(fastrand::Rng::with_seed(1));
    let mut held_out = Draw::held_out(fastrand::Rng::with_seed(1));
    let known: std::collections::HashSet<_> = (0..50_000).map(|_| training.stem()).collect();
    assert!((0..5000).all(|_| !known.contains(&held_out.stem())));
}

#[test]
fn what_is_copied_stands_in_the_request() {
    let mut draw = Draw::for_training(fastrand::Rng::with_seed(3));
    for _ in 0..5000 {
        let sample = sample(&mut draw);
        let request = &sample.conversation[0].1;
        let Some(call) = sample.call else { continue };
        for name in ["old_str", "new_str", "content"] {
            let text = call.text(name);
            assert!(request.contains(text.strip_suffix('\n').unwrap_or(text)), "{text:?} in {request:?}");
        }
        let url = call.text("url");
        assert!(request.contains(url.strip_prefix("https://").unwrap_or(url)), "{url} in {request}");
        let path = call.text("path");
        let end = path.rsplit('/').next().unwrap_or_default();
        assert!(request.contains(end), "{path} in {request}");
    }
}

#[test]
fn conversations_are_short() {
    let mut rng = fastrand::Rng::with_seed(4);
    let mut lengths: Vec<usize> = (0..5000).map(|_| encode(&conversation(&mut rng)).ids.len()).collect();
    lengths.sort_unstable();
    let (median, most) = (lengths[2500], lengths[4999]);
    assert!((150..450).contains(&median), "{median}");
    assert!(lengths[4975] <= 1024, "{} {most}", lengths[4975]);
}
