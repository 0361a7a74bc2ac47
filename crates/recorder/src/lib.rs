//! The recorder inside the kernel: programs that count every wake-up of real-time threads, made at
//! run time for the kernel at hand, without a compiler and without object files.
//!
//! [`assembler`] makes instructions, [`fields`] says where an event's fields are ([`btf`] by the
//! kernel's types), [`programs`] are the five programs, [`layout`] what they share with this
//! process. [`KernelRecorder`] arms them; `drain` turns what they counted into the values of
//! `model::watch`, whose stacks are addresses still.

pub mod assembler;
pub mod btf;
mod drain;
pub mod fields;
mod instructions;
pub mod layout;
mod learn;
pub mod programs;
mod recorder;
mod records;
mod refusals;
mod slots;

pub use drain::{DrainedEpoch, RecorderCounts};
pub use recorder::{About, KernelRecorder, Options, Reading, ThreadSums};
pub use records::WorstFound;
pub use slots::Covered;
