//! Which vector instructions this machine has.
//!
//! A [`VectorUnit`] comes from this module only, which asks the CPU first. Whoever holds one may therefore
//! call the code that is compiled for it: this is the safety argument of every vector kernel.

use std::fmt;
use std::sync::LazyLock;

/// Sets of instructions that kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// `avx512vbmi`, `avx512vbmi2`, `avx512vpopcntdq` and all of [`Level::Avx512`]: x86 servers since 2019.
    Avx512Popcnt,
    /// `avx512f`, `avx512bw`, `avx512dq` and all of [`Level::Avx2`]: x86 servers since 2017.
    Avx512,
    /// `avx2`, `bmi1`, `bmi2` and `popcnt`: x86 since 2013.
    Avx2,
    /// `popcnt`; kernels that do not count bits treat it as [`Level::Portable`].
    Popcnt,
    /// `neon`.
    Neon,
    /// Whatever the program was compiled for.
    Portable,
}

/// All levels, the widest of each processor first; [`is_available`] says which of them this machine has.
const LEVELS: [Level; 6] =
    [Level::Avx512Popcnt, Level::Avx512, Level::Avx2, Level::Popcnt, Level::Neon, Level::Portable];

/// Vector instructions that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorUnit(Level);

static WIDEST: LazyLock<VectorUnit> =
    LazyLock::new(|| VectorUnit::available().next().unwrap_or(VectorUnit(Level::Portable)));

impl VectorUnit {
    /// The widest of this machine.
    #[inline]
    #[must_use]
    pub fn widest() -> VectorUnit {
        *WIDEST
    }

    /// All of this machine, the widest first; the last one is plain Rust.
    pub fn available() -> impl Iterator<Item = VectorUnit> {
        LEVELS.iter().copied().filter(|&level| is_available(level)).map(VectorUnit)
    }

    #[inline]
    pub(super) fn level(self) -> Level {
        self.0
    }
}

impl fmt::Display for VectorUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Level::Avx512Popcnt => "AVX-512 with VPOPCNTDQ",
            Level::Avx512 => "AVX-512",
            Level::Avx2 => "AVX2",
            Level::Popcnt => "POPCNT",
            Level::Neon => "NEON",
            Level::Portable => "portable",
        })
    }
}

#[cfg(target_arch = "x86_64")]
fn is_available(level: Level) -> bool {
    use std::arch::is_x86_feature_detected as has;
    let avx2 = has!("avx2") && has!("popcnt") && has!("bmi1") && has!("bmi2");
    let avx512 = avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq");
    match level {
        Level::Avx512Popcnt => avx512 && has!("avx512vbmi") && has!("avx512vbmi2") && has!("avx512vpopcntdq"),
        Level::Avx512 => avx512,
        Level::Avx2 => avx2,
        Level::Popcnt => has!("popcnt"),
        Level::Neon => false,
        Level::Portable => true,
    }
}

#[cfg(target_arch = "aarch64")]
fn is_available(level: Level) -> bool {
    match level {
        // The kernels take vectors for numbers, the lowest byte first.
        Level::Neon => cfg!(target_endian = "little") && std::arch::is_aarch64_feature_detected!("neon"),
        Level::Portable => true,
        _ => false,
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn is_available(level: Level) -> bool {
    level == Level::Portable
}
