//! `--file`: text files that come with the prompt.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::cli::error::CliError;

use super::text_input::{INPUT_LIMIT, decode};

/// Reads the files and returns each under its name, in this order. All together may have as many bytes as stdin may have.
///
/// # Errors
///
/// A file cannot be read, is a directory, is no text in UTF-8, or they are too large together. Nothing is cut.
pub(super) fn read(paths: &[PathBuf]) -> Result<String, CliError> {
    let mut text = String::new();
    for path in paths {
        let content = read_one(path, INPUT_LIMIT.saturating_sub(text.len() as u64))?;
        // A quotation mark in the name would end it.
        let name = path.display().to_string().replace('"', "&quot;");
        text.push_str(&format!("<file name=\"{name}\">\n{}\n</file>\n\n", content.trim_end_matches('\n')));
    }
    text.truncate(text.trim_end_matches('\n').len());
    Ok(text)
}

fn read_one(path: &Path, limit: u64) -> Result<String, CliError> {
    let name = path.display();
    let failed = |error: io::Error| CliError::usage(format!("cannot read `{name}`")).cause(error.to_string());
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(CliError::usage(format!("`{name}` is a directory, and --file takes files")).hint(
            format!("give each of its files with a --file of its own, or let the model read them itself with `-C {name}`"),
        ));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.starts_with(b"%PDF-") {
        return Err(CliError::usage(format!("`{name}` is a PDF file"))
            .hint(format!("send its text: `pdftotext {name} - | kontekst run \"…\"`")));
    }
    decode(&format!("`{name}`"), bytes, limit)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_come_under_their_names_and_what_is_no_text_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("a.txt"), "one\ntwo\n\n").unwrap();
        fs::write(path("\"b\".txt"), "three").unwrap();
        let text = read(&[path("a.txt"), path("\"b\".txt")]).unwrap();
        let dir = dir.path().display().to_string();
        assert_eq!(
            text.replace(&dir, "d"),
            "<file name=\"d/a.txt\">\none\ntwo\n</file>\n\n<file name=\"d/&quot;b&quot;.txt\">\nthree\n</file>"
        );
        fs::write(path("x.pdf"), "%PDF-1.7\n\0").unwrap();
        fs::write(path("x.png"), b"\x89PNG\0").unwrap();
        fs::write(path("latin"), b"\xe9t\xe9").unwrap();
        for (name, expect) in [
            ("x.pdf", "is a PDF file"),
            ("x.png", "is binary"),
            ("latin", "is not UTF-8"),
            (".", "is a directory"),
            ("missing", "cannot read"),
        ] {
            let error = read(&[path(name)]).unwrap_err();
            assert!(error.to_string().contains(expect), "{name}: {error}");
        }
        assert!(read_one(&path("a.txt"), 3).unwrap_err().to_string().contains("larger"));
    }
}
