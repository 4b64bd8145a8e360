//! The example client in `examples/kaiak/`, as npm builds it, against the real binary.
//!
//! Runs only if `KONTEKST_TEST_KAIAK_CLIENT` is the path of the built `main.js`. `.ci/run` sets it if node is installed.

use std::process::{Command, Stdio};

use super::{FIXED, TestProject, edit_call};
use crate::{fake_llama::Reply, test_home::wait_with_output};

#[test]
fn the_example_client_sees_its_file_changed() {
    let Some(client) = std::env::var_os("KONTEKST_TEST_KAIAK_CLIENT") else { return };
    let project = TestProject::new([edit_call(), Reply::text("Done.")]);
    let mut node = Command::new("node");
    node.arg(client)
        .arg(project.home.work_dir())
        .args(["src/main.rs", "2", "use new_method()"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KONTEKST", env!("CARGO_BIN_EXE_kontekst"))
        .env("KONTEKST_HOME", project.home.root())
        .env("KONTEKST_PORTS", "")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let stdout = wait_with_output(node.spawn().unwrap()).success();
    assert!(stdout.contains("Should I apply this change to src/main.rs? yes"), "{stdout}");
    assert!(stdout.contains("success after "), "{stdout}");
    assert_eq!(project.read("src/main.rs"), FIXED);
}
