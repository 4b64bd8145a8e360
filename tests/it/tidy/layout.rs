//! The files of a module and their places.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{assert_none, files};

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
