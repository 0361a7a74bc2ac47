//! The recorder inside the kernel: programs that count every wake-up of real-time threads, made at
//! run time for the kernel at hand, without a compiler and without object files. Where a kernel
//! takes none, [`ring`] counts the same of the kernel's event tracing.
//!
//! [`assembler`] makes instructions, [`fields`] says where an event's fields are ([`btf`] by the
//! kernel's types), [`programs`] are the programs, [`layout`] what they share with this
//! process. [`KernelRecorder`] arms them; `drain` turns what they counted into the values of
//! `model::watch`, whose stacks are addresses still.

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
pub use records::WorstFound;
pub use ring::RingRecorder;
pub use slots::Covered;
