//! Where the documents are that culprits name, besides those of the knobs.

pub use super::super::knobs::sources::*;

/// Threaded interrupt handlers.
pub const GENERIC_IRQ: &str = "https://docs.kernel.org/core-api/genericirq.html";
/// Lock types and their rules.
pub const LOCKTYPES: &str = "https://docs.kernel.org/locking/locktypes.html";
/// The osnoise tracer: what interferes, and in which order.
pub const OSNOISE: &str = "https://docs.kernel.org/trace/osnoise-tracer.html";
