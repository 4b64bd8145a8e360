//! The files of a git directory that steer git, and those of them that do no harm.

use std::path::Path;

use super::normalized;

/// The part of a git directory that a path is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is in no `.git`.
    Outside,
    /// A git directory, or a directory above others: those of submodules and of further working trees.
    Directory,
    /// It can make git run a program, or use another configuration.
    Steers,
    /// Something else in a git directory, in which git writes.
    Other,
}

/// The names in a git directory that steer git.
const STEERS: &[&str] = &["hooks", "config", "config.worktree", "info", "commondir"];
/// The directories in a git directory with git directories in them, at any depth.
const NESTED: &[&str] = &["modules", "worktrees"];
/// Directories of a git directory with names that anybody chooses.
const DATA: &[&str] = &["objects", "refs", "logs"];

/// Returns what the path is. `.git` itself counts only as a directory.
pub(super) fn place_of(path: &Path, is_dir: bool) -> Place {
    let mut names = path.iter();
    if !names.any(|name| name == ".git") {
        return Place::Outside;
    }
    let inner: Vec<&str> = names.map(|name| name.to_str().unwrap_or_default()).collect();
    let Some((name, above)) = inner.split_last() else {
        return if is_dir { Place::Directory } else { Place::Outside };
    };
    let is_in_git_dir = above.is_empty() || (NESTED.contains(&above[0]) && above.len() > 1);
    if is_in_git_dir && STEERS.contains(name) {
        return Place::Steers;
    }
    let leads_on = NESTED.contains(inner.first().unwrap_or(&"")) && !DATA.contains(name);
    if is_dir && leads_on { Place::Directory } else { Place::Other }
}

/// The longest configuration of a new repository, in bytes.
pub(in crate::tools) const MAX_CONFIG: u64 = 64 * 1024;

/// Returns true for `hooks` and `info` of a git directory themselves: a `.git`, a bare repository named `*.git` or the
/// directory of a submodule. `item` is the protected path, and `inner` a path in it.
pub(in crate::tools) fn is_harmless_dir(item: &Path, inner: &Path) -> bool {
    inner.as_os_str().is_empty() && matches!(git_item(item), Some("hooks" | "info"))
}

/// Returns true if a new regular file of a git directory neither runs nor configures anything. `item` is the protected path,
/// and `inner` the path in it, which is empty for the file itself. `content` returns the text of the file.
pub(in crate::tools) fn is_harmless_file(
    item: &Path,
    inner: &Path,
    content: impl FnOnce() -> Option<String>,
) -> bool {
    let inner = inner.to_str().unwrap_or_default();
    match git_item(item) {
        // Git runs a hook only by its exact name.
        Some("hooks") => inner.ends_with(".sample") && !inner.contains('/'),
        Some("info") => matches!(inner, "exclude" | "refs" | "sparse-checkout"),
        Some("config") => inner.is_empty() && content().is_some_and(|text| is_plain_config(&text)),
        _ => false,
    }
}

/// Returns the last name of a path that steers git.
fn git_item(item: &Path) -> Option<&str> {
    let of_bare = || {
        let above = item.parent().and_then(Path::file_name).map(|name| normalized(&name.to_string_lossy()));
        above.is_some_and(|name| name.ends_with(".git"))
    };
    let name = item.file_name()?.to_str()?;
    (place_of(item, false) == Place::Steers || of_bare()).then_some(name)
}

/// Returns true if the configuration has only what `git init`, `git clone` and the name of a person need. Every other key
/// may name a program.
fn is_plain_config(text: &str) -> bool {
    let mut section = String::new();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])).all(|line| {
        if let Some(head) = line.strip_prefix('[') {
            let Some((name, "")) = head.split_once(']') else { return false };
            name.split_whitespace().next().unwrap_or_default().to_lowercase().clone_into(&mut section);
            return true;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        // A backslash at the end continues the value in the next line.
        is_plain_key(&section, key.trim().to_lowercase().as_str(), value.trim()) && !line.ends_with('\\')
    })
}

fn is_plain_key(section: &str, key: &str, value: &str) -> bool {
    match section {
        "core" => matches!(
            key,
            "repositoryformatversion"
                | "filemode"
                | "bare"
                | "logallrefupdates"
                | "ignorecase"
                | "precomposeunicode"
                | "symlinks"
        ),
        "extensions" => matches!(key, "objectformat" | "refstorage"),
        "remote" => (key == "url" && is_plain_url(value)) || key == "fetch",
        "branch" => (key == "remote" && is_plain_url(value)) || key == "merge",
        "user" => matches!(key, "name" | "email"),
        "init" => key == "defaultbranch",
        _ => false,
    }
}

/// Returns false for a URL such as `ext::sh -c …`, which runs a program, and for what could be read as an option.
fn is_plain_url(value: &str) -> bool {
    // A quotation mark can stand anywhere in a value, and is no part of it.
    let url = value.replace('"', "");
    !url.contains("::") && !url.starts_with('-') && !url.contains('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_a_new_repository_is_plain_and_others_are_not() {
        let of_init = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";
        let of_clone = "[remote \"origin\"]\n\turl = /a/b c.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                        [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n# x\n[user]\nname = A B\n";
        assert!(is_plain_config(of_init) && is_plain_config(&format!("{of_init}{of_clone}")));
        for bad in [
            "[core]\n\tfsmonitor = evil",
            "[core] fsmonitor = evil",
            "[CORE]\nhooksPath = x",
            "[core \"x\"]\npager = x",
            "[alias]\nst = !evil",
            "[include]\npath = evil",
            "[includeIf \"gitdir:x\"]\npath = evil",
            "[remote \"a\"]\nurl = ext::sh -c evil",
            "[remote \"a\"]\nurl = ext:\":\"sh -c evil",
            "[remote \"a\"]\nurl = \"--upload-pack=evil\"",
            "[branch \"a\"]\nremote = ext::sh -c evil",
            "[remote \"a\"]\nuploadpack = evil",
            "[remote \"]\"]\nvcs = evil",
            "[user]\nname = a\\\n[core]\nfsmonitor = evil",
            "[user]\nname = a \\\nfsmonitor = evil",
            "fsmonitor = evil",
        ] {
            assert!(!is_plain_config(bad), "{bad}");
        }
    }

    #[test]
    fn samples_and_excludes_of_a_new_repository_do_no_harm() {
        let check = |item: &str, inner: &str| {
            is_harmless_file(Path::new(item), Path::new(inner), || Some(String::new()))
        };
        for (item, inner) in [
            (".git/hooks", "pre-commit.sample"),
            ("a/.git/info", "exclude"),
            ("x.git/hooks", "update.sample"),
            (".git/modules/a/b/config", ""),
            (".git/config", ""),
        ] {
            assert!(check(item, inner), "{item} {inner}");
        }
        for (item, inner) in [
            (".git/hooks", "pre-commit"),
            (".git/hooks", "a/b.sample"),
            (".git/hooks", ""),
            (".git/info", "attributes"),
            (".git/config.worktree", ""),
            (".git/commondir", ""),
            ("a/config", ""),
            ("hooks", "x.sample"),
            (".husky", "x.sample"),
            (".git", "info"),
        ] {
            assert!(!check(item, inner), "{item} {inner}");
        }
        assert!(is_harmless_dir(Path::new(".git/hooks"), Path::new("")));
        assert!(!is_harmless_dir(Path::new(".git/hooks"), Path::new("a")));
        assert!(!is_harmless_dir(Path::new(".vscode"), Path::new("")));
    }
}
