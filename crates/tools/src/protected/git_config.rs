//! The configurations of new repositories that make git run nothing.

use std::path::{Component, Path, PathBuf};

use super::{Access, class_of};

/// Returns true if the configuration at `path` has only what `git init`, `git clone`, submodules and the name of a person
/// need. Every other key may name a program.
pub(super) fn is_plain_config(text: &str, path: &Path) -> bool {
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

/// Returns the path that `path` leads to from `dir`, which has no links. `None` if it leads outside, or if a `..` comes after
/// a name, which may be a link.
pub(super) fn joined(dir: &Path, path: &Path) -> Option<PathBuf> {
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
        "remote" => (key == "url" && is_plain_url(value)) || matches!(key, "fetch" | "mirror" | "tagopt"),
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
}
