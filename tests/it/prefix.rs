//! The prompt only grows at its end: what the model server has read once, it need not read again.

use std::fs;

use serde_json::{Value, json};

use crate::{
    fake_llama::{FakeLlama, Reply},
    home::Home,
};

/// Everything of a request that comes before what is new in the next one, in the order in which it is sent.
fn prompt(body: &Value) -> String {
    let messages = serde_json::to_string(&body["messages"]).unwrap();
    format!("{}{}", body["tools"], messages.strip_suffix(']').unwrap())
}

#[test]
fn each_prompt_starts_with_the_one_before_it() {
    let fake = FakeLlama::start([]).always({
        let mut turn = 0;
        move |_| {
            turn += 1;
            match turn % 21 {
                0 => Reply::text("that is all"),
                // Odd spacing and escapes: what is replayed must be what was said, not what it means.
                even if even % 2 == 0 => Reply::reasoning("hm", "Let me see.")
                    .then_calls([("read_file", json!({"path": "a.txt"}))]),
                _ => Reply::calls([("list_files", json!({"pattern": "*.txt", "path": "."}))]),
            }
        }
    });
    let home = Home::with_config(&format!(
        "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\ncontext_size = 16384\n",
        fake.url()
    ));
    home.write("agents/default/agent.md", "You are a test.\n");
    fs::write(home.work().join("a.txt"), "some \"text\"\n").unwrap();
    home.run(&["run", "--auto-approve", "first"]).success();
    home.run(&["run", "--auto-approve", "second"]).success();
    home.run(&["daemon", "stop"]).success();
    home.run(&["run", "--auto-approve", "third"]).success();
    fake.assert_clean();
    let chats = fake.chats();
    assert_eq!(chats.len(), 63);
    for (turn, pair) in chats.windows(2).enumerate() {
        let (before, after) = (prompt(&pair[0]), prompt(&pair[1]));
        assert!(after.starts_with(&before), "turn {}:\n{before}\n{after}", turn + 1);
        for key in ["model", "temperature", "top_p", "top_k", "repeat_penalty", "cache_prompt"] {
            assert_eq!(pair[0][key], pair[1][key], "{key}");
        }
    }
}
