//! What a door needs to know of a client's files before it can ask for a run.

use std::{io::Read as _, path::PathBuf, sync::Arc};

use crate::{
    config::AgentConfig,
    core::error_chain,
    tools::{FileError, WorkDir},
};

use super::{
    AgentCore,
    bridge::blocking,
    prepare::load_agent,
    protocol::{FailureKind, RunError},
};

impl AgentCore {
    /// Opens a directory as a run would, and sees that its entries can be listed.
    ///
    /// # Errors
    ///
    /// [`Failure::Request`] when it is not there, is no directory or may not be read.
    pub async fn open_work_dir(&self, dir: PathBuf) -> Result<Arc<WorkDir>, RunError> {
        let refused = |error: &dyn std::error::Error| RunError::new(FailureKind::Request, error_chain(error));
        let mut opening = blocking(move || {
            let place = WorkDir::new(&dir).map_err(|error| refused(&error))?;
            place.check_readable().map_err(|error| refused(&error))?;
            Ok(Arc::new(place))
        });
        opening.join().await?
    }

    /// Sees for each path whether it can be opened as a file of `place`, in order. Reads nothing.
    ///
    /// # Errors
    ///
    /// [`Failure::Internal`].
    pub async fn check_files(
        &self,
        place: Arc<WorkDir>,
        paths: Vec<String>,
    ) -> Result<Vec<Result<(), FileError>>, RunError> {
        let mut looking = blocking(move || {
            let workspace = place.workspace();
            let look = |path: &String| workspace.path(path).and_then(|path| workspace.open(&path)).map(drop);
            paths.iter().map(look).collect()
        });
        looking.join().await
    }

    /// The bytes of a file of `place`.
    ///
    /// # Errors
    ///
    /// [`FileError`]; [`FileError::TooLarge`] for a file of more than `limit` bytes, of which at most one
    /// byte more is read.
    pub async fn read_file(
        &self,
        place: Arc<WorkDir>,
        path: String,
        limit: u64,
    ) -> Result<Vec<u8>, FileError> {
        let name = path.clone();
        let mut reading = blocking(move || {
            let workspace = place.workspace();
            let failed = |source| FileError::Io { action: "read", path: path.clone(), source };
            let file = workspace.open(&workspace.path(&path)?)?;
            let size = file.metadata().map_err(failed)?.len();
            let mut bytes = Vec::new();
            if size <= limit {
                file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
            }
            let size = size.max(bytes.len() as u64);
            if size > limit { Err(FileError::TooLarge { path, bytes: size, limit }) } else { Ok(bytes) }
        });
        reading.join().await.unwrap_or_else(|error| {
            let source = std::io::Error::other(error.message);
            Err(FileError::Io { action: "read", path: name, source })
        })
    }

    /// An agent as a run would find it now; empty is `default`.
    ///
    /// # Errors
    ///
    /// [`Failure::Request`] when there is none of that name or its files are wrong.
    pub async fn load_agent(&self, name: &str) -> Result<AgentConfig, RunError> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        let mut loading = blocking(move || load_agent(&shared, &name, &crate::core::SessionId::new()));
        loading.join().await?
    }
}
