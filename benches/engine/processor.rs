//! The time that processors have spent for this process or for another one.

use std::{error::Error, fs, ops::ControlFlow, time::Duration};

use kontekst_engine::{Engine, GenerateRequest, Prompt, Sampling};
use rustix::{
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
    time::{ClockId, clock_gettime},
};

use crate::{Endless, Speed};

/// The session in which the prompt stays between reading it and writing after it.
const SESSION: &str = "processor";

/// The processor time of this process.
pub(crate) fn time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("time passes forwards")
}

/// The processor time of all threads of a process, as the scheduler counts it.
pub(crate) fn time_of(process: u32) -> Result<Duration, Box<dyn Error>> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let counts = fs::read_to_string(thread?.path().join("schedstat"))?;
        nanoseconds += counts.split(' ').next().ok_or("no time")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Keeps this process and those that it starts on one processor. An engine that begins then has one thread.
pub(crate) fn stay_on_one() -> Result<(), Box<dyn Error>> {
    let allowed = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|&number| allowed.is_set(number)).ok_or("no processor")?);
    sched_setaffinity(None, &one)?;
    Ok(())
}

/// Returns the tokens for each second of processor time.
///
/// Reading gives the first token of an answer, and ends there. Writing begins with reading the last token of the prompt again,
/// alone, as it reads each token of the answer but the last one.
pub(crate) fn built_in(engine: &Engine, prompt: &[u32], answer: u32) -> Result<Speed, Box<dyn Error>> {
    engine.forget(SESSION);
    let time_of = |answer: u32| -> Result<Duration, Box<dyn Error>> {
        let (prompt, sampling) = (Prompt { tokens: prompt, session: Some(SESSION) }, Sampling::greedy());
        let request =
            GenerateRequest { prompt, sampling, max_tokens: answer, seed: None, speculation: false };
        let before = time();
        engine.generate(&request, Some(&mut Endless), &|| false, &mut |_| ControlFlow::Continue(()))?;
        Ok(time() - before)
    };
    Ok(Speed::of(prompt.len(), time_of(1)?, answer, time_of(answer)?))
}
