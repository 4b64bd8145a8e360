//! The table.

use std::{collections::BTreeMap, fmt};

use super::{Said, called};

/// The number of right answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub right: usize,
    pub all: usize,
    /// The wrong ones: what was asked, what would be right, what was said.
    pub wrong: Vec<[String; 3]>,
}

impl Row {
    fn add(&mut self, right: bool, asked: &str, expected: &str, said: &str) {
        self.all += 1;
        self.right += usize::from(right);
        if !right {
            self.wrong.push([asked, expected, said].map(str::to_owned));
        }
    }

    pub fn percent(&self) -> f64 {
        100.0 * self.right as f64 / self.all.max(1) as f64
    }
}

/// The result of an examination.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// First answers, by the tool that is meant.
    pub requests: BTreeMap<&'static str, Row>,
    /// Answers to results, by the tool that was called.
    pub results: BTreeMap<&'static str, Row>,
    /// Handwritten phrasings that the generator does not have, and those that it has too.
    pub new: Row,
    pub known: Row,
    /// Answers of any kind that look like a call and are none.
    pub broken: usize,
}

impl Report {
    pub fn request(&mut self, name: &'static str, right: bool, asked: &str, expected: &str, said: &str) {
        self.broken += usize::from(called(said) == Said::Broken);
        self.requests.entry(name).or_default().add(right, asked, expected, said);
    }

    pub fn result(&mut self, name: &'static str, right: bool, result: &str, expected: &str, said: &str) {
        self.broken += usize::from(called(said) == Said::Broken);
        self.results.entry(name).or_default().add(right, result, expected, said);
    }

    pub fn handwritten(&mut self, new: bool, right: bool, asked: &str, expected: &str, said: &str) {
        self.broken += usize::from(called(said) == Said::Broken);
        let row = if new { &mut self.new } else { &mut self.known };
        row.add(right, asked, expected, said);
    }

    /// All requests that mean a call.
    pub fn calls(&self) -> Row {
        sum(self
            .requests
            .iter()
            .filter(|(name, _)| name.contains("_file") || **name == "web_fetch")
            .map(|(_, row)| row))
    }

    pub fn answers(&self) -> Row {
        sum(self.results.values())
    }
}

fn sum<'a>(rows: impl Iterator<Item = &'a Row>) -> Row {
    rows.fold(Row::default(), |sum, row| Row {
        right: sum.right + row.right,
        all: sum.all + row.all,
        wrong: Vec::new(),
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, row: &Row| {
            writeln!(f, "  {name:<20}{:>5} of {:>5}{:>8.1} %", row.right, row.all, row.percent())
        };
        writeln!(f, "held-out requests, the call exactly right")?;
        for (name, row) in &self.requests {
            line(f, name, row)?;
        }
        line(f, "all calls", &self.calls())?;
        writeln!(f, "answers to results, exactly right")?;
        for (name, row) in &self.results {
            line(f, name, row)?;
        }
        line(f, "all answers", &self.answers())?;
        if self.new.all + self.known.all > 0 {
            writeln!(f, "handwritten phrasings")?;
            line(f, "new to the generator", &self.new)?;
            line(f, "also generated", &self.known)?;
            line(f, "all", &sum([&self.new, &self.known].into_iter()))?;
        }
        writeln!(f, "calls that are no valid JSON, or do not fit their tool: {}", self.broken)
    }
}

impl Report {
    /// The first `count` wrong cases of each kind, in full. The handwritten ones are left out: whoever works on
    /// the generator is not to see them.
    pub fn wrong(&self, count: usize) -> String {
        let rows = self.requests.iter().map(|(name, row)| ("request", name, row));
        let rows = rows.chain(self.results.iter().map(|(name, row)| ("result", name, row)));
        let mut text = String::new();
        for (what, name, row) in rows {
            for [asked, expected, said] in row.wrong.iter().take(count) {
                text += &format!("--- {what}, {name}\n{asked}\nright: {expected}\n said: {said}\n");
            }
        }
        text
    }
}
