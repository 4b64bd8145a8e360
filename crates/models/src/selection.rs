//! Makes a model usable that another program has downloaded.

use std::{
    io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use kontekst_store::config::{PathContext as _, PathError};

use super::{Model, ModelOrigin};

/// A reason why the model of another program cannot be linked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("`{}` is there already and is another model", .0.display())]
    Exists(PathBuf),
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Makes a model usable that another program downloaded, by links in `model_dir` to its files. Returns the name for an
/// agent's `config.toml`.
///
/// A model in `model_dir` needs no link, and existing links to the same files stay.
///
/// # Errors
///
/// [`LinkError`]. If any of the names is taken by another file, no link is made at all.
pub fn link(model: &Model, model_dir: &Path) -> Result<String, LinkError> {
    let name = file_name(model);
    if model.origin == ModelOrigin::ModelDir {
        return Ok(name);
    }
    std::fs::create_dir_all(model_dir).context(model_dir)?;
    let links: Vec<(PathBuf, &PathBuf)> = match model.files.as_slice() {
        [only] => vec![(model_dir.join(&name), only)],
        files => files.iter().filter_map(|file| Some((model_dir.join(file.file_name()?), file))).collect(),
    };
    for (link, file) in &links {
        match std::fs::symlink_metadata(link) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(PathError::new(link, error).into()),
            Ok(_) if same(link, file) => {}
            Ok(_) => return Err(LinkError::Exists(link.clone())),
        }
    }
    for (link, file) in links {
        match symlink(file, &link) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => done.context(&link)?,
        }
    }
    Ok(name)
}

fn same(link: &Path, file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (std::fs::metadata(link), std::fs::metadata(file)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Returns the name that a model's first file has or will have in `model_dir`.
fn file_name(model: &Model) -> String {
    if model.origin == ModelOrigin::Ollama {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        return format!("{}.gguf", model.name.chars().map(plain).collect::<String>());
    }
    model.name.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_of_another_program_is_linked() {
        let dir = tempfile::tempdir().unwrap();
        let ours = dir.path().join("models");
        let blob = dir.path().join("sha256-aa");
        std::fs::write(&blob, "GGUF").unwrap();
        let model = Model {
            origin: ModelOrigin::Ollama,
            name: "me/qwen:8b".to_owned(),
            repository: None,
            files: vec![blob],
            missing: 0,
            bytes: 4,
        };
        for _ in 0..2 {
            assert_eq!(link(&model, &ours).unwrap(), "me-qwen-8b.gguf");
        }
        assert_eq!(std::fs::read(ours.join("me-qwen-8b.gguf")).unwrap(), b"GGUF");
        std::fs::remove_file(ours.join("me-qwen-8b.gguf")).unwrap();
        std::fs::write(ours.join("me-qwen-8b.gguf"), "other").unwrap();
        assert!(matches!(link(&model, &ours), Err(LinkError::Exists(_))));
    }
}
