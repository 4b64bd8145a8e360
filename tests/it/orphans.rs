//! A model server never outlives its daemon, whatever ends the daemon.

#![cfg(target_os = "linux")]

use std::{io::Read as _, process::Child};

use rustix::process::{Signal, kill_process};

use crate::{
    fake_llama::process::{FakeBinary, Mode, wait_for_exit},
    test_home::{TestHome, wait_with_output},
};

/// Starts the real daemon with a managed llama-server and kills the daemon, in half of the rounds while the model
/// is still loading.
#[test]
fn fifty_killed_daemons_leave_no_child() {
    let dir = tempfile::tempdir().unwrap();
    let binary = FakeBinary::new(dir.path());
    let models = dir.path().join("models");
    std::fs::create_dir(&models).unwrap();
    std::fs::write(models.join("one.gguf"), "").unwrap();
    let home = TestHome::with_config(&format!(
        "bind = \"off\"\nprovider = \"llama-server\"\nmodel_dir = \"{}\"\nllama_server = \"{}\"\n",
        models.display(),
        binary.path().display()
    ));
    home.write("agents/default/config.toml", "model = \"one.gguf\"\n");
    for round in 0..50 {
        // A stubborn server ignores that its stdin closes, so only the kernel's parent-death signal can end it.
        binary.mode(if round % 2 == 0 { Mode::Stubborn } else { Mode::Load });
        let mut run = home.command(&["run", "--new", "--verbose", "hi"]);
        run.env("PATH", "/usr/bin:/bin");
        let mut run = run.spawn().unwrap();
        wait_for_start(&mut run);
        binary.wait_for_launch();
        kill_process(home.daemon().unwrap(), Signal::KILL).unwrap();
        assert_ne!(wait_with_output(run).code, -1, "round {round}: the client hangs");
        wait_for_exit(binary.launches()[round].pid);
    }
    assert_eq!(binary.launches().len(), 50);
}

/// Waits until the client has heard that its run has started. Until then it would send the run to the next daemon.
fn wait_for_start(run: &mut Child) {
    let stderr = run.stderr.as_mut().unwrap();
    let (mut text, mut byte) = (String::new(), [0]);
    while !text.contains(" in session ") {
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "the client has ended: {text}");
        text.push(char::from(byte[0]));
    }
}
