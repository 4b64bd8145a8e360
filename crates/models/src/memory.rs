//! Estimates whether a model fits into the memory of this machine, and which context window fits beside it.

use kontekst_store::config::FALLBACK_CONTEXT_SIZE;

use super::ModelInfo;

/// The memory of the daemon before it has loaded a model, in bytes. Measured with the static build.
const DAEMON: u64 = 13 << 20;
/// The memory for each token of the vocabulary, in bytes: its text and its name, each with its allocation, the tables that find
/// both, and a merge. Measured as what the daemon takes more than the file once it has loaded Qwen2.5-Coder 0.5B, 27 MB for
/// 151,936 tokens.
const VOCABULARY: u64 = 176;
/// The memory for a batch of a prompt, in bytes for each number in the longest vector: 64 tokens, in `f32`, in 16 vectors. The
/// last factor is measured: 6.7 MB for SmolLM2 135M and 20 MB for Qwen2.5-Coder 0.5B.
const BATCH: u64 = 64 * 4 * 16;

/// The memory that running a model in the built-in engine needs, in bytes. llama-server keeps some weights twice, and takes up
/// to four bytes for each token of the vocabulary and each of the 512 tokens that it reads at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    pub weights: u64,
    /// The key-value cache for the whole context window, or `None` if the file does not tell.
    pub cache: Option<u64>,
    /// Everything else: the program, the vocabulary, and what is computed for a part of a prompt.
    pub(crate) working: u64,
}

/// The comparison of the needed memory with the available memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitness {
    Fits,
    /// The model leaves less than a tenth of the available memory, so other programs may be affected.
    Tight,
    TooLarge,
}

impl MemoryNeed {
    /// Returns the need for one conversation that fills a context window of `window` tokens. `weights` is the size of the
    /// model's files in bytes: weights are in memory once, as the files have them.
    pub fn new(info: &ModelInfo, weights: u64, window: u64) -> Self {
        Self {
            weights,
            cache: info.cache_bytes_per_token.map(|bytes| bytes.saturating_mul(window)),
            working: DAEMON
                .saturating_add(info.vocabulary.saturating_mul(VOCABULARY))
                .saturating_add(info.widest.saturating_mul(BATCH)),
        }
    }

    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache.unwrap_or(0)).saturating_add(self.working)
    }

    /// Compares the need with the memory that new programs can have without swapping.
    pub fn fitness(&self, available: u64) -> Fitness {
        match self.total() {
            total if total > available => Fitness::TooLarge,
            total if total > available / 10 * 9 => Fitness::Tight,
            _ => Fitness::Fits,
        }
    }
}

/// Returns the largest context window, in tokens, for which there is memory: at most the one that the model was trained
/// for. `weights` is the size of the model's files, and `available` the memory that it may take, both in bytes.
///
/// The window may take half of the memory that the weights leave, so that a second conversation and other programs have the
/// rest. It has no fewer
/// than [`FALLBACK_CONTEXT_SIZE`] tokens, nor more than that where the file or the system does not tell enough.
pub fn fitting_window(info: &ModelInfo, weights: u64, available: Option<u64>) -> u32 {
    let least = u64::from(FALLBACK_CONTEXT_SIZE);
    let trained = info.context_window.unwrap_or(least);
    let fitting = match (info.cache_bytes_per_token, available) {
        (Some(cache), Some(available)) if cache > 0 => {
            let room = available.saturating_sub(MemoryNeed::new(info, weights, 0).total()) / 2;
            (room / cache / 256 * 256).max(least)
        }
        _ => least,
    };
    u32::try_from(fitting.min(trained)).unwrap_or(u32::MAX)
}

/// Returns the memory that new programs can have now without swapping, in bytes. Unknown on systems without /proc.
pub fn available_now() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// Returns `MemAvailable` from the text of `/proc/meminfo`, in bytes.
pub(crate) fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model with a cache of 128 KiB for each token.
    fn info(context_window: Option<u64>, cache_bytes_per_token: Option<u64>) -> ModelInfo {
        ModelInfo { context_window, cache_bytes_per_token, ..ModelInfo::default() }
    }

    #[test]
    fn the_need_is_compared_with_the_available_memory() {
        let need = MemoryNeed::new(&info(None, Some(128 << 10)), 4 << 30, 4096);
        assert_eq!(need.total(), (4 << 30) + (512 << 20) + DAEMON);
        assert_eq!(need.fitness(8 << 30), Fitness::Fits);
        assert_eq!(need.fitness(need.total() + 1), Fitness::Tight);
        assert_eq!(need.fitness(4 << 30), Fitness::TooLarge);
        let endless = ModelInfo { vocabulary: u64::MAX, widest: u64::MAX, ..info(None, Some(u64::MAX)) };
        let need = MemoryNeed::new(&endless, u64::MAX, u64::MAX);
        assert_eq!((need.total(), need.fitness(u64::MAX - 1)), (u64::MAX, Fitness::TooLarge));
    }

    /// The peaks are those of the daemon (`VmHWM`, static build) with these files of Hugging Face, after a prompt of so many
    /// tokens: SmolLM2 135M Q4_1, Qwen2.5-Coder 0.5B and 1.5B Q4_K_M.
    #[test]
    fn the_need_is_close_to_what_was_measured() {
        for (weights, vocabulary, widest, cache, tokens, peak) in [
            (98_362_432, 49_152, 1536, 23_040, 511, 138_649_600),
            (98_362_432, 49_152, 1536, 23_040, 4060, 220_295_168),
            (491_400_064, 151_936, 4864, 12_288, 509, 549_199_872),
            (491_400_064, 151_936, 4864, 12_288, 4019, 593_203_200),
            (1_117_320_768, 151_936, 8960, 28_672, 509, 1_189_605_376),
            (1_117_320_768, 151_936, 8960, 28_672, 4019, 1_288_847_360),
        ] {
            let info = ModelInfo { vocabulary, widest, ..info(None, Some(cache)) };
            let need = MemoryNeed::new(&info, weights, tokens).total();
            assert!(need.abs_diff(peak) <= peak * 3 / 100, "{weights} {tokens}: {need} for {peak}");
        }
    }

    #[test]
    fn the_window_takes_half_of_what_the_weights_leave() {
        let check = |info: &ModelInfo, weights: u64, available: Option<u64>, window: u32| {
            assert_eq!(fitting_window(info, weights, available), window, "{info:?} {weights} {available:?}");
        };
        let large = info(Some(131_072), Some(128 << 10));
        check(&large, 4 << 30, Some((8 << 30) + DAEMON), 16_384);
        check(&large, 4 << 30, Some(64 << 30), 131_072);
        check(&large, 4 << 30, Some((8 << 30) + DAEMON + 1000), 16_384);
        check(&large, 4 << 30, Some(4 << 30), 4096);
        check(&large, 4 << 30, None, 4096);
        check(&info(Some(2048), Some(1)), 0, Some(u64::MAX), 2048);
        check(&info(None, Some(1)), 0, Some(u64::MAX), 4096);
        check(&info(Some(8192), None), 0, Some(u64::MAX), 4096);
        check(&info(Some(u64::MAX), Some(1)), u64::MAX, Some(u64::MAX), 4096);
        check(&info(Some(u64::MAX), Some(1)), 0, Some(u64::MAX), u32::MAX);
    }

    #[test]
    fn available_memory_is_read_from_meminfo() {
        let text = "MemTotal:       32614864 kB\nMemFree:  1 kB\nMemAvailable:   16000000 kB\n";
        assert_eq!(available(text), Some(16_384_000_000));
        assert_eq!(available("MemTotal: 1 kB"), None);
        assert_eq!(available("MemAvailable: many kB"), None);
    }
}
