//! Texts that are written, replaced, and found in files.

mod confusing;
mod files;

use super::{Draw, draw::capital};

pub use files::{lines_of_a_file, lines_of_prose};

impl Draw {
    /// One line as people put it into files: a few words, a sentence, a setting, a piece of code.
    pub fn text(&mut self) -> String {
        match self.between(0, 99) {
            0..18 => self.words(1, 8),
            18..30 => self.everyday(),
            30..44 => self.sentence(2, 10),
            44..52 => self.code(),
            52..57 => {
                format!("{}{}{}", self.stem(), self.pick(&["=", " = ", ": ", ":", "\t", " - "]), self.value())
            }
            57..62 => self.stem(),
            62..66 => capital(&self.words(1, 4)),
            66..69 => format!("# {}", capital(&self.words(1, 4))),
            69..73 => format!("- {}", self.words(1, 5)),
            73..76 => self.value(),
            76..79 => self.url(),
            79..83 => format!("{} {}", self.foreign(), self.words(1, 4)),
            83..86 => self.words(1, 3).to_uppercase(),
            86..89 => {
                let (a, b) = (self.words(1, 3), self.words(1, 3));
                format!("{a} \"{b}\"")
            }
            89..91 => format!("{}\\{}\\{}", self.pick(&["C:", "D:", "\\", "."]), self.word(), self.stem()),
            91..93 => format!("it's {}", self.words(1, 4)),
            93..95 => format!("{{\"{}\": \"{}\"}}", self.word(), self.word()),
            95..96 if self.chance(50) => self.jumble(16, 40),
            95..96 => self.confusing(),
            96..97 => format!("{}\\n{}", self.word(), self.words(1, 3)),
            97..98 => format!("({}) {}!", self.words(1, 2), self.words(1, 3)),
            _ => format!("{}, {} and {}", self.word(), self.word(), self.word()),
        }
    }

    /// A text that people do write down. Its words are drawn at random.
    pub fn everyday(&mut self) -> String {
        let pattern = self.pick(&[
            "[hello|hello world|Hello, world!|hi there|Hello {W}|hello {w}|good morning|test|this is a test|just a test|a test|some text|lorem ipsum|foo|bar|foo bar|abc|done|ok|yes]",
            "[buy|get|order|bring|find|sell|return] [{w}|{w} and {v}|{w}, {v} and bread|some {w}|the {w}|milk|milk and eggs|{a} {w}s|more {w} for the {v}]",
            "[call|email|ask|meet|visit|pay|thank] [{W}|the {w}|mom|my {w}] [at {a}|on monday|tomorrow|about the {w}|today|next week|in the {w}|because of the {v}|before friday|to talk about {v}]",
            "[the|our|my] {w} [is|was|will be|should be|starts|ends|costs|needs] [at {a}|on tuesday|ready|broken|{v}|{a} euros|a {v}|too {v}|in the {v}|done|fine|late|due on friday]",
            "[TODO|FIXME|NOTE|todo|Note|Reminder|WARNING|idea]: [fix|check|update|rename|remove|clean|write|test] the {w}[| and the {v}| in the {v}| soon]",
            "[i|we|you|they] [like|need|want|love|have|lost|found|saw|fixed|finished] [{w}|the {w}|a {w}|{a} {w}s|my {w} in the {v}|the {w} and the {v}]",
            "[Dear|Hi|Hello] {W},[| thank you for the {w}.| the {w} is ready.]", "[version|port|id|count|total|size|level|page|room|score] {a}", "{W} [and|or|&|vs] {W}", "{w} [and|or|to|in|for|with] {v}",
            "[remember to|don't forget to|please] [bring|check|water|send|clean|call|close] the {w}", "[meeting|lunch|call|dinner|party] [with {W}|at {a}|on {w} street|about {w}]",
            "[name|title|status|author|color|lang|mode|debug] [=|:|is] {w}", "[no|yes], [not|it is|we are|that is] {w}", "{a}. {w}", "{a}, {w}, {v}", "[1, 2, 3|a, b, c|one two three|x = {a}|{a} + {a} = {w}|print({a})|let {w} = {a};]",
            "[the quick brown fox|all work and no play|to be or not to be|hello from {W}|made with {w}|see you at the {w}|it works|it's {w} time|what a {w}!|why is the {w} {v}?|{w} is the new {v}]", "[#|##|//|--|>|*] {W} {w}",
        ]);
        let text = super::grammar::expand(self, pattern);
        let (w, v, upper, a) =
            (self.word(), self.word(), capital(&self.word()), self.small(1, 9999).to_string());
        super::grammar::filled(&text, &[("w", &w), ("v", &v), ("W", &upper), ("a", &a)])
    }

    /// A number, a version, a date, a switch.
    pub fn value(&mut self) -> String {
        match self.between(0, 9) {
            0..4 => {
                let top = self.pick(&[9, 99, 9999, 999_999]);
                self.between(0, top).to_string()
            }
            4 => format!("{}.{}.{}", self.small(0, 20), self.small(0, 30), self.small(0, 99)),
            5 => format!("{}.{}", self.small(0, 99), self.between(0, 99)),
            6 => {
                format!("{}-{:02}-{:02}", self.between(1990, 2035), self.between(1, 12), self.between(1, 28))
            }
            7 => self
                .pick(&[
                    "true", "false", "null", "None", "yes", "no", "on", "off", "-1", "0x1F", "\"\"", "50%",
                    "$9.99", "10:30",
                ])
                .to_owned(),
            _ => self.word(),
        }
    }

    /// A word, or a word as it stands in code.
    pub fn token(&mut self) -> String {
        match self.between(0, 99) {
            0..30 => self.word(),
            30..55 => self.stem(),
            55..65 => capital(&self.word()),
            65..75 => self.value(),
            75..80 => format!("{}()", self.word()),
            80..84 => format!("{}_{}", self.word(), self.word()).to_uppercase(),
            84..88 => format!("{}{}", self.word(), capital(&self.word())),
            88..90 => format!("--{}", self.stem()),
            90..92 => format!("{}::{}", self.word(), self.word()),
            92..94 => format!("{}={}", self.word(), self.value()),
            94..96 => self.foreign().to_owned(),
            96..98 => self.file_name(),
            98..99 => self.host(),
            _ => self
                .pick(&[
                    "+", "-", "==", "!=", "&&", "||", "*", "<", ">", "/", ";", ",", "->", "{", "}", "()",
                    "#", "//",
                ])
                .to_owned(),
        }
    }

    /// A line of code, without the space before it.
    pub fn code(&mut self) -> String {
        let (a, b, c) = (self.word(), self.word(), self.word());
        let value = self.value();
        let text = capital(&self.words(1, 4));
        match self.between(0, 27) {
            0 => format!("fn {a}_{b}({c}: &str) -> usize {{"),
            1 => format!("let {a} = {b}.{c}();"),
            2 => format!("println!(\"{text} {{}}\", {a});"),
            3 => format!("use crate::{a}::{b};"),
            4 => format!("pub struct {} {{", capital(&a)),
            5 => format!("def {a}_{b}(self, {c}=None):"),
            6 => format!("print(\"{text}\")"),
            7 => format!("import {a}"),
            8 => format!("from {a} import {b}"),
            9 => format!("return {a} + {value}"),
            10 => format!("const {a} = require('{b}');"),
            11 => format!("function {a}({b}, {c}) {{"),
            12 => format!("console.log('{text}');"),
            13 => format!("if ({a} == {value}) {{"),
            14 => format!("for {a} in {b}:"),
            15 => format!("#include <{a}.h>"),
            16 => format!("printf(\"{text}\\n\");"),
            17 => format!("int {a} = {value};"),
            18 => format!("<p class=\"{a}\">{text}</p>"),
            19 => format!(".{a} {{ color: {b}; }}"),
            20 => format!("echo \"${}\"", a.to_uppercase()),
            21 => format!("export {}={value}", a.to_uppercase()),
            22 => format!("SELECT {a} FROM {b} WHERE {c} = {value};"),
            23 => format!(
                "func ({}) {}() error {{",
                &a[..a.chars().next().map_or(0, char::len_utf8)],
                capital(&b)
            ),
            24 => format!("\"{a}\": \"{text}\","),
            25 => format!("{a} = [{value}, \"{b}\"]"),
            26 => format!("// {text}"),
            _ => "}".to_owned(),
        }
    }

    /// Several lines.
    pub fn lines(&mut self, low: u32, high: u32) -> String {
        let count = self.small(low, high);
        let indented = self.chance(25);
        let lines: Vec<String> = (0..count)
            .map(|number| {
                let line = self.text();
                let indent = if indented && number > 0 { self.pick(&["    ", "  ", "\t", ""]) } else { "" };
                format!("{indent}{line}")
            })
            .collect();
        lines.join("\n")
    }
}
