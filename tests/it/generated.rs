//! Checks that `man/` and `completions/` match the command line. `UPDATE_EXPECT=1 cargo test --test it generated`
//! writes them again.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use clap_complete::{Shell, generate};
use expect_test::expect_file;

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
fn completions() {
    let shells = [(Shell::Bash, "kontekst.bash"), (Shell::Fish, "kontekst.fish"), (Shell::Zsh, "_kontekst")];
    let script = |shell| {
        let mut script = Vec::new();
        generate(shell, &mut kontekst::cli::command(), "kontekst", &mut script);
        let script = String::from_utf8(script).unwrap();
        for hidden in ["propose-line", "exec-child", "render-template", "spawned"] {
            assert!(!script.contains(hidden), "no person uses {hidden}");
        }
        script
    };
    check("completions", &shells.map(|(shell, name)| (name.to_owned(), script(shell))).into());
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
