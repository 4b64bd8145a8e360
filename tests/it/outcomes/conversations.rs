//! Conversations of ten turns with a large model that does its work: with rails and without them it makes the same files, and
//! reads nearly the same text.

use std::{
    fs,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use serde_json::{Value, json};

use super::tree;
use crate::{
    scripted_model::{Act, LARGE, start},
    tasks::suite::Tree,
    test_home::TestHome,
};

const CONVERSATIONS: usize = 30;
const TURNS: usize = 10;

/// Every rail off.
const OFF: &str = "[rails]\nopening = false\nreminder = false\nshown = false\nrepeats = false\nunfinished = false\n\
                   offer = false\nresults = false\nrescue = false\n";

/// Returns the calls of one turn. They depend on the conversation too, so that no two of them are alike.
fn calls(conversation: usize, turn: usize) -> Vec<(&'static str, Value)> {
    let (path, earlier) = (format!("f{turn}.txt"), format!("f{}.txt", turn.saturating_sub(1) / 2 * 2));
    let read = |path: &str| ("read_file", json!({"path": path}));
    match (conversation + turn) % 5 {
        _ if turn.is_multiple_of(2) => {
            let rest: String =
                (3..=30).map(|line| format!("line {line} of {path} as it was written\n")).collect();
            vec![("write_file", json!({"path": path, "content": format!("one\ntwo\n{rest}")}))]
        }
        0 => vec![read(&earlier), ("edit_file", json!({"path": earlier, "old_str": "one", "new_str": "1"}))],
        // The same call again, as one that waits for something makes it.
        1 => vec![read(&earlier); 3],
        // Calls that fail, and one that would change nothing.
        2 => {
            vec![read("absent.txt"), ("edit_file", json!({"path": earlier, "old_str": "x", "new_str": "y"}))]
        }
        3 => vec![("edit_file", json!({"path": earlier, "old_str": "two", "new_str": "two"}))],
        _ => Vec::new(),
    }
}

/// Returns what the model does next. The last prompt says where it is.
fn act(body: &Value) -> Act {
    let messages = body["messages"].as_array().unwrap();
    let at = messages.iter().rposition(|message| message["role"] == "user").unwrap();
    let prompt = messages[at]["content"].as_str().unwrap();
    let place = prompt.lines().rev().find_map(|line| line.strip_prefix("turn ")?.split_once(" of "));
    let (turn, conversation) =
        place.map(|(turn, all)| (turn.parse().unwrap(), all.parse().unwrap())).unwrap();
    let made = messages[at..].iter().filter(|message| message["role"] == "assistant").count();
    match calls(conversation, turn).into_iter().nth(made) {
        Some((name, arguments)) => Act::Call(name.to_owned(), arguments),
        None => Act::Say(format!("Turn {turn} is done.")),
    }
}

/// Holds all conversations, and returns their files and the bytes of all requests to the model.
fn hold(config: &str) -> (Vec<Tree>, usize) {
    let fake = start(LARGE, act);
    let home = TestHome::new(&fake.url());
    home.write("agents/tested/config.toml", config);
    let (next, trees) = (AtomicUsize::new(0), Mutex::new(vec![Tree::default(); CONVERSATIONS]));
    let conversation = |number: usize| {
        let dir = home.work_dir().join(number.to_string());
        fs::create_dir(&dir).unwrap();
        for turn in 0..TURNS {
            let prompt = format!("turn {turn} of {number}");
            let begins = if turn == 0 { "--new" } else { "--continue" };
            let mut command =
                home.command(&["run", begins, "--agent", "tested", "--auto-approve", "--", &prompt]);
            let output = command.current_dir(&dir).output().unwrap();
            let answer = String::from_utf8_lossy(&output.stdout);
            assert_eq!(answer, format!("Turn {turn} is done.\n"), "{prompt}: {output:?}");
        }
        trees.lock().unwrap()[number] = tree(&dir);
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(number) =
                    Some(next.fetch_add(1, SeqCst)).filter(|number| *number < CONVERSATIONS)
                {
                    conversation(number);
                }
            });
        }
    });
    let read = fake.chats().iter().map(|chat| chat.to_string().len()).sum();
    (trees.into_inner().unwrap(), read)
}

#[test]
fn rails_leave_long_conversations_of_a_large_model_as_they_are() {
    let (with, read) = hold("");
    let (without, read_without) = hold(OFF);
    assert!(with == without, "the files differ");
    assert!(with.iter().all(|tree| tree.0.len() == TURNS / 2), "{:?}", with[0].0.keys());
    assert!(
        read * 100 <= read_without * 102,
        "the model has read {read} bytes, and {read_without} without rails"
    );
}
