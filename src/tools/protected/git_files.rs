//! The files of a git directory that steer git, and those of them that do no harm.

use std::{
    fs::File,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use super::{Access, class_of, normalized};

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
    // A submodule can have the name of such a directory.
    let is_data = DATA.contains(name) && above.len() > 1;
    let leads_on = NESTED.contains(inner.first().unwrap_or(&"")) && !is_data;
    if is_dir && leads_on { Place::Directory } else { Place::Other }
}

/// The longest configuration of a new repository, in bytes.
const MAX_CONFIG: u64 = 64 * 1024;

/// Returns the text of a small file.
pub(in crate::tools) fn text_of(file: &File) -> Option<String> {
    let mut text = String::new();
    file.take(MAX_CONFIG + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_CONFIG).then_some(text)
}

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
        Some("config") => inner.is_empty() && content().is_some_and(|text| is_plain_config(&text, item)),
        Some("commondir") => {
            inner.is_empty() && is_of_worktree(item) && content().as_deref() == Some("../..\n")
        }
        _ => false,
    }
}

/// Returns true if the path is in the directory that git has for a further working tree, directly within a git directory.
fn is_of_worktree(path: &Path) -> bool {
    let mut names = path.iter().skip_while(|name| *name != ".git").skip(1);
    let inner: Vec<&str> = names.by_ref().map(|name| name.to_str().unwrap_or_default()).collect();
    match &inner[..] {
        ["worktrees", _, _] => true,
        [first, _, .., "worktrees", _, _] => NESTED.contains(first),
        _ => false,
    }
}

/// Returns the git directory that a file named `.git` stands for, if it is that of a submodule or of a further working tree
/// within the working directory. `path` is where the file is, and `roots` are the absolute paths of the working directory.
/// The files there that steer git are protected as in any other git directory.
pub(in crate::tools) fn git_dir_of(path: &Path, text: &str, roots: &[String]) -> Option<PathBuf> {
    let given = text.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']);
    if path.file_name()? != ".git" || given.chars().any(char::is_control) {
        return None;
    }
    let git_dir = match Path::new(given) {
        absolute if absolute.is_absolute() => {
            roots.iter().find_map(|root| absolute.strip_prefix(root).ok())?.to_owned()
        }
        relative => joined(path.parent()?, relative)?,
    };
    let is_plain = git_dir.components().all(|name| matches!(name, Component::Normal(_)));
    let inner: Vec<&str> =
        git_dir.iter().skip_while(|name| *name != ".git").skip(1).filter_map(|name| name.to_str()).collect();
    // Below a directory such as `objects` nothing is protected.
    let is_nested = matches!(&inner[..], [first, _, rest @ ..]
        if NESTED.contains(first) && !rest.iter().any(|name| DATA.contains(name)));
    (is_plain && is_nested).then_some(git_dir)
}

/// Returns the path that `path` leads to from `dir`, which has no links. `None` if it leads outside, or if a `..` comes after
/// a name, which may be a link.
fn joined(dir: &Path, path: &Path) -> Option<PathBuf> {
    let mut found = dir.to_owned();
    let mut is_below = false;
    for component in path.components() {
        match component {
            Component::ParentDir if !is_below && found.pop() => {}
            Component::Normal(name) => {
                is_below = true;
                found.push(name);
            }
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
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

/// Returns true if the configuration at `path` has only what `git init`, `git clone`, submodules and the name of a person
/// need. Every other key may name a program.
fn is_plain_config(text: &str, path: &Path) -> bool {
    let mut section = String::new();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])).all(|line| {
        if let Some(head) = line.strip_prefix('[') {
            let Some((name, "")) = head.split_once(']') else { return false };
            name.split_whitespace().next().unwrap_or_default().to_lowercase().clone_into(&mut section);
            return true;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        // A backslash at the end continues the value in the next line.
        let (key, value) = (key.trim().to_lowercase(), value.trim());
        let is_plain = match (&*section, &*key) {
            ("core", "worktree") => is_submodule_dir(path, value),
            _ => is_plain_key(&section, &key, value),
        };
        is_plain && !line.ends_with('\\')
    })
}

/// Returns true if the value is a directory within the working directory that contains the `.git` of the configuration, and
/// no protected name. In it git writes what it checks out.
fn is_submodule_dir(config: &Path, value: &str) -> bool {
    let Some(git_dir) = config.parent() else { return false };
    let above: PathBuf = git_dir.iter().take_while(|name| *name != ".git").collect();
    let is_submodule = git_dir.iter().skip_while(|name| *name != ".git").any(|name| name == "modules");
    let dir = joined(git_dir, Path::new(value));
    is_submodule
        && !value.contains(['"', '\\', '#', ';'])
        && dir.is_some_and(|dir| {
            let shown = dir.to_string_lossy();
            dir != above
                && dir.starts_with(&above)
                && class_of(&format!("{shown}/x"), Access::Write).is_none()
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
        "submodule" => match key {
            "url" => is_plain_url(value),
            // Another value can be a program.
            "update" => matches!(value, "checkout" | "rebase" | "merge" | "none"),
            _ => key == "active",
        },
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
        let is_plain = |text: &str| is_plain_config(text, Path::new(".git/config"));
        assert!(is_plain(of_init) && is_plain(&format!("{of_init}{of_clone}")));
        assert!(is_plain("[submodule \"a\"]\n\turl = ../a\n\tactive = true\n\tupdate = merge\n"));
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
            "[submodule \"a\"]\nupdate = !evil",
            "[submodule \"a\"]\nurl = ext::sh -c evil",
            "[core]\nworktree = ../src",
        ] {
            assert!(!is_plain(bad), "{bad}");
        }
    }

    #[test]
    fn the_configuration_of_a_submodule_names_a_directory_beside_the_git_directory() {
        let check = |dir: &str| {
            is_plain_config(&format!("[core]\n\tworktree = {dir}\n"), Path::new("p/.git/modules/a/b/config"))
        };
        assert!(check("../../../../a/b") && check("../../../../lib"));
        for bad in [
            "../../../..",
            "../../../../..",
            "../../../../../q",
            "/a",
            "../../../../.github/workflows",
            "../../../../a/..",
            "x\"",
            "a",
        ] {
            assert!(!check(bad), "{bad}");
        }
    }

    #[test]
    fn a_git_file_stands_for_the_git_directory_of_a_submodule_or_a_working_tree() {
        let roots = ["/w".to_owned()];
        let check = |path: &str, text: &str| git_dir_of(Path::new(path), text, &roots);
        for (path, text, expect) in [
            ("lib/.git", "gitdir: ../.git/modules/lib\n", ".git/modules/lib"),
            ("a/b/.git", "gitdir: ../../.git/modules/a/b\n", ".git/modules/a/b"),
            ("tree/.git", "gitdir: /w/.git/worktrees/tree\n", ".git/worktrees/tree"),
            ("a/tree/.git", "gitdir: /w/a/.git/worktrees/tree", "a/.git/worktrees/tree"),
        ] {
            assert_eq!(check(path, text).as_deref(), Some(Path::new(expect)), "{path} {text}");
        }
        for (path, text) in [
            ("lib/.git", "gitdir: ../evil\n"),
            ("lib/.git", "gitdir: ../.git\n"),
            ("lib/.git", "gitdir: ../.git/modules\n"),
            ("lib/.git", "gitdir: ../../.git/modules/lib\n"),
            ("lib/.git", "gitdir: ../a/../.git/modules/lib\n"),
            ("lib/.git", "gitdir: ../.git/modules/lib/objects/x\n"),
            ("lib/.git", "gitdir: ../.git/objects/x\n"),
            ("lib/.git", "gitdir: /w/../x/.git/modules/lib\n"),
            ("lib/.git", "gitdir: /elsewhere/.git/modules/lib\n"),
            ("lib/.git", "gitdir: ../.git/modules/a\nb\n"),
            ("lib/git", "gitdir: ../.git/modules/lib\n"),
            ("lib/.git", "../.git/modules/lib\n"),
        ] {
            assert_eq!(check(path, text), None, "{path} {text}");
        }
    }

    #[test]
    fn the_git_directory_of_a_working_tree_uses_the_one_around_it() {
        let check = |item: &str, text: &str| {
            is_harmless_file(Path::new(item), Path::new(""), || Some(text.to_owned()))
        };
        assert!(check(".git/worktrees/a/commondir", "../..\n"));
        assert!(check("x/.git/modules/a/b/worktrees/c/commondir", "../..\n"));
        for (item, text) in [
            (".git/worktrees/a/commondir", "../../../evil\n"),
            (".git/modules/worktrees/a/commondir", "../..\n"),
            (".git/modules/a/commondir", "../..\n"),
            (".git/commondir", "../..\n"),
        ] {
            assert!(!check(item, text), "{item} {text}");
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
