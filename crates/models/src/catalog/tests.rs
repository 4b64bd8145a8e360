//! Tests the catalog with directories in the layouts of the other programs.

use std::{fs, os::unix::fs::symlink};

use expect_test::expect;

use super::*;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn test_catalog() -> (tempfile::TempDir, ModelCatalog) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for (path, text) in [
        ("models/b-00002-of-00002.gguf", "22"),
        ("models/b-00001-of-00002.gguf", "1"),
        ("models/c-00001-of-00003.gguf", "1"),
        ("models/mmproj-b.gguf", "x"),
        ("models/a.gguf", "aaa"),
        ("models/a.gguf.part", "a"),
        ("models/deeper/not-ours.gguf", "x"),
        ("hub/models--org--some--name/blobs/0a", "hub"),
        ("hub/models--org--some--name/refs/main", "r1"),
        ("hub/datasets--org--x/snapshots/r1/x.gguf", "x"),
        ("lm/org/repo/d.gguf", "lmlm"),
        ("ollama/blobs/sha256-e", "no digest"),
        (&format!("ollama/blobs/sha256-{}", "e".repeat(64)), "ollama"),
    ] {
        write(root, path, text);
    }
    for revision in ["r1", "r2"] {
        let snapshot = root.join("hub/models--org--some--name/snapshots").join(revision).join("sub");
        fs::create_dir_all(&snapshot).unwrap();
        symlink("../../../blobs/0a", snapshot.join("h.gguf")).unwrap();
        symlink("../../../blobs/gone", snapshot.join("dangling.gguf")).unwrap();
        symlink("..", snapshot.join("loop")).unwrap();
    }
    let manifest = |digest: &str| {
        format!(
            r#"{{"layers":[{{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:0"}},
            {{"mediaType":"application/vnd.ollama.image.model","digest":"{digest}","size":6}}]}}"#
        )
    };
    let good = manifest(&format!("sha256:{}", "e".repeat(64)));
    write(root, "ollama/manifests/registry.ollama.ai/library/qwen/8b", &good);
    write(
        root,
        "ollama/manifests/registry.ollama.ai/library/bad/path",
        &manifest("sha256:../../models/a.gguf"),
    );
    write(root, "ollama/manifests/registry.ollama.ai/library/bad/json", "{");
    write(root, "ollama/manifests/registry.ollama.ai/library/bad/short", &manifest("sha256:e"));
    let catalog = ModelCatalog {
        model_dir: root.join("models"),
        hubs: vec![root.join("hub"), root.join("nothing")],
        ollama: vec![root.join("ollama")],
        lm_studio: vec![root.join("lm")],
        llama_cpp: vec![root.join("none")],
    };
    (dir, catalog)
}

#[test]
fn every_model_is_found_once() {
    let (dir, catalog) = test_catalog();
    let lines: Vec<String> = catalog
        .list()
        .iter()
        .map(|model| {
            format!(
                "{:?} {} {:?}: {} files, {} missing, {} bytes, {}\n",
                model.origin,
                model.name,
                model.repository,
                model.files.len(),
                model.missing,
                model.bytes,
                model.file().strip_prefix(dir.path()).unwrap().display(),
            )
        })
        .collect();
    expect![[r#"
        ModelDir a.gguf None: 1 files, 0 missing, 3 bytes, models/a.gguf
        ModelDir b-00001-of-00002.gguf None: 2 files, 0 missing, 3 bytes, models/b-00001-of-00002.gguf
        ModelDir c-00001-of-00003.gguf None: 1 files, 2 missing, 1 bytes, models/c-00001-of-00003.gguf
        HuggingFace h.gguf Some("org/some--name"): 1 files, 0 missing, 3 bytes, hub/models--org--some--name/snapshots/r1/sub/h.gguf
        LmStudio d.gguf Some("org/repo"): 1 files, 0 missing, 4 bytes, lm/org/repo/d.gguf
        Ollama qwen:8b None: 1 files, 0 missing, 6 bytes, ollama/blobs/sha256-eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee
    "#]].assert_eq(&lines.concat());
}

#[test]
fn a_model_has_several_names() {
    let (dir, catalog) = test_catalog();
    let path = dir.path().join("models/a.gguf").display().to_string();
    for (asked, name) in [
        ("a", Some("a.gguf")),
        ("a.gguf", Some("a.gguf")),
        (path.as_str(), Some("a.gguf")),
        ("b-00001-of-00002", Some("b-00001-of-00002.gguf")),
        ("org/some--name:h", Some("h.gguf")),
        ("hf:org/some--name:h.gguf", Some("h.gguf")),
        ("h", Some("h.gguf")),
        ("qwen:8b", Some("qwen:8b")),
        ("org/repo:h", None),
        ("b", None),
        ("", None),
    ] {
        assert_eq!(catalog.find(asked).map(|model| model.name).as_deref(), name, "{asked}");
    }
}

#[test]
fn any_file_is_found_by_its_path() {
    let (dir, catalog) = test_catalog();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let found = catalog.find(&path("models/deeper/not-ours.gguf")).unwrap();
    assert_eq!(
        (found.name.as_str(), found.origin, found.bytes),
        ("not-ours.gguf", ModelOrigin::Elsewhere, 1)
    );
    assert_eq!(found.files, [dir.path().join("models/deeper/not-ours.gguf")]);
    write(dir.path(), "split/s-00001-of-00002.gguf", "1");
    write(dir.path(), "split/s-00002-of-00002.gguf", "22");
    let found = catalog.find(&path("split/../split/s-00001-of-00002.gguf")).unwrap();
    assert_eq!((found.files.len(), found.missing, found.bytes), (2, 0, 3));
    for nothing in ["models/deeper", "models/deeper/x.gguf", "models/a.gguf.part", "no/a.gguf"] {
        assert_eq!(catalog.find(&path(nothing)), None, "{nothing}");
    }
}

#[test]
fn a_link_in_our_directory_is_listed_beside_its_target() {
    let (dir, catalog) = test_catalog();
    symlink(dir.path().join("lm/org/repo/d.gguf"), dir.path().join("models/d.gguf")).unwrap();
    let named: Vec<_> = catalog.list().into_iter().filter(|model| model.name == "d.gguf").collect();
    assert_eq!(
        named.iter().map(|model| model.origin).collect::<Vec<_>>(),
        [ModelOrigin::ModelDir, ModelOrigin::LmStudio]
    );
}
