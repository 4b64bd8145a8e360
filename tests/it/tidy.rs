//! What the compiler does not check: layers, forgotten files, first lines, words that do not belong here.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Modules by layer, the lowest first. A module may name what stands in a line above its own, and itself.
///
/// `doors/*` are folders that do not know each other; what they share is in `doors` itself.
const LAYERS: &[&[&str]] = &[
    &["core"],
    &["config"],
    &["engine"],
    &["provider", "context", "sessions", "tools", "skills", "models", "subagent_log"],
    &["agent"],
    &["pb"],
    &["doors"],
    &["doors/*"],
    &["daemon"],
    &["client"],
    &["cli"],
];

/// Stand for nobody's machine but the one they were written on; in pieces, so that this file has none.
const FOREIGN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("sha", "red/"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("npmjs", ".org"),
    concat!("deb.", "debian.org"),
];

/// Tests either run or are not there, and say what they expect.
const SKIPPED: &[&str] = &[concat!("#[ig", "nore"), concat!("#[should", "_panic")];

/// What is no test by itself: another test starts its own binary again to play this part.
const CHILD_PROCESS: &str = concat!("#[ig", "nore = \"the body of a process that other tests start\"]");

/// One text file of the project; `path` is relative to its root.
struct File {
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// `path:line` of each line that `is_bad`.
    fn lines(&self, is_bad: impl Fn(&str) -> bool) -> Vec<String> {
        let bad = self.text.lines().enumerate().filter(|(_, line)| is_bad(line));
        bad.map(|(number, _)| format!("{}:{}", self.path, number + 1)).collect()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Everything that git would take, and is text.
fn files() -> Vec<File> {
    let walk = ignore::WalkBuilder::new(root())
        .hidden(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let mut files = Vec::new();
    for entry in walk {
        let path = entry.unwrap().into_path();
        if path.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            files.push(File { path: path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(), text });
        }
    }
    files
}

#[track_caller]
fn assert_none(complaint: &str, found: &[String]) {
    assert!(found.is_empty(), "{complaint}:\n{}", found.join("\n"));
}

#[test]
fn layers_point_down() {
    let mut wrong = Vec::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        let Some(inside) = file.path.strip_prefix("src/") else { continue };
        if ["lib.rs", "main.rs"].contains(&inside) {
            continue;
        }
        let Some((from, module)) = layer(inside.trim_end_matches(".rs").trim_end_matches("/mod")) else {
            wrong.push(format!("{}: its module has no place in LAYERS", file.path));
            continue;
        };
        for (line, used) in crate_paths(&file.text) {
            if let Some((to, other)) = layer(&used)
                && to >= from
                && other != module
            {
                wrong.push(format!("{}:{line}: {module} may not use {used}", file.path));
            }
        }
    }
    assert_none("these point up or aside", &wrong);
}

/// The layer of a path such as `doors/kontekst/convert`, and the module of that layer that it is in.
fn layer(path: &str) -> Option<(usize, String)> {
    let mut found = None;
    for (height, modules) in LAYERS.iter().enumerate() {
        for module in *modules {
            if let Some(folder) = module.strip_suffix("/*") {
                // Only what is a folder or a file there; `doors/Stop` is an item of `doors`.
                let name = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
                let name = name.and_then(|rest| rest.split('/').next()).filter(|name| !name.is_empty());
                if let Some(name) = name.filter(|name| !name.starts_with(char::is_uppercase)) {
                    found = Some((height, format!("{folder}/{name}")));
                }
            } else if path == *module || path.strip_prefix(module).is_some_and(|rest| rest.starts_with('/')) {
                found = Some((height, (*module).to_owned()));
            }
        }
    }
    found
}

/// Every path that starts at `crate`, with its line and `/` for `::`; groups are taken apart.
fn crate_paths(text: &str) -> Vec<(usize, String)> {
    // Comments may point up: a doc link is no dependency. Lines stay, for their numbers.
    let code: String = text
        .lines()
        .map(|line| if line.trim_start().starts_with("//") { "\n".to_owned() } else { format!("{line}\n") })
        .collect();
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || "_$".contains(before)) {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let mut found = Vec::new();
        use_tree(&code[at + "crate::".len()..], "", &mut found);
        paths.extend(found.into_iter().map(|path| (line, path)));
    }
    paths
}

/// Reads one `a::b`, `a::{b, c::d}` or `{a, b}` and returns what stands after it.
fn use_tree<'a>(text: &'a str, prefix: &str, found: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = use_tree(rest, prefix, found).trim_start();
            match rest.strip_prefix(',') {
                Some(more) if more.trim_start().starts_with('}') => rest = more.trim_start(),
                Some(more) => {
                    rest = more;
                    continue;
                }
                None => {}
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '*').unwrap_or(text.len());
    let path = if prefix.is_empty() { text[..end].to_owned() } else { format!("{prefix}/{}", &text[..end]) };
    let rest = &text[end..];
    if let Some(deeper) = rest.strip_prefix("::")
        && deeper.trim_start().starts_with(|c: char| c.is_alphabetic() || "_{*".contains(c))
    {
        return use_tree(deeper, &path, found);
    }
    found.push(path);
    // `a as b`
    let rest = rest.trim_start();
    rest.strip_prefix("as ")
        .map_or(rest, |name| name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
}

#[test]
fn crate_paths_are_read_out_of_groups() {
    let text = "use crate::{\n    core::{Message, Role as R},\n    doors,\n};\n// crate::cli::x\nlet a = crate::cli::Run::new();\n";
    let paths: Vec<_> = crate_paths(text).into_iter().map(|(line, path)| format!("{line} {path}")).collect();
    assert_eq!(paths, ["1 core/Message", "1 core/Role", "1 doors", "6 cli/Run/new"]);
    assert_eq!(layer("doors/kontekst/convert"), Some((7, "doors/kontekst".to_owned())));
    assert_eq!(layer("doors/Stop"), Some((6, "doors".to_owned())));
    assert_eq!(layer("corelike"), None);
}

#[test]
fn every_rust_file_has_a_module_comment() {
    let silent: Vec<_> = files()
        .into_iter()
        .filter(|file| file.is_rust() && !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    assert_none("these do not open with a `//!` line", &silent);
}

#[test]
fn every_rust_file_is_declared() {
    let files = files();
    let paths: BTreeSet<_> = files.iter().map(|file| file.path.as_str()).collect();
    let mut forgotten = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let path = Path::new(&file.path);
        let (dir, stem) = (path.parent().unwrap(), path.file_stem().unwrap().to_str().unwrap());
        if ["lib", "main", "build"].contains(&stem) {
            continue;
        }
        // `a/mod.rs` is declared beside `a`; the others in the file that stands for their folder.
        let (dir, name) = match stem {
            "mod" => (dir.parent().unwrap(), dir.file_name().unwrap().to_str().unwrap()),
            _ => (dir, stem),
        };
        let beside: [PathBuf; 4] =
            [dir.join("mod.rs"), dir.with_extension("rs"), dir.join("lib.rs"), dir.join("main.rs")];
        let parents = beside.iter().filter(|parent| paths.contains(parent.to_str().unwrap()));
        let declared = parents
            .flat_map(|parent| files.iter().filter(move |file| Path::new(&file.path) == parent))
            .any(|parent| parent.text.lines().any(|line| line.trim_end().ends_with(&format!("mod {name};"))));
        if !declared {
            forgotten.push(file.path.clone());
        }
    }
    assert_none("no module declares these, so nothing compiles them", &forgotten);
}

#[test]
fn no_line_ends_in_space() {
    // Made by others, or data in which a space may count.
    let ours = |path: &str| {
        !["man/", "completions/"].iter().any(|folder| path.starts_with(folder))
            && [".rs", ".toml", ".md", ".proto", ".py", ".service", "/run"]
                .iter()
                .any(|end| path.ends_with(end))
    };
    let found: Vec<_> = files()
        .iter()
        .filter(|file| ours(&file.path))
        .flat_map(|file| file.lines(|line| line.ends_with([' ', '\t', '\r'])))
        .collect();
    assert_none("space at the end of lines", &found);
}

#[test]
fn every_test_runs() {
    let found: Vec<_> = files()
        .iter()
        .filter(|file| file.is_rust())
        .flat_map(|file| {
            file.lines(|line| !line.contains(CHILD_PROCESS) && SKIPPED.iter().any(|word| line.contains(word)))
        })
        .collect();
    assert_none("a test that does not run, or that any panic satisfies", &found);
}

#[test]
fn no_file_names_a_private_host_or_path() {
    let found: Vec<_> = files()
        .iter()
        .flat_map(|file| file.lines(|line| FOREIGN.iter().any(|word| line.contains(word))))
        .collect();
    assert_none("these mean something on one machine only", &found);
}
