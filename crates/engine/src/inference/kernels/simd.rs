//! The instructions of this CPU that the kernels use.

use std::sync::LazyLock;
#[cfg(feature = "test-support")]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pulp::Arch;

/// The widest instructions that this CPU has.
pub(super) static ARCH: LazyLock<Arch> = LazyLock::new(|| {
    #[cfg(all(feature = "test-support", target_arch = "x86_64"))]
    if WITHOUT_AVX512.load(Relaxed) {
        return pulp::x86::V3::try_new().map_or(Arch::Scalar, Arch::V3);
    }
    Arch::new()
});

#[cfg(feature = "test-support")]
static WITHOUT_AVX512: AtomicBool = AtomicBool::new(false);

/// Lets the kernels use only what CPUs without AVX-512 have, so that those can be measured on one with it.
///
/// Must be called before the first model is opened.
#[cfg(feature = "test-support")]
pub fn without_avx512() {
    WITHOUT_AVX512.store(true, Relaxed);
}
