//! The recorder inside the kernel: programs that count every wake-up of real-time threads,
//! generated at run time for the running kernel, without a compiler and without object files. If
//! the kernel accepts none, [`ring`] counts the same by event tracing.
//!
//! [`assembler`] generates instructions, [`fields`] locates an event's fields ([`btf`] by the
//! kernel's types), [`programs`] has the programs, [`layout`] the maps shared with this process.
//! [`KernelRecorder`] arms them; `drain` converts their counts to the values of `model::watch`,
//! whose stacks are still addresses.

pub mod assembler;
pub mod btf;
mod drain;
mod either;
pub mod fields;
mod held;
mod instructions;
pub mod layout;
mod learn;
pub mod programs;
mod recorder;
mod records;
mod refusals;
pub mod ring;
mod slots;
mod switched;

pub use drain::{DrainedEpoch, LatePulse, RecorderCounts};
pub use either::WakeupRecorder;
pub use held::ThreadSums;
pub use recorder::{About, KernelRecorder, Options, Reading};
pub use records::{ReleaseFound, WorstFound};
pub use ring::RingRecorder;
pub use slots::Covered;
