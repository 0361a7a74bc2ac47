//! Cross-check of a hunt by the kernel's timerlat tracer.

use serde::{Deserialize, Serialize};

use crate::keyword::Word;
use crate::units::{Cpu, Nanos};
use crate::vocabulary::Agreement;

/// Latencies of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedSide {
    pub count: u64,
    /// Slots that a late wake-up skipped; null for the interrupt, which is late in each of them.
    pub missed: Option<u64>,
    pub mean_ns: Option<Nanos>,
    pub p50_ns: Option<Nanos>,
    pub p99_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
}

/// Wake-ups of one CPU at the same time, as measured by onbeat and by timerlat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    pub cpu: Cpu,
    /// Side of onbeat's thread.
    pub own: CheckedSide,
    pub timerlat: CheckedSide,
    /// Latency of the interrupt of timerlat's timer.
    pub timerlat_irq: CheckedSide,
    /// Verdict by the 99 % quantiles.
    pub agreement: Word<Agreement>,
}
