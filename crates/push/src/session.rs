//! State that all parts of a round share.

use std::collections::BTreeMap;

use model::error::{Failure, Result};
use model::text::several;
use model::units::Nanos;

use super::enrolment::PushFolder;
use super::link::{FarmLink, LinkFault};
use super::sent::{SentLog, UntoldWords};
use super::stop::StopFlag;

/// Limit of remarks in the log that were not reported yet: the first ones are noted.
const MOST_UNTOLD: usize = 64;

/// Kinds of data that may be sent at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PushAllowance {
    Nothing,
    /// Rows alone: they are small, and a run in progress still changes.
    Rows,
    All,
}

/// Progress of the comparison of the log with what the farm has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarmComparison {
    /// The farm is still to be asked.
    Due,
    /// Rows were compared; runs wait until no measurement runs.
    RunsLeft,
    /// Both were compared at this instant of CLOCK_MONOTONIC; the next comparison is a day later.
    Done(Nanos),
}

/// Results of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundOutcome {
    /// Rows that were new to the farm; `runs` counts such runs.
    pub rows: u64,
    pub runs: u64,
    /// Items that the farm refused or has with other content; they are not sent again.
    pub refused: u64,
    /// Rows that the record merged or dropped before they could be sent.
    pub lost: u64,
    /// Runs that were removed before they could be sent.
    pub dropped: u64,
    /// True if something is left for a later round.
    pub left: bool,
    /// Sentences on these results.
    pub remarks: Vec<String>,
}

impl RoundOutcome {
    /// Results to report that no later round finds again; empty if there are none.
    fn untold(&self) -> UntoldWords {
        let RoundOutcome { refused, lost, dropped, remarks, .. } = self;
        if *refused == 0 && *lost == 0 && *dropped == 0 {
            return UntoldWords::default();
        }
        let mut some: Vec<String> = remarks.iter().take(MOST_UNTOLD).cloned().collect();
        if remarks.len() > MOST_UNTOLD {
            let more = (remarks.len() - MOST_UNTOLD) as u64;
            some.push(several(more, "more remark", "more remarks"));
        }
        UntoldWords { refused: *refused, lost: *lost, dropped: *dropped, remarks: some }
    }
}

impl From<UntoldWords> for RoundOutcome {
    /// Outcome of a round with these results only.
    fn from(UntoldWords { refused, lost, dropped, remarks }: UntoldWords) -> RoundOutcome {
        RoundOutcome { refused, lost, dropped, remarks, ..RoundOutcome::default() }
    }
}

/// Reasons to end a round before everything was sent.
#[derive(Debug)]
pub enum RoundEnd {
    /// A measurement runs.
    Quiet,
    /// The program is to end.
    Stopped,
    Fault(LinkFault),
    /// The log cannot be written.
    Failed(Failure),
}

impl From<LinkFault> for RoundEnd {
    fn from(fault: LinkFault) -> RoundEnd {
        RoundEnd::Fault(fault)
    }
}

/// State of a round.
pub struct PushRound<'a> {
    pub link: &'a mut dyn FarmLink,
    pub folder: &'a PushFolder,
    pub log: SentLog,
    /// Allowance at the moment, checked before each request.
    pub allowed: &'a dyn Fn() -> PushAllowance,
    pub stop: StopFlag,
    /// True if a measurement runs now.
    pub measuring: &'a dyn Fn() -> bool,
    /// Runs that cannot be sent, by folder: the file number of `run.json` with the latest change of
    /// their files, and the instant of CLOCK_MONOTONIC. They are tried again after a change, a day,
    /// or a restart of the program.
    pub passed_over: BTreeMap<String, ((u64, u64), Nanos)>,
    /// Runs that the farm lists, with the digests of their `run.json`, or of their manifests if
    /// they are not over; none until it is asked, as when nothing is logged.
    pub known: Option<BTreeMap<String, String>>,
    /// Progress of the comparison with the farm, which may have been restored from a backup.
    pub comparison: FarmComparison,
    pub outcome: RoundOutcome,
}

impl PushRound<'_> {
    /// Checks that this kind of data may be sent now; else returns the reason to end the round.
    pub fn may(&self, what: PushAllowance) -> std::result::Result<(), RoundEnd> {
        if self.stop.is_set() {
            return Err(RoundEnd::Stopped);
        }
        if (self.allowed)() >= what { Ok(()) } else { Err(RoundEnd::Quiet) }
    }

    /// Writes the log of what was acknowledged, with the results to report.
    pub fn keep(&mut self) -> std::result::Result<(), RoundEnd> {
        self.log.untold = self.outcome.untold();
        let written: Result<()> = self.log.write(self.folder);
        written.map_err(RoundEnd::Failed)
    }

    pub fn remark(&mut self, remark: String) {
        if !self.outcome.remarks.contains(&remark) {
            self.outcome.remarks.push(remark);
        }
    }
}
