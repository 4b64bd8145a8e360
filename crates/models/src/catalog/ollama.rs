//! Finds models in Ollama's store, which has a manifest for each name and tag, and blobs named by their digest.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use kontekst_store::config::file::read_text;

use super::{Model, ModelOrigin};

/// The largest manifest in bytes. Manifests have about one thousand.
const MANIFEST: u64 = 256 * 1024;
/// The largest number of manifests that are read.
const MANIFESTS: usize = 5000;

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    #[serde(default, rename = "mediaType")]
    media_type: String,
    #[serde(default)]
    digest: String,
}

pub(super) fn models(root: &Path) -> Vec<Model> {
    let mut manifests = Vec::new();
    // manifests/HOST/NAMESPACE/NAME/TAG
    walk(&root.join("manifests"), &mut Vec::new(), &mut manifests);
    manifests.into_iter().filter_map(|(path, words)| model(root, &path, &words)).collect()
}

fn walk(dir: &Path, words: &mut Vec<String>, manifests: &mut Vec<(PathBuf, Vec<String>)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(kind) = entry.file_type() else { continue };
        words.push(name);
        if kind.is_dir() && words.len() < 4 {
            walk(&entry.path(), words, manifests);
        } else if kind.is_file() && words.len() == 4 && manifests.len() < MANIFESTS {
            manifests.push((entry.path(), words.clone()));
        }
        words.pop();
    }
}

fn model(root: &Path, manifest: &Path, words: &[String]) -> Option<Model> {
    let parsed: Manifest = serde_json::from_str(&read_text(manifest, MANIFEST).ok()?).ok()?;
    let layer =
        parsed.layers.iter().find(|layer| layer.media_type == "application/vnd.ollama.image.model")?;
    let digest = layer.digest.strip_prefix("sha256:")?;
    // The digest becomes part of a path, so it must not hold anything else.
    if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let blob = root.join("blobs").join(format!("sha256-{digest}"));
    let meta = fs::metadata(&blob).ok().filter(fs::Metadata::is_file)?;
    let [host, namespace, name, tag] = words else { return None };
    // The name as `ollama list` shows it.
    let name = match (host.as_str(), namespace.as_str()) {
        ("registry.ollama.ai", "library") => format!("{name}:{tag}"),
        ("registry.ollama.ai", _) => format!("{namespace}/{name}:{tag}"),
        _ => format!("{host}/{namespace}/{name}:{tag}"),
    };
    Some(Model {
        origin: ModelOrigin::Ollama,
        name,
        repository: None,
        files: vec![blob],
        missing: 0,
        bytes: meta.len(),
    })
}
