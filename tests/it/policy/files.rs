//! The files: their mistakes, and what is added to them.

use std::{fs, os::unix::fs::symlink};

use super::TestPolicy;

#[test]
fn a_file_with_a_mistake_is_not_used_and_the_place_is_named() {
    let policy = TestPolicy::new("");
    let file = policy.home().policy().display().to_string();
    for (text, expected) in [
        ("allow = [\"edit_file\"", ", line 1, column "),
        (
            "alow = [\"edit_file\"]",
            ", line 1, column 1: there is no key `alow` here: there are `allow`, `ask`",
        ),
        (
            "ask = []\nallow = [\n  \"edit_fil\",\n]",
            ", line 3, column 3: no tool is called `edit_fil`; there are read_file",
        ),
        ("deny = [\"edit_file(a\"]", ", line 1, column 9: `edit_file(a` has no `)` at its end"),
        ("deny = [\"edit_file()\"]", ", line 1, column 9: there is nothing between the parentheses"),
        ("deny = [\"list_files(a)\"]", ", line 1, column 9: a rule about list_files has no target"),
        ("deny = [\"edit_file(a[)\"]", ", line 1, column 9: `a[` is no pattern for paths"),
        ("deny = [\"web_fetch(a b)\"]", ", line 1, column 9: `a b` is not the name of a host"),
        ("deny = \"edit_file\"", ", line 1, column 8: a list of texts is expected"),
        ("deny = [1]", ", line 1, column 9: a list of texts is expected"),
        ("commands = \"all\"", ", line 1, column 12: the only value is \"sandboxed\""),
        ("[headless.headless]\n", ", line 1, column "),
        ("[dir.\"relative\"]\nallow = []", ", line 1, column 6: the name of a directory is an absolute path"),
        ("[dir.\"/elsewhere\"]\nallow = [\"nope\"]", ", line 2, column 10: no tool is called `nope`"),
        ("[dir.\"/a\".dir.\"/b\"]\n", ": there is no key `dir` here"),
    ] {
        policy.write_user(text);
        let error = policy.error();
        assert!(
            error.starts_with(&format!("{file}{expected}"))
                || (error.starts_with(&file) && error.contains(expected)),
            "{text}: {error}"
        );
    }
}

#[test]
fn the_file_of_a_project_allows_nothing_whatever_it_is() {
    let policy = TestPolicy::new("");
    for text in [
        "allow = [\"edit_file\"]",
        "commands = \"sandboxed\"",
        "[headless]\nallow = [\"edit_file\"]",
        "Allow = []",
        "[dir.\"/\"]\ndeny = []",
    ] {
        policy.write_project(text);
        let error = policy.error();
        assert!(error.contains("can only tighten") || error.contains("there is no key"), "{text}: {error}");
    }
    // A link to a file that allows is still the file of a project.
    policy.write_project("");
    policy.write("loose.toml", "allow = [\"edit_file\"]");
    fs::remove_file(policy.work_dir().join(".kontekst/policy.toml")).unwrap();
    symlink("../loose.toml", policy.work_dir().join(".kontekst/policy.toml")).unwrap();
    assert!(policy.error().contains("can only tighten"));
    // Something else than a file is not silently left out.
    fs::remove_file(policy.work_dir().join(".kontekst/policy.toml")).unwrap();
    fs::create_dir(policy.work_dir().join(".kontekst/policy.toml")).unwrap();
    assert!(policy.error().contains("policy.toml"));
}

#[test]
fn a_rule_is_added_once_and_comments_stay() {
    let policy =
        TestPolicy::new("# mine\nallow = [\"list_files\"] # all\n\n[headless]\nask = [\"web_fetch\"]\n");
    let (loaded, work_dir) = policy.load().unwrap();
    let rules = ["edit_file".to_owned(), "run_command(cargo test)".to_owned()];
    let written = loaded.allow(&rules).unwrap();
    let places: Vec<_> = written.iter().map(|rule| (rule.text.as_str(), rule.line)).collect();
    assert_eq!(places, [("edit_file", 9), ("run_command(cargo test)", 10)]);
    let target = kontekst_tools::policy::CallTarget::Path("x");
    let verdict = loaded.decide("edit_file", &target, &work_dir);
    assert_eq!(verdict.decision, Some(kontekst_tools::policy::Decision::Allow), "it counts at once");
    let text = fs::read_to_string(policy.home().policy()).unwrap();
    let dir = policy.work_dir();
    assert_eq!(
        text,
        format!(
            "# mine\nallow = [\"list_files\"] # all\n\n[headless]\nask = [\"web_fetch\"]\n\n[dir.\"{}\"]\nallow = [\n    \"edit_file\",\n    \"run_command(cargo test)\",\n]\n",
            dir.display()
        )
    );
    loaded.allow(&rules[..1]).unwrap();
    loaded.allow(&["skill".to_owned()]).unwrap();
    let again = fs::read_to_string(policy.home().policy()).unwrap();
    assert_eq!(
        again,
        text.replace(
            "    \"run_command(cargo test)\",\n",
            "    \"run_command(cargo test)\",\n    \"skill\",\n"
        )
    );
    // A file with a mistake stays as it is.
    policy.write_user("allow = [");
    assert!(loaded.allow(&rules).is_err());
    assert_eq!(fs::read_to_string(policy.home().policy()).unwrap(), "allow = [");
}

#[test]
fn many_threads_lose_no_rule() {
    let policy = TestPolicy::new("");
    let (loaded, _) = policy.load().unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let loaded = &loaded;
            scope.spawn(move || loaded.allow(&[format!("run_command(make {number})")]).unwrap());
        }
    });
    for number in 0..8 {
        assert_eq!(policy.decide(&format!("run_command(make {number})")), "allow");
    }
}
