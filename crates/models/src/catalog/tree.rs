//! Finds GGUF files in directories.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{Model, ModelOrigin};
use crate::split::SplitPart;

/// The largest number of directory entries that are read beneath one root.
const ENTRIES: usize = 50_000;

/// Returns the models in `root` and in its subdirectories down to `depth`. `repository` returns the name of the
/// repository that a directory belongs to.
pub(super) fn models(
    root: &Path,
    depth: u32,
    place: ModelOrigin,
    repository: &dyn Fn(&Path) -> Option<String>,
) -> Vec<Model> {
    let mut files = Vec::new();
    walk(root, depth, &mut ENTRIES.clone(), &mut files);
    files.sort();
    let mut models: BTreeMap<PathBuf, Model> = BTreeMap::new();
    for (dir, name, bytes) in files {
        let part = SplitPart::parse(&name);
        let first = part.as_ref().map_or_else(|| name.clone(), |part| part.names().swap_remove(0));
        let of = part.map_or(1, |part| part.of);
        let model = models.entry(dir.join(&first)).or_insert_with(|| Model {
            origin: place,
            name: first,
            repository: repository(&dir),
            files: Vec::new(),
            missing: of,
            bytes: 0,
        });
        model.files.push(dir.join(&name));
        model.missing = model.missing.saturating_sub(1);
        model.bytes = model.bytes.saturating_add(bytes);
    }
    models.into_values().collect()
}

fn walk(dir: &Path, depth: u32, left: &mut usize, files: &mut Vec<(PathBuf, String, u64)>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Follows links, because caches consist of them.
        let Ok(meta) = fs::metadata(entry.path()) else { continue };
        if meta.is_dir() && depth > 0 && !name.starts_with('.') {
            walk(&entry.path(), depth - 1, left, files);
        } else if meta.is_file() && is_model(&name) {
            files.push((dir.to_owned(), name, meta.len()));
        }
    }
}

/// Returns true for model files. Projectors of vision models (`mmproj`) are not models of their own.
fn is_model(name: &str) -> bool {
    name.ends_with(".gguf") && !name.starts_with("mmproj") && !name.starts_with('.')
}

/// Returns the repositories in a Hugging Face cache, each with its name and the directory of its snapshots.
pub(super) fn repositories(hub: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(hub).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let repository = name.strip_prefix("models--")?.replacen("--", "/", 1);
            Some((repository, entry.path().join("snapshots")))
        })
        .collect();
    found.sort();
    found
}
