//! The answer of `kontekst run` when it is complete: parts of it, files, and JSON.

use std::fs;

use serde_json::json;

use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::TestHome,
};

const ANSWER: &str = "Run this:\n\n```sh\nls -l\n```\n\nor `ls`.";

#[test]
fn extract_prints_the_first_block_and_nothing_else() {
    let model = FakeLlama::start([Reply::text(ANSWER), Reply::text("Use `ls`.")]);
    let home = TestHome::new(&model.url());
    let output = home.run(&["run", "--extract", "how do I list files?"]);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.code), ("ls -l\n", "", 0));
    let output = home.run(&["run", "-x", "shorter"]);
    assert_eq!(output.stdout, "");
    let error = output.fails(1);
    assert!(error.contains("no fenced block of code") && error.contains("hint:"), "{error}");
    home.run(&["run", "-x", "--json", "go"]).fails(2);
    model.assert_clean();
}

#[test]
fn the_answer_goes_to_a_file_if_the_run_completes() {
    let call = Reply::text("I look. ").then_calls([("list_files", json!({"pattern": "*"}))]);
    let model = FakeLlama::start([
        call,
        Reply::text("first"),
        Reply::text(ANSWER),
        Reply::text("cut").finish("length"),
        Reply::error(400, "no good"),
        Reply::text("no block"),
    ]);
    let home = TestHome::new(&model.url());
    let file = home.work_dir().join("answer.txt");
    let text = || fs::read_to_string(&file).unwrap();
    let output = home.run(&["run", "-o", "answer.txt", "go"]);
    assert!(!output.stderr.contains("wrote"), "{output:?}");
    assert_eq!((output.success().as_str(), text().as_str()), ("", "first\n"));
    let output = home.run(&["run", "-v", "-xo", "answer.txt", "go"]);
    assert!(output.stderr.contains("wrote 6 bytes to answer.txt"), "{output:?}");
    assert_eq!((output.success().as_str(), text().as_str()), ("", "ls -l\n"));
    for code in [5, 1] {
        home.run(&["run", "-o", "answer.txt", "go"]).fails(code);
        assert_eq!(text(), "ls -l\n", "a run that fails leaves the file as it was");
    }
    home.run(&["run", "-xo", "answer.txt", "go"]).fails(1);
    assert_eq!(text(), "ls -l\n");
    // The model is not asked for an answer that has no place.
    let error = home.run(&["run", "-o", "missing/answer.txt", "go"]).fails(2);
    assert!(error.contains("cannot write `missing/answer.txt`"), "{error}");
    assert_eq!(model.chats().len(), 6);
    model.assert_clean();
}

#[test]
fn the_file_may_be_a_pipe_or_stdout() {
    let model = FakeLlama::start(["a", "b"].map(Reply::text));
    let home = TestHome::new(&model.url());
    assert_eq!(home.run(&["run", "-o", "-", "go"]).success(), "a\n");
    assert_eq!(home.run(&["run", "-o", "/dev/stdout", "go"]).success(), "b\n");
    model.assert_clean();
}

#[test]
fn on_a_terminal_the_block_is_printed_as_it_is() {
    let model = FakeLlama::start([Reply::text("# Title\n```\n**not bold** \u{1b}[31m\n```\n")]);
    let home = TestHome::new(&model.url());
    let run = home.on_terminal_with(&["run", "--quiet", "-x", "go"], 80, &[("TERM", "xterm")]);
    assert_eq!(run.end(), (0, "**not bold** \r\n".to_owned()));
}
