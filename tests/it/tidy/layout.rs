//! The files of a module: their places and their lengths.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{assert_none, files, source};

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
        // `a/mod.rs` is declared by the parent of `a/`, every other file by the `mod.rs` of its folder.
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

/// The modules whose files still lie in two places, which is to go away.
const SPLIT_MODULES: &[&str] = &[];

#[test]
fn a_module_with_children_is_a_folder() {
    let files = files();
    let paths: BTreeSet<_> = files.iter().map(|file| file.path.as_str()).collect();
    let has_children = |folder: &str| paths.iter().any(|path| path.starts_with(&format!("{folder}/")));
    let found: Vec<_> = paths
        .iter()
        .filter_map(|path| path.strip_suffix(".rs"))
        .filter(|module| has_children(module) && !SPLIT_MODULES.contains(module))
        .map(|module| format!("{module}.rs lies beside {module}/; it should be {module}/mod.rs"))
        .collect();
    assert_none("modules in two places", &found);
}

/// The most lines that a file may have without its tests. A longer one has a second subject in it.
const MAX_LINES: usize = 400;

/// Files that are longer, which is to go away.
const LONG_FILES: &[&str] = &[];

#[test]
fn no_file_is_long() {
    let mut found = Vec::new();
    for file in files().iter().filter(|file| source::is_product(&file.path)) {
        if source::is_test_file(&file.path) {
            continue;
        }
        let lines = source::lines_without_tests(&file.text);
        if (lines > MAX_LINES) != LONG_FILES.contains(&file.path.as_str()) {
            found.push(format!("{}: {lines} lines", file.path));
        }
    }
    assert_none("files over the limit, or no longer over it and still listed", &found);
}
