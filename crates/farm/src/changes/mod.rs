//! Changes of a board, from values alone: its rate of late wake-ups, its environment with the
//! effect, a culprit that is new on it, silence.
//!
//! Each rule is a file. Reports of several boards are tested against chance over all of them
//! ([`hold`]); [`crate::web`] reads the values, [`crate::pages::changes`] shows the results.

mod budget;
mod culprits;
mod environment;
mod identity;
mod invalid;
mod lead;
#[cfg(test)]
pub mod made;
mod rate;
mod reach;
mod silence;

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use stats::pair::adjusted_p::benjamini_hochberg;

use crate::records::SeriesOfBoard;
use crate::setting_changes::SettingChange;

pub use budget::{BUDGET_APART, BudgetDay, BudgetPlace, over_budget, without_tag};
pub use culprits::{CulpritSeen, LEAST_FIVE_MINUTES, LEAST_SPIKES, new_culprits};
pub use environment::{EFFECT_DAYS, EnvironmentStep, SeriesAround, effect};
pub use identity::{ChangeIdentity, NotedChanges};
pub use invalid::{InvalidRun, invalid_within, is_spoiled};
pub use lead::{BoardLead, lead};
pub use rate::{READ_DAYS, RateHistory, is_judged, rate_changes};
pub use reach::{RateReach, rate_reach};
pub use silence::silent;

/// Days that the page looks back.
pub const SHOWN_DAYS: i64 = 90;
/// Limit of series examined per board, those that are still measured first, as each is read
/// separately. The number beyond it is reported.
pub const MOST_SERIES: usize = 32;
/// Limit of changes of environment examined per board, the latest ones: each reads fifteen days of
/// every series. The number beyond it is reported.
pub const MOST_STEPS: usize = 20;
/// Prefix of the subject of a change of environment, before the digest that named it first.
const OF_ENVIRONMENT: &str = "environment ";
/// The largest share of the changes shown that may be chance.
const FALSE_SHARE: f64 = 0.05;

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Late wake-ups are more frequent.
    MoreOften,
    /// Late wake-ups are less frequent.
    LessOften,
    /// Another environment, and worse latencies since.
    Worse,
    /// Another environment, and better latencies since.
    Better,
    /// Another environment without a significant effect.
    Environment,
    NewCulprit,
    Silent,
    /// A latency is larger than the board may have.
    OverBudget,
}

impl ChangeKind {
    /// True for a change for the worse.
    pub fn is_bad(self) -> bool {
        matches!(
            self,
            ChangeKind::MoreOften
                | ChangeKind::Worse
                | ChangeKind::NewCulprit
                | ChangeKind::Silent
                | ChangeKind::OverBudget
        )
    }

    /// Its word in documents.
    pub fn keyword(self) -> String {
        let word = serde_json::to_value(self).ok();
        word.as_ref().and_then(|word| word.as_str()).unwrap_or_default().to_owned()
    }

    /// Name in a word or two.
    pub fn words(self) -> &'static str {
        match self {
            ChangeKind::MoreOften => "late more often",
            ChangeKind::LessOften => "late less often",
            ChangeKind::Worse => "worse",
            ChangeKind::Better => "better",
            ChangeKind::Environment => "changed",
            ChangeKind::NewCulprit => "new culprit",
            ChangeKind::Silent => "silent",
            ChangeKind::OverBudget => "over budget",
        }
    }
}

/// A change of a board.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FarmChange {
    pub board: String,
    pub kind: ChangeKind,
    /// Time when it was seen, in seconds since 1970.
    pub t: i64,
    /// Estimated start, in seconds since 1970.
    pub from: i64,
    /// A sentence.
    pub says: String,
    /// The same as a clause without its date, for a sentence that begins with the board.
    pub claim: String,
    /// Evidence, a sentence each.
    pub evidence: Vec<String>,
    /// Probability of such a report by chance, for one series of one board in the displayed days;
    /// for an environment, in any of the series that were tested.
    pub p: Option<f64>,
    /// Other changes of settings on the board at about that time.
    pub settings: Vec<SettingChange>,
    /// The page that shows it.
    pub address: String,
    /// Subject of the change; unique with the board and the time.
    pub subject: String,
    /// Environment of the board since the change, if that changed.
    #[serde(skip)]
    pub since: Option<EnvironmentSince>,
    /// Acknowledgement by a user.
    pub acknowledged: Option<Acknowledgement>,
    /// Conditions of the board's series that its texts may name.
    #[serde(skip)]
    pub conditions: Vec<String>,
}

/// Environment of a board since a change. Subject and time of the change are those of the first
/// report: later reports may date it earlier, or contain more settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentSince {
    /// All digests under which it is reported.
    pub digests: Arc<BTreeSet<String>>,
    /// Digests of the previous environment.
    pub before: Arc<BTreeSet<String>>,
    /// The last second before the next change.
    pub until: i64,
}

impl EnvironmentSince {
    /// True if the change to it may have had this subject. A digest shared with the previous
    /// environment, as of a recorder without the difference, may be that of the change before.
    fn may_have(&self, subject: &str) -> bool {
        let is_own = |digest: &str| self.digests.contains(digest) && !self.before.contains(digest);
        subject.strip_prefix(OF_ENVIRONMENT).is_some_and(is_own)
    }
}

/// User who acknowledged a change, with a note and the time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Acknowledgement {
    pub who: String,
    pub note: String,
    /// Time of the acknowledgement, in seconds since 1970.
    pub at: i64,
}

impl FarmChange {
    /// True if it needs a user's attention.
    pub fn is_open(&self) -> bool {
        self.kind.is_bad() && self.acknowledged.is_none()
    }
}

/// Number of series whose rates were tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JudgedSeries {
    pub judged: usize,
    /// Number with too few days, or too few wake-ups.
    pub too_few: usize,
    /// Number beyond the limit of a board.
    pub left_out: usize,
}

impl JudgedSeries {
    /// Adds those of another board.
    pub fn add(&mut self, other: JudgedSeries) {
        self.judged += other.judged;
        self.too_few += other.too_few;
        self.left_out += other.left_out;
    }
}

/// Number of changes of environment that were examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JudgedEnvironments {
    pub looked_at: usize,
    /// Number beyond the limit of a board.
    pub left_out: usize,
}

impl JudgedEnvironments {
    /// Counts for one board, by its number of changes of environment.
    pub fn of(changes: usize) -> JudgedEnvironments {
        let looked_at = changes.min(MOST_STEPS);
        JudgedEnvironments { looked_at, left_out: changes - looked_at }
    }
}

/// Data in which changes were searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangesScope {
    pub series: JudgedSeries,
    pub environments: JudgedEnvironments,
}

impl ChangesScope {
    /// Adds that of another board.
    pub fn add(&mut self, other: ChangesScope) {
        self.series.add(other.series);
        self.environments.looked_at += other.environments.looked_at;
        self.environments.left_out += other.environments.left_out;
    }
}

/// A series, as sentences name it.
pub fn series_name(of: &SeriesOfBoard) -> String {
    match of.words.as_str() {
        "" => of.key.series.clone(),
        words => format!("{} ({words})", of.key.series),
    }
}

/// Removes reports that may be chance among that many series: Benjamini and Hochberg over those of
/// the same kind of test, including series that report nothing. Newest first.
pub fn hold(mut all: Vec<FarmChange>, series: usize) -> Vec<FarmChange> {
    for kinds in [
        &[ChangeKind::MoreOften, ChangeKind::LessOften][..],
        &[ChangeKind::Worse, ChangeKind::Better, ChangeKind::Environment],
    ] {
        let tested: Vec<usize> =
            (0..all.len()).filter(|&at| kinds.contains(&all[at].kind) && all[at].p.is_some()).collect();
        let mut p: Vec<f64> = tested.iter().filter_map(|&at| all[at].p).collect();
        // An environment that did not change is not tested; a rate is, of every series.
        if kinds[0] == ChangeKind::MoreOften {
            p.resize(p.len().max(series), 1.0);
        }
        for (at, adjusted) in tested.into_iter().zip(benjamini_hochberg(&p)) {
            all[at].p = Some(adjusted);
            if adjusted > FALSE_SHARE {
                take_back(&mut all[at], p.len(), adjusted);
            }
        }
    }
    all.retain(|one| {
        !matches!(one.kind, ChangeKind::MoreOften | ChangeKind::LessOften)
            || one.p.is_none_or(|p| p <= FALSE_SHARE)
    });
    all.sort_by(|a, b| (b.t, &a.board, a.kind).cmp(&(a.t, &b.board, b.kind)));
    all
}

/// Withdraws a verdict that the number of changes does not support.
fn take_back(one: &mut FarmChange, changes: usize, p: f64) {
    if matches!(one.kind, ChangeKind::Worse | ChangeKind::Better) {
        one.evidence.push(environment::no_more_than_chance(one.kind, changes, p));
        one.kind = ChangeKind::Environment;
    }
}

#[cfg(test)]
mod tests {
    use super::made::made_change;
    use super::*;
    use crate::records::SeriesKey;

    fn change(board: &str, kind: ChangeKind, p: Option<f64>) -> FarmChange {
        FarmChange { p, ..made_change(board, kind, 9) }
    }

    #[test]
    fn what_one_of_a_thousand_series_shows_by_chance_is_left_out() {
        let rate = |p| change("a", ChangeKind::MoreOften, Some(p));
        assert_eq!(hold(vec![rate(0.004)], 1).len(), 1);
        assert!(hold(vec![rate(0.004)], 1_000).is_empty());
        assert!(hold(vec![rate(1e-6)], 1_000)[0].p.is_some_and(|p| (p - 1e-3).abs() < 1e-9));
        // If many changed, one of the same probability is believed.
        assert_eq!(hold(vec![rate(0.004); 100], 1_000).len(), 100);
    }

    #[test]
    fn series_are_named_with_what_is_known_of_them() {
        let key = SeriesKey { series: "wakeup".into(), plan: "p".into() };
        let mut one = SeriesOfBoard { key, words: String::new(), days: 1, last: 9 };
        assert_eq!(series_name(&one), "wakeup");
        one.words = "every 1 ms".into();
        assert_eq!(series_name(&one), "wakeup (every 1 ms)");
    }

    #[test]
    fn an_environment_that_may_have_done_nothing_is_still_a_change() {
        let all =
            hold(vec![change("a", ChangeKind::Worse, Some(0.2)), change("b", ChangeKind::Silent, None)], 9);
        assert_eq!(
            all.iter().map(|one| one.kind).collect::<Vec<_>>(),
            [ChangeKind::Environment, ChangeKind::Silent]
        );
        let says = "It is higher, but chance explains this in 1 change compared (p 0.200).";
        assert_eq!(all[0].evidence, [says]);
        // Among many, one that would suffice alone is withdrawn, and the others do not mention it.
        let of = |kind, p| change("a", kind, Some(p));
        let mut many = vec![of(ChangeKind::Environment, 0.9); 11];
        many.push(of(ChangeKind::Better, 0.01));
        let all = hold(many, 9);
        let taken: Vec<&FarmChange> = all.iter().filter(|one| !one.evidence.is_empty()).collect();
        assert_eq!((taken.len(), taken[0].kind), (1, ChangeKind::Environment));
        assert!(taken[0].evidence[0].starts_with("It is lower, but chance explains this in 12 "));
        let kept = hold(vec![of(ChangeKind::Worse, 1e-4)], 9).remove(0);
        assert!(kept.kind == ChangeKind::Worse && kept.evidence.is_empty(), "{kept:?}");
    }
}
