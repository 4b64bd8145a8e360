//! Files that control other programs or later runs. A person must approve each write to one of them.
//!
//! Names are compared without regard to case, to dots and spaces at the end, and to invisible characters,
//! because some file systems and programs ignore these as well.

/// The directories whose content is protected at any depth.
const DIRECTORIES: &[&str] = &[
    ".git",
    ".kontekst",
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".docker",
    ".vscode",
    ".idea",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
];

/// Directories that are protected only inside the directory that is named first.
const NESTED: &[(&str, &[&str])] = &[
    (".github", &["workflows", "actions"]),
    (".config", &["autostart", "systemd", "fish", "git", "environment.d"]),
    (".local", &["bin"]),
];

const FILES: &[&str] = &[
    "agents.md",
    "claude.md",
    "gemini.md",
    "skill.md",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".xprofile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".netrc",
    ".mcp.json",
    ".vimrc",
    ".pre-commit-config.yaml",
    ".gitlab-ci.yml",
];

/// Returns a sentence that says why a write to `path` needs approval, or `None` if the path is not
/// protected. `path` is relative and has no links.
pub(super) fn path_caution(path: &str) -> Option<String> {
    let names: Vec<String> = path.split('/').map(normalized).collect();
    let (file, dirs) = names.split_last()?;
    let all_but_first = names.iter().skip(1);
    let nested = names.iter().zip(all_but_first).any(|(outer, inner)| {
        NESTED.iter().any(|(name, within)| name == outer && within.contains(&inner.as_str()))
    });
    // The last name counts as well, because `.git` may be a file that points to the real directory.
    let in_directory = dirs.iter().chain([file]).any(|name| DIRECTORIES.contains(&name.as_str()));
    let is_file = FILES.contains(&file.as_str()) || file.starts_with(".env");
    (nested || in_directory || is_file)
        .then(|| format!("{path} steers other programs or later runs (a protected name)"))
}

/// Returns a sentence that says why every write in the working directory of this absolute path needs
/// approval, or `None` if the directory is not protected.
pub(super) fn root_caution(name: &str) -> Option<String> {
    // `x` stands for any file in it.
    path_caution(&format!("{}/x", name.trim_matches('/')))
        .map(|_| format!("the working directory {name} steers other programs (a protected name)"))
}

/// Returns a sentence about the first character that makes the text look different from what it says, if
/// there is one.
pub(super) fn hidden_character_caution(text: &str) -> Option<String> {
    let found = text.chars().find(|&c| is_deceptive(c))?;
    Some(format!("the text has an invisible or direction-changing character (U+{:04X})", u32::from(found)))
}

/// Returns true for a character that changes the direction of the text around it, and for invisible
/// tag characters.
pub(super) fn is_deceptive(c: char) -> bool {
    is_bidi(c) || is_tag(c)
}

fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{E0000}'..='\u{E007F}')
}

fn normalized(name: &str) -> String {
    let visible = name.chars().filter(|&c| {
        !is_deceptive(c)
            && !matches!(c, '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{AD}')
    });
    let name: String = visible.flat_map(char::to_lowercase).collect();
    name.trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_files_are_recognised_in_any_spelling() {
        for path in [
            ".git/hooks/pre-commit",
            ".git/config",
            "sub/.git/config",
            ".git",
            ".GIT/config",
            ".git./config",
            ".g\u{200B}it/config",
            ".kontekst/config.toml",
            ".env",
            ".env.local",
            ".envrc",
            "a/.Env",
            "AGENTS.md",
            "agents.md",
            "docs/AGENTS.MD",
            "skills/x/SKILL.md",
            ".ssh/authorized_keys",
            ".bashrc",
            ".profile",
            ".zshrc",
            ".vscode/tasks.json",
            ".github/workflows/ci.yml",
            "a/.github/Workflows/x.yml",
            ".config/systemd/user/x.service",
            ".cargo/config.toml",
            ".mcp.json",
        ] {
            assert!(path_caution(path).is_some(), "{path}");
        }
        for path in [
            "Makefile",
            "src/main.rs",
            "git/config",
            ".gitignore",
            ".github/FUNDING.yml",
            "env",
            "x.env",
            "agents.md.txt",
            "workflows/ci.yml",
            ".config/nextest.toml",
            "..hidden",
        ] {
            assert_eq!(path_caution(path), None, "{path}");
        }
    }

    #[test]
    fn a_working_directory_can_be_protected_itself() {
        assert!(root_caution("/home/me/.kontekst/agents").is_some());
        assert!(root_caution("/home/me/.ssh").is_some());
        assert_eq!(root_caution("/home/me/project"), None);
    }

    #[test]
    fn text_with_deceptive_characters_is_noticed() {
        assert!(hidden_character_caution("a \u{202E}txt.exe").unwrap().contains("U+202E"));
        assert!(hidden_character_caution("tag \u{E0041}").is_some());
        assert_eq!(hidden_character_caution("naïve 日本 👩\u{200D}👩 \t\n"), None);
    }
}
