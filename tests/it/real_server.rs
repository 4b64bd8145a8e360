//! The whole way on the real thing: the binary, its daemon, a llama-server that the daemon starts, a model.
//!
//! Runs when `KONTEKST_LLAMA_SERVER` names a llama-server and `KONTEKST_TEST_MODEL` the model of
//! `tests/llama/tiny_gguf.py`, as `.ci/run` has it; without them there is nothing to test here.

use std::{env, fs, path::Path};

use serde_json::Value;

use crate::home::Home;

/// A home whose daemon starts the server of this machine.
fn home() -> Option<Home> {
    let (server, model) = (env::var("KONTEKST_LLAMA_SERVER").ok()?, env::var("KONTEKST_TEST_MODEL").ok()?);
    let model = Path::new(&model);
    let home = Home::with_config(&format!(
        "bind = \"off\"\nprovider = \"llama-server\"\nllama_server = \"{server}\"\nmodel_dir = \"{}\"\ncontext_size = 8192\n",
        model.parent().unwrap().display()
    ));
    let file = model.file_name().unwrap().to_str().unwrap();
    home.write(
        "agents/default/config.toml",
        &format!("model = \"{file}\"\n\n[sampling]\ntemperature = 0.0\nmax_tokens = 60\n"),
    );
    Some(home)
}

#[test]
fn a_model_answers_and_goes_on_with_the_conversation() {
    let Some(home) = home() else { return };
    let first = home.run(&["run", "--new", "hello"]).success();
    assert!(first.trim_end().ends_with('.'), "{first:?}");
    home.run(&["run", "and now?"]).success();

    let sessions: Vec<_> = fs::read_dir(home.root().join("sessions"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    let [session] = sessions.as_slice() else { panic!("one conversation, {sessions:?}") };
    let text = fs::read_to_string(session).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<_> = lines.iter().filter(|line| line["role"].is_string()).collect();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert!(messages.iter().all(|message| message["tokens"].as_u64().unwrap() > 0), "{text}");
}

#[test]
fn a_model_calls_a_tool_and_reads_what_it_gave() {
    let Some(home) = home() else { return };
    fs::write(home.work().join("README.md"), "the canary sings\n").unwrap();
    let asked = home.run(&["run", "--new", "!tool"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (3, ""), "{}", asked.stderr);

    let events = home.run(&["run", "--new", "--json", "--allow", "read_file", "!tool"]).success();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind| events.iter().filter(move |event| event["type"] == kind);
    let output = of("tool_completed").next().expect("the tool ran")["output"].as_str().unwrap();
    assert!(output.contains("the canary sings"), "{output}");
    let ending = events.last().unwrap();
    assert_eq!((ending["type"].as_str(), of("turn_completed").count()), (Some("completed"), 2));
}

#[test]
fn a_thought_is_shown_apart_and_a_limit_has_its_own_exit_code() {
    let Some(home) = home() else { return };
    let thought = home.run(&["run", "--new", "--verbose", "!think"]);
    assert!(thought.stderr.contains("I should think about this"), "{thought:#?}");
    assert!(!thought.success().contains("I should think"));
    let long = home.run(&["run", "--new", "!long"]);
    assert!(long.stdout.starts_with("Once upon a time and then it went on"), "{long:#?}");
    assert!(long.fails(5).contains("max_tokens"));
}
