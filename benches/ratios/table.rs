//! The table of results, with one line for each goal.

use std::{fmt::Display, io, io::Write};

use crate::Failure;

/// A goal and the measured figure.
pub(crate) struct Row {
    what: &'static str,
    /// The figures that the ratio was computed from, for display.
    from: String,
    figure: f64,
    goal: f64,
    unit: &'static str,
    failed: bool,
}

impl Row {
    /// Returns a ratio of two times in milliseconds.
    pub(crate) fn ratio(
        what: &'static str,
        kontekst: f64,
        other: f64,
        goal: f64,
        unit: &'static str,
    ) -> Self {
        let from = format!("{kontekst:.2} ms / {other:.2} ms");
        Self { what, from, figure: kontekst / other, goal, unit, failed: false }
    }

    /// Returns an absolute figure.
    pub(crate) fn amount(what: &'static str, figure: f64, goal: f64, unit: &'static str) -> Self {
        Self { what, from: String::new(), figure, goal, unit, failed: false }
    }

    /// Returns a ratio of two figures that are not times.
    pub(crate) fn share(
        what: &'static str,
        from: String,
        figure: f64,
        goal: f64,
        unit: &'static str,
    ) -> Self {
        Self { what, from, figure, goal, unit, failed: false }
    }

    /// Returns a goal that could not be measured, which counts as missed.
    pub(crate) fn failed(what: &'static str, error: &Failure) -> Self {
        Self { what, from: error.to_string(), figure: f64::NAN, goal: 0.0, unit: "", failed: true }
    }

    pub(crate) fn passed(&self) -> bool {
        !self.failed && self.figure <= self.goal
    }

    /// Prints the line. Each is printed as soon as it is known, because the whole table takes minutes.
    pub(crate) fn print(&self) -> io::Result<()> {
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

/// Returns the median. Of an even number of figures it is the lower one of the two in the middle.
pub(crate) fn median(figures: &[f64]) -> Result<f64, Failure> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().ok_or_else(|| "nothing was measured".into())
}
