//! The choice between several rules.

use super::TestPolicy;

#[test]
fn within_one_file_the_more_specific_rule_counts() {
    TestPolicy::new(
        r#"
        allow = ["edit_file(./a/exact.key)", "edit_file(a/)", "edit_file(a/b/c/)", "run_command(git)", "list_files"]
        ask = ["*", "run_command(git commit)", "edit_file(same/)"]
        deny = ["edit_file(*.key)", "edit_file(a/b/)", "run_command(git commit --amend)", "edit_file(same)"]
        "#,
    )
    .check(
        "
        allow edit_file(a/x)
        deny  edit_file(a/b/x)
        allow edit_file(a/b/c/x)
        deny  edit_file(a/b/c/x.key)
        allow edit_file(a/exact.key)
        deny  edit_file(a/other.key)
        ask   edit_file(z)
        ask   read_file(a/x)
        allow list_files
        ask   search_files
        allow run_command(git log)
        ask   run_command(git commit -m x)
        deny  run_command(git commit --amend)
        deny  edit_file(same/x)
        ",
    );
}

#[test]
fn a_section_counts_in_its_directory_and_what_tightens_also_below() {
    let policy = TestPolicy::new(
        r#"
        ask = ["edit_file"]
        [dir."$WORK"]
        allow = ["edit_file", "write_file(src/)"]
        [dir."$WORK/.."]
        allow = ["web_fetch"]
        deny = ["run_command(make)"]
        [dir."$WORK/../**"]
        allow = ["list_files"]
        [dir."/somewhere/else"]
        deny = ["*"]
        commands = "sandboxed"
        "#,
    );
    policy.check(
        "
        allow edit_file(x)
        allow write_file(src/x)
        -     web_fetch(https://docs.rs)
        deny  run_command(make)
        allow list_files
        -     skill
        ",
    );
}

#[test]
fn headless_rules_count_only_without_a_terminal_and_loosen_no_deny() {
    let text = r#"
        ask = ["web_fetch"]
        deny = ["run_command(git push)"]
        [headless]
        allow = ["web_fetch", "run_command(git)", "run_command(git push)"]
        deny = ["edit_file"]
        "#;
    TestPolicy::new(text).check(
        "
        ask  web_fetch(https://docs.rs)
        deny run_command(git push)
        -    run_command(git log)
        -    edit_file(x)
        ",
    );
    TestPolicy::new(text).headless().check(
        "
        allow web_fetch(https://docs.rs)
        deny  run_command(git push)
        allow run_command(git log)
        deny  edit_file(x)
        ",
    );
}

#[test]
fn the_file_of_a_project_tightens() {
    let policy =
        TestPolicy::new("allow = [\"edit_file(./a)\", \"run_command(make)\"]\ndeny = [\"edit_file(d)\"]");
    policy.write_project("ask = [\"edit_file\", \"run_command(make install)\"]\ndeny = [\"read_file(b/)\"]\n[headless]\ndeny = [\"web_fetch\"]");
    policy.check(
        "
        ask   edit_file(a)
        deny  edit_file(d)
        deny  read_file(b/x)
        allow run_command(make)
        ask   run_command(make install)
        -     web_fetch(https://docs.rs)
        ",
    );
    policy.headless().check("deny web_fetch(https://docs.rs)");
}

#[test]
fn the_file_of_a_project_counts_up_to_the_root_of_the_repository() {
    let mut policy = TestPolicy::new("");
    std::fs::create_dir_all(policy.work_dir().join("repository/.git")).unwrap();
    policy.write("repository/.kontekst/policy.toml", "deny = [\"edit_file(src/x)\", \"web_fetch\"]");
    policy.write("repository/src/.kontekst/policy.toml", "ask = [\"list_files\"]");
    policy.write(".kontekst/policy.toml", "deny = [\"skill\"]");
    policy.check("- web_fetch(https://docs.rs)\ndeny skill");
    policy.work_dir = Some(policy.work_dir().join("repository/src"));
    policy.check(
        "
        deny edit_file(x)
        -    edit_file(src/x)
        deny web_fetch(https://docs.rs)
        ask  list_files
        -    skill
        ",
    );
}
