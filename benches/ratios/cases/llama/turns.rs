//! The second turn of a long conversation.

use super::{events, of_type, text, with_its_own};
use crate::{Failure, fixture::Options, home::BenchHome, table::Row};

/// The least number of tokens in the first turn.
const LONG: u64 = 4096;

pub(super) fn run(options: &Options) -> Result<Vec<Row>, Failure> {
    let home = with_its_own(options)?;
    let few = Turn::of(&home, &["run", "--new", "--json", &text(10)])?;
    let more = Turn::of(&home, &["run", "--new", "--json", &text(20)])?;
    let of_ten = more.prompt.checked_sub(few.prompt).filter(|&tokens| tokens > 0);
    let of_ten = of_ten.ok_or("more text is not more tokens")?;
    let lines = u32::try_from((LONG - few.prompt).div_ceil(of_ten) * 10 + 20)?;

    let first = Turn::of(&home, &["run", "--new", "--json", &text(lines)])?;
    if first.prompt < LONG {
        return Err(format!("the first turn has {} tokens", first.prompt).into());
    }
    let go_on = ["run", "--json", "--session", &first.session, "Say that again."];
    let second = Turn::of(&home, &go_on)?;
    // Another conversation takes the only slot of the server in between.
    Turn::of(&home, &["run", "--new", "--json", &text(10)])?;
    let third = Turn::of(&home, &go_on)?;
    // The server is restarted, so the cache comes from disk.
    home.stop_daemon()?;
    let fourth = Turn::of(&home, &go_on)?;
    Ok(vec![
        second.row("second turn, read again"),
        third.row("the same after another session"),
        fourth.row("the same after a restart"),
    ])
}

/// The tokens of one turn, as the server counted them.
struct Turn {
    session: String,
    prompt: u64,
    cached: u64,
}

impl Turn {
    fn of(home: &BenchHome, words: &[&str]) -> Result<Self, Failure> {
        let events = events(home.kontekst(words))?;
        let context = &of_type(&events, "turn_completed")?["context"];
        let count = |key: &str| context[key].as_u64().ok_or("the server counts no tokens");
        let session = of_type(&events, "started")?["session_id"].as_str().map(str::to_owned);
        Ok(Self {
            session: session.ok_or("a run without a session")?,
            prompt: count("prompt_tokens")?,
            cached: count("cached_tokens")?,
        })
    }

    fn row(&self, what: &'static str) -> Row {
        let again = self.prompt - self.cached;
        let from = format!("{again} / {} tokens", self.prompt);
        Row::share(what, from, again as f64 / self.prompt as f64 * 100.0, 5.0, "%")
    }
}
