//! What all parts of a round of sending share.

use std::collections::BTreeMap;

use model::error::{Failure, Result};
use model::text::several;
use model::units::Nanos;

use super::enrolment::PushFolder;
use super::link::{FarmLink, LinkFault};
use super::sent::{SentLog, UntoldWords};
use super::stop::StopFlag;

/// Of more remarks the first are noted as not said yet.
const MOST_UNTOLD: usize = 64;

/// What may be sent at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PushAllowance {
    Nothing,
    /// Rows are small; runs that are still on change.
    Rows,
    All,
}

/// How far what is noted as sent was compared with what the farm has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarmComparison {
    /// The farm is still to be asked.
    Due,
    /// Rows were; runs wait until nothing measures.
    RunsLeft,
    /// Both were, and are again a day after this instant of CLOCK_MONOTONIC.
    Done(Nanos),
}

/// What a round did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundOutcome {
    /// Rows that were new to the farm, and runs.
    pub rows: u64,
    pub runs: u64,
    /// What the farm refused, or has with other content; it is not sent again.
    pub refused: u64,
    /// Rows that the record merged or dropped before they could be sent,
    pub lost: u64,
    /// and runs that were removed before that.
    pub dropped: u64,
    /// Something is left that the farm would not take now.
    pub left: bool,
    /// The farm knows no environments: it is an older one.
    pub no_environments: bool,
    /// Sentences on all of that.
    pub remarks: Vec<String>,
}

impl RoundOutcome {
    /// What is to be said of what no later round finds again; nothing where there is no such.
    fn untold(&self) -> UntoldWords {
        let RoundOutcome { refused, lost, dropped, remarks, .. } = self;
        if *refused == 0 && *lost == 0 && *dropped == 0 {
            return UntoldWords::default();
        }
        let mut some: Vec<String> = remarks.iter().take(MOST_UNTOLD).cloned().collect();
        if remarks.len() > MOST_UNTOLD {
            let more = (remarks.len() - MOST_UNTOLD) as u64;
            some.push(format!("{} besides", several(more, "remark", "remarks")));
        }
        UntoldWords { refused: *refused, lost: *lost, dropped: *dropped, remarks: some }
    }
}

impl From<UntoldWords> for RoundOutcome {
    /// As if the round had just ended.
    fn from(UntoldWords { refused, lost, dropped, remarks }: UntoldWords) -> RoundOutcome {
        RoundOutcome { refused, lost, dropped, remarks, ..RoundOutcome::default() }
    }
}

/// Why a round ended before everything was sent.
#[derive(Debug)]
pub enum RoundEnd {
    /// Something measures.
    Quiet,
    /// The program is to end.
    Stopped,
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
    pub stop: StopFlag,
    /// Whether something measures now.
    pub measuring: &'a dyn Fn() -> bool,
    /// Runs that cannot be sent as they are, by their `run.json` and when one of their files
    /// changed last, and since which instant of CLOCK_MONOTONIC: until one changes again, a day
    /// has passed, or the program is started again.
    pub passed_over: BTreeMap<String, ((u64, u64), Nanos)>,
    /// Runs that the farm says it has, with the digests of their `run.json`, or of the manifests of
    /// those that are not over, as far as it says them; it is asked where nothing is noted.
    pub known: Option<BTreeMap<String, String>>,
    /// What is noted as sent is compared with what the farm has: it may have gone back to a backup.
    pub comparison: FarmComparison,
    pub outcome: RoundOutcome,
}

impl PushRound<'_> {
    /// Whether that much may be sent now.
    pub fn may(&self, what: PushAllowance) -> std::result::Result<(), RoundEnd> {
        if self.stop.is_set() {
            return Err(RoundEnd::Stopped);
        }
        if (self.allowed)() >= what { Ok(()) } else { Err(RoundEnd::Quiet) }
    }

    /// Writes down what was acknowledged, and what is to be said of what was not.
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
