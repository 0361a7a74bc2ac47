//! Everything that is read for an audit: the facts of every run, and what the rules ask for besides.

use super::limits_conf::{LimitsConf, read_limits_conf};
use super::swaps::{Swaps, read_swaps};
use super::texts::{Texts, read_texts};
use super::threads::{Threads, read_threads};
use super::{Fact, Facts, gather};
use crate::host::Host;

/// What the rules want to have read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Patterns as in [`super::texts`].
    pub texts: Vec<&'static str>,
    /// Programs to look for, as the kernel cuts their names (15 bytes).
    pub programs: Vec<&'static str>,
}

/// A machine as the rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// What is read for every run.
    pub facts: Facts,
    /// Settings of one text each.
    pub texts: Texts,
    /// The kernel's threads, those of real-time policy, and which of the programs that were looked for run.
    pub threads: Fact<Threads>,
    /// What the kernel swaps to.
    pub swaps: Fact<Swaps>,
    /// What users are given at login.
    pub limits_conf: Fact<LimitsConf>,
}

/// Reads all that an audit needs; never while measuring.
pub fn survey(host: &Host, wanted: &Wanted) -> Survey {
    Survey {
        facts: gather(host),
        texts: read_texts(host, wanted.texts.iter().copied()),
        threads: read_threads(host, &wanted.programs),
        swaps: read_swaps(host),
        limits_conf: read_limits_conf(host),
    }
}
