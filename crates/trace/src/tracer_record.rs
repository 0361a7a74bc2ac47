//! Records of the kernel's tracers that measure: osnoise and timerlat.

use serde::{Deserialize, Serialize};

use model::units::Nanos;

/// Kinds of interruption that the kernel's osnoise tracer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseSource {
    Nmi,
    Irq,
    Softirq,
    Thread,
}

/// Record of the kernel's osnoise or timerlat tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TracerRecord {
    /// Sum of a sampling period of osnoise.
    NoisePeriod {
        /// Time in which it read the clock, with the noise.
        runtime: Nanos,
        noise: Nanos,
        longest: Nanos,
        /// Gaps of the hardware, NMIs, interrupts, softirqs and threads.
        counts: [u32; 5],
    },
    /// osnoise:sample_threshold: a gap between two reads of the clock.
    NoiseGap {
        ns: Nanos,
        /// Number of NMIs, interrupts, softirqs and threads in it.
        interference: u64,
    },
    /// osnoise:*_noise: an interruption, without those within it.
    Noise { source: NoiseSource, ns: Nanos },
    /// Sample of timerlat.
    TimerLatency {
        /// Number of the activation.
        activation: u32,
        /// Place of the sample: 0 the timer's interrupt, 1 the thread, 2 its return to user mode.
        context: u8,
        ns: Nanos,
    },
}
