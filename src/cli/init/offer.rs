//! The models that are offered to somebody who has none.

use crate::models::memory::{Fitness, MemoryNeed};

/// A model that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// The source for `kontekst models pull`.
    pub(super) source: &'static str,
    pub(super) title: &'static str,
    /// The size of its Q4_K_M file in bytes, rounded.
    pub(super) bytes: u64,
    pub(super) licence: &'static str,
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

/// Returns the largest model for this machine. `available` is its free memory in bytes, and `disk` the free space for the file
/// in bytes. What is not known is no limit.
pub(super) fn best(available: Option<u64>, cores: usize, disk: Option<u64>) -> Option<Offer> {
    let fits = |offer: &&Offer| {
        let need = MemoryNeed { weights: offer.bytes, cache: Some(WINDOW), working: WORKING };
        available.is_none_or(|available| need.fitness(available) == Fitness::Fits)
            && disk.is_none_or(|disk| disk / 10 * 9 > offer.bytes)
            && cores >= offer.cores
    };
    OFFERS.iter().find(fits).copied()
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
            let offer = best(available, cores, disk);
            assert_eq!(offer.map(|offer| offer.title), expect, "{available:?} {cores} {disk:?}");
        }
    }
}
