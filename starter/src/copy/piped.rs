//! A request that begins with piped data, and the line of it that the instruction asks for by its place.

use memchr::memmem;

use crate::numbers::numbers;

/// The text before and after the place in an answer that repeats a line.
const LINE_ANSWER: (&[u8], &[u8]) = (b"The ", b" line is: ");

/// Places that are counted from the end, with how many lines follow.
const FROM_THE_END: [(&str, usize); 5] =
    [("last but one", 1), ("second to last", 1), ("next to last", 1), ("penultimate", 1), ("last", 0)];

/// Words after which a place does not mean a single line.
const NOT_ONE_LINE: [&str; 9] = ["last", "end", "bottom", "but", "before", "after", "except", "skip", "not"];

/// The data of a request and the instruction after them.
pub(super) struct Piped {
    data: Vec<u8>,
    /// The line that the instruction asks for, if there are several and it asks for one.
    picked: Option<Vec<u8>>,
    instruction: Vec<u8>,
}

impl Piped {
    pub(super) fn new(request: &str) -> Option<Self> {
        let (data, instruction) = request.rsplit_once("\n\n")?;
        let lines = data.split('\n').count();
        let picked = if lines > 1 { place(instruction, lines) } else { None };
        let picked = picked.and_then(|at| data.split('\n').nth(at)).map(|line| line.as_bytes().to_vec());
        Some(Self { data: data.as_bytes().to_vec(), picked, instruction: instruction.as_bytes().to_vec() })
    }

    /// Returns true if a name may contain `part`: the line that is asked for contains it, or the instruction does.
    pub(super) fn may_name(&self, part: &[u8]) -> bool {
        let has = |text: &[u8]| memmem::find(text, part).is_some();
        self.picked.as_ref().is_none_or(|picked| has(picked) || has(&self.instruction))
    }

    /// Returns true if `text` is the start of the data, but not all of it, not the line that is asked for and not in the
    /// instruction. An instruction such as `save this` means all of the data.
    pub(super) fn cuts(&self, text: &[u8]) -> bool {
        let is_picked = self.picked.as_ref().is_some_and(|picked| picked == text);
        let rest = self.data.strip_prefix(text).filter(|rest| !rest.trim_ascii_end().is_empty());
        !text.is_empty() && rest.is_some() && !is_picked && memmem::find(&self.instruction, text).is_none()
    }

    /// Returns true if an answer may begin with `text`, or be `text` if it is the `whole`. An answer that repeats a line
    /// must repeat one of the data, and the one that is asked for.
    pub(super) fn may_answer(&self, text: &[u8], whole: bool) -> bool {
        let Some(rest) = text.strip_prefix(LINE_ANSWER.0) else { return true };
        let Some(at) = memmem::find(rest, LINE_ANSWER.1) else { return true };
        let line = &rest[at + LINE_ANSWER.1.len()..];
        let fits = |known: &[u8]| if whole { known == line } else { known.starts_with(line) };
        match &self.picked {
            Some(picked) => fits(picked),
            None => self.data.split(|byte| *byte == b'\n').any(fits),
        }
    }
}

/// The index of the line that an instruction asks for: `the third one` or `the last`, but not `lines 3 to 5` or `all but
/// the third`. `lines` is how many there are.
fn place(instruction: &str, lines: usize) -> Option<usize> {
    let words = instruction.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join(" ");
    // What is understood is removed, because its words are also in the list below or are numbers.
    let mut words = format!(" {words} ").replace(" after all ", " ");
    let end = FROM_THE_END.iter().find(|(place, _)| words.contains(&format!(" {place} ")));
    if let Some((place, _)) = end {
        words = words.replacen(&format!(" {place} "), " ", 1);
    }
    // `one` is not a number in `the third one`.
    let words: Vec<&str> = words.split(' ').filter(|word| *word != "one").collect();
    if words.iter().any(|word| NOT_ONE_LINE.contains(word)) {
        return None;
    }
    match (end, &numbers(&words.join(" "))[..]) {
        (Some((_, after)), []) => lines.checked_sub(after + 1),
        (None, [number]) => (*number as usize).checked_sub(1).filter(|&at| at < lines),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Piped, place};

    #[test]
    fn a_place_is_counted_from_the_start_or_from_the_end() {
        for (instruction, expected) in [
            ("read the third one", Some(2)),
            ("open file #3, please", Some(2)),
            ("Of these, show me the fourth one, after all", Some(3)),
            ("the last one", Some(4)),
            ("Skim the second-to-last one listed above", Some(3)),
            ("would you mind reading the last but one file?", Some(3)),
            ("NEXT TO LAST line please", Some(3)),
            ("the penultimate", Some(3)),
            ("the third to last", None),
            ("the last 3", None),
            ("the last line of the second", None),
            ("all but the third", None),
            ("the one after the third", None),
            ("lines 3 to 5", None),
            ("the ninth", None),
            ("this one", None),
        ] {
            assert_eq!(place(instruction, 5), expected, "{instruction}");
        }
        assert_eq!(place("the penultimate", 1), None);
    }

    #[test]
    fn a_line_that_is_given_is_the_one_asked_for() {
        let may = |instruction: &str, said: &str, whole| {
            let request = format!("one\nonce more\n\n{instruction}");
            Piped::new(&request).unwrap().may_answer(said.as_bytes(), whole)
        };
        for (instruction, said, whole, expected) in [
            ("what is on line 2?", "The second line is: once more", true, true),
            ("what is on line 2?", "The second line is: once", false, true),
            ("what is on line 2?", "The second line is: once", true, false),
            ("what is on line 2?", "The second line is: one", true, false),
            ("say a line", "The first line is: one", true, true),
            ("say a line", "The first line is: oner", false, false),
            ("what is on line 2?", "The second", true, true),
            ("what is on line 2?", "There are 2 lines.", true, true),
        ] {
            assert_eq!(may(instruction, said, whole), expected, "{instruction}: {said}");
        }
        assert!(Piped::new("what is on line 2?").is_none());
    }

    #[test]
    fn what_is_saved_is_all_of_the_data() {
        for (instruction, said, expected) in [
            ("save this as a", "one\nonce more", false),
            ("save this as a", "one", true),
            ("save this as a", "one\nonce", true),
            ("save this as a", "once more", false),
            ("save the first line as a", "one", false),
            ("write one to a", "one", false),
            ("make a, empty", "", false),
        ] {
            let piped = Piped::new(&format!("one\nonce more\n\n{instruction}")).unwrap();
            assert_eq!(piped.cuts(said.as_bytes()), expected, "{instruction}: {said}");
        }
    }
}
