//! Checks that `man/` matches the command line, `UPDATE_EXPECT=1 cargo test --test it generated` writes it again, and that
//! the program has a completion script for each shell.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use expect_test::expect_file;

use crate::test_home::TestHome;

/// Manual pages that no command generates.
const HAND_WRITTEN: &[&str] = &["kontekst-config.5"];

/// Checks that a folder of the project has exactly `files` (name and text) and the hand-written ones.
#[track_caller]
fn check(folder: &str, files: &BTreeMap<String, String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let stale: Vec<PathBuf> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            !files.contains_key(name) && !HAND_WRITTEN.contains(&name)
        })
        .collect();
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for path in &stale {
            fs::remove_file(path).unwrap();
        }
    } else {
        assert!(stale.is_empty(), "left over from commands that no longer exist: {stale:?}");
    }
    for (name, text) in files {
        expect_file![folder.join(name)].assert_eq(text);
    }
}

#[test]
fn comments_of_examples_are_not_broken_on_a_narrow_terminal() {
    fn check(command: &clap::Command) {
        let helps = [command.get_after_help(), command.get_after_long_help()];
        for help in helps.into_iter().flatten().map(ToString::to_string) {
            for line in help.lines().filter(|line| line.contains(" # ")) {
                assert!(line.chars().count() < 80, "{}: {line}", command.get_name());
            }
        }
        command.get_subcommands().for_each(check);
    }
    check(&kontekst::cli::command());
}

#[test]
fn each_shell_has_a_completion_script() {
    let home = TestHome::with_config("");
    for shell in ["bash", "fish", "zsh"] {
        let script = home.run(&["completions", shell]).success();
        assert!(script.contains("kontekst") && script.lines().count() > 3, "{shell}: {script}");
    }
    for unused in ["propose-line", "exec-child", "render-template", "convert-page", "spawned"] {
        assert!(kontekst::cli::command().find_subcommand(unused).is_none(), "no person uses {unused}");
    }
}

#[test]
fn man_pages() {
    let made = tempfile::tempdir().unwrap();
    clap_mangen::generate_to(kontekst::cli::command(), made.path()).unwrap();
    let page = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    let pages = fs::read_dir(made.path()).unwrap().map(|entry| page(entry.unwrap().path()));
    check("man", &pages.collect());
}
