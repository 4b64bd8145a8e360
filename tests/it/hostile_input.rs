//! Random input for tests that send thousands of hostile messages, and how many they send.
//!
//! `KONTEKST_TEST_LONG=1 cargo test --release` sends more.

/// Returns `short`, or `long` when `KONTEKST_TEST_LONG` is set.
pub(crate) fn rounds(short: usize, long: usize) -> usize {
    if std::env::var_os("KONTEKST_TEST_LONG").is_some() { long } else { short }
}

/// A small pseudorandom generator (xorshift64). The same seed always gives the same numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number from 0 to `bound` - 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("the remainder is below a usize")
    }

    pub(crate) fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).expect("256 values fit into a byte")
    }
}
