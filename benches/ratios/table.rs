//! The table: one line for each goal.

use std::{fmt::Display, io, io::Write};

use crate::Failure;

/// One goal and how it went.
pub struct Row {
    what: &'static str,
    /// The figures behind the ratio, for people.
    from: String,
    figure: f64,
    goal: f64,
    unit: &'static str,
    failed: bool,
}

impl Row {
    /// kontekst's time against another's, both in milliseconds.
    pub fn ratio(what: &'static str, kontekst: f64, other: f64, goal: f64, unit: &'static str) -> Self {
        let from = format!("{kontekst:.2} ms / {other:.2} ms");
        Self { what, from, figure: kontekst / other, goal, unit, failed: false }
    }

    /// A figure that is its own measure.
    pub fn amount(what: &'static str, figure: f64, goal: f64, unit: &'static str) -> Self {
        Self { what, from: String::new(), figure, goal, unit, failed: false }
    }

    /// Two figures that are not times.
    pub fn share(what: &'static str, from: String, figure: f64, goal: f64, unit: &'static str) -> Self {
        Self { what, from, figure, goal, unit, failed: false }
    }

    /// A goal that could not be measured counts as missed.
    pub fn failed(what: &'static str, error: &Failure) -> Self {
        Self { what, from: error.to_string(), figure: f64::NAN, goal: 0.0, unit: "", failed: true }
    }

    pub fn passed(&self) -> bool {
        !self.failed && self.figure <= self.goal
    }

    /// Prints the line. Each is printed when it is known: the whole table takes minutes.
    pub fn print(&self) -> io::Result<()> {
        let Self { what, from, figure, goal, unit, .. } = self;
        let mut out = io::stdout().lock();
        if self.failed {
            return writeln!(out, "{what:<34} FAILED: {from}");
        }
        let verdict = if self.passed() { "pass" } else { "MISS" };
        writeln!(
            out,
            "{what:<34} {from:<24} {:>9} {unit:<8} goal {:>9}  {verdict}",
            number(*figure),
            format!("≤ {}", number(*goal))
        )
    }
}

fn number(value: f64) -> impl Display {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// The middle of some figures; of two, the one below.
pub fn median(figures: &[f64]) -> Result<f64, Failure> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().ok_or_else(|| "nothing was measured".into())
}
