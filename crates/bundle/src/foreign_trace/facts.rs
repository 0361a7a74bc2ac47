//! Facts of a trace in addition to its events.

use model::run::Host;

/// The clock of a trace's times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TraceClock {
    /// CLOCK_MONOTONIC, on which most timers are, too.
    Monotonic,
    /// Another one, by the kernel's name.
    Other(String),
    /// The file does not say.
    #[default]
    Unknown,
}

/// The known facts of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceFacts {
    /// The tool and the format.
    pub source: String,
    pub host: Host,
    pub clock: TraceClock,
    /// The events that it has, `system:event`.
    pub events: Vec<String>,
    /// Events that were lost while it was recorded, as far as the file counts them.
    pub lost: u64,
    /// Records that could not be read.
    pub unread: u64,
    pub notes: Vec<String>,
}
