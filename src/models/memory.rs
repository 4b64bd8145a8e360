//! Whether a model fits this machine.

/// An allowance, in bytes, for what the server takes besides the weights and the cache: its buffers for a
/// batch, and itself.
const BUFFERS: u64 = 400 << 20;

/// What running a model would take, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    pub weights: u64,
    /// Of the key-value cache for the whole window; `None` where the file does not say.
    pub cache: Option<u64>,
}

/// How that compares with what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitness {
    Fits,
    /// With less than a tenth of the free memory to spare: other programs will feel it.
    Tight,
    TooLarge,
}

impl MemoryNeed {
    /// `cache` is the bytes of one token, `window` the tokens that the server is started with.
    pub fn new(weights: u64, cache: Option<u64>, window: u64) -> Self {
        Self { weights, cache: cache.map(|bytes| bytes.saturating_mul(window)) }
    }

    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache.unwrap_or(0)).saturating_add(BUFFERS)
    }

    /// `available` is the memory that programs can have without making others suffer.
    pub fn fitness(&self, available: u64) -> Fitness {
        match self.total() {
            total if total > available => Fitness::TooLarge,
            total if total > available / 10 * 9 => Fitness::Tight,
            _ => Fitness::Fits,
        }
    }
}

/// `MemAvailable` in the text of `/proc/meminfo`, in bytes.
pub fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitness() {
        let need = MemoryNeed::new(4 << 30, Some(128 << 10), 4096);
        assert_eq!(need.total(), (4 << 30) + (512 << 20) + BUFFERS);
        assert_eq!(need.fitness(8 << 30), Fitness::Fits);
        assert_eq!(need.fitness(need.total() + 1), Fitness::Tight);
        assert_eq!(need.fitness(4 << 30), Fitness::TooLarge);
        assert_eq!(
            MemoryNeed::new(u64::MAX, Some(u64::MAX), u64::MAX).fitness(u64::MAX - 1),
            Fitness::TooLarge
        );
    }

    #[test]
    fn the_kernels_text() {
        let text = "MemTotal:       32614864 kB\nMemFree:  1 kB\nMemAvailable:   16000000 kB\n";
        assert_eq!(available(text), Some(16_384_000_000));
        assert_eq!(available("MemTotal: 1 kB"), None);
        assert_eq!(available("MemAvailable: many kB"), None);
    }
}
