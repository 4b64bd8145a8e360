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
    let looks = whole(&home, &["approvals", "approve", &name, "-q"]);
    let (mut in_resume, mut unknown, mut random) = (0, 0, Random::new(195));
    for round in 0..rounds(30, 1000) {
        reset(&home);
        let name = home.park(&["--new", "go"]);
        let approve = ["approvals", "approve", &name, "-q"];
        while killed(&home, &approve, random.below(looks)) {
            in_resume += 1;
            let (text, ran) = (home.file("a"), ran(&home));
            assert!(["one\n", "one more\n"].contains(&text.as_str()) && ran <= 1, "{round}: {text:?}, {ran}");
            if random.below(2) == 0 {
                break;
            }
        }
        // A client that was killed after the daemon had ended the run has left nothing to do.
        if !home.parked().is_empty() {
            assert_eq!(home.run(&approve).success(), "done\n", "{round}");
        }
        assert_eq!((home.file("a").as_str(), home.file("b").as_str()), ("one more\n", "b\n"), "{round}");
        assert!(ran(&home) <= 1, "{round}");
        unknown += usize::from(ran(&home) == 0);
        assert_eq!(home.parked().len(), 0, "{round}");
    }
    assert!(in_resume > 0, "nothing was killed in the middle");
    println!("{in_resume} kills, {unknown} commands that were not run again");
}

fn ran(home: &TestHome) -> usize {
    std::fs::read_to_string(home.work_dir().join("ran")).map_or(0, |text| text.lines().count())
}
