//! Identity of changes: a change is found again every day, with more evidence.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use stats::time::onset::RECENT;

use super::{BUDGET_APART, ChangeKind, EnvironmentSince, FarmChange};
use crate::ingest::environment::hex;
use crate::records::Tier;
use crate::wall_clock::DAY;

/// Largest shift of the day on which a rate seems to have changed: it is searched within that many
/// days, and the next change is three times as far.
const RATE_MOVES: i64 = RECENT as i64 * DAY;

/// Key of a change among those of its board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeIdentity {
    pub board: String,
    pub kind: String,
    /// Subject that changed.
    pub subject: String,
    /// Estimated start, in seconds since 1970.
    pub began: i64,
    /// Last time at which it is known to have continued, if that separates it from the next one:
    /// for a budget, its last day above it. This time is stored for a change: the observed days may
    /// lose the first day of a long one, but never the last.
    pub until: i64,
    /// Environment of the board since the change, if that changed: it may be stored under another
    /// subject, and with a later start.
    pub since: Option<EnvironmentSince>,
}

impl ChangeIdentity {
    pub fn of(change: &FarmChange) -> ChangeIdentity {
        ChangeIdentity {
            board: change.board.clone(),
            kind: change.kind.keyword(),
            subject: change.subject.clone(),
            began: change.from,
            until: if change.kind == ChangeKind::OverBudget { change.t } else { change.from },
            since: change.since.clone(),
        }
    }

    /// True if it is the same change as a stored one, found on another day.
    pub fn is(&self, noted: &ChangeIdentity) -> bool {
        let (from, to) = self.noted_within();
        (&self.board, &self.kind) == (&noted.board, &noted.kind)
            && from <= noted.until
            && noted.began <= to
            && may_have(&self.subject, self.since.as_ref(), &noted.subject)
    }

    /// Range of times at which a stored change of its subject is this one. A change of environment
    /// may have been stored at any time until the next one.
    fn noted_within(&self) -> (i64, i64) {
        let (from, to) = (self.began.saturating_sub(self.moves()), self.until.saturating_add(self.moves()));
        (from, self.since.as_ref().map_or(to, |since| since.until.max(to)))
    }

    /// Largest distance, in seconds, of the same change when found on another day.
    fn moves(&self) -> i64 {
        match self.kind.as_str() {
            "silent" | "environment" | "worse" | "better" => Tier::Day.seconds() - 1,
            // A culprit is new on a board once, even if older runs with it arrive later.
            "new-culprit" => i64::MAX,
            // After that many days within the budget, the next excess is another change.
            "over-budget" => BUDGET_APART * Tier::Day.seconds(),
            _ => RATE_MOVES,
        }
    }

    /// Seconds between them; 0 if they overlap.
    fn apart(&self, other: &ChangeIdentity) -> i64 {
        let after = other.began.saturating_sub(self.until);
        after.max(self.began.saturating_sub(other.until)).max(0)
    }

    /// Key shared by all changes that may be the same one. The subject of an environment is one of
    /// several.
    fn place(&self) -> (String, String, String) {
        let subject = match self.kind.as_str() {
            "environment" | "worse" | "better" => "",
            _ => self.subject.as_str(),
        };
        (self.board.clone(), self.kind.clone(), subject.to_owned())
    }

    /// Identifier for use elsewhere.
    pub fn id(&self) -> String {
        let text = format!("{}\0{}\0{}\0{}", self.board, self.kind, self.subject, self.began);
        hex(&Sha256::digest(text)[..16])
    }
}

/// True if a change with this subject may have been stored under the other.
fn may_have(subject: &str, since: Option<&EnvironmentSince>, other: &str) -> bool {
    subject == other || since.is_some_and(|since| since.may_have(other))
}

impl FarmChange {
    /// Range of times at which an acknowledged change of its subject is this one: the stored time
    /// is [`ChangeIdentity::until`].
    pub fn acknowledged_within(&self) -> (i64, i64) {
        ChangeIdentity::of(self).noted_within()
    }

    /// True if the acknowledged subject, with its time, is this change.
    pub fn is_known_as(&self, subject: &str, known: i64) -> bool {
        let is_within = |(from, to): (i64, i64)| (from..=to).contains(&known);
        may_have(&self.subject, self.since.as_ref(), subject) && is_within(self.acknowledged_within())
    }

    /// True if an acknowledgement of a subject, made at a time, covers this change. A culprit that
    /// first appeared after it is another one, as on replaced hardware.
    pub fn is_acknowledged_by(&self, subject: &str, known: i64, at: i64) -> bool {
        // The board's clock and the farm's may differ.
        let is_later = self.kind == ChangeKind::NewCulprit && self.from > at + Tier::Day.seconds();
        !is_later && self.is_known_as(subject, known)
    }
}

/// Stored changes, each with an attached value.
#[derive(Clone, Debug)]
pub struct NotedChanges<T>(BTreeMap<(String, String, String), Vec<(ChangeIdentity, T)>>);

impl<T> NotedChanges<T> {
    pub fn add(&mut self, of: ChangeIdentity, known: T) {
        self.0.entry(of.place()).or_default().push((of, known));
    }

    /// Value attached to a change: of several candidates the nearest, and of equally near ones the
    /// last added.
    pub fn find(&self, of: &ChangeIdentity) -> Option<&T> {
        let here = self.0.get(&of.place())?.iter().rev().filter(|(known, _)| of.is(known));
        here.min_by_key(|(known, _)| known.apart(of)).map(|(_, known)| known)
    }
}

impl<T> FromIterator<(ChangeIdentity, T)> for NotedChanges<T> {
    fn from_iter<I: IntoIterator<Item = (ChangeIdentity, T)>>(all: I) -> NotedChanges<T> {
        let mut noted = NotedChanges(BTreeMap::new());
        all.into_iter().for_each(|(of, known)| noted.add(of, known));
        noted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::OF_ENVIRONMENT;
    use crate::changes::made::made_change;
    use std::sync::Arc;

    fn change(kind: ChangeKind, from: i64, subject: &str) -> ChangeIdentity {
        let subject = subject.to_owned();
        ChangeIdentity::of(&FarmChange { from, subject, ..made_change("a", kind, from + 5) })
    }

    #[test]
    fn a_rate_is_the_same_one_a_few_days_later_and_another_series_is_not() {
        let rate = |day: i64, subject: &str| change(ChangeKind::MoreOften, day * 86_400, subject);
        assert!(rate(1, "s").is(&rate(9, "s")) && !rate(1, "s").is(&rate(30, "s")));
        assert!(!rate(1, "s").is(&rate(1, "other")));
        assert!(!rate(1, "s").is(&change(ChangeKind::LessOften, 86_400, "s")));
        assert_eq!(rate(1, "s").kind, "more-often");
        assert_ne!(rate(1, "s").id(), rate(2, "s").id());
    }

    #[test]
    fn a_second_silence_and_another_culprit_are_others() {
        let silent = |day: i64| change(ChangeKind::Silent, day * 86_400, "silent");
        assert!(silent(3).is(&silent(3)) && !silent(3).is(&silent(5)));
        let back = |day: i64| change(ChangeKind::Worse, day * 86_400, "environment A");
        assert!(back(8).is(&back(8)) && !back(8).is(&back(16)));
        assert_ne!(back(8).id(), back(16).id());
        let culprit = |day: i64, subject| change(ChangeKind::NewCulprit, day * 86_400, subject);
        assert!(culprit(1, "one").is(&culprit(90, "one")) && !culprit(1, "one").is(&culprit(1, "other")));
    }

    #[test]
    fn a_budget_that_is_broken_after_seven_days_within_it_is_another_change() {
        let over = |from: i64, until: i64| {
            let (from, subject) = (from * 86_400, "budget 5".to_owned());
            let change = made_change("a", ChangeKind::OverBudget, until * 86_400);
            ChangeIdentity::of(&FarmChange { from, subject, ..change })
        };
        // Noted is the last day of it.
        let noted = over(14, 14);
        assert!(noted.is(&over(14, 14)) && noted.is(&over(6, 14)) && noted.is(&over(14, 30)));
        assert!(noted.is(&over(21, 22)) && !noted.is(&over(22, 22)));
        assert!(noted.is(&over(2, 7)) && !noted.is(&over(2, 6)));
        assert_eq!((over(6, 14).until, over(6, 14).id()), (14 * 86_400, over(6, 20).id()));
        let noted: NotedChanges<&str> = [(over(6, 6), "first"), (noted, "second")].into_iter().collect();
        assert_eq!(noted.find(&over(8, 15)), Some(&"second"), "one that has both");
        assert_eq!((noted.find(&over(4, 9)), noted.find(&over(40, 40))), (Some(&"first"), None));
    }

    #[test]
    fn what_is_noted_of_the_nearest_is_found() {
        let rate = |day: i64| change(ChangeKind::MoreOften, day * 86_400, "s");
        let mut noted: NotedChanges<&str> = [(rate(1), "first"), (rate(20), "second")].into_iter().collect();
        let found = |noted: &NotedChanges<&'static str>, day| noted.find(&rate(day)).copied();
        assert_eq!((found(&noted, 9), found(&noted, 12)), (Some("first"), Some("second")));
        assert_eq!((found(&noted, 60), noted.find(&change(ChangeKind::MoreOften, 1, "x"))), (None, None));
        noted.add(rate(20), "again");
        assert_eq!(found(&noted, 20), Some("again"));
    }

    /// An environment reported by runs and a recorder, the recorder also reporting the one before.
    fn environment(kind: ChangeKind, named: &str, first: i64, until: i64) -> FarmChange {
        let all = |digests: &[&str]| Arc::new(digests.iter().map(|&one| one.to_owned()).collect());
        let (digests, before) = (all(&["early", "run", "shared"]), all(&["old", "shared"]));
        FarmChange {
            subject: format!("{OF_ENVIRONMENT}{named}"),
            since: Some(EnvironmentSince { digests, before, until }),
            ..made_change("a", kind, first)
        }
    }

    #[test]
    fn an_environment_is_known_by_all_that_says_it_until_the_next() {
        let day = |day: i64| day * 86_400;
        let now = environment(ChangeKind::Worse, "early", day(3), day(12));
        let is = |kind: ChangeKind, named: &str, t: i64| {
            let subject = format!("{OF_ENVIRONMENT}{named}");
            let of = ChangeIdentity::of(&now).is(&change(kind, t, &subject));
            assert!(kind != ChangeKind::Worse || of == now.is_acknowledged_by(&subject, t, day(50)));
            of
        };
        for named in ["early", "run"] {
            for at in [day(2) + 1, day(3), day(8), day(12)] {
                assert!(is(ChangeKind::Worse, named, at), "{named} {at}");
            }
            assert!(!is(ChangeKind::Worse, named, day(2)) && !is(ChangeKind::Worse, named, day(12) + 1));
            assert!(!is(ChangeKind::Better, named, day(3)));
        }
        // It may have been the change to the previous environment.
        assert!(!is(ChangeKind::Worse, "shared", day(3)) && !is(ChangeKind::Worse, "other", day(3)));
        // An environment reported under one digest only.
        let alone = environment(ChangeKind::Worse, "alone", day(3), day(3));
        assert!(alone.is_known_as("environment alone", day(4) - 1));
        assert!(!alone.is_known_as("environment alone", day(4)));
    }

    #[test]
    fn of_several_that_are_noted_of_an_environment_the_nearest_is_found() {
        let noted = [("run", 4), ("early", 9), ("run", 20)].map(|(named, at)| {
            (change(ChangeKind::Worse, at * 86_400, &format!("{OF_ENVIRONMENT}{named}")), at)
        });
        let noted: NotedChanges<i64> = noted.into_iter().collect();
        let found = |kind: ChangeKind, first: i64, until: i64| {
            let of = environment(kind, "early", first * 86_400, until * 86_400);
            noted.find(&ChangeIdentity::of(&of)).copied()
        };
        let worse = |first: i64, until: i64| found(ChangeKind::Worse, first, until);
        assert_eq!((worse(3, 12), worse(8, 30), worse(19, 30)), (Some(4), Some(9), Some(20)));
        assert_eq!((worse(10, 15), found(ChangeKind::Better, 3, 12)), (None, None));
    }

    #[test]
    fn what_was_acknowledged_is_what_is_found_again_and_no_other_change() {
        let day = |day: i64| day * 86_400;
        // For a change that began and was seen on these days: true if the value of another one was
        // stored for it.
        let of = |kind: ChangeKind, from: i64, t: i64, known: i64| {
            let change = FarmChange { from, ..made_change("a", kind, t) };
            change.is_acknowledged_by("", known, day(50))
        };
        // Older rows of the day on which it began, and another day.
        let worse = |from: i64, known: i64| of(ChangeKind::Worse, from, from, known);
        assert!(worse(day(8) + 9_000, day(8) + 60_000) && worse(day(8) + 60_000, day(8) + 9_000));
        assert!(!worse(day(8), day(16)) && !worse(day(16), day(8)));
        // An older run with it.
        let culprit = |from: i64, known: i64| of(ChangeKind::NewCulprit, from, from, known);
        assert!(culprit(day(19), day(20)) && culprit(day(20), day(20)) && culprit(day(51), day(51)));
        assert!(!culprit(day(60), day(20)), "who looked on day 50 saw none that came on day 60");
        // The day moves on which a rate changed.
        let rate = |from: i64, t: i64, known: i64| of(ChangeKind::MoreOften, day(from), day(t), day(known));
        assert!(rate(10, 20, 10) && rate(10, 20, 20) && !rate(10, 30, 30));
        assert!(rate(10, 12, 24) && rate(24, 26, 10) && !rate(25, 27, 10) && !rate(10, 12, 25));
        let silent = |from: i64, t: i64, known: i64| of(ChangeKind::Silent, day(from), day(t), day(known));
        assert!(silent(5, 8, 5) && !silent(5, 8, 8) && !silent(9, 12, 5) && !silent(5, 8, 9));
        // It continues, or is exceeded again after seven days within it.
        let over = |from: i64, t: i64, known: i64| of(ChangeKind::OverBudget, day(from), day(t), day(known));
        assert!(over(10, 30, 14) && over(21, 22, 14) && !over(22, 22, 14) && !over(2, 6, 14));
    }
}
