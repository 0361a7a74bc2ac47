//! Facts of a trace in addition to its events.

use model::run::Host;

/// Clock of a trace's times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TraceClock {
    /// CLOCK_MONOTONIC, on which most timers are, too.
    Monotonic,
    /// Another clock, by the kernel's name.
    Other(String),
    /// A clock that the file does not state.
    #[default]
    Unknown,
}

/// Known facts of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceFacts {
    /// Tool and format.
    pub source: String,
    pub host: Host,
    pub clock: TraceClock,
    /// Recorded events, `system:event`.
    pub events: Vec<String>,
    /// Number of events that were lost during the recording, as far as the file counts them.
    pub lost: u64,
    /// Number of records that could not be read.
    pub unread: u64,
    pub notes: Vec<String>,
}
