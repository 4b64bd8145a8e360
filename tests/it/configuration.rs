//! `kontekst config`: it shows each value with its source, and changes one value without touching anything else.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    fake_llama::{FakeLlama, Reply},
    test_home::{TestHome, wait_with_output},
};

#[test]
fn each_value_is_shown_with_where_it_comes_from() {
    let home =
        TestHome::with_config("# mine\nmax_turns = 7\nbind = 'off'\n[tools.web]\ntimeout_seconds = 9\n");
    home.write("agents/default/config.toml", "name = 'D'\n\n[sampling]\ntop_k = 3\n");
    let mut command = home.command(&["config", "show", "--json"]);
    let output = wait_with_output(command.env("KONTEKST_LLAMA_SERVER", "/opt/llama").spawn().unwrap());
    let all: Value = serde_json::from_str(&output.success()).unwrap();
    let of = |key: &str| {
        let mut found = all.as_array().unwrap().iter().filter(|setting| setting["key"] == key);
        let setting = found.next().unwrap_or_else(|| panic!("{key} in {all:#}"));
        assert!(found.next().is_none());
        let place = [&setting["line"], &setting["variable"]].into_iter().find(|place| !place.is_null());
        format!("{} {} {}", setting["value"], setting["from"], place.unwrap_or(&Value::Null))
    };
    assert_eq!(of("max_turns"), "7 \"file\" 2");
    assert_eq!(of("tools.web.timeout_seconds"), "9 \"file\" 5");
    assert_eq!(of("tools.timeout_seconds"), "120 \"default\" null");
    assert_eq!(of("endpoint"), "null \"default\" null");
    assert_eq!(of("llama_server"), "\"/opt/llama\" \"environment\" \"KONTEKST_LLAMA_SERVER\"");
    assert_eq!(of("agents.default.sampling.top_k"), "3 \"file\" 4");
    let text = home.run(&["config"]).success();
    let row = text.lines().find(|line| line.starts_with("max_turns ")).unwrap();
    assert!(row.contains(" 7 ") && row.ends_with("config.toml:2"), "{row}");
    assert!(home.daemon().is_none());
}

#[test]
fn one_value_is_printed_for_a_script() {
    let home = TestHome::with_config("endpoint = 'http://gpu:8000/'\nbind = 'off'\n");
    assert_eq!(home.run(&["config", "get", "endpoint"]).success(), "http://gpu:8000\n");
    assert_eq!(home.run(&["config", "get", "tools.timeout_seconds"]).success(), "120\n");
    let stderr = home.run(&["config", "get", "context_size"]).fails(1);
    assert!(stderr.contains("`context_size` is absent and has no default"), "{stderr}");
    let path = home.run(&["config", "path"]).success();
    assert_eq!(path.trim_end(), home.root().join("config.toml").display().to_string());
}

#[test]
fn a_data_directory_that_cannot_be_made_is_the_reason_why_nothing_is_set() {
    let home = TestHome::with_config("");
    fs::write(home.work_dir().join("file"), "").unwrap();
    let place = home.work_dir().join("file/home");
    let mut command = home.command(&["config", "set", "max_turns", "5"]);
    let output = wait_with_output(command.env("KONTEKST_HOME", &place).spawn().unwrap());
    let stderr = output.fails(2);
    assert!(stderr.contains(&format!("`{}`", place.display())), "{stderr}");
}

#[test]
fn a_value_is_set_and_nothing_else_changes() {
    let config = "# my file\nbind = \"off\"  # no TCP\n\n# context_size = 4096   # the largest window\n[tools]\ntimeout_seconds = 120 # long\n";
    let home = TestHome::with_config(config);
    let set = |key: &str, value: &str| home.run(&["config", "set", key, value]);
    let stderr = set("tools.timeout_seconds", "60");
    assert!(stderr.stderr.starts_with("tools.timeout_seconds is 60 ("), "{stderr:?}");
    assert_eq!(stderr.success(), "");
    set("context_size", "8192").success();
    let expect = config.replace("120", "60").replace("# context_size = 4096", "context_size = 8192");
    assert_eq!(home.read("config.toml"), expect);
    set("commands.allow", "[\"cargo test\"]").success();
    set("agents.default.name", "42").success();
    assert_eq!(home.run(&["config", "get", "agents.default.name"]).success(), "42\n");
    assert!(home.read("config.toml").starts_with(&expect));
    home.run(&["config", "unset", "commands.allow"]).success();
    home.run(&["config", "unset", "context_size"]).success();
    let rest = config.replace("120", "60").replace("# context_size = 4096   # the largest window\n", "");
    assert_eq!(
        home.read("config.toml").trim_end().trim_end_matches("[commands]").trim_end(),
        rest.trim_end()
    );
}

#[test]
fn what_the_daemon_would_refuse_is_not_written() {
    let config = "bind = \"off\"\nmax_turns = 5\n";
    let home = TestHome::with_config(config);
    for (key, value, expect) in [
        ("max_turn", "5", "did you mean `max_turns`?"),
        ("tool.timeout_seconds", "5", "did you mean `tools.timeout_seconds`?"),
        ("tools", "5", "`tools` is a table"),
        ("max_turns", "0", "must be from 1 to 100000, not 0"),
        ("max_turns", "many", "invalid type: string \"many\""),
        ("commands.allow", "cargo test", "write a list as"),
        ("bind", "0.0.0.0:50051", "`allow_remote` is not true"),
        ("max_turns.x", "1", "`max_turns` is not a table"),
        ("agents.nobody.model", "x", "no agent `nobody`"),
        ("agents.default.modle", "x", "did you mean `agents.default.model`?"),
        ("agents.default.sampling.top_p", "7", "must be from 0 to 1, not 7"),
    ] {
        let stderr = home.run(&["config", "set", key, value]).fails(2);
        assert!(stderr.contains(expect), "{key} {value}: {stderr}");
        assert_eq!(home.read("config.toml"), config, "{key} {value}");
    }
    home.write("config.toml", "max_turns = \n");
    let stderr = home.run(&["config", "set", "max_turns", "3"]).fails(2);
    assert!(stderr.contains("config.toml, line 1"), "{stderr}");
    assert_eq!(home.read("config.toml"), "max_turns = \n");
}

#[test]
fn a_mistake_elsewhere_is_no_obstacle_and_is_said() {
    let home = TestHome::with_config("bind = 'off'\nmax_turns = 0\n[tools]\ntimeout_seconds = 'x'\n");
    let stderr = home.run(&["config", "set", "max_turns", "9"]).stderr;
    assert!(stderr.contains("config.toml:4: `timeout_seconds`: invalid type"), "{stderr}");
    home.run(&["config", "set", "tools.timeout_seconds", "9"]).success();
    assert_eq!(home.run(&["config", "get", "max_turns"]).success(), "9\n");
}

#[test]
fn a_link_stays_a_link_and_a_running_daemon_is_mentioned() {
    let home = TestHome::with_config("bind = 'off'\n");
    let real = home.work_dir().join("dotfiles.toml");
    std::fs::rename(home.root().join("config.toml"), &real).unwrap();
    std::os::unix::fs::symlink(&real, home.root().join("config.toml")).unwrap();
    home.run(&["daemon", "restart"]).success();
    let stderr = home.run(&["config", "set", "max_turns", "9"]).stderr;
    assert!(stderr.contains("run `kontekst daemon restart`"), "{stderr}");
    assert!(std::fs::read_to_string(&real).unwrap().contains("max_turns = 9"));
    assert!(std::fs::symlink_metadata(home.root().join("config.toml")).unwrap().is_symlink());
    let again = home.run(&["config", "set", "max_turns", "9"]).stderr;
    assert!(again.contains("was already 9") && !again.contains("restart"), "{again}");
}

#[test]
fn changes_at_the_same_time_all_stay() {
    let home = TestHome::with_config("bind = 'off'\n");
    let keys = ["max_turns", "max_loaded_models", "kv_cache_mb", "workers.at_once", "undo.keep_days"];
    let all: Vec<_> = keys.iter().map(|key| home.spawn(&["config", "set", key, "9"])).collect();
    all.into_iter().for_each(|child| drop(wait_with_output(child).success()));
    for key in keys {
        assert_eq!(home.run(&["config", "get", key]).success(), "9\n", "{key}");
    }
}

#[test]
fn each_directory_can_have_an_active_session_of_its_own() {
    let model = FakeLlama::start(["1", "2", "3", "4"].map(Reply::text));
    let home = TestHome::with_config(&format!(
        "provider = \"endpoint\"\nendpoint = \"{}\"\nbind = \"off\"\n[sessions]\nactive = \"directory\"\n",
        model.url()
    ));
    let other = home.work_dir().join("other");
    fs::create_dir(&other).unwrap();
    let ask = |dir: &Path, prompt: &str| {
        home.run(&["run", "-C", dir.to_str().unwrap(), prompt]).success();
        let chats = model.chats();
        let users = chats.last().unwrap()["messages"].as_array().unwrap().clone();
        users.iter().filter(|message| message["role"] == "user").count()
    };
    assert_eq!(ask(&home.work_dir(), "first"), 1);
    home.run(&["sessions", "use", "first"]).success();
    assert_eq!(ask(&other, "second"), 1, "another directory starts a session");
    assert_eq!(ask(&home.work_dir(), "third"), 2, "and this one goes on");
    let listed = home.run(&["sessions", "--json"]).success();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let active: Vec<_> =
        listed.as_array().unwrap().iter().filter(|session| session["active"] == true).collect();
    assert_eq!((active.len(), &active[0]["title"]), (1, &"first".into()));
    home.run(&["config", "set", "sessions.active", "global"]).success();
    assert_eq!(ask(&home.work_dir(), "fourth"), 1, "nothing was active for all directories");
}

/// Writes an editor that adds the lines of a file to the one that it edits, the next line at each call.
fn editor(home: &TestHome, lines: &str) -> String {
    let dir = home.work_dir();
    fs::write(dir.join("lines"), lines).unwrap();
    fs::write(dir.join("editor"), "head -n 1 lines >> \"$1\" && sed -i 1d lines\n").unwrap();
    "sh ./editor".to_owned()
}

#[test]
fn an_edited_file_is_checked_before_it_replaces_the_old_one() {
    let home = TestHome::with_config("# mine\nbind = 'off'\n");
    let edit = |editor: &str| {
        let mut command = home.command(&["config", "edit"]);
        wait_with_output(command.env("EDITOR", editor).env("PATH", "/usr/bin:/bin").spawn().unwrap())
    };
    assert!(edit(&editor(&home, "max_turns = 7\n")).stderr.contains("config.toml was replaced"));
    assert_eq!(home.read("config.toml"), "# mine\nbind = 'off'\nmax_turns = 7\n");
    assert!(edit("true").stderr.contains("was not changed"));

    let stderr = edit(&editor(&home, "compaction = 'none'\n")).fails(2);
    assert!(stderr.contains("line 4: `compaction`") && stderr.contains("compaction = 'none'"), "{stderr}");
    assert_eq!(home.read("config.toml"), "# mine\nbind = 'off'\nmax_turns = 7\n");
    let kept = stderr.split("what you wrote is in ").nth(1).unwrap().trim();
    assert!(fs::read_to_string(kept).unwrap().ends_with("compaction = 'none'\n"));
    fs::remove_dir_all(Path::new(kept).parent().unwrap()).unwrap();

    let stderr = edit("false").fails(1);
    assert!(stderr.contains("the editor ended with") && !stderr.contains("what you wrote"), "{stderr}");
    let meanwhile =
        format!("echo '# theirs' >> '{}'; sh ./editor", home.root().join("config.toml").display());
    editor(&home, "compaction = 'trim'\n");
    let stderr = edit(&meanwhile).fails(1);
    assert!(stderr.contains("has changed meanwhile"), "{stderr}");
    let kept = stderr.split("what you wrote is in ").nth(1).unwrap().trim();
    fs::remove_dir_all(Path::new(kept).parent().unwrap()).unwrap();
}

#[test]
fn a_mistake_can_be_corrected_in_the_editor() {
    let home = TestHome::with_config("bind = 'off'\n");
    let editor = editor(&home, "max_turns = 0\n#\n");
    let variables = [("EDITOR", &*editor), ("PATH", "/usr/bin:/bin"), ("NO_COLOR", "1")];
    let mut terminal = home.on_terminal_with(&["config", "edit"], 0, &variables);
    terminal.wait_for("line 2: `max_turns`");
    terminal.wait_for("Edit again? [Y/n] ");
    fs::write(
        home.work_dir().join("editor"),
        "echo \"bind = 'off'\" > \"$1\"; echo 'max_turns = 3' >> \"$1\"\n",
    )
    .unwrap();
    terminal.type_keys("\n");
    terminal.wait_for("was replaced");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(home.read("config.toml"), "bind = 'off'\nmax_turns = 3\n");
}
