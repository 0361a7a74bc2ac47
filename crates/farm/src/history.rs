//! What a board was, one after the other, by all that its runs and its recorder say of its days.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::environments::{EnvironmentRecord, KnownRecords, ToldSettings};
use crate::records::Tier;

/// What a board was from some time on, until it was another. It may be so again later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardEnvironment {
    pub record: Arc<EnvironmentRecord>,
    /// All digests under which the board's runs and rows name this environment.
    pub digests: Arc<BTreeSet<String>>,
    /// Whether it is known from a recorder alone, which tells less than a run.
    pub recorded: bool,
    /// When the first and the last of its runs began, or of the five minutes of a recorder that
    /// says the same.
    pub first: i64,
    pub last: i64,
    pub runs: u64,
    /// One of the runs; empty where only a recorder says it.
    pub example: String,
    /// The digest under which it was said first, by a run or a recorder: the change to it is called
    /// so, whatever is told of it later.
    pub named: String,
}

/// What is said of a board on a day: by its runs, or by the rows of its recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaidOfDay {
    pub digest: String,
    /// When the first and the last of the runs of that day that say so began, or of its five
    /// minutes.
    pub from: i64,
    pub to: i64,
    /// How many runs say it; none where it is a recorder.
    pub runs: u64,
    /// The first and the last of these runs.
    pub first_run: String,
    pub last_run: String,
}

/// By each digest the one that stands for all that say the same: that which was said last.
fn meant<'a>(said: &[&'a SaidOfDay], told: &mut ToldSettings<'_>) -> BTreeMap<&'a str, &'a str> {
    let mut latest = said.to_vec();
    latest.sort_by_key(|one| Reverse(one.to));
    let (mut all, mut kept): (BTreeMap<&'a str, &'a str>, Vec<&'a str>) = Default::default();
    for one in latest {
        let digest = one.digest.as_str();
        if all.contains_key(digest) {
            continue;
        }
        let same = kept.iter().copied().find(|known| told.is_same(known, digest));
        if same.is_none() {
            kept.push(digest);
        }
        all.insert(digest, same.unwrap_or(digest));
    }
    all
}

/// What is said at a time.
struct SaidThen<'a> {
    at: i64,
    /// The digest that stands for all that say the same,
    of: &'a str,
    /// and the one under which it is said.
    own: &'a str,
    runs: u64,
    example: &'a str,
}

/// All that is said, in the order of time: of each day and environment first and last.
fn in_order<'a>(said: &[&'a SaidOfDay], meant: &BTreeMap<&'a str, &'a str>) -> Vec<SaidThen<'a>> {
    let mut all = Vec::new();
    for one in said {
        let own = one.digest.as_str();
        let Some(of) = meant.get(own).copied() else { continue };
        let last = if one.from < one.to { one.runs.min(1) } else { one.runs };
        if one.from < one.to {
            all.push(SaidThen { at: one.from, of, own, runs: one.runs - last, example: &one.first_run });
        }
        all.push(SaidThen { at: one.to, of, own, runs: last, example: &one.last_run });
    }
    all.sort_by_key(|one| one.at);
    all
}

/// Time in which nothing else is said.
struct SaidStretch<'a> {
    /// The digest that stands for what is said,
    of: &'a str,
    /// those under which it is,
    own: BTreeSet<&'a str>,
    /// and the first of these.
    named: &'a str,
    first: i64,
    last: i64,
    runs: u64,
    example: &'a str,
}

impl<'a> SaidStretch<'a> {
    fn of(of: &'a str, first: &SaidThen<'a>) -> SaidStretch<'a> {
        let (at, named) = (first.at, first.own);
        SaidStretch { of, own: BTreeSet::new(), named, first: at, last: at, runs: 0, example: "" }
    }

    fn add(&mut self, then: &SaidThen<'a>) {
        self.own.insert(then.own);
        self.last = then.at;
        if then.runs > 0 {
            self.runs += then.runs;
            self.example = then.example;
        }
    }
}

/// The stretches, oldest first. What a recorder says is what the run says with which it agrees:
/// the run before it, or one that comes in the same stretch, or else the last that did.
fn stretches<'a>(
    said: &[SaidThen<'a>],
    of_runs: &BTreeSet<&'a str>,
    told: &mut ToldSettings<'_>,
) -> Vec<SaidStretch<'a>> {
    let mut all: Vec<SaidStretch<'a>> = Vec::new();
    // What a recorder says, by the run that says the same.
    let mut known: BTreeMap<&'a str, &'a str> = BTreeMap::new();
    for then in said {
        let is_run = of_runs.contains(then.of);
        if let Some(last) = all.last_mut() {
            let by_both = is_run != of_runs.contains(last.of) && told.agree(last.of, then.of);
            if by_both && is_run {
                // The run tells more: the stretch is its from here on.
                let recorder = std::mem::replace(&mut last.of, then.of);
                known.insert(recorder, then.of);
            } else if by_both {
                known.insert(then.of, last.of);
            }
            if by_both || last.of == then.of {
                last.add(then);
                continue;
            }
        }
        let mut next = SaidStretch::of(known.get(then.of).copied().unwrap_or(then.of), then);
        next.add(then);
        all.push(next);
    }
    for one in &mut all {
        one.of = known.get(one.of).copied().unwrap_or(one.of);
    }
    all
}

/// What a board was, oldest first, by all that is said of its days. Of two at once the newer holds:
/// a run says what was when it began, and a recorder that goes on says otherwise again.
pub fn history(said: &[SaidOfDay], records: &KnownRecords) -> Vec<BoardEnvironment> {
    let said: Vec<&SaidOfDay> = said.iter().filter(|one| records.contains_key(&one.digest)).collect();
    let mut told = ToldSettings::of(records);
    let meant = meant(&said, &mut told);
    let by_runs = said.iter().filter(|one| one.runs > 0);
    let of_runs: BTreeSet<&str> = by_runs.filter_map(|one| meant.get(one.digest.as_str()).copied()).collect();
    let all = stretches(&in_order(&said, &meant), &of_runs, &mut told);
    let mut digests: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for one in &all {
        digests.entry(one.of).or_default().extend(one.own.iter().map(|own| (*own).to_owned()));
    }
    let digests: BTreeMap<&str, Arc<BTreeSet<String>>> =
        digests.into_iter().map(|(of, own)| (of, Arc::new(own))).collect();
    let one = |of: SaidStretch<'_>| {
        Some(BoardEnvironment {
            record: records.get(of.of)?.clone(),
            digests: digests.get(of.of)?.clone(),
            recorded: !of_runs.contains(of.of),
            first: of.first,
            last: of.last,
            runs: of.runs,
            example: of.example.to_owned(),
            named: of.named.to_owned(),
        })
    };
    all.into_iter().filter_map(one).collect()
}

/// What a board was on a day; none where that changed on it, or before anything is said of it.
pub fn environment_on(history: &[BoardEnvironment], day: i64) -> Option<&BoardEnvironment> {
    let begun = history.iter().take_while(|one| one.first < day + Tier::Day.seconds()).count();
    let last = begun.checked_sub(1)?;
    history.get(last).filter(|one| last == 0 || one.first <= day)
}

/// From one environment of a board to another, oldest first: of a day with several changes the one
/// from what it was before to what it was at its end, and none where that is the same.
pub fn changes_by_day(history: &[BoardEnvironment]) -> Vec<(&BoardEnvironment, &BoardEnvironment)> {
    let day = |one: &BoardEnvironment| Tier::Day.begin(one.first);
    let mut kept: Vec<&BoardEnvironment> = Vec::new();
    for (at, one) in history.iter().enumerate() {
        let stays = at == 0 || history.get(at + 1).is_none_or(|next| day(next) > day(one));
        if stays && kept.last().is_none_or(|last| last.record.digest != one.record.digest) {
            kept.push(one);
        }
    }
    kept.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// The history from a time on: what the board was then began then.
pub fn since(history: Vec<BoardEnvironment>, from: i64) -> Vec<BoardEnvironment> {
    let ended = history.iter().skip(1).take_while(|next| next.first <= from).count();
    let mut all: Vec<BoardEnvironment> = history.into_iter().skip(ended).collect();
    if let Some(first) = all.first_mut() {
        first.first = first.first.max(from);
        first.last = first.last.max(from);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::fixture::records;

    const DAY: i64 = 86_400;

    /// Runs of a day, numbered by their time.
    fn runs(digest: &str, from: i64, to: i64, runs: u64) -> SaidOfDay {
        let (first_run, last_run) = (format!("r{from}"), format!("r{to}"));
        SaidOfDay { digest: digest.into(), from, to, runs, first_run, last_run }
    }

    fn run(digest: &str, at: i64) -> SaidOfDay {
        runs(digest, at, at, 1)
    }

    fn rows(digest: &str, from: i64, to: i64) -> SaidOfDay {
        SaidOfDay { digest: digest.into(), from, to, ..SaidOfDay::default() }
    }

    /// A recorder's days from one to before another, from their first five minutes to the last.
    fn days(digest: &str, of: std::ops::Range<i64>) -> Vec<SaidOfDay> {
        of.map(|day| rows(digest, day * DAY, (day + 1) * DAY - 300)).collect()
    }

    fn told(all: &[BoardEnvironment]) -> Vec<(&str, i64, i64, &str)> {
        all.iter().map(|one| (one.record.digest.as_str(), one.first, one.last, one.named.as_str())).collect()
    }

    fn of(said: &[Vec<SaidOfDay>]) -> Vec<BoardEnvironment> {
        history(&said.concat(), &records())
    }

    fn changes(of: &[BoardEnvironment]) -> Vec<(&str, &str, i64)> {
        let all = changes_by_day(of).into_iter();
        all.map(|(a, b)| (a.record.digest.as_str(), b.record.digest.as_str(), b.first)).collect()
    }

    #[test]
    fn load_and_rights_of_a_run_are_no_setting_of_its_board() {
        // Twice a day: with a load and without, as root and not.
        let said = (0..8).flat_map(|day| {
            [
                run("run-new-load", day * DAY),
                run("run-new", day * DAY + 9),
                run("run-new-root", day * DAY + 18),
            ]
        });
        let all = history(&said.collect::<Vec<_>>(), &records());
        assert_eq!(told(&all), [("run-new-root", 0, 7 * DAY + 18, "run-new-load")]);
        assert_eq!((all[0].runs, all[0].example.as_str()), (24, "r604818"));
        let digests: Vec<&str> = all[0].digests.iter().map(String::as_str).collect();
        assert_eq!(digests, ["run-new", "run-new-load", "run-new-root"]);
    }

    #[test]
    fn a_recorder_that_says_the_same_makes_no_other_environment() {
        let recorder = days("rows-old", 0..9);
        let all = of(&[vec![run("run-old", DAY + 9), run("run-old-2", 3 * DAY + 9)], recorder.clone()]);
        let end = 9 * DAY - 300;
        assert_eq!(
            told(&all),
            [("run-old", 0, 3 * DAY, "rows-old"), ("run-old-2", 3 * DAY + 9, end, "run-old-2")]
        );
        assert_eq!((all[0].runs, all[1].runs, all[0].recorded), (1, 1, false));
        assert!(all.iter().all(|one| one.digests.contains("rows-old")));
        let alone = of(&[recorder]);
        assert_eq!((told(&alone).len(), alone[0].recorded, alone[0].example.as_str()), (1, true, ""));
        assert!(of(&[]).is_empty() && of(&[days("unknown", 0..2)]).is_empty());
    }

    #[test]
    fn what_a_recorder_says_later_is_what_the_board_is() {
        let recorder = [days("rows-old", 0..8), days("rows-new", 8..20)].concat();
        // One run, long before, of the old kernel.
        let all = of(&[vec![run("run-old", -2 * DAY)], recorder.clone()]);
        assert_eq!(
            told(&all),
            [
                ("run-old", -2 * DAY, 8 * DAY - 300, "run-old"),
                ("rows-new", 8 * DAY, 20 * DAY - 300, "rows-new")
            ]
        );
        assert_eq!((all[1].runs, all[1].recorded), (0, true));
        assert_eq!(changes(&all), [("run-old", "rows-new", 8 * DAY)]);
        // A run that says more of it takes nothing from its name.
        let all = of(&[vec![run("run-old", -2 * DAY), run("run-new", 9 * DAY + 9)], recorder]);
        assert_eq!(told(&all)[1], ("run-new", 8 * DAY, 20 * DAY - 300, "rows-new"));
        assert_eq!((all[1].recorded, all[1].example.as_str()), (false, "r777609"));
    }

    #[test]
    fn to_go_back_is_another_change() {
        let recorder =
            |names: [&str; 3]| [days(names[0], 0..8), days(names[1], 8..16), days(names[2], 16..24)].concat();
        let wanted = |old, new| [(old, new, 8 * DAY), (new, old, 16 * DAY)];
        let all = of(&[recorder(["rows-old", "rows-new", "rows-old"])]);
        assert_eq!(changes(&all), wanted("rows-old", "rows-new"));
        assert_eq!((all[0].last, all[2].named.as_str()), (8 * DAY - 300, "rows-old"));
        let by_runs: Vec<SaidOfDay> = (0..24)
            .map(|day| run(if (8..16).contains(&day) { "run-new" } else { "run-old" }, day * DAY))
            .collect();
        let all = of(&[by_runs]);
        assert_eq!(changes(&all), wanted("run-old", "run-new"));
        assert_eq!(all.iter().map(|one| one.runs).collect::<Vec<_>>(), [8, 8, 8]);
        // A run in the end says more of the first stretch, too.
        let late = vec![run("run-old", 20 * DAY + 9)];
        let all = of(&[recorder(["rows-old", "rows-new", "rows-old"]), late]);
        assert_eq!(changes(&all), wanted("run-old", "rows-new"));
        assert_eq!((all[0].runs, all[2].runs, all[0].recorded), (0, 1, false));
        let on = |day: i64| environment_on(&all, day * DAY).map(|one| one.record.digest.as_str());
        let (old, new) = (Some("run-old"), Some("rows-new"));
        assert_eq!([-1, 0, 7, 8, 15, 16, 30].map(on), [None, old, old, new, new, old, old]);
    }

    #[test]
    fn a_run_with_other_settings_for_an_hour_leaves_its_day_to_none() {
        let all = of(&[vec![run("run-new", 2 * DAY + 5)], days("rows-old", 0..5)]);
        let digests: Vec<&str> = all.iter().map(|one| one.record.digest.as_str()).collect();
        assert_eq!(digests, ["rows-old", "run-new", "rows-old"]);
        let on = |day: i64| environment_on(&all, day * DAY).map(|one| one.record.digest.as_str());
        assert_eq!([1, 2, 3].map(on), [Some("rows-old"), None, Some("rows-old")]);
        assert!(changes(&all).is_empty());
    }

    #[test]
    fn of_a_day_with_many_changes_one_is_told() {
        let both = |day: i64| {
            [
                runs("run-old", day * DAY + 60, day * DAY + 7_200, 9),
                runs("run-new", day * DAY + 90, day * DAY + 7_230, 9),
            ]
        };
        // Both in turn for thirty days, then the new one alone.
        let said: Vec<SaidOfDay> = (1..31).flat_map(both).collect();
        let before = vec![run("run-old", 9), run("run-old", DAY + 9)];
        let after = (31..40).map(|day| run("run-new", day * DAY)).collect();
        let all = of(&[before, said, after]);
        assert_eq!(changes(&all), [("run-old", "run-new", DAY + 7_230)]);
        assert_eq!(all.iter().map(|one| one.runs).sum::<u64>(), 2 + 30 * 18 + 9);
        assert!((1..31).all(|day| environment_on(&all, day * DAY).is_none()));
        assert_eq!(environment_on(&all, 31 * DAY).unwrap().record.digest, "run-new");
        // Also of the first day that is known.
        let all = of(&[vec![run("run-old", 9), run("run-new", 18)]]);
        assert_eq!(changes(&all), [("run-old", "run-new", 18)]);
    }

    #[test]
    fn a_history_is_cut_at_a_time() {
        let all = of(&[days("rows-old", 0..10), days("rows-new", 10..20), days("rows-old", 20..21)]);
        let cut = |day: i64| {
            let rest = since(all.clone(), day * DAY);
            rest.iter().map(|one| (one.record.release.clone(), one.first / DAY)).collect::<Vec<_>>()
        };
        let named = |of: &[(&str, i64)]| -> Vec<(String, i64)> {
            of.iter().map(|&(release, day)| (release.to_owned(), day)).collect()
        };
        assert_eq!(cut(-3), named(&[("6.1", 0), ("6.12", 10), ("6.1", 20)]));
        assert_eq!(cut(4), named(&[("6.1", 4), ("6.12", 10), ("6.1", 20)]));
        assert_eq!(cut(10), named(&[("6.12", 10), ("6.1", 20)]));
        assert_eq!(cut(30), named(&[("6.1", 30)]));
        assert_eq!(since(all.clone(), i64::MIN), all);
        assert!(since(Vec::new(), 5).is_empty());
    }
}
