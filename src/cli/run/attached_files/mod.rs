//! `--file`: files and directories that come with the prompt.

mod directory;

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::cli::{error::CliError, printable::printable};

use super::text_input::{INPUT_LIMIT, decode};

use directory::DirectoryText;

/// The first bytes of images.
const IMAGES: &[&[u8]] = &[b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a"];

/// Reads the files and returns each under its name, in this order. All together may have as many bytes as stdin may have.
/// Relative paths are below `base`. `note` gets a line for each directory that says what of it was read.
///
/// # Errors
///
/// A file cannot be read, is no text in UTF-8, or they are too large together. No file is cut. A directory has no text that
/// can be sent.
pub(in crate::cli) fn read(
    base: &Path,
    paths: &[PathBuf],
    note: &mut dyn FnMut(&str),
) -> Result<String, CliError> {
    let mut text = String::new();
    for path in paths {
        let limit = INPUT_LIMIT.saturating_sub(text.len() as u64);
        text.push_str(&read_one(base, path, limit, note)?);
    }
    text.truncate(text.trim_end_matches('\n').len());
    Ok(text)
}

fn read_one(base: &Path, path: &Path, limit: u64, note: &mut dyn FnMut(&str)) -> Result<String, CliError> {
    let name = path.display().to_string();
    let failed = |error: io::Error| CliError::usage(format!("cannot read `{name}`")).cause(error.to_string());
    let path = base.join(path);
    let file = File::open(&path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        let read = DirectoryText::read(&path, &name).map_err(failed)?;
        if read.files == 0 {
            return Err(CliError::usage(format!(
                "`{name}` has no text that can be sent: {}",
                read.summary()
            ))
            .hint("a file that you name with a --file of its own is sent in any case"));
        }
        note(&format!("{}: {}", printable(&name), read.summary()));
        return Ok(read.text);
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.starts_with(b"%PDF-") {
        return Err(CliError::usage(format!("`{name}` is a PDF file"))
            .hint(format!("send its text: `pdftotext {name} - | kontekst run \"…\"`")));
    }
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    if is_webp || IMAGES.iter().any(|start| bytes.starts_with(start)) {
        return Err(CliError::usage(format!("`{name}` is an image, and a prompt is text"))
            .hint(format!("send the text that is in it: `tesseract {name} - | kontekst run \"…\"`")));
    }
    Ok(text_block(&name, &decode(&format!("`{name}`"), bytes, limit)?))
}

/// Returns a text under the name of its file, with an empty line after it.
fn text_block(name: &str, content: &str) -> String {
    format!("<file name=\"{}\">\n{}\n</file>\n\n", quoted(name), content.trim_end_matches('\n'))
}

/// Returns a name without the quotation marks that would end it.
fn quoted(name: &str) -> String {
    name.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_come_under_their_names_and_what_is_no_text_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        let write = |name: &str, content: &[u8]| fs::write(base.join(name), content).unwrap();
        let read = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            read(base, &paths, &mut |_| {})
        };
        write("a.txt", b"one\ntwo\n\n");
        write("\"b\".txt", b"three");
        assert_eq!(
            read(&["a.txt", "\"b\".txt"]).unwrap(),
            "<file name=\"a.txt\">\none\ntwo\n</file>\n\n<file name=\"&quot;b&quot;.txt\">\nthree\n</file>"
        );
        write("x.pdf", b"%PDF-1.7\n\0");
        write("x.png", b"\x89PNG\r\n\x1a\n\0");
        write("x.webp", b"RIFF\0\0\0\0WEBP");
        write("x.bin", b"\x7fELF\0");
        write("latin", b"\xe9t\xe9");
        fs::create_dir_all(base.join("empty")).unwrap();
        for (name, expect) in [
            ("x.pdf", "is a PDF file"),
            ("x.png", "is an image"),
            ("x.webp", "is an image"),
            ("x.bin", "is binary"),
            ("latin", "is not UTF-8"),
            ("empty", "has no text that can be sent"),
            ("missing", "cannot read"),
        ] {
            let error = read(&[name]).unwrap_err();
            assert!(error.to_string().contains(expect), "{name}: {error}");
        }
        let error = read_one(base, Path::new("a.txt"), 3, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("larger"), "{error}");
    }

    #[test]
    fn a_directory_comes_with_a_note() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.txt"), "a").unwrap();
        let mut notes = Vec::new();
        let text = read(dir.path(), &[PathBuf::from(".")], &mut |note| notes.push(note.to_owned())).unwrap();
        assert!(text.ends_with("<file name=\"./a.txt\">\na\n</file>"), "{text}");
        assert_eq!(notes, [".: 1 file with 1 B"]);
    }
}
