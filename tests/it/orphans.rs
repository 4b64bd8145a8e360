//! No model server outlives its daemon, however that ends.

#![cfg(target_os = "linux")]

use rustix::process::{Signal, kill_process};

use crate::{
    fake_llama::process::{FakeBinary, Mode, wait_for_exit},
    test_home::{TestHome, wait_with_output},
};

/// Starts the real daemon with a llama-server of its own, and kills it: when the server is ready, or at
/// any moment before.
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
        // A stubborn one is left to the kernel's signal alone: it does not mind that its stdin closes.
        binary.mode(if round % 2 == 0 { Mode::Stubborn } else { Mode::Load });
        let mut run = home.command(&["run", "--new", "hi"]);
        run.env("PATH", "/usr/bin:/bin");
        let run = run.spawn().unwrap();
        binary.wait_for_launch();
        kill_process(home.daemon().unwrap(), Signal::KILL).unwrap();
        assert_ne!(wait_with_output(run).code, -1, "round {round}: the client hangs");
        wait_for_exit(binary.launches()[round].pid);
    }
    assert_eq!(binary.launches().len(), 50);
}
