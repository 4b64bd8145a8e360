//! Functions compiled for the widest vectors that the machine has.

use std::sync::LazyLock;

/// The vector instructions of the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// AVX-512 with products of 16-bit floats.
    Avx512Bf16,
    Avx2,
    Plain,
}

impl Width {
    pub fn of_this_machine() -> Self {
        static ASKED: LazyLock<Width> = LazyLock::new(ask);
        *ASKED
    }
}

fn ask() -> Width {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bf16")
        {
            return Width::Avx512Bf16;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Width::Avx2;
        }
    }
    Width::Plain
}

/// Compiles each function once per [`Width`]; a call runs the machine's. What is to be compiled with it is marked
/// `#[inline(always)]`.
macro_rules! wide {
    ($($(#[$about:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$about])*
        #[allow(unsafe_code, clippy::too_many_arguments)]
        $vis fn $name($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn plain($($arg: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            fn avx512($($arg: $type),*) $(-> $result)? {
                plain($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            fn avx2($($arg: $type),*) $(-> $result)? {
                plain($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            match $crate::wide::Width::of_this_machine() {
                // SAFETY: the processor was asked for each of these features.
                $crate::wide::Width::Avx512Bf16 => return unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                $crate::wide::Width::Avx2 => return unsafe { avx2($($arg),*) },
                $crate::wide::Width::Plain => {}
            }
            plain($($arg),*)
        }
    )*};
}
pub(crate) use wide;
