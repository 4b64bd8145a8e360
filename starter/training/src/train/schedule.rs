//! The learning rate of each step.

/// A short rise, a long plateau, and a straight fall to nothing.
///
/// As good as a cosine, and the plateau does not know how long the whole will be: a run can be made longer while it
/// is there, with the same result as if it had been that long from the beginning.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    pub steps: u64,
    /// The rate on the plateau.
    pub peak: f32,
    /// Steps of the rise.
    pub rise: u64,
    /// The share of all steps that the fall takes.
    pub fall: f32,
}

impl Schedule {
    pub fn rate(&self, step: u64) -> f32 {
        let risen = (step + 1) as f32 / self.rise as f32;
        let left = self.steps.saturating_sub(step) as f32 / (self.steps as f32 * self.fall);
        self.peak * risen.min(left).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn rises_stays_and_falls() {
        let schedule = Schedule { steps: 1000, peak: 2.0, rise: 10, fall: 0.4 };
        let rates = [0, 9, 300, 600, 800, 999].map(|step| schedule.rate(step));
        assert_eq!(rates, [0.2, 2.0, 2.0, 2.0, 1.0, 0.005]);
    }
}
