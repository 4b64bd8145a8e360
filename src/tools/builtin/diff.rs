//! Unified diffs that GNU `patch` applies, short enough to read.

use std::{fmt::Write, time::Duration};

use similar::{Algorithm, ChangeTag, TextDiff};

/// Lines around a change. Source: what `diff -u` shows.
const CONTEXT: usize = 3;
/// A new file of more lines is shown by its head and tail. Source: the Go original's preview.
const MAX_NEW_LINES: usize = 50;
const HEAD: usize = 33;
const TAIL: usize = MAX_NEW_LINES - HEAD;
/// Most bytes of a preview; what is left out is counted.
const MAX_BYTES: usize = 64 * 1024;
/// Longest time to look for the smallest diff; then a larger one does.
const DEADLINE: Duration = Duration::from_millis(300);

/// The diff that makes `new` of `old`; `None` for `old` is a file that does not exist. Empty when there
/// is nothing to do.
///
/// What is hidden for its length is counted in a line in parentheses outside the patch text.
pub fn unified(path: &str, old: Option<&str>, new: &str) -> String {
    match old {
        None => new_file(path, new),
        Some(old) if old == new => String::new(),
        Some(old) => changed_file(path, old, new),
    }
}

/// A patch under construction, cut off at the end of a line when it becomes too long.
struct Patch {
    text: String,
    hunks: usize,
    /// Changed lines that are not shown.
    hidden: usize,
}

impl Patch {
    fn new(from: &str, to: &str) -> Self {
        // GNU patch takes a name with a space only if a tab ends it.
        let name = |path: &str| if path.contains(' ') { format!("{path}\t") } else { path.to_owned() };
        Self { text: format!("--- {}\n+++ {}\n", name(from), name(to)), hunks: 0, hidden: 0 }
    }

    /// One hunk, if it fits. If even the first does not, its head is shown, but not as a hunk: what is
    /// shown in part must not look like a patch.
    fn hunk(&mut self, old: (usize, usize), new: (usize, usize), lines: &[(char, &str)]) {
        // A side without lines counts from the line before it.
        let start = |(first, count): (usize, usize)| if count == 0 { first } else { first + 1 };
        let bytes: usize = lines.iter().map(|(_, line)| line.len() + 1).sum();
        if self.text.len() + bytes > MAX_BYTES {
            let shown = if self.hunks == 0 && self.hidden == 0 { lines.len().min(MAX_NEW_LINES) } else { 0 };
            for (mark, line) in &lines[..shown] {
                push_clipped(&mut self.text, *mark, line);
            }
            self.hidden += lines[shown..].iter().filter(|(mark, _)| *mark != ' ').count();
            return;
        }
        self.hunks += 1;
        let _ = writeln!(self.text, "@@ -{},{} +{},{} @@", start(old), old.1, start(new), new.1);
        for (mark, line) in lines {
            self.line(*mark, line);
        }
    }

    fn line(&mut self, mark: char, line: &str) {
        self.text.push(mark);
        self.text.push_str(line);
        if !line.ends_with('\n') {
            self.text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn new_file(path: &str, new: &str) -> String {
    let lines: Vec<&str> = new.split_inclusive('\n').collect();
    let mut patch = Patch::new("/dev/null", path);
    if lines.is_empty() {
        return format!("{}(a new empty file)\n", patch.text);
    }
    let bytes = |lines: &[&str]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    if lines.len() <= MAX_NEW_LINES && bytes(&lines) <= MAX_BYTES {
        let added: Vec<_> = lines.iter().map(|line| ('+', *line)).collect();
        patch.hunk((0, 0), (0, added.len()), &added);
        return patch.text;
    }
    // No hunk, for the same reason as in `Patch::hunk`.
    let head = lines.len().min(HEAD);
    let tail = (lines.len() - head).min(TAIL);
    let hidden = lines.len() - head - tail;
    let mut text = format!("{}(new file, {} lines, {} bytes)\n", patch.text, lines.len(), new.len());
    for line in &lines[..head] {
        push_clipped(&mut text, '+', line);
    }
    if hidden > 0 {
        let _ = writeln!(text, "({hidden} lines hidden)");
    }
    for line in &lines[lines.len() - tail..] {
        push_clipped(&mut text, '+', line);
    }
    text
}

/// One line, cut so that all lines of a head and tail together keep within the limit.
fn push_clipped(text: &mut String, mark: char, line: &str) {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let most = MAX_BYTES / MAX_NEW_LINES;
    let end = line.floor_char_boundary(most.min(line.len()));
    let _ = write!(text, "{mark}{}", &line[..end]);
    if end < line.len() {
        let _ = write!(text, " ({} bytes hidden)", line.len() - end);
    }
    text.push('\n');
}

fn changed_file(path: &str, old: &str, new: &str) -> String {
    // Own splitting: `similar` also ends lines at a lone carriage return, `patch` does not.
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(DEADLINE).diff_slices(&old, &new);
    let mut patch = Patch::new(path, path);
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (old_start, new_start) = (first.old_range().start, first.new_range().start);
        let old_side = (old_start, last.old_range().end - old_start);
        let new_side = (new_start, last.new_range().end - new_start);
        let lines: Vec<(char, &str)> = group
            .iter()
            .flat_map(|op| diff.iter_changes(op))
            .map(|change| (mark(change.tag()), change.value()))
            .collect();
        patch.hunk(old_side, new_side, &lines);
    }
    if patch.hidden > 0 {
        let _ = writeln!(patch.text, "({} changed lines hidden)", patch.hidden);
    }
    patch.text
}

fn mark(tag: ChangeTag) -> char {
    match tag {
        ChangeTag::Equal => ' ',
        ChangeTag::Delete => '-',
        ChangeTag::Insert => '+',
    }
}
