//! The models that are offered to somebody who has none.

use std::path::Path;

use kontekst_store::config::free_space;

use super::memory::{Fitness, MemoryNeed, available_now};

/// A model that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The source for `kontekst models pull`.
    pub source: &'static str,
    pub title: &'static str,
    /// The size of its Q4_K_M file in bytes, rounded.
    pub bytes: u64,
    pub licence: &'static str,
    /// The processor cores from which on an answer does not take too long.
    cores: usize,
}

/// The models, the largest first. Each can be run by llama-server and by the built-in engine. The sizes are those of the
/// files, and the cores are an estimate from the speed of a 1.5B model on two.
const OFFERS: [Offer; 4] = [
    Offer {
        source: "Qwen/Qwen3-8B-GGUF",
        title: "Qwen3 8B",
        bytes: 5_030_000_000,
        licence: "Apache 2.0",
        cores: 12,
    },
    Offer {
        source: "Qwen/Qwen3-4B-GGUF",
        title: "Qwen3 4B",
        bytes: 2_500_000_000,
        licence: "Apache 2.0",
        cores: 4,
    },
    Offer {
        source: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        title: "Qwen2.5 Coder 1.5B",
        bytes: 1_117_000_000,
        licence: "Apache 2.0",
        cores: 2,
    },
    Offer {
        source: "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        title: "Qwen2.5 Coder 0.5B",
        bytes: 491_000_000,
        licence: "Apache 2.0",
        cores: 1,
    },
];

/// An allowance for the context window, in bytes.
const WINDOW: u64 = 1 << 30;
/// The need of the largest of them besides its weights and the window, in bytes.
const WORKING: u64 = 90 << 20;

/// The memory, the cores and the disk of a machine. What is not known is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The memory that new programs can have, in bytes.
    pub available: Option<u64>,
    pub cores: usize,
    /// The free space for the file, in bytes.
    pub(crate) disk: Option<u64>,
}

impl Room {
    /// Returns what this machine has now, with a file in `model_dir`, which need not exist.
    pub fn of_machine(model_dir: &Path) -> Self {
        let existing = model_dir.ancestors().find(|dir| dir.exists());
        Self {
            available: available_now(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            disk: existing.and_then(|dir| free_space(dir).ok().flatten()),
        }
    }

    /// Returns the largest model for this machine.
    pub fn best_offer(self) -> Option<Offer> {
        OFFERS.iter().find(|offer| self.fits(offer)).copied()
    }

    fn fits(self, offer: &Offer) -> bool {
        let need = MemoryNeed { weights: offer.bytes, cache: Some(WINDOW), working: WORKING };
        self.available.is_none_or(|available| need.fitness(available) == Fitness::Fits)
            && self.disk.is_none_or(|disk| disk / 10 * 9 > offer.bytes)
            && self.cores >= offer.cores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_model_for_the_machine_is_offered() {
        const GB: u64 = 1_000_000_000;
        for (available, cores, disk, expect) in [
            (Some(30 * GB), 16, Some(100 * GB), Some("Qwen3 8B")),
            (Some(30 * GB), 8, Some(100 * GB), Some("Qwen3 4B")),
            (Some(6 * GB), 8, Some(100 * GB), Some("Qwen3 4B")),
            (Some(3 * GB), 8, Some(100 * GB), Some("Qwen2.5 Coder 1.5B")),
            (Some(30 * GB), 2, None, Some("Qwen2.5 Coder 1.5B")),
            (Some(30 * GB), 16, Some(GB), Some("Qwen2.5 Coder 0.5B")),
            (Some(GB), 16, None, None),
            (None, 1, None, Some("Qwen2.5 Coder 0.5B")),
        ] {
            let offer = Room { available, cores, disk }.best_offer();
            assert_eq!(offer.map(|offer| offer.title), expect, "{available:?} {cores} {disk:?}");
        }
    }
}
