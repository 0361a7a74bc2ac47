//! One round: the newest row of each series first, so that the farm is up to date at once, then
//! older rows, the oldest first, then runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::error::{Failure, Result};

use super::enrolment::PushFolder;
use super::link::{FarmLink, LinkFault};
use super::sent::SentLog;
use super::{rows, runs};

/// Where what is to be sent lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushSources {
    /// Folders of runs.
    pub runs: Vec<PathBuf>,
    /// Records of `onbeat watch`.
    pub records: Vec<PathBuf>,
}

/// What may be sent at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PushAllowance {
    Nothing,
    /// Rows are small; runs that are still on change.
    Rows,
    All,
}

/// What a round did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundOutcome {
    /// Rows that were new to the farm, and runs.
    pub rows: u64,
    pub runs: u64,
    /// What the farm refused, or has with other content; it is not sent again.
    pub refused: u64,
    /// Rows that the record merged or dropped before they could be sent.
    pub lost: u64,
    /// Something is left that the farm would not take now.
    pub left: bool,
    /// Sentences on all of that.
    pub remarks: Vec<String>,
}

/// Why a round ended before everything was sent.
#[derive(Debug)]
pub enum RoundEnd {
    /// Something measures.
    Quiet,
    Fault(LinkFault),
    /// What was sent cannot be noted.
    Failed(Failure),
}

impl From<LinkFault> for RoundEnd {
    fn from(fault: LinkFault) -> RoundEnd {
        RoundEnd::Fault(fault)
    }
}

/// What all parts of a round share.
pub struct PushRound<'a> {
    pub link: &'a mut dyn FarmLink,
    pub folder: &'a PushFolder,
    pub log: SentLog,
    /// Asked before each request.
    pub allowed: &'a dyn Fn() -> PushAllowance,
    /// Runs that cannot be sent as they are, by the file that their `run.json` is: until it is
    /// another one, or the program is started again.
    pub passed_over: BTreeMap<String, (u64, u64)>,
    /// Runs that the farm says it has, with the digests of their `run.json`.
    pub known: BTreeMap<String, String>,
    pub outcome: RoundOutcome,
}

impl PushRound<'_> {
    /// Sends what is there; what it did is in `outcome`, however it ended.
    pub fn run(&mut self, sources: &PushSources) -> std::result::Result<(), RoundEnd> {
        self.outcome = RoundOutcome::default();
        for record in &sources.records {
            rows::send_newest(self, record)?;
        }
        for record in &sources.records {
            rows::send_backlog(self, record)?;
        }
        for folder in &sources.runs {
            runs::send_runs(self, folder)?;
        }
        Ok(())
    }

    /// Whether that much may be sent now.
    pub fn may(&self, what: PushAllowance) -> std::result::Result<(), RoundEnd> {
        if (self.allowed)() >= what { Ok(()) } else { Err(RoundEnd::Quiet) }
    }

    /// Writes down what was acknowledged.
    pub fn keep(&self) -> std::result::Result<(), RoundEnd> {
        let written: Result<()> = self.log.write(self.folder);
        written.map_err(RoundEnd::Failed)
    }

    pub fn remark(&mut self, remark: String) {
        if !self.outcome.remarks.contains(&remark) {
            self.outcome.remarks.push(remark);
        }
    }
}
