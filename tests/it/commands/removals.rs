//! Files that are to be deleted, moved, renamed or made executable, for which the model runs a command.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::{command, home};
use crate::fake_llama::{FakeLlama, Reply};

#[test]
fn a_file_that_is_still_there_is_asked_for_until_it_is_gone() {
    let script =
        vec![Reply::text("It has been deleted."), command("rm a.txt"), Reply::text("Now it is gone.")];
    let model = FakeLlama::start(script);
    let home = home(&model, "");
    let file = home.work_dir().join("a.txt");
    fs::write(&file, "a\n").unwrap();
    let answer = home.run(&["run", "--auto-approve", "Delete the file a.txt"]).success();
    assert_eq!(answer, "Now it is gone.\n");
    assert!(!file.exists());
    let chats = model.chats();
    let last =
        chats[1]["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert_eq!(
        last,
        "The request is not done: a.txt was to be removed and is still there. Do this now with run_command: Delete \
         the file a.txt"
    );
}

#[test]
fn a_run_that_leaves_the_file_fails() {
    for prompt in ["delete a.txt", "rename a.txt to b.txt"] {
        let model = FakeLlama::start((0..3).map(|_| Reply::text("Done.")));
        let home = home(&model, "");
        fs::write(home.work_dir().join("a.txt"), "a\n").unwrap();
        let output = home.run(&["run", "--auto-approve", prompt]);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        assert!(output.stderr.contains("a.txt was to be removed and is still there"), "{output:?}");
    }
}

#[test]
fn a_denied_command_ends_the_questions() {
    let model = FakeLlama::start([command("rm a.txt"), Reply::text("I may not.")]);
    let home = home(&model, "");
    fs::write(home.work_dir().join("a.txt"), "a\n").unwrap();
    home.write("policy.toml", "deny = [\"run_command(rm)\"]\n");
    assert_eq!(home.run(&["run", "delete a.txt"]).success(), "I may not.\n");
}

#[test]
fn a_file_that_is_not_executable_is_asked_for_until_it_is() {
    let script = vec![Reply::text("Done."), command("chmod +x a.sh"), Reply::text("It is executable now.")];
    let model = FakeLlama::start(script);
    let home = home(&model, "");
    let file = home.work_dir().join("a.sh");
    fs::write(&file, "echo a\n").unwrap();
    let answer = home.run(&["run", "--auto-approve", "Make a.sh executable"]).success();
    assert_eq!(answer, "It is executable now.\n");
    assert_ne!(fs::metadata(&file).unwrap().permissions().mode() & 0o111, 0);
    let chats = model.chats();
    let last = chats[1]["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    assert_eq!(
        last,
        "The request is not done: a.sh was to be executable and is not. Do this now with run_command: Make a.sh executable"
    );
}
