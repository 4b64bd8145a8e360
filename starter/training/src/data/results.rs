//! The results of the tools, in the tools' own words.

use std::fmt::Write;

use super::{
    Call, Draw,
    contents::{lines_of_a_file, lines_of_prose},
};

pub struct Outcome {
    pub text: String,
    pub failed: bool,
}

/// A result as the tool itself would give it, or why there is none.
pub fn result(draw: &mut Draw, call: &Call) -> Outcome {
    let failed = |text| Outcome { text, failed: true };
    match draw.between(0, 99) {
        0..5 => failed(format!("denied: {}", denial(draw))),
        5..9 => failed(invented(draw, call)),
        9..22 => failed(error(draw, call)),
        _ => Outcome { text: done(draw, call), failed: false },
    }
}

fn done(draw: &mut Draw, call: &Call) -> String {
    match call.name {
        "list_files" => listing(draw, call.text("pattern")),
        "read_file" => page(draw, call),
        "web_fetch" => website(draw, call.text("url")),
        "write_file" => {
            let path = resolved(call.text("path"));
            if draw.chance(6) {
                return format!("no change: {path} already has this content");
            }
            let bytes =
                if draw.chance(80) { call.text("content").len() } else { draw.small(0, 5000) as usize };
            format!("Successfully wrote {bytes} bytes to {path}")
        }
        _ => {
            let path = resolved(call.text("path"));
            match call.number("occurrence") {
                _ if draw.chance(4) => format!("no change: old_str and new_str are the same in {path}"),
                Some(0) => format!("Replaced {} occurrence(s) in {path}", draw.small(1, 40)),
                Some(nth) => format!("Replaced occurrence {nth} in {path}"),
                None => format!("Replaced 1 occurrence(s) in {path}"),
            }
        }
    }
}

/// As the tools name it.
fn resolved(path: &str) -> String {
    path.trim_start_matches("./").to_owned()
}

fn listing(draw: &mut Draw, pattern: &str) -> String {
    if draw.chance(14) {
        let hint = " (entries ignored by .gitignore were left out; name their directory to see them)";
        return format!("no files match {pattern}{}", if draw.chance(20) { hint } else { "" });
    }
    let most = draw.pick(&[1, 4, 8, 8, 40, 300, 1200]);
    let count = if pattern.contains('*') { draw.small(1, most) } else { 1 };
    // Files share their directories.
    let inner: Vec<String> = (0..draw.between(1, 4)).map(|_| draw.word()).collect();
    let inner: Vec<&str> = inner.iter().map(String::as_str).collect();
    // Of more only the number is seen.
    let mut names: Vec<String> = (0..count.min(12)).map(|_| matching(draw, pattern, &inner)).collect();
    names.sort();
    names.resize(count as usize, "zz".to_owned());
    let mut text = names.join("\n");
    if draw.chance(2) {
        let why = draw.pick(&[
            "the list is long",
            "too many entries to look at all",
            "some directories are too deep",
            "it took too long",
        ]);
        let _ = write!(text, "\n({count} shown, there may be more: {why}; use a narrower pattern)");
    }
    text
}

/// A name that a pattern could match, often enough; `inner` are the directories below its own.
fn matching(draw: &mut Draw, pattern: &str, inner: &[&str]) -> String {
    let (directory, last) =
        pattern.trim_end_matches('/').rsplit_once('/').unwrap_or(("", pattern.trim_end_matches('/')));
    let name = match last {
        "*" if pattern.ends_with('/') => draw.stem(),
        "*" => draw.file_name(),
        _ => {
            let stem = draw.stem();
            let name = last.replacen('*', &stem, 1).replace('*', "").replace('?', "1");
            match (name.find('{'), name.find(',')) {
                (Some(open), Some(comma)) if open < comma => {
                    format!("{}{}", &name[..open], &name[open + 1..comma])
                }
                _ => name,
            }
        }
    };
    let below: Vec<&str> = match directory.contains("**") {
        true => (0..draw.between(0, 3)).map(|_| draw.pick(inner)).collect(),
        false => Vec::new(),
    };
    let directory = directory.replace("**", &below.join("/")).replace("//", "/");
    let directory = directory.trim_end_matches('/').trim_start_matches("./");
    if directory.is_empty() { name } else { format!("{directory}/{name}") }
}

fn page(draw: &mut Draw, call: &Call) -> String {
    let start = call.number("start_line");
    if start.is_none() && draw.chance(4) {
        return "(empty file)".to_owned();
    }
    let longest = draw.pick(&[2, 6, 8, 12, 20]);
    let mut lines = lines_of_a_file(draw, longest);
    if lines.len() > 8 {
        // Of more only the number is seen.
        let most = draw.pick(&[20, 100, 500, 3000]);
        lines.resize(lines.len() + draw.small(0, most) as usize, String::new());
    }
    if let Some(end) = call.number("end_line") {
        let wanted = usize::try_from(end - start.unwrap_or(1) + 1).unwrap_or(1);
        while lines.len() < wanted && draw.chance(97) {
            if lines.len() > 8 {
                lines.resize(wanted, String::new());
            } else {
                lines.extend(lines_of_a_file(draw, 12));
            }
        }
        lines.truncate(wanted);
    }
    if draw.chance(3) {
        let long = draw.words(30, 80);
        let at = draw.rng.usize(0..lines.len().min(8));
        lines[at] = long;
    }
    let start = start.unwrap_or(1);
    let last = start + lines.len() as u64 - 1;
    let width = last.to_string().len();
    let numbered: Vec<String> =
        (start..).zip(&lines).map(|(number, line)| format!("{number:>width$}: {line}")).collect();
    let mut text = numbered.join("\n");
    if lines.len() > 100 && draw.chance(10) {
        let _ = write!(text, "\n(truncated after line {last}; go on with start_line {})", last + 1);
    }
    text
}

fn website(draw: &mut Draw, url: &str) -> String {
    let status = draw.weighted(&[
        (80, "200 OK"),
        (8, "404 Not Found"),
        (3, "403 Forbidden"),
        (3, "500 Internal Server Error"),
        (2, "503 Service Unavailable"),
        (1, "401 Unauthorized"),
        (1, "429 Too Many Requests"),
        (1, "410 Gone"),
        (1, "502 Bad Gateway"),
        (1, "204 No Content"),
        (1, "400 Bad Request"),
    ]);
    let kind = draw.pick(&[
        "text/html; charset=utf-8",
        "text/html",
        "text/plain",
        "application/json",
        "text/markdown",
        "text/html; charset=UTF-8",
    ]);
    let body = match draw.between(0, 19) {
        _ if status.starts_with("204") => String::new(),
        0 => String::new(),
        1 => format!("(not shown: {} bytes of binary content)", draw.small(1, 900_000)),
        2 => format!("(not shown: the body is encoded as {})", draw.pick(&["br", "zstd", "compress"])),
        3..7 => lines_of_a_file(draw, 60).join("\n"),
        7..9 => format!(
            "{{\"{}\": \"{}\", \"{}\": {}}}",
            draw.word(),
            draw.words(1, 3),
            draw.word(),
            draw.small(0, 999)
        ),
        9..12 => draw.sentence(2, 12),
        _ => {
            let mut lines = vec![format!("# {}", draw.words(1, 5)), String::new()];
            let count = draw.small(1, 40);
            lines.extend(lines_of_prose(draw, count));
            if draw.chance(50) {
                lines.push(format!("[More information][1]\n\n[1]: {}", draw.url()));
            }
            lines.join("\n").trim_matches('\n').to_owned()
        }
    };
    let mut head = format!("Status: {status}\n");
    if draw.chance(12) {
        let _ = writeln!(head, "URL: {url}/");
    }
    let _ = write!(head, "Content-Type: {kind}\nContent-Length: {}\n", body.len());
    if draw.chance(3) {
        head += "(Response truncated due to size limit)\n";
    }
    format!("{head}\n{body}")
}

fn denial(draw: &mut Draw) -> String {
    match draw.between(0, 9) {
        0..4 => draw
            .pick(&[
                "the user said no",
                "nobody was there to approve",
                "there is no terminal to ask on",
                "user denied",
            ])
            .to_owned(),
        4..6 => draw
            .pick(&[
                "not now",
                "no",
                "wrong file",
                "use another name",
                "do not touch this file",
                "this is production",
                "too risky",
                "ask me first",
                "not allowed",
                "the policy forbids it",
                "I changed my mind",
            ])
            .to_owned(),
        _ => draw.words(2, 8),
    }
}

/// A message that no tool has, so that it is the message that is repeated and not a known one.
fn invented(draw: &mut Draw, call: &Call) -> String {
    let path = [call.text("path"), call.text("url"), call.text("pattern")].concat();
    match draw.between(0, 7) {
        0 => format!("{} failed: {}", draw.words(1, 3), draw.words(2, 7)),
        1 => format!("{path}: {}", draw.words(1, 6)),
        2 => format!("cannot {} {path}: {}", draw.word(), draw.words(1, 5)),
        3 => format!("error {}: {}", draw.small(1, 999), draw.words(2, 8)),
        4 => format!("the {} of `{path}` is {}", draw.word(), draw.word()),
        5 => format!("{}: {} ({})", draw.stem(), draw.words(1, 4), draw.value()),
        6 => format!("no {} left on {}", draw.word(), draw.word()),
        _ => format!("the {} is not {}; {}", draw.word(), draw.word(), draw.words(1, 5)),
    }
}

fn system(draw: &mut Draw) -> &'static str {
    draw.pick(&[
        "Permission denied (os error 13)",
        "Input/output error (os error 5)",
        "No space left on device (os error 28)",
        "Too many open files (os error 24)",
        "Read-only file system (os error 30)",
        "Not a directory (os error 20)",
        "Operation not permitted (os error 1)",
        "File name too long (os error 36)",
        "Disk quota exceeded (os error 122)",
    ])
}

fn general(draw: &mut Draw) -> String {
    match draw.between(0, 5) {
        0 => format!("timed out after {} s", draw.pick(&[10, 30, 60, 120])),
        1 => "cancelled".to_owned(),
        2 => "cancelled before it ran".to_owned(),
        3 => format!(
            "there is no tool `{}`; the tools are: read_file, write_file, edit_file, list_files, web_fetch",
            draw.word()
        ),
        4 => format!("`{}` must be of type {}", draw.word(), draw.pick(&["string", "integer", "boolean"])),
        _ => format!("missing {}", draw.pick(&["path", "content", "url", "pattern", "old_str", "new_str"])),
    }
}

fn error(draw: &mut Draw, call: &Call) -> String {
    if draw.chance(8) {
        return general(draw);
    }
    let given = call.text("path");
    let path = resolved(given);
    match call.name {
        "list_files" => {
            let pattern = call.text("pattern");
            match draw.between(0, 5) {
                0 | 1 => format!(
                    "the pattern `{pattern}` leads out of the working directory; use a path relative to it"
                ),
                2 => format!(
                    "the pattern `{pattern}` is not a glob: {}",
                    draw.pick(&[
                        "unclosed character class; missing ']'",
                        "invalid range; 'z' > 'a'",
                        "unclosed alternate group; missing '}'",
                        "dangling '\\'"
                    ])
                ),
                3 => format!("`{}` leads out of the working directory", pattern.trim_end_matches("/*")),
                4 => format!("cannot read {}: {}", pattern.trim_end_matches("/*"), system(draw)),
                _ => format!("the pattern `{pattern}` has a control character in it"),
            }
        }
        "web_fetch" => {
            let url = call.text("url");
            let host = url.split('/').nth(2).unwrap_or_default();
            let host = host.split(':').next().unwrap_or_default();
            match draw.between(0, 9) {
                0 | 1 => format!("{host} did not answer in full within {} s", draw.pick(&[10, 30, 60])),
                2..5 => format!(
                    "cannot fetch from {host}: {}",
                    draw.pick(&[
                        "host not found",
                        "io: Connection refused (os error 111)",
                        "io: failed to lookup address information: Name or service not known",
                        "io: Network is unreachable (os error 101)",
                        "tls: invalid peer certificate: Expired",
                        "io: failed to lookup address information: Temporary failure in name resolution",
                        "protocol: chunked body is broken",
                        "io: Connection reset by peer (os error 104)"
                    ])
                ),
                5 | 6 => format!(
                    "the host {host} is not on the public internet; [tools.web] allow_private in config.toml can list it"
                ),
                7 => draw
                    .pick(&[
                        "more than 5 redirects",
                        "the redirect is not a valid url",
                        "the page took too long",
                        "the page could not be read",
                        "the url has no host",
                        "a user name or password in a url is not allowed",
                    ])
                    .to_owned(),
                8 => format!("redirect refused: it leaves https for http://{host}/"),
                _ => format!(
                    "the url is not valid ({}); it must start with http:// or https://",
                    draw.pick(&[
                        "relative URL without a base",
                        "invalid port number",
                        "empty host",
                        "invalid international domain name"
                    ])
                ),
            }
        }
        name => match draw.between(0, 9) {
            0..5 if name != "write_file" => missing(draw, call, &path),
            5 => format!("the path `{given}` leads out of the working directory; use a path relative to it"),
            6 => format!("`{path}` is a directory"),
            7 => format!(
                "cannot {} {path}: {}",
                if name == "read_file" { "read" } else { "write" },
                system(draw)
            ),
            8 => format!("`{path}` leads out of the working directory"),
            0 => format!("`{path}` is read-only"),
            1 => format!("{path} changed since it was shown; nothing was written. Read it again."),
            2 => format!(
                "the content has {} bytes, more than the limit of {}",
                draw.between(100_000, 9_999_999),
                draw.pick(&[1_048_576, 10_485_760])
            ),
            3 => format!("`{path}` is not a regular file"),
            _ => format!("`{path}` goes through too many symbolic links"),
        },
    }
}

/// The errors that reading and editing have most.
fn missing(draw: &mut Draw, call: &Call, path: &str) -> String {
    let absent = format!("file does not exist: {path}");
    if draw.chance(50) {
        return absent;
    }
    if call.name == "read_file" {
        let lines = draw.small(0, 500);
        return match (call.number("start_line"), call.number("end_line")) {
            (Some(start), Some(end)) if draw.chance(70) => {
                format!("no lines in range {start}-{end} (file has {lines} lines)")
            }
            (Some(start), None) if draw.chance(70) => {
                format!("no lines starting from line {start} (file has {lines} lines)")
            }
            _ => format!("{path} is a binary file (it has a NUL byte in line {})", draw.small(1, 90)),
        };
    }
    let count = draw.small(2, 12);
    match draw.between(0, 6) {
        0..3 => format!("old_str not found in {path}"),
        3 => format!(
            "old_str not found in {path}; the closest line is {}: {}",
            draw.small(1, 300),
            draw.text()
        ),
        4 => {
            let mut at = 0;
            let lines: Vec<String> = (0..count.min(10))
                .map(|_| {
                    at += draw.small(1, 30);
                    at.to_string()
                })
                .collect();
            format!(
                "old_str is {count} times in {path}, at lines {}; add lines around it until it is unique, or give occurrence (1 to {count}, or 0 for all)",
                lines.join(", ")
            )
        }
        5 => format!(
            "occurrence {} of old_str not found (only {count} occurrences exist)",
            count + draw.between(1, 5)
        ),
        _ => format!("{path} is not UTF-8 text and cannot be edited"),
    }
}
