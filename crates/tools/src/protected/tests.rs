//! Tests of the table and of how names are compared.

use super::{
    table::{CLASSES, Guards},
    *,
};

/// Returns a path for each name that may not be written without asking, with `x` in place of what may be anything.
pub(crate) fn sample_paths() -> Vec<String> {
    let guarded =
        CLASSES.iter().filter(|class| matches!(class.guards, Guards::ReadsAndWrites | Guards::Writes));
    let names = guarded.flat_map(|class| class.names);
    let path = |name: &&str| {
        let end = if name.ends_with('/') { "x" } else { "" };
        format!("{}{end}", name.replace('*', "x"))
    };
    names.map(path).collect()
}

#[test]
fn the_table_is_in_the_form_that_is_compared() {
    let mut seen = std::collections::HashSet::new();
    for class in CLASSES {
        for name in class.names {
            let parts = name.strip_suffix('/').unwrap_or(name).split('/');
            assert!(parts.clone().count() <= dir::NAMES_ABOVE + 1, "{name}");
            for part in parts {
                assert_eq!(normalized(part), *part, "{name}");
                assert!(!part.is_empty() && part.matches('*').count() <= 1, "{name}");
            }
            assert!(seen.insert(name), "{name} is in the table twice");
        }
    }
    assert!(seen.len() >= 151);
}

#[test]
fn the_documentation_has_the_table() {
    let mut page = "# Protected files\n\n\
        This is the table in `crates/tools/src/protected/table.rs`, and `UPDATE_EXPECT=1 cargo test` writes it. \
        [security.md](security.md) says what it means.\nA name with `/` at its end stands for a directory and \
        everything in it, one `*` for any characters. \
        Letters of both cases count.\n\n| the file | without your approval | names |\n|---|---|---|\n"
        .to_owned();
    for class in CLASSES {
        let access = match class.guards {
            Guards::ReadsAndWrites => "not read, not written, and read-only for commands",
            Guards::Writes => "not written, and read-only for commands",
            Guards::UnapprovedReads => "not read by `kontekst run` itself; written as any other file",
            Guards::Nothing => "written as any other file",
        };
        let names: Vec<String> = class.names.iter().map(|name| format!("`{name}`")).collect();
        page.push_str(&format!("| {} | {access} | {} |\n", class.reason, names.join(" ")));
    }
    expect_test::expect_file!["../../../../docs/protected-files.md"].assert_eq(&page);
}

#[test]
fn names_are_compared_as_the_most_lenient_file_system_does() {
    for path in [
        ".git",
        ".GIT/config",
        ".git./config",
        ".git ./config",
        ".g\u{200B}it/config",
        ".\u{17F}\u{17F}h/authorized_keys", // the long s
        ".\u{212A}ube/config",              // the Kelvin sign
        "a/.Env",
        "docs/AGENTS.MD",
        "sub/.github/Workflows/x.yml",
        "a/repo.git/hooks/post-receive",
        "/home/me/.config/systemd/user/x.service",
    ] {
        assert!(class_of(path, Access::Write).is_some(), "{path}");
    }
    #[rustfmt::skip]
    let paths = [
        "Makefile", "package.json", "src/main.rs", "git/config", "x.gitx/hooks/y", ".gitignore",
        ".github/FUNDING.yml", "env", "x.env", "agents.md.txt", "workflows/ci.yml",
        ".config/nextest.toml", "..hidden", ".bashrc/x", "/",
    ];
    for path in paths {
        assert!(class_of(path, Access::Write).is_none(), "{path}");
    }
    for path in ["prod.env", "secrets.txt", "a/token"] {
        assert!(class_of(path, Access::UnapprovedRead).is_some(), "{path}");
        assert!(class_of(path, Access::Write).is_none(), "{path}");
    }
    assert!(class_of(".env", Access::Read).is_some() && class_of(".ssh/id", Access::Read).is_some());
    assert!(class_of(".bashrc", Access::Read).is_none() && class_of(".git/HEAD", Access::Read).is_none());
}

#[test]
fn text_with_deceptive_characters_is_noticed() {
    assert!(hidden_character_caution("a \u{202E}txt.exe").unwrap().contains("U+202E"));
    assert!(hidden_character_caution("tag \u{E0041}").is_some());
    for c in [
        '\u{AD}',
        '\u{34F}',
        '\u{115F}',
        '\u{17B4}',
        '\u{2800}',
        '\u{3164}',
        '\u{FFA0}',
        '\u{1D173}',
        '\u{FFFE}',
    ] {
        assert!(hidden_character_caution(&format!("rm{c} x")).is_some(), "{c:?}");
        assert!(class_of(&format!(".en{c}v"), Access::Write).is_some(), "{c:?}");
    }
    // A variation selector belongs to a character that has variants, and says something else after any other.
    assert!(hidden_character_caution("rm\u{FE0F} x").is_some());
    assert!(
        hidden_character_caution("❤\u{FE0F}\u{FE0E}").is_some()
            && class_of(".e\u{FE00}nv", Access::Write).is_some()
    );
    assert_eq!(
        hidden_character_caution("\u{FEFF}naïve 日本 👩\u{200D}❤\u{FE0F} 1\u{FE0F}\u{20E3} \t\n"),
        None
    );
}
