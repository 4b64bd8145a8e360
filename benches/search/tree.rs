//! The tree of files that is searched.

use std::{fmt::Write as _, fs, io, path::Path};

pub(crate) const RARE_WORD: &str = "heliotrope";
pub(crate) const COMMON_WORD: &str = "ledger";

const DIRECTORIES: usize = 400;
const FILES_IN_EACH: usize = 50;
/// Lines of a file: from 20 to 20 less than twice this number.
const LINES: usize = 90;

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "account", "balance", "cargo", "daemon", "error", "file", "graph", "handle", "index", "journal", "kernel", "limit",
    "module", "number", "output", "parse", "queue", "result", "string", "token", "update", "value", "window", "yield",
];

/// Writes the tree. Returns the number of its files and of their bytes.
pub(crate) fn write(root: &Path) -> io::Result<(usize, usize)> {
    let mut random = Random(18);
    let mut bytes = 0;
    for number in 0..DIRECTORIES {
        let dir = root.join(format!("part{}", number % 20)).join(format!("module{number}"));
        fs::create_dir_all(&dir)?;
        for file in 0..FILES_IN_EACH {
            let text = text(&mut random);
            bytes += text.len();
            let extension = ["rs", "py", "md", "toml"][file % 4];
            fs::write(dir.join(format!("file{file}.{extension}")), text)?;
        }
    }
    fs::write(root.join(".gitignore"), "*.log\n/build/\n")?;
    Ok((DIRECTORIES * FILES_IN_EACH, bytes))
}

fn text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..20 + random.below(2 * (LINES - 20)) {
        let mut word = || WORDS[random.below(WORDS.len())];
        let (one, other, third, fourth) = (word(), word(), word(), word());
        let more = match random.below(40_000) {
            0 => RARE_WORD,
            1..=800 => COMMON_WORD,
            801..=900 => "fn call_handler(x)",
            _ => "",
        };
        writeln!(text, "    let {one}_{other} = {third}({fourth}); {more}").expect("writes to a string");
    }
    text
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("the remainder is below a usize")
    }
}
