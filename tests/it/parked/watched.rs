//! Parked runs on a terminal.

use super::{edit, home};
use crate::fake_llama::Reply;

#[test]
fn what_changed_since_is_asked_about_again() {
    let (_model, home) = home([edit("a", "one", "two"), Reply::text("done")]);
    let name = home.park(&["change it"]);
    home.put("a", "one and more\n");
    let mut terminal = home.on_terminal(&["approvals", "approve", &name]);
    assert!(terminal.wait_for("approve?").contains("+two and more"));
    terminal.type_keys("y\n");
    terminal.wait_for("done");
    assert_eq!((terminal.end().0, home.file("a").as_str()), (0, "two and more\n"));
}

#[test]
fn a_watcher_is_asked_about_each_run_and_goes_on_with_it() {
    let (_model, home) = home([
        edit("a", "one", "two"),
        Reply::text("first done"),
        edit("a", "two", "three"),
        Reply::text("second done"),
    ]);
    home.park(&["change it"]);
    let mut terminal = home.on_terminal(&["approvals", "--watch"]);
    terminal.wait_for("change it");
    terminal.wait_for("approve?");
    terminal.type_keys("y\n");
    terminal.wait_for("first done");
    terminal.wait_for("waiting for calls");
    home.run(&["run", "--new", "again"]).fails(3);
    terminal.wait_for("again");
    terminal.wait_for("approve?");
    terminal.type_keys("y\n");
    terminal.wait_for("second done");
    terminal.wait_for("waiting for calls");
    assert_eq!((home.file("a").as_str(), home.parked().len()), ("three\n", 0));
    terminal.type_keys("\x03");
    assert_ne!(terminal.end().0, 0);
}

#[test]
fn a_watcher_decides_about_a_call_of_a_run_on_another_terminal() {
    let (_model, home) = home([edit("a", "one", "two"), Reply::text("done")]);
    let mut watcher = home.on_terminal(&["approvals", "--watch"]);
    watcher.wait_for("waiting for calls");
    let mut run = home.on_terminal(&["run", "change it"]);
    run.wait_for("approve?");
    assert!(watcher.wait_for("approve?").contains("+two"));
    watcher.type_keys("y\n");
    run.wait_for("decided elsewhere: approved");
    run.wait_for("done");
    assert_eq!((run.end().0, home.file("a").as_str()), (0, "two\n"));
    watcher.wait_for("waiting for calls");
    watcher.type_keys("\x03");
    assert_ne!(watcher.end().0, 0);
}

#[test]
fn watching_needs_a_terminal() {
    let (_model, home) = home([]);
    assert!(home.run(&["approvals", "--watch"]).fails(2).contains("asks on a terminal"));
}
