//! How long it takes to do nothing: `--version`.

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
        setup.rounds * 2,
        [&mut || Ok(process::run(lab.curl(&["--version"]))?.wall()), &mut || {
            Ok(process::run(lab.desk.kontekst(&["--version"]))?.wall())
        }],
    )?;
    Ok(vec![Row::ratio("--version", median(&kontekst)?, median(&curl)?, 0.12, "x curl")])
}
