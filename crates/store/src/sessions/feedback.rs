//! The users' ratings of answers: `feedback.jsonl`, with one rating per line.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
};

use serde::Serialize;

use kontekst_core::clock;

use crate::config::{Home, PathContext as _, PathError};

use super::SessionError;

/// The maximum size of the file, in bytes, so that no client can fill the disk with ratings.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// The maximum number of characters of each text. Ids and ratings are much shorter.
const MAX_TEXT: usize = 128;

/// The rating of one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feedback {
    pub session: String,
    pub message: String,
    /// The client's own word for the rating, usually `up` or `down`.
    pub rating: String,
}

#[derive(Serialize)]
struct StoredFeedback<'a> {
    /// Unix time in milliseconds.
    at: u64,
    #[serde(flatten)]
    feedback: &'a Feedback,
}

impl Feedback {
    /// Appends the rating in one write. Long texts are cut.
    ///
    /// # Errors
    ///
    /// [`SessionError::Path`] if the file cannot be written or would become larger than 16 MiB.
    pub fn append(self, home: &Home) -> Result<(), SessionError> {
        let path = home.feedback();
        let cut = |text: String| text.chars().take(MAX_TEXT).collect();
        let feedback =
            Self { session: cut(self.session), message: cut(self.message), rating: cut(self.rating) };
        let at = clock::unix_millis();
        let mut line =
            serde_json::to_vec(&StoredFeedback { at, feedback: &feedback }).expect("strings and a number");
        line.push(b'\n');
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).context(&path)?;
        if file.metadata().context(&path)?.len() + line.len() as u64 > MAX_FILE {
            return Err(PathError::new(path, io::Error::from(io::ErrorKind::FileTooLarge)).into());
        }
        file.write_all(&line).and_then(|()| file.sync_data()).context(&path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rating_is_one_line_whatever_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::find(Some(dir.path().to_owned())).unwrap();
        let opinion = |rating: &str| Feedback {
            session: "s".to_owned(),
            message: "m\n{}".to_owned(),
            rating: rating.to_owned(),
        };
        opinion("up").append(&home).unwrap();
        opinion(&"x".repeat(10_000)).append(&home).unwrap();
        let text = std::fs::read_to_string(home.feedback()).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["rating"], &lines[0]["message"]), (&"up".into(), &"m\n{}".into()));
        assert_eq!(lines[1]["rating"].as_str().unwrap().len(), MAX_TEXT);

        let full = OpenOptions::new().write(true).open(home.feedback()).unwrap();
        full.set_len(MAX_FILE).unwrap();
        assert!(opinion("down").append(&home).is_err());
    }
}
