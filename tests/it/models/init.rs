//! `kontekst init`: what it finds, what it offers, and what it never does.

use std::{fs, process::Command};

use serde_json::json;

use super::{
    fake_hub::{self, HubResponse, ranged, sha256},
    gguf,
};
use crate::{
    fake_llama::FakeLlama,
    test_home::{Output, TestHome, wait_with_output},
};

/// Returns a home without a data directory, and a command that runs in it.
fn new_user(words: &[&str]) -> (TestHome, Command) {
    let home = TestHome::with_config("");
    fs::remove_dir_all(home.root()).unwrap();
    let command = home.command(words);
    (home, command)
}

fn end(mut command: Command) -> Output {
    wait_with_output(command.spawn().unwrap())
}

/// Returns a hub that has one model file in every repository.
fn hub() -> FakeLlama {
    let content = gguf("llama", 20_000);
    let sum = sha256(&content);
    fake_hub::hub(move |seen| match &*seen.path {
        path if path.starts_with("/api/models/Qwen/") => HubResponse::json(&json!([
            {"type": "file", "path": "small-Q4_K_M.gguf", "lfs": {"oid": sum, "size": 20_000}},
        ])),
        path if path.ends_with("/resolve/main/small-Q4_K_M.gguf") => ranged(seen, &content, "\"e\""),
        _ => HubResponse::status(404),
    })
}

#[test]
fn a_server_that_runs_needs_no_configuration() {
    let server = FakeLlama::start([]);
    let (home, mut command) = new_user(&["init"]);
    command.env("KONTEKST_PORTS", server.address().port().to_string());
    let text = end(command).success();
    assert!(text.contains(&format!("server   {} with fake", server.url())), "{text}");
    assert!(text.contains("Would write") && text.contains(&format!("{} answers", server.url())), "{text}");
    assert!(!home.root().exists(), "nothing is done without --yes or a terminal");
    for expect in ["Wrote ", "Nothing to do: "] {
        let mut command = home.command(&["init", "--yes"]);
        command.env("KONTEKST_PORTS", server.address().port().to_string());
        let text = end(command).success();
        assert!(text.contains(expect) && text.contains("kontekst chat"), "{expect}: {text}");
    }
    assert!(home.read("config.toml").contains("# endpoint ="));
    assert!(home.daemon().is_none());
}

#[test]
fn a_model_is_offered_where_none_answers_and_fetched_with_yes() {
    let hub = hub();
    let (home, command) = new_user(&["init"]);
    let text = end(command).success();
    assert!(text.contains("suits this machine") && text.contains("licence Apache 2.0"), "{text}");
    assert!(text.contains("Would fetch it") && !home.root().exists(), "{text}");
    assert!(hub.requests().is_empty());
    let yes = || {
        let mut command = home.command(&["init", "--yes"]);
        command.env("KONTEKST_HUB", hub.url());
        end(command)
    };
    let output = yes();
    assert!(output.stderr.contains("agent default uses small-Q4_K_M.gguf"), "{output:?}");
    output.success();
    assert!(home.read("agents/default/config.toml").contains("\nmodel = \"small-Q4_K_M.gguf\""));
    let requests = hub.requests().len();
    let again = yes().success();
    assert!(again.contains("Nothing to do: ") && again.contains("small-Q4_K_M.gguf answers"), "{again}");
    assert_eq!(hub.requests().len(), requests);
}

#[test]
fn what_somebody_has_set_is_not_replaced() {
    let hub = hub();
    let home = TestHome::with_config("bind = 'off'\nmodel_dir = '/nowhere'\n");
    home.write("agents/default/config.toml", "model = 'mine.gguf'\n");
    let mut command = home.command(&["init", "--yes"]);
    command.env("KONTEKST_HUB", hub.url());
    let output = end(command);
    assert!(output.stdout.contains("-model = \"mine.gguf\""), "{output:?}");
    let stderr = output.fails(2);
    assert!(stderr.contains("`mine.gguf`, which is not on this machine"), "{stderr}");
    assert_eq!(home.read("agents/default/config.toml"), "model = 'mine.gguf'\n");
    assert_eq!(home.read("config.toml"), "bind = 'off'\nmodel_dir = '/nowhere'\n");
    assert!(hub.requests().is_empty());
    home.write("agents/default/config.toml", "model = 'builtin'\n");
    assert!(home.run(&["init", "--yes"]).success().contains("Nothing to do: the built-in model answers"));
    home.write("config.toml", "provider = 'endpoint'\nendpoint = 'http://127.0.0.1:1'\n");
    let stderr = home.run(&["init", "--yes"]).fails(6);
    assert!(stderr.contains("http://127.0.0.1:1") && stderr.contains("kontekst config show"), "{stderr}");
    home.write("config.toml", "max_turns = 0\n");
    assert!(home.run(&["init", "--yes"]).fails(2).contains("kontekst doctor"));
}

#[test]
fn on_a_terminal_it_asks_first() {
    let hub = hub();
    let url = hub.url();
    for (answer, expect) in [("n\n", "nothing was fetched"), ("y\n", "agent default uses small-Q4_K_M.gguf")]
    {
        let home = TestHome::with_config("bind = 'off'\n");
        home.write(
            "config.toml",
            &format!("bind = 'off'\nmodel_dir = '{}'\n", home.work_dir().join("m").display()),
        );
        let variables = [("NO_COLOR", "1"), ("KONTEKST_HUB", url.as_str())];
        let mut terminal = home.on_terminal_with(&["init"], 100, &variables);
        terminal.wait_for("now? [y/N] ");
        terminal.type_keys(answer);
        terminal.wait_for(expect);
        terminal.wait_for("kontekst chat");
        assert_eq!(terminal.end().0, 0);
        assert_eq!(home.work_dir().join("m/small-Q4_K_M.gguf").exists(), answer == "y\n");
    }
}
