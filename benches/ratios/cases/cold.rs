//! The first question of the day: the daemon is not running.

use super::{WIDE, in_turn};
use crate::{
    Failure,
    lab::{Lab, Setup},
    process,
    table::{Row, median},
};

pub fn run(setup: &Setup) -> Result<Vec<Row>, Failure> {
    let lab = Lab::new(setup, WIDE)?;
    let [curl, kontekst] = in_turn(
        setup.rounds,
        [&mut || Ok(process::run(lab.ask_curl("t1d0", "say hello"))?.wall()), &mut || {
            lab.desk.stop_daemon()?;
            Ok(process::run(lab.ask_kontekst("t1d0", "say hello"))?.wall())
        }],
    )?;
    Ok(vec![Row::ratio("one-shot that starts the daemon", median(&kontekst)?, median(&curl)?, 0.8, "x curl")])
}
