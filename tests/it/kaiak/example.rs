//! The example client in `examples/kaiak/`, as npm builds it, against the real binary.
//!
//! Runs where `KONTEKST_TEST_KAIAK_CLIENT` names its `main.js`, as the gate does where there is node.

use std::process::{Command, Stdio};

use super::{FIXED, Room, edit};
use crate::{fake_llama::Reply, home::finish};

#[test]
fn the_example_client_sees_its_file_changed() {
    let Some(client) = std::env::var_os("KONTEKST_TEST_KAIAK_CLIENT") else { return };
    let room = Room::new([edit(), Reply::text("Done.")]);
    let mut node = Command::new("node");
    node.arg(client)
        .arg(room.home.work())
        .args(["src/main.rs", "2", "use new_method()"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KONTEKST", env!("CARGO_BIN_EXE_kontekst"))
        .env("KONTEKST_HOME", room.home.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let said = finish(node.spawn().unwrap()).success();
    assert!(said.contains("Should I apply this change to src/main.rs? yes"), "{said}");
    assert!(said.contains("success after "), "{said}");
    assert_eq!(room.read("src/main.rs"), FIXED);
    room.model.assert_clean();
}
