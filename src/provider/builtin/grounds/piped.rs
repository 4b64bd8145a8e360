//! The line of piped data that an instruction asks for by its place.

use memchr::memmem;

use super::super::numbers::numbers;

/// What stands around the place in an answer that gives a line.
const ANSWER: (&[u8], &[u8]) = (b"The ", b" line is: ");

/// Places that are counted from the end, with how many lines are behind.
const FROM_THE_END: [(&str, usize); 5] =
    [("last but one", 1), ("second to last", 1), ("next to last", 1), ("penultimate", 1), ("last", 0)];

/// Words that leave something out, or go on from a place.
const OTHERWISE: [&str; 9] = ["last", "end", "bottom", "but", "before", "after", "except", "skip", "not"];

/// Of a request that begins with lines of data, those and the instruction behind them.
pub struct Piped {
    data: Vec<u8>,
    /// The line that is asked for, of several.
    picked: Option<Vec<u8>>,
    instruction: Vec<u8>,
}

impl Piped {
    pub fn new(request: &str) -> Option<Self> {
        let (data, instruction) = request.rsplit_once("\n\n")?;
        let lines = data.split('\n').count();
        let picked = if lines > 1 { place(instruction, lines) } else { None };
        let picked = picked.and_then(|at| data.split('\n').nth(at)).map(|line| line.as_bytes().to_vec());
        Some(Self { data: data.as_bytes().to_vec(), picked, instruction: instruction.as_bytes().to_vec() })
    }

    /// Whether a name that is asked for may have this in it: the line that is asked for has it, or the instruction.
    pub fn may_name(&self, part: &[u8]) -> bool {
        let has = |text: &[u8]| memmem::find(text, part).is_some();
        self.picked.as_ref().is_none_or(|picked| has(picked) || has(&self.instruction))
    }

    /// Whether this is the start of the data, but neither all of it nor the line that is asked for, nor of the
    /// instruction: who says `save this` means all of it.
    pub fn cuts(&self, said: &[u8]) -> bool {
        let is_picked = self.picked.as_ref().is_some_and(|picked| picked == said);
        let rest = self.data.strip_prefix(said).filter(|rest| !rest.trim_ascii_end().is_empty());
        !said.is_empty() && rest.is_some() && !is_picked && memmem::find(&self.instruction, said).is_none()
    }

    /// Whether an answer may begin like this, or be this if it is the `whole`: one that gives a line gives one that
    /// is there, and the one that is asked for.
    pub fn may_say(&self, said: &[u8], whole: bool) -> bool {
        let Some(rest) = said.strip_prefix(ANSWER.0) else { return true };
        let Some(at) = memmem::find(rest, ANSWER.1) else { return true };
        let line = &rest[at + ANSWER.1.len()..];
        let fits = |known: &[u8]| if whole { known == line } else { known.starts_with(line) };
        match &self.picked {
            Some(picked) => fits(picked),
            None => self.data.split(|byte| *byte == b'\n').any(fits),
        }
    }
}

/// Which of so many lines an instruction asks for: `the third one` or `the last`, but not `lines 3 to 5`, nor
/// `all but the third`.
fn place(instruction: &str, lines: usize) -> Option<usize> {
    let words = instruction.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join(" ");
    // What is understood is taken out: its words would be among those that count otherwise, or numbers.
    let mut words = format!(" {words} ").replace(" after all ", " ");
    let end = FROM_THE_END.iter().find(|(place, _)| words.contains(&format!(" {place} ")));
    if let Some((place, _)) = end {
        words = words.replacen(&format!(" {place} "), " ", 1);
    }
    // In `the third one`, no number.
    let words: Vec<&str> = words.split(' ').filter(|word| *word != "one").collect();
    if words.iter().any(|word| OTHERWISE.contains(word)) {
        return None;
    }
    match (end, &numbers(&words.join(" "))[..]) {
        (Some((_, behind)), []) => lines.checked_sub(behind + 1),
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
            Piped::new(&request).unwrap().may_say(said.as_bytes(), whole)
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
