//! Which changes are the same one: it is found again every day, with more evidence.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::FarmChange;
use crate::ingest::environment::hex;
use crate::records::Tier;

/// By so much the day may move on which a rate seems to have changed, or a budget was broken first
/// of the days that are looked at.
const MOVES: i64 = 14 * 86_400;

/// What tells a change from the others of its board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeIdentity {
    pub board: String,
    pub kind: String,
    /// What it is a change of.
    pub subject: String,
    /// When it seems to have begun, in seconds since 1970.
    pub began: i64,
}

impl ChangeIdentity {
    pub fn of(change: &FarmChange) -> ChangeIdentity {
        let kind = serde_json::to_value(change.kind).ok();
        ChangeIdentity {
            board: change.board.clone(),
            kind: kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default().to_owned(),
            subject: change.subject.clone(),
            began: change.from,
        }
    }

    /// Whether it is the same change, found on another day.
    pub fn is(&self, other: &ChangeIdentity) -> bool {
        let moves = match self.kind.as_str() {
            "silent" | "environment" | "worse" | "better" => Tier::Day.seconds() - 1,
            // One that is new on a board is new once, also where older runs of it come later.
            "new-culprit" => i64::MAX,
            _ => MOVES,
        };
        (&self.board, &self.kind, &self.subject) == (&other.board, &other.kind, &other.subject)
            && self.began.abs_diff(other.began) <= moves.unsigned_abs()
    }

    /// What all changes have in common that may be the same one.
    fn place(&self) -> (String, String, String) {
        (self.board.clone(), self.kind.clone(), self.subject.clone())
    }

    /// What stands for it elsewhere.
    pub fn id(&self) -> String {
        let text = format!("{}\0{}\0{}\0{}", self.board, self.kind, self.subject, self.began);
        hex(&Sha256::digest(text)[..16])
    }
}

/// Changes that are noted, each with what is known of it.
#[derive(Clone, Debug)]
pub struct NotedChanges<T>(BTreeMap<(String, String, String), Vec<(ChangeIdentity, T)>>);

impl<T> NotedChanges<T> {
    pub fn add(&mut self, of: ChangeIdentity, known: T) {
        self.0.entry(of.place()).or_default().push((of, known));
    }

    /// What is known of a change: where several may be it, of the one that began nearest, and of
    /// these of the one that was added last.
    pub fn find(&self, of: &ChangeIdentity) -> Option<&T> {
        let here = self.0.get(&of.place())?.iter().rev().filter(|(known, _)| known.is(of));
        here.min_by_key(|(known, _)| known.began.abs_diff(of.began)).map(|(_, known)| known)
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
    use crate::changes::ChangeKind;
    use crate::changes::made::made_change;

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
    fn what_is_noted_of_the_nearest_is_found() {
        let rate = |day: i64| change(ChangeKind::MoreOften, day * 86_400, "s");
        let mut noted: NotedChanges<&str> = [(rate(1), "first"), (rate(20), "second")].into_iter().collect();
        let found = |noted: &NotedChanges<&'static str>, day| noted.find(&rate(day)).copied();
        assert_eq!((found(&noted, 9), found(&noted, 12)), (Some("first"), Some("second")));
        assert_eq!((found(&noted, 60), noted.find(&change(ChangeKind::MoreOften, 1, "x"))), (None, None));
        noted.add(rate(20), "again");
        assert_eq!(found(&noted, 20), Some("again"));
    }
}
