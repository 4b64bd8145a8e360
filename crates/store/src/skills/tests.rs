//! Tests of loading skills and of the problems that are reported.

use std::{fs, os::unix::fs::symlink};

use expect_test::expect;

use super::*;

fn home(files: &[(&str, &str)]) -> (tempfile::TempDir, Home) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::find(Some(dir.path().join("data"))).unwrap();
    home.create().unwrap();
    for (name, text) in files {
        let path = home.skills().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (dir, home)
}

fn shown(home: &Home, skills: &Skills) -> String {
    let root = home.skills().display().to_string();
    let mut shown = String::new();
    for skill in skills.iter() {
        let path = skill.path.strip_prefix(&root).unwrap().display();
        shown += &format!("{} ({path}): {} | {}\n", skill.name, skill.description, skill.body);
    }
    for problem in skills.problems() {
        shown += &format!("! {}\n", problem.to_string().replace(&root, ""));
    }
    shown
}

#[test]
fn files_and_directories_are_skills_and_problems_are_reported() {
    let (_dir, home) = home(&[
        (
            "summarize.md",
            "+++\nname = \"summarize\"\ndescription = \"Summarize a file\"\n+++\n\nSummarize: $ARGUMENTS\n",
        ),
        ("review/SKILL.md", "---\nname: review\ndescription: |\n  Review\n  it\n---\n\nReview $0.\n"),
        ("review/notes.md", "not a skill"),
        ("plain.md", "only a body"),
        ("both/SKILL.md", "the directory"),
        ("both.md", "the file"),
        ("bad-toml.md", "+++\nname = \n+++\nbody"),
        ("bad-yaml/SKILL.md", "---\nname: x\n\tdescription: y\n---\nbody"),
        ("bad-name.md", "+++\nname = \"../../etc\"\n+++\nbody"),
        ("long.md", &"x".repeat(64 * 1024 + 1)),
        ("notes.txt", "not a skill"),
        (".hidden.md", "not a skill"),
        ("empty-dir/other.txt", "not a skill"),
        ("a b.md", "a name with a space"),
    ]);
    fs::write(home.skills().join("latin.md"), b"\xe9").unwrap();
    symlink("/etc/passwd", home.skills().join("out.md")).unwrap();
    symlink("/etc", home.skills().join("outdir")).unwrap();
    symlink("summarize.md", home.skills().join("alias.md")).unwrap();
    fs::create_dir(home.skills().join("dir.md")).unwrap();
    expect![[r#"
        bad-name (bad-name.md):  | body
        both (both.md):  | the file
        plain (plain.md):  | only a body
        review (review/SKILL.md): Review it | Review $0.
        summarize (summarize.md): Summarize a file | Summarize: $ARGUMENTS
        ! /a b.md: `a b` is not a name: use letters, digits, `.`, `_` and `-`, at most 128, the first a letter or digit
        ! /bad-name.md: `../../etc` is not a name: use letters, digits, `.`, `_` and `-`, at most 128, the first a letter or digit
        ! /bad-toml.md, line 2: string values must be quoted, expected literal string
        ! /bad-yaml/SKILL.md, line 2: while scanning a plain scalar, found a tab
        ! /both/SKILL.md: not used: /both.md is also skill `both`
        ! /dir.md: not a regular file
        ! /latin.md: stream did not contain valid UTF-8
        ! /long.md: 65537 bytes, the limit is 65536
        ! /out.md: a link that leads out of the skills directory
        ! /outdir/SKILL.md: a link that leads out of the skills directory
        ! /alias.md: not used: /summarize.md is also skill `summarize`
    "#]].assert_eq(&shown(&home, &Skills::load(&home)));
}

#[test]
fn front_matter_says_who_may_invoke_a_skill() {
    let (_dir, home) = home(&[
        ("a.md", "+++\ndisable_model_invocation = true\n+++\nx"),
        ("b.md", "---\nuser-invocable: false\n---\nx"),
        ("c.md", "x"),
    ]);
    let skills = Skills::load(&home);
    let names: Vec<_> = skills.for_model().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    assert!(!skills.find("b").unwrap().user_invocable);
    assert!(skills.find("c").unwrap().user_invocable);
    assert!(skills.find("d").is_none() && skills.find("../a").is_none());
}

#[test]
fn the_block_names_the_skill_and_its_directory() {
    let (_dir, home) = home(&[("review/SKILL.md", "Review $0."), ("flat.md", "Do it.")]);
    let skills = Skills::load(&home);
    let root = home.skills().display().to_string();
    assert_eq!(
        skills.find("review").unwrap().prompt_block("\"a b\""),
        format!("[Skill: review]\nBase path: {root}/review\n\nReview a b.")
    );
    assert_eq!(
        skills.find("flat").unwrap().prompt_block(""),
        format!("[Skill: flat]\nBase path: {root}\n\nDo it.")
    );
}

#[test]
fn reloading_notices_changes_and_keeps_unchanged_skills() {
    let (_dir, home) = home(&[("a.md", "one"), ("b.md", "two"), ("bad.md", "+++\nx\n+++\n")]);
    let first = Skills::load(&home);
    fs::write(home.skills().join("b.md"), "new").unwrap();
    fs::write(home.skills().join("c.md"), "three").unwrap();
    let second = first.reload(&home);
    assert_eq!(second.find("b").unwrap().body, "new");
    assert!(second.find("c").is_some());
    assert!(Arc::ptr_eq(&first.skills[&"a".parse().unwrap()], &second.skills[&"a".parse().unwrap()]));
    assert_eq!(first.problems(), second.problems(), "problems of files that did not change stay");
    fs::remove_file(home.skills().join("a.md")).unwrap();
    assert!(second.reload(&home).find("a").is_none());
}

#[test]
fn a_missing_directory_has_no_skills() {
    let (_dir, home) = home(&[]);
    fs::remove_dir(home.skills()).unwrap();
    let skills = Skills::load(&home);
    assert_eq!((skills.iter().count(), skills.problems().len()), (0, 0));
}
