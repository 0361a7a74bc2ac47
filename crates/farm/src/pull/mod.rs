//! Runs from boards that cannot call out, over the system's ssh.
//!
//! What runs there is a fixed text; what is asked for goes in by standard input, and what comes is
//! as foreign as what a board sends.

mod host_name;
mod remote;
mod take;

pub use host_name::PullHost;
pub use remote::{ListedRun, RemoteFault, RemoteRuns};
pub use take::{PullOutcome, PullPlace, pull_from};
