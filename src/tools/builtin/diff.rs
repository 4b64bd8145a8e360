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
/// Most lines that are compared; a rewrite of more is only counted.
const MAX_COMPARED: usize = 200_000;
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
    let lines = || new.split_inclusive('\n');
    let count = lines().count();
    let mut patch = Patch::new("/dev/null", path);
    if count == 0 {
        return format!("{}(a new empty file)\n", patch.text);
    }
    if count <= MAX_NEW_LINES && new.len() + count <= MAX_BYTES {
        let added: Vec<_> = lines().map(|line| ('+', line)).collect();
        patch.hunk((0, 0), (0, count), &added);
        return patch.text;
    }
    // No hunk, for the same reason as in `Patch::hunk`.
    let tail = count.saturating_sub(HEAD).min(TAIL);
    let hidden = count.saturating_sub(HEAD + tail);
    let mut text = format!("{}(new file, {count} lines, {} bytes)\n", patch.text, new.len());
    for line in lines().take(HEAD) {
        push_clipped(&mut text, '+', line);
    }
    if hidden > 0 {
        let _ = writeln!(text, "({hidden} lines hidden)");
    }
    let last: Vec<_> = lines().rev().take(tail).collect();
    for line in last.iter().rev() {
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
    let mut patch = Patch::new(path, path);
    let (before, old, new) = changed_part(old, new);
    if old.bytes().chain(new.bytes()).filter(|&b| b == b'\n').count() > MAX_COMPARED {
        let (old, new) = (old.lines().count(), new.lines().count());
        let _ = writeln!(patch.text, "({new} lines in place of {old} from line {}, all hidden)", before + 1);
        return patch.text;
    }
    // Own splitting: `similar` also ends lines at a lone carriage return, `patch` does not.
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(DEADLINE).diff_slices(&old, &new);
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (old_start, new_start) = (first.old_range().start, first.new_range().start);
        let old_side = (before + old_start, last.old_range().end - old_start);
        let new_side = (before + new_start, last.new_range().end - new_start);
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

/// Leaves out the lines at both ends that are the same, but for the context of a change.
///
/// Gives the number of lines left out at the start. A small change of a large file costs little so.
fn changed_part<'a>(old: &'a str, new: &'a str) -> (usize, &'a str, &'a str) {
    let same = |(a, b): &(u8, u8)| a == b;
    let mut start = old.bytes().zip(new.bytes()).take_while(same).count();
    let most = old.len().min(new.len()) - start;
    let mut end = old.bytes().rev().zip(new.bytes().rev()).take_while(same).take(most).count();
    // From here on by whole lines. Behind a line end is never the middle of a character.
    let (old_bytes, line_end) = (old.as_bytes(), |&b: &u8| b == b'\n');
    start = old_bytes[..start].iter().rposition(line_end).map_or(0, |at| at + 1);
    for _ in 0..CONTEXT {
        let before = &old_bytes[..start.saturating_sub(1)];
        start = before.iter().rposition(line_end).map_or(0, |at| at + 1);
    }
    for _ in 0..=CONTEXT {
        let after = &old_bytes[old.len() - end..];
        end = after.iter().position(line_end).map_or(0, |at| end - at - 1);
    }
    let before = old_bytes[..start].iter().filter(|b| line_end(b)).count();
    (before, &old[start..old.len() - end], &new[start..new.len() - end])
}

fn mark(tag: ChangeTag) -> char {
    match tag {
        ChangeTag::Equal => ' ',
        ChangeTag::Delete => '-',
        ChangeTag::Insert => '+',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `patch` does, without mercy: every line number and context line must fit.
    fn patched(old: &str, patch: &str) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let mut out = String::new();
        let mut at = 0;
        let mut lines = patch.split_inclusive('\n').skip(2).peekable();
        while let Some(line) = lines.next() {
            let numbers: Vec<usize> =
                line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
            let [old_start, old_count, _, new_count] = numbers[..] else { panic!("no hunk: {line:?}") };
            let from = if old_count == 0 { old_start } else { old_start - 1 };
            out.extend(old[at..from].iter().copied());
            at = from;
            let (mut taken, mut given) = (0, 0);
            while taken < old_count || given < new_count {
                let line = lines.next().unwrap();
                let mut text = line[1..].to_owned();
                if lines.next_if(|next| next.starts_with('\\')).is_some() {
                    text.pop();
                }
                if !line.starts_with('+') {
                    assert_eq!(old[at], text);
                    at += 1;
                    taken += 1;
                }
                if !line.starts_with('-') {
                    out.push_str(&text);
                    given += 1;
                }
            }
        }
        out.extend(old[at..].iter().copied());
        out
    }

    #[test]
    fn random_diffs_apply() {
        let mut seed = 0x2545_F491_4F6C_DD1D_u64;
        let mut random = move |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below as u64) as usize
        };
        let words = ["a\n", "b\n", "\n", "é\n", "a\r\n", "\r", "c", "--- x\n", "+\n", "\\\n"];
        for _ in 0..3000 {
            let old: String = (0..random(40)).map(|_| words[random(words.len())]).collect();
            let mut new: Vec<&str> = old.split_inclusive('\n').collect();
            for _ in 0..=random(4) {
                let at = random(new.len() + 1);
                match random(3) {
                    0 => new.insert(at, words[random(words.len())]),
                    _ if at < new.len() => drop(new.remove(at)),
                    _ => {}
                }
            }
            let new: String = new.concat();
            let patch = unified("f", Some(&old), &new);
            if old != new {
                assert_eq!(patched(&old, &patch), new, "{old:?}\n{patch}");
            }
        }
    }

    #[test]
    fn a_small_change_of_a_large_file_is_shown() {
        let old = "line\n".repeat(1_000_000);
        let new = format!("{}other\n{}", &old[..5 * 500_000], &old[5 * 500_001..]);
        let patch = unified("f", Some(&old), &new);
        assert_eq!(
            patch,
            "--- f\n+++ f\n@@ -499998,7 +499998,7 @@\n line\n line\n line\n-line\n+other\n line\n line\n line\n"
        );
    }

    #[test]
    fn a_rewrite_of_a_large_file_is_counted() {
        let patch = unified("f", Some(&"\n".repeat(10_000_000)), &"a\n".repeat(5_000_000));
        assert_eq!(patch, "--- f\n+++ f\n(5000000 lines in place of 10000000 from line 1, all hidden)\n");
    }
}
