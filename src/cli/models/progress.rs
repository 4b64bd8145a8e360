//! Shows the progress of a download: a bar on a terminal, and elsewhere a line after each tenth.

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

use kontekst_models::pull::PullEvent;

use crate::cli::{printable::printable, units};

/// The time between two drawings of the bar.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes between two lines if the size of the file is unknown.
const UNKNOWN_SIZE_STEP: u64 = 1 << 30;

/// Shows the steps of a download on stderr.
pub(super) struct DownloadProgress {
    quiet: bool,
    terminal: bool,
    name: String,
    total: Option<u64>,
    rate: Rate,
    last_drawn: Option<Instant>,
    /// The last tenth, or gigabyte, that a line was printed for.
    last_printed: u64,
}

impl DownloadProgress {
    pub(super) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            terminal: std::io::stderr().is_terminal(),
            name: String::new(),
            total: None,
            rate: Rate::new(Instant::now(), 0),
            last_drawn: None,
            last_printed: 0,
        }
    }

    pub(super) fn show(&mut self, event: &PullEvent) {
        if self.quiet {
            return;
        }
        let now = Instant::now();
        match event {
            PullEvent::Started { name, have, total } => {
                (self.name, self.total) = (printable(name), *total);
                self.rate = Rate::new(now, *have);
                self.last_printed = self.milestone(*have);
                let size = total.map_or_else(|| "of unknown size".to_owned(), units::bytes);
                match have {
                    0 => self.print_line(&format!("{}: {size}", self.name)),
                    have => self.print_line(&format!(
                        "{}: {size}, continuing at {}",
                        self.name,
                        units::bytes(*have)
                    )),
                }
            }
            PullEvent::Received { have } => {
                self.rate.update(now, *have);
                if self.terminal {
                    if self.last_drawn.is_none_or(|drawn| now - drawn >= REDRAW_INTERVAL) {
                        self.last_drawn = Some(now);
                        self.draw_bar(*have);
                    }
                } else if self.milestone(*have) > self.last_printed {
                    self.last_printed = self.milestone(*have);
                    self.print_line(&progress_line(&self.name, *have, self.total, self.rate.per_second()));
                }
            }
            PullEvent::Restarted { why } => self.print_line(&format!("starting over: {why}")),
            PullEvent::Retrying { why, wait } => {
                self.print_line(&format!(
                    "the connection broke ({why}); trying again in {} s",
                    wait.as_secs_f32()
                ));
            }
            PullEvent::Saving => {
                if let (true, Some(total)) = (self.terminal, self.total) {
                    self.draw_bar(total);
                }
                self.end_line();
            }
        }
    }

    fn milestone(&self, have: u64) -> u64 {
        match self.total {
            Some(total) if total > 0 => (u128::from(have) * 10 / u128::from(total)) as u64,
            _ => have / UNKNOWN_SIZE_STEP,
        }
    }

    /// Ends the line of the bar, if there is one.
    pub(super) fn end_line(&mut self) {
        if self.last_drawn.take().is_some() {
            writeln!(std::io::stderr()).ok();
        }
    }

    fn print_line(&mut self, text: &str) {
        self.end_line();
        writeln!(std::io::stderr(), "{}", printable(text)).ok();
    }

    fn draw_bar(&self, have: u64) {
        let stderr = std::io::stderr();
        let columns =
            rustix::termios::tcgetwinsize(&stderr).map_or(80, |size| usize::from(size.ws_col)).max(20);
        let progress_bar = bar(have, self.total, self.rate.per_second(), columns - 1);
        // Everything is in one write, so that no other output comes between the parts.
        write!(stderr.lock(), "\r{progress_bar}\x1b[K").ok();
    }
}

fn progress_line(name: &str, have: u64, total: Option<u64>, rate: Option<f64>) -> String {
    let mut text = match total {
        Some(total) => {
            format!("{name}: {} % ({} of {})", percent(have, total), units::bytes(have), units::bytes(total))
        }
        None => format!("{name}: {}", units::bytes(have)),
    };
    if let Some(rate) = rate {
        write!(text, ", {}/s", units::bytes(rate as u64)).expect("a String takes everything");
    }
    text
}

fn percent(have: u64, total: u64) -> u64 {
    (u128::from(have.min(total)) * 100 / u128::from(total.max(1))) as u64
}

/// Formats one line of at most `columns` characters: percentage, bar, bytes, rate and time left.
fn bar(have: u64, total: Option<u64>, rate: Option<f64>, columns: usize) -> String {
    let Some(total) = total else {
        let rate = rate.map(|rate| format!("  {}/s", units::bytes(rate as u64))).unwrap_or_default();
        return format!("{}{rate}", units::bytes(have)).chars().take(columns).collect();
    };
    let mut right = format!("{} of {}", units::bytes(have), units::bytes(total));
    if let Some(rate) = rate.filter(|rate| *rate >= 1.0) {
        let left = (total.saturating_sub(have) as f64 / rate).ceil();
        write!(right, "  {}/s  {} left", units::bytes(rate as u64), units::time_left(left as u64))
            .expect("a String takes everything");
    }
    let left = format!("{:>3} % ", percent(have, total));
    // Two spaces separate the bar from what follows. With less room than ten cells there is no bar.
    let room = columns.saturating_sub(left.len() + right.len() + 2).min(40);
    if room < 10 {
        return format!("{left}{right}").chars().take(columns).collect();
    }
    let full = (u128::from(have.min(total)) * room as u128 / u128::from(total.max(1))) as usize;
    format!("{left}{}{}  {right}", "█".repeat(full), "░".repeat(room - full))
}

/// The bytes per second of the last few seconds.
struct Rate {
    at: Instant,
    have: u64,
    smooth: Option<f64>,
}

impl Rate {
    fn new(at: Instant, have: u64) -> Self {
        Self { at, have, smooth: None }
    }

    fn update(&mut self, now: Instant, have: u64) {
        let passed = now.duration_since(self.at).as_secs_f64();
        if passed < 0.5 {
            return;
        }
        let rate = have.saturating_sub(self.have) as f64 / passed;
        // An exponential average with a time constant of five seconds.
        let weight = (-passed / 5.0).exp();
        self.smooth = Some(self.smooth.map_or(rate, |smooth| smooth * weight + rate * (1.0 - weight)));
        (self.at, self.have) = (now, have);
    }

    fn per_second(&self) -> Option<f64> {
        self.smooth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fits_its_line() {
        let mega = 1_000_000;
        assert_eq!(
            bar(250 * mega, Some(1000 * mega), Some(50e6), 70),
            " 25 % █████░░░░░░░░░░░░░░░░░░  250.0 MB of 1.0 GB  50.0 MB/s  15s left"
        );
        assert_eq!(bar(250 * mega, Some(1000 * mega), None, 30), " 25 % 250.0 MB of 1.0 GB");
        assert_eq!(bar(5 * mega, None, Some(1e6), 70), "5.0 MB  1.0 MB/s");
        for columns in 1..120 {
            for have in [0, 1, 999 * mega, 1000 * mega, 2000 * mega] {
                assert!(bar(have, Some(1000 * mega), Some(0.5), columns).chars().count() <= columns);
            }
        }
        assert_eq!(progress_line("a.gguf", 5, Some(10), Some(3.0)), "a.gguf: 50 % (5 B of 10 B), 3 B/s");
    }

    #[test]
    fn a_rate_follows_the_download() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut rate = Rate::new(start, 1000);
        assert_eq!(rate.per_second(), None);
        rate.update(after(1), 2000);
        assert_eq!(rate.per_second(), Some(1000.0));
        rate.update(after(60), 2000);
        assert!(rate.per_second().unwrap() < 1.0, "nothing for a minute");
        rate.update(after(120), 60_002_000);
        assert!(rate.per_second().unwrap() > 990_000.0);
    }
}
