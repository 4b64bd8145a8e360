//! A daemon that is killed while a parked run goes on: each call has its effect once at most, and the run can go on.

use serde_json::json;

use super::home;
use crate::{
    commands::killed::{killed, whole},
    fake_llama::Reply,
    hostile_input::{Random, rounds},
    test_home::TestHome,
};

/// A repeated edit is seen in the text, and a repeated command in the number of lines.
fn calls() -> Reply {
    Reply::calls([
        ("edit_file", json!({"path": "a", "old_str": "one", "new_str": "one more"})),
        ("run_command", json!({"command": "echo x >> ran"})),
        ("write_file", json!({"path": "b", "content": "b\n"})),
    ])
}

/// Puts the files back to where the run begins.
fn reset(home: &TestHome) {
    home.put("a", "one\n");
    for name in ["ran", "b"] {
        std::fs::remove_file(home.work_dir().join(name)).ok();
    }
}

#[test]
fn a_daemon_killed_at_any_moment_of_a_resumed_run_repeats_no_effect() {
    let (model, home) = home([]);
    let _model = model.always(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let has_results = messages.iter().any(|message| message["role"] == "tool");
        if has_results { Reply::text("done") } else { calls() }
    });
    let config = home.read("config.toml");
    home.write("config.toml", &format!("{config}[commands]\nsandbox = \"off\"\n"));
    let name = home.park(&["--new", "go"]);
    let mut looks = whole(&home, &["approvals", "approve", &name, "-q"]);
    let (mut in_resume, mut not_repeated, mut random) = (0, 0, Random::new(195));
    let rounds = rounds(30, 1000);
    for round in 0..rounds {
        reset(&home);
        let name = home.park(&["--new", "go"]);
        let approve = ["approvals", "approve", &name, "-q"];
        let mut killed_in_round = false;
        while killed(&home, &approve, random.below(looks)) {
            killed_in_round = true;
            in_resume += 1;
            let (text, ran) = (home.file("a"), ran(&home));
            assert!(["one\n", "one more\n"].contains(&text.as_str()) && ran <= 1, "{round}: {text:?}, {ran}");
            if random.below(2) == 0 {
                break;
            }
        }
        // The moments lie where the run goes on, and not after it: that takes less time than it did the first time.
        looks = if killed_in_round { looks + looks / 8 } else { (looks * 3 / 4).max(8) };
        // A client that was killed after the daemon had ended the run has left nothing to do.
        // The file says so: a client that asks a daemon can meet one that is just being ended.
        if is_parked(&home, &name) {
            assert_eq!(home.run(&approve).success(), "done\n", "{round}");
        }
        assert_eq!((home.file("a").as_str(), home.file("b").as_str()), ("one more\n", "b\n"), "{round}");
        assert!(ran(&home) <= 1, "{round}");
        not_repeated += usize::from(ran(&home) == 0);
        assert!(!is_parked(&home, &name), "{round}");
    }
    assert!(in_resume >= rounds / 4, "{in_resume} kills, {not_repeated} commands that were not run again");
}

fn ran(home: &TestHome) -> usize {
    std::fs::read_to_string(home.work_dir().join("ran")).map_or(0, |text| text.lines().count())
}

fn is_parked(home: &TestHome, name: &str) -> bool {
    home.root().join(format!("parked/{name}.json")).exists()
}
