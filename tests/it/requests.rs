//! Requests that want a text: a good answer ends the run, whatever the request says.
//!
//! `tests/requests/` has them. `KONTEKST_TEST_REQUESTS` names a file with more of them, such as those that
//! `tests/requests/collect.py` selects from a public set.

use std::{
    env, fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use kontekst_agent::{
    AgentCore, Prompt, StartRun, ToolOptions,
    protocol::{Event, Outcome},
};
use kontekst_core::OwnListeners;
use kontekst_provider::router::{ProcessEnv, Router};
use kontekst_store::config::{Config, Home, agents};
use serde::Deserialize;

use crate::{
    scripted_model::{Act, LARGE, Model, SMALL, UNKNOWN, start},
    tasks::suite::Tree,
};

#[derive(Deserialize)]
struct Request {
    prompt: String,
    #[serde(default)]
    source: String,
}

/// The answer of the model to every request.
const ANSWER: &str =
    "It depends on the case, and both ways are fine. Here is the short form:\n\n1. first\n2. second\n";

/// Asks a model that answers at once for each request, and expects that answer after at most `max_questions` to the model.
async fn check(model: Model, max_questions: usize) {
    let dir = tempfile::tempdir().unwrap();
    let questions = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&questions);
    let fake = start(model, move |_| {
        counter.fetch_add(1, SeqCst);
        Act::Say(ANSWER.to_owned())
    });
    let home = Home::find(Some(dir.path().join("home"))).unwrap();
    fs::create_dir_all(home.root().join("agents")).unwrap();
    let config = format!("provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\n", fake.url());
    fs::write(home.root().join("config.toml"), config).unwrap();
    agents::create_default(&home).unwrap();
    let config = Config::load(&home).unwrap();
    let models = Arc::new(Router::new(&config, ProcessEnv::default()));
    let core = AgentCore::new(home, config, models, OwnListeners::default());

    let work_dir = dir.path().join("work");
    let files = [
        ("README.md", "# Shop\n\nA small shop.\n"),
        ("src/main.py", "print(\"hello\")\n"),
        ("list.txt", "a\nb\n"),
    ];
    let files = Tree(files.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    files.write(&work_dir).unwrap();

    let mut wrong = Vec::new();
    let mut lines = include_str!("../requests/requests.jsonl").to_owned();
    if let Some(path) = env::var_os("KONTEKST_TEST_REQUESTS") {
        lines.push_str(&fs::read_to_string(path).unwrap());
    }
    for line in lines.lines() {
        let request: Request = serde_json::from_str(line).unwrap();
        let mut run = core.start(StartRun {
            prompt: Prompt::Text(request.prompt.clone()),
            working_dir: Some(work_dir.clone()),
            tools: ToolOptions { reading_is_free: true, commands: true, ..ToolOptions::default() },
            ..StartRun::default()
        });
        let (mut shown, mut ended) = (String::new(), String::new());
        while let Some(event) = run.next_event().await {
            match event {
                Event::Text(text) => shown.push_str(&text),
                Event::Ended(Outcome::Completed { content, .. }) if content == ANSWER => {}
                Event::Ended(outcome) => ended = format!("{outcome:?}"),
                _ => {}
            }
        }
        let questions = questions.swap(0, SeqCst);
        if !ended.is_empty() || shown != ANSWER || !(1..=max_questions).contains(&questions) {
            wrong.push(format!("{}: {questions} questions, {ended}\n  {}", request.source, request.prompt));
        }
    }
    assert!(wrong.is_empty(), "{} of the runs of {model:?}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(Tree::read(&work_dir).unwrap(), files);
}

#[tokio::test]
async fn a_large_model_is_asked_once() {
    check(LARGE, 1).await;
}

#[tokio::test]
async fn a_model_of_unknown_size_is_asked_once() {
    check(UNKNOWN, 1).await;
}

/// Before its answer, a small model may be asked what the request wants.
#[tokio::test]
async fn a_small_model_is_asked_twice_at_most() {
    check(SMALL, 2).await;
}
