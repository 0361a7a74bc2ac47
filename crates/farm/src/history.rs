//! Successive environments of a board, from all records of its runs and its recorder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::environments::{EnvironmentRecord, KnownRecords, ToldSettings};
use crate::records::Tier;

/// Environment of a board from a time on, until the next. It may occur again later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardEnvironment {
    /// All known settings, with the digest of the most complete record.
    pub record: Arc<EnvironmentRecord>,
    /// All digests under which the board's runs and rows name this environment. A less complete one
    /// may name another, too.
    pub digests: Arc<BTreeSet<String>>,
    /// True if only a recorder reports it.
    pub recorded: bool,
    /// Start of the first and the last of its runs, or of a recorder's five minutes in it.
    pub first: i64,
    pub last: i64,
    pub runs: u64,
    /// One of the runs; empty if only a recorder reports it.
    pub example: String,
    /// True if settings of it are damaged in the store: these count as unknown, which may hide a
    /// change.
    pub damaged: bool,
    /// Digest under which a run or a recorder reported it first: it names the change to it,
    /// whatever is reported later.
    pub named: String,
}

/// Records of a board's day in one environment: by its runs, or by the rows of its recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaidOfDay {
    pub digest: String,
    /// Start of the first and the last of that day's runs in it, or of its five minutes.
    pub from: i64,
    pub to: i64,
    /// Number of runs; 0 for a recorder.
    pub runs: u64,
    /// The first and the last of these runs.
    pub first_run: String,
    pub last_run: String,
}

/// A record at a time.
struct SaidThen<'a> {
    at: i64,
    digest: &'a str,
    runs: u64,
    example: &'a str,
}

/// All records in the order of time: of each day and environment the first and the last.
fn in_order<'a>(said: &[&'a SaidOfDay]) -> Vec<SaidThen<'a>> {
    let mut all = Vec::new();
    for one in said {
        let digest = one.digest.as_str();
        let last = if one.from < one.to { one.runs.min(1) } else { one.runs };
        if one.from < one.to {
            all.push(SaidThen { at: one.from, digest, runs: one.runs - last, example: &one.first_run });
        }
        all.push(SaidThen { at: one.to, digest, runs: last, example: &one.last_run });
    }
    all.sort_by_key(|one| one.at);
    all
}

/// A time span whose records agree with each other.
struct SaidStretch<'a> {
    /// The digests of the records, all of which agree.
    own: BTreeSet<&'a str>,
    /// The first of these.
    named: &'a str,
    first: i64,
    last: i64,
    runs: u64,
    example: &'a str,
}

impl<'a> SaidStretch<'a> {
    fn of(first: &SaidThen<'a>) -> SaidStretch<'a> {
        let (at, named) = (first.at, first.digest);
        SaidStretch { own: BTreeSet::new(), named, first: at, last: at, runs: 0, example: "" }
    }

    fn add(&mut self, then: &SaidThen<'a>) {
        self.own.insert(then.digest);
        self.last = then.at;
        if then.runs > 0 {
            self.runs += then.runs;
            self.example = then.example;
        }
    }
}

/// True if one agrees with all others: settings that one of them lacks, another may have.
fn fits(one: &str, others: &BTreeSet<&str>, told: &mut ToldSettings<'_>) -> bool {
    others.contains(one) || others.iter().all(|other| told.agree(one, other))
}

/// The spans, oldest first. Each lasts until a record disagrees with any earlier one in it:
/// settings that are missing since are unchanged.
fn stretches<'a>(said: &[SaidThen<'a>], told: &mut ToldSettings<'_>) -> Vec<SaidStretch<'a>> {
    let mut all: Vec<SaidStretch<'a>> = Vec::new();
    for then in said {
        if all.last().is_none_or(|last| !fits(then.digest, &last.own, told)) {
            all.push(SaidStretch::of(then));
        }
        if let Some(last) = all.last_mut() {
            last.add(then);
        }
    }
    all
}

/// An environment that a board had once or more than once.
struct SaidEnvironment<'a> {
    own: BTreeSet<&'a str>,
    /// The digest by which it is known.
    of: String,
}

/// Limit of the latest environments that a span is compared with, besides those of its digests: a
/// setting that differs in each run makes thousands of them.
const MOST_HELD: usize = 64;

/// The environments of spans, and the index of each span's environment: spans share one if they
/// agree, and a span that agrees with several belongs to the last of them.
fn environments<'a>(
    all: &[SaidStretch<'a>],
    told: &mut ToldSettings<'_>,
) -> (Vec<SaidEnvironment<'a>>, Vec<usize>) {
    let mut found: Vec<SaidEnvironment<'a>> = Vec::new();
    let (mut latest, mut of): (Vec<usize>, Vec<usize>) = Default::default();
    let mut by_digest: BTreeMap<&'a str, usize> = BTreeMap::new();
    for stretch in all {
        let same = stretch.own.iter().filter_map(|one| by_digest.get(one).copied());
        let held = latest.iter().rev().take(MOST_HELD).copied().chain(same);
        let held: Vec<usize> = held.collect();
        let mut is_known = |at: &usize| stretch.own.iter().all(|one| fits(one, &found[*at].own, told));
        let at = match held.into_iter().find(|at| is_known(at)) {
            Some(at) => {
                latest.retain(|one| *one != at);
                at
            }
            None => {
                found.push(SaidEnvironment { own: BTreeSet::new(), of: String::new() });
                found.len() - 1
            }
        };
        found[at].own.extend(stretch.own.iter().copied());
        by_digest.extend(stretch.own.iter().map(|one| (*one, at)));
        latest.push(at);
        of.push(at);
    }
    (found, of)
}

/// Names each environment by its most complete digest, and of several by the last reported. The
/// digest of a record that fits two environments names neither, as long as there is another.
fn call<'a>(all: &mut [SaidEnvironment<'a>], said: &[&'a SaidOfDay], told: &mut ToldSettings<'_>) {
    let (mut last, mut owners): (BTreeMap<&str, i64>, BTreeMap<&str, usize>) = Default::default();
    for one in said {
        let known = last.entry(one.digest.as_str()).or_insert(one.to);
        *known = one.to.max(*known);
    }
    for own in all.iter().flat_map(|one| one.own.iter().copied()) {
        *owners.entry(own).or_default() += 1;
    }
    let mut taken: BTreeSet<&'a str> = BTreeSet::new();
    for alone in [true, false] {
        for one in all.iter_mut().filter(|one| one.of.is_empty()) {
            let is_free = |digest: &&'a str| {
                if alone { owners.get(digest) == Some(&1) } else { !taken.contains(digest) }
            };
            let free = one.own.iter().copied().filter(is_free);
            if let Some(digest) = free.max_by_key(|digest| (told.count(digest), last.get(digest))) {
                one.of = digest.to_owned();
                taken.insert(digest);
            }
        }
    }
    for one in all.iter_mut().filter(|one| one.of.is_empty()) {
        one.of = one.own.iter().copied().collect::<Vec<_>>().join(".");
    }
}

/// Environments of a board, oldest first, from the records of its days. Of two at once the newer
/// holds: a run describes its start, and a running recorder reports a change after it. A run
/// without settings of its machine is ignored.
pub fn history(said: &[SaidOfDay], records: &KnownRecords) -> Vec<BoardEnvironment> {
    let mut told = ToldSettings::of(records);
    let said: Vec<&SaidOfDay> = said.iter().filter(|one| told.count(&one.digest) > 0).collect();
    let by_runs = said.iter().filter(|one| one.runs > 0);
    let of_runs: BTreeSet<&str> = by_runs.map(|one| one.digest.as_str()).collect();
    let all = stretches(&in_order(&said), &mut told);
    let (mut environments, of) = environments(&all, &mut told);
    call(&mut environments, &said, &mut told);
    let mut known = Vec::new();
    for one in &environments {
        let mut digests: BTreeSet<String> = one.own.iter().map(|own| (*own).to_owned()).collect();
        digests.insert(one.of.clone());
        let damaged = one.own.iter().any(|own| told.is_damaged(own));
        let recorded = one.own.is_disjoint(&of_runs);
        known.push((told.joined(&one.of, &one.own), Arc::new(digests), recorded, damaged));
    }
    let one = |(stretch, at): (SaidStretch<'_>, usize)| {
        let (record, digests, recorded, damaged) = known.get(at)?.clone();
        Some(BoardEnvironment {
            record,
            digests,
            recorded,
            damaged,
            first: stretch.first,
            last: stretch.last,
            runs: stretch.runs,
            example: stretch.example.to_owned(),
            named: stretch.named.to_owned(),
        })
    };
    all.into_iter().zip(of).filter_map(one).collect()
}

/// Environment of a board on a day; `None` if it changed on that day, or before the first record.
pub fn environment_on(history: &[BoardEnvironment], day: i64) -> Option<&BoardEnvironment> {
    let begun = history.iter().take_while(|one| one.first < day + Tier::Day.seconds()).count();
    let last = begun.checked_sub(1)?;
    history.get(last).filter(|one| last == 0 || one.first <= day)
}

/// Pairs of successive environments of a board, oldest first: for a day with several changes, the
/// one before it and the one at its end, and none if these are the same.
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

/// The history from a time on: the environment at that time begins then.
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
    use crate::environments::SettingsByName;
    use crate::environments::fixture::{known, record, records};
    use crate::fixture::cases;
    use crate::setting_changes::changed;
    use stats::rng::{Rng, SEED};

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

    /// Days of a recorder within a range, from the first five minutes of each to its last.
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
    fn settings_that_are_damaged_are_as_those_that_are_not_told_and_it_is_said() {
        let (said, mut records) = ([run("run-old", 0), run("run-old-2", DAY)], records());
        let found = history(&said, &records);
        assert_eq!(found.iter().map(|one| one.damaged).collect::<Vec<_>>(), [false, false]);
        let mut one = (*records["run-old-2"]).clone();
        one.settings.truncate(5);
        records.insert(one.digest.clone(), Arc::new(one));
        let found = history(&said, &records);
        assert_eq!(found.iter().map(|one| one.damaged).collect::<Vec<_>>(), [true]);
        assert!(!history(&said[..1], &records)[0].damaged);
    }

    #[test]
    fn an_environment_of_long_ago_is_the_same_by_its_digest_after_thousands_of_others() {
        let names: Vec<String> = (0..3_000).map(|at| format!("run-{at}")).collect();
        let records = known(names.iter().map(|name| record(name, &[("/proc/x", name)])));
        let said = (0..).zip(names.iter().chain(&names[..1])).map(|(at, name)| run(name, at * DAY));
        let all = history(&said.collect::<Vec<_>>(), &records);
        assert_eq!(all.len(), 3_001);
        assert!(Arc::ptr_eq(&all[0].digests, &all[3_000].digests));
        assert_eq!(all.iter().map(|one| &one.digests).collect::<BTreeSet<_>>().len(), 3_000);
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
        // A more complete run does not change its name.
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
        // A run at the end completes the first span, too.
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
        // Both alternate for thirty days, then the new one remains.
        let said: Vec<SaidOfDay> = (1..31).flat_map(both).collect();
        let before = vec![run("run-old", 9), run("run-old", DAY + 9)];
        let after = (31..40).map(|day| run("run-new", day * DAY)).collect();
        let all = of(&[before, said, after]);
        assert_eq!(changes(&all), [("run-old", "run-new", DAY + 7_230)]);
        assert_eq!(all.iter().map(|one| one.runs).sum::<u64>(), 2 + 30 * 18 + 9);
        assert!((1..31).all(|day| environment_on(&all, day * DAY).is_none()));
        assert_eq!(environment_on(&all, 31 * DAY).unwrap().record.digest, "run-new");
        // Also for the first known day.
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

    #[test]
    fn a_run_that_tells_nothing_says_nothing_of_its_board() {
        let recorder = [days("rows-old", 0..8), days("rows-new", 8..16)].concat();
        let runs: Vec<SaidOfDay> =
            (0..16).map(|day| run(if day < 8 { "run-old" } else { "run-new" }, day * DAY + 9)).collect();
        let nothing: Vec<SaidOfDay> = [-2, 4, 8, 20].map(|day| run("nothing", day * DAY + 5_000)).into();
        for said in [vec![recorder.clone()], vec![runs.clone()], vec![runs, recorder]] {
            assert_eq!(of(&[said.concat(), nothing.clone()]), of(&said));
        }
        assert!(of(&[nothing]).is_empty());
    }

    #[test]
    fn a_run_that_does_not_tell_a_setting_hides_no_change_of_it() {
        let machine = [("host.release", "6.1"), ("host.model", "m")];
        let with = |governor: &'static str| [machine[0], machine[1], ("host.governor", governor)];
        let records = known([
            record("fast", &with("performance")),
            record("slow", &with("powersave")),
            record("less", &machine),
            // It has more settings, but others.
            record("other", &[machine[0], machine[1], ("/proc/x", "1"), ("/proc/y", "1")]),
        ]);
        for less in ["less", "other"] {
            // On one day, on each, and as the one in between.
            for seldom in [vec![10], (0..30).collect(), vec![20]] {
                let at = |day: i64| if day == 20 { -9 } else { 9 };
                let said: Vec<SaidOfDay> = seldom.iter().map(|day| run(less, day * DAY + at(*day))).collect();
                for recorder in [true, false] {
                    let one = |digest: &str, day: i64| {
                        if recorder {
                            rows(digest, day * DAY, day * DAY + 300)
                        } else {
                            run(digest, day * DAY)
                        }
                    };
                    let full = (0..30).map(|day| one(if day < 20 { "fast" } else { "slow" }, day));
                    let all = history(&full.chain(said.clone()).collect::<Vec<_>>(), &records);
                    let times: Vec<i64> = changes(&all).iter().map(|one| one.2).collect();
                    assert_eq!(times, [20 * DAY], "{less} {seldom:?}");
                    let what = changed(&all[0], &all[1]).remove(0);
                    assert_eq!((what.before.as_str(), what.after.as_str()), ("performance", "powersave"));
                    assert!(all[0].digests.contains(less));
                }
            }
        }
        // The last known value persists, however long it is missing.
        let said = [run("fast", 0), run("less", DAY), run("less", 2 * DAY), run("slow", 3 * DAY)];
        assert_eq!(changes(&history(&said, &records)), [("fast", "slow", 3 * DAY)]);
        // The settings of all records of a span are joined, even if none of them has all.
        let said = [run("fast", 0), run("other", DAY)];
        let all = history(&said, &records);
        let settings: SettingsByName = serde_json::from_str(&all[0].record.settings).unwrap();
        assert_eq!((all.len(), settings["host.governor"].as_str()), (1, "performance"));
        assert_eq!((settings["/proc/x"].as_str(), all[0].record.release.as_str()), ("1", "6.1"));
    }

    #[test]
    fn a_run_of_another_user_ends_no_environment_and_begins_none() {
        let of_root = |slice: &'static str| {
            [("host.release", "6.12"), ("/proc/x", "1"), ("host.fair_server_runtime_ns", slice)]
        };
        let records = known([
            record("root-on", &of_root("50000000")),
            record("root-off", &of_root("0")),
            record("user", &of_root("0")[..2]),
        ]);
        for days in [vec![5], (0..30).collect::<Vec<i64>>()] {
            let root = (0..30).map(|day| run(if day < 20 { "root-on" } else { "root-off" }, day * DAY));
            let user = days.iter().map(|day| run("user", day * DAY + 9));
            let all = history(&root.chain(user).collect::<Vec<_>>(), &records);
            assert_eq!(told(&all)[0].0, "root-on");
            assert_eq!(changes(&all), [("root-on", "root-off", 20 * DAY)], "{days:?}");
        }
    }

    const DRAWN: [&str; 4] = ["host.release", "host.governor", "/proc/x", "cmdline w"];

    /// Actual environment of a board: a value of each name.
    type Truth = [usize; DRAWN.len()];

    /// Recorded part of it. The command line has another word, which marks the absence of this one.
    fn part(of: &Truth, tells: [bool; DRAWN.len()]) -> EnvironmentRecord {
        let values = ["", "1", "2"];
        let mut settings: Vec<(&str, &str)> = Vec::new();
        for at in (0..DRAWN.len()).filter(|at| tells[*at]) {
            let is_word = at == DRAWN.len() - 1;
            let value = values[if is_word { of[at] } else { of[at] + 1 }];
            settings.extend((!value.is_empty()).then_some((DRAWN[at], value)));
            settings.extend(is_word.then_some(("cmdline quiet", "given")));
        }
        let digest: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        record(&digest.join(","), &settings)
    }

    /// A statement that was drawn.
    struct DrawnStatement {
        at: i64,
        truth: Truth,
        tells: [bool; DRAWN.len()],
    }

    impl DrawnStatement {
        fn is_against(&self, other: &DrawnStatement) -> bool {
            (0..DRAWN.len()).any(|at| self.tells[at] && other.tells[at] && self.truth[at] != other.truth[at])
        }
    }

    fn drawn(rng: &mut Rng) -> Vec<DrawnStatement> {
        let share = [1, 2, 4, 5][rng.below(4)];
        let (mut truth, mut all): (Truth, Vec<DrawnStatement>) = Default::default();
        for at in 0..=rng.below(30) as i64 {
            if rng.below(5) == 0 {
                truth[rng.below(DRAWN.len())] = rng.below(2);
            }
            let tells = std::array::from_fn(|_| rng.below(5) < share);
            all.push(DrawnStatement { at: at * 9_000, truth, tells });
        }
        all
    }

    #[test]
    fn all_changes_that_can_be_known_are_found_and_no_others() {
        let (mut rng, mut found, rounds) = (Rng::new(SEED), 0, cases(2_000, 300));
        for round in 0..rounds {
            let drawn = drawn(&mut rng);
            let records = known(drawn.iter().map(|one| part(&one.truth, one.tells)));
            let said = drawn.iter().map(|one| {
                let digest = part(&one.truth, one.tells).digest;
                if rng.below(2) == 0 { run(&digest, one.at) } else { rows(&digest, one.at, one.at) }
            });
            let said: Vec<SaidOfDay> = said.collect();
            let all = history(&said, &records);
            let telling: Vec<&DrawnStatement> =
                drawn.iter().filter(|one| one.tells.iter().any(|tells| *tells)).collect();
            let within = |of: &BoardEnvironment| {
                let here = telling.iter().copied().filter(|one| (of.first..=of.last).contains(&one.at));
                here.collect::<Vec<_>>()
            };
            // Each record is in one span, and agrees with all others in it.
            let parts: Vec<Vec<&DrawnStatement>> = all.iter().map(within).collect();
            assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), telling.len(), "{round}");
            let is_whole =
                |part: &Vec<&DrawnStatement>| part.iter().all(|a| !part.iter().any(|b| a.is_against(b)));
            assert!(parts.iter().all(is_whole), "{round}");
            for (pair, sides) in all.windows(2).zip(parts.windows(2)) {
                // A span begins where a record disagrees with an earlier one.
                assert!(sides[0].iter().any(|one| one.is_against(sides[1][0])), "{round}");
                assert!(!changed(&pair[0], &pair[1]).is_empty(), "{round}");
                assert_ne!(pair[0].record.digest, pair[1].record.digest, "{round}");
                found += 1;
            }
            // With complete records, every change is found.
            if drawn.iter().all(|one| one.tells == [true; DRAWN.len()]) {
                let steps = drawn.windows(2).filter(|pair| pair[0].truth != pair[1].truth).count();
                assert_eq!(all.len(), steps + 1, "{round}");
            }
            // Two records of one environment agree, and its record has the settings of both.
            for (one, part) in all.iter().zip(&parts) {
                let again = all.iter().zip(&parts).filter(|(other, _)| other.record == one.record);
                assert!(again.flat_map(|(_, part)| part).all(|b| !part.iter().any(|a| a.is_against(b))));
                let settings: SettingsByName = serde_json::from_str(&one.record.settings).unwrap();
                for told in part {
                    let own = part_of(&records, told);
                    assert!(own.iter().all(|(name, value)| settings.get(name) == Some(value)), "{round}");
                }
            }
        }
        assert!(found > rounds / 2, "{found}");
    }

    /// Settings of a record.
    fn part_of(records: &KnownRecords, of: &DrawnStatement) -> SettingsByName {
        serde_json::from_str(&records[&part(&of.truth, of.tells).digest].settings).unwrap()
    }
}
