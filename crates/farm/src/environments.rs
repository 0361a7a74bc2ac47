//! What machines were, and when: runs say it, and the rows of recorders, whichever are newer.
//!
//! A run tells more of a machine than a recorder does. Where the two agree in all that both tell
//! they mean one environment, which then is the run's.

use std::collections::{BTreeMap, BTreeSet};

/// What a machine was, by its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRecord {
    pub digest: String,
    pub model: String,
    pub release: String,
    pub preempt: String,
    /// Settings by name, as a JSON object.
    pub settings: String,
}

/// When a board was in an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRuns {
    pub digest: String,
    /// When the first and the last of its runs in it began, or of its five minutes, in seconds
    /// since 1970.
    pub first: i64,
    pub last: i64,
}

impl EnvironmentRuns {
    /// The latest second up to which the board can have been in this environment, by the times of
    /// all of its environments.
    pub fn until(&self, all: &[EnvironmentRuns]) -> i64 {
        let others = all.iter().filter(|one| one.digest != self.digest);
        let after = others.flat_map(|one| [one.first, one.last]).filter(|at| *at > self.last);
        after.min().unwrap_or(i64::MAX)
    }
}

/// An environment that a board had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardEnvironment {
    pub record: EnvironmentRecord,
    /// When the first and the last of its runs began, or of the five minutes of a recorder that
    /// says the same.
    pub first: i64,
    pub last: i64,
    pub runs: u64,
    /// One of the runs; empty where only a recorder says it.
    pub example: String,
    /// The digest under which it was known first, of a run or of a recorder: the change to it is
    /// called so, whoever says more of it later.
    pub named: String,
}

/// Days without another environment in the rows of a board's recorder: their first and their last
/// five minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedStretch {
    pub from: i64,
    pub to: i64,
    pub digest: String,
}

/// Settings by name.
pub type SettingsByName = BTreeMap<String, String>;

const DAY: i64 = 86_400;
/// What the names of words of the command line begin with: one that is not there was not given.
const WORD: &str = "cmdline ";

/// The settings of an environment.
pub fn settings_of(text: &str) -> SettingsByName {
    serde_json::from_str(text).unwrap_or_default()
}

/// The settings that both of two environments tell.
pub fn told_by_both<'a>(a: &'a SettingsByName, b: &'a SettingsByName) -> BTreeSet<&'a String> {
    let tells_words = |of: &SettingsByName| of.keys().any(|name| name.starts_with(WORD));
    let words = tells_words(a) && tells_words(b);
    let is_told = |name: &&String| {
        (words && name.starts_with(WORD)) || (a.contains_key(*name) && b.contains_key(*name))
    };
    a.keys().chain(b.keys()).filter(is_told).collect()
}

/// Environments by their digests, of which some are the same; the settings of each are read once.
pub struct ToldSettings<'a> {
    records: &'a BTreeMap<String, EnvironmentRecord>,
    read: BTreeMap<&'a str, SettingsByName>,
}

impl<'a> ToldSettings<'a> {
    pub fn of(records: &'a BTreeMap<String, EnvironmentRecord>) -> ToldSettings<'a> {
        ToldSettings { records, read: BTreeMap::new() }
    }

    /// Whether an environment of a run and one of a recorder agree in all that both tell.
    pub fn is_same(&mut self, a: &str, b: &str) -> bool {
        if a == b {
            return true;
        }
        let (Some(one), Some(other)) = (self.records.get(a), self.records.get(b)) else { return false };
        let alike = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
        let names =
            [(&one.model, &other.model), (&one.release, &other.release), (&one.preempt, &other.preempt)];
        if !names.into_iter().all(|(a, b)| alike(a, b)) {
            return false;
        }
        for record in [one, other] {
            self.read.entry(&record.digest).or_insert_with(|| settings_of(&record.settings));
        }
        match (self.read.get(a), self.read.get(b)) {
            (Some(a), Some(b)) => told_by_both(a, b).into_iter().all(|name| a.get(name) == b.get(name)),
            _ => false,
        }
    }
}

/// When a board was in which environment by its runs and its rows together, each with the digest
/// under which it was known first.
pub fn merged(
    of_runs: Vec<EnvironmentRuns>,
    of_rows: Vec<EnvironmentRuns>,
    told: &mut ToldSettings<'_>,
) -> Vec<(EnvironmentRuns, String)> {
    let named = |one: EnvironmentRuns| {
        let name = one.digest.clone();
        (one, name)
    };
    let mut all: Vec<(EnvironmentRuns, String)> = of_runs.into_iter().map(named).collect();
    let runs = all.len();
    for rows in of_rows {
        let same: Vec<usize> =
            (0..runs).filter(|at| told.is_same(&all[*at].0.digest, &rows.digest)).collect();
        let latest = same.iter().copied().max_by_key(|at| all[*at].0.last);
        let first = same.into_iter().min_by_key(|at| all[*at].0.first);
        let (Some(latest), Some(first)) = (latest, first) else {
            all.push(named(rows));
            continue;
        };
        all[latest].0.last = all[latest].0.last.max(rows.last);
        if rows.first < all[first].0.first {
            (all[first].0.first, all[first].1) = (rows.first, rows.digest);
        }
    }
    all
}

/// The environments of a board by its runs and its rows together, the latest first.
pub fn environments_of(
    of_runs: Vec<BoardEnvironment>,
    of_rows: Vec<BoardEnvironment>,
) -> Vec<BoardEnvironment> {
    let time = |one: &BoardEnvironment| EnvironmentRuns {
        digest: one.record.digest.clone(),
        first: one.first,
        last: one.last,
    };
    let (run_times, row_times) = (of_runs.iter().map(time).collect(), of_rows.iter().map(time).collect());
    let both = of_rows.into_iter().chain(of_runs);
    let mut all: BTreeMap<String, BoardEnvironment> =
        both.map(|one| (one.record.digest.clone(), one)).collect();
    let records = all.iter().map(|(digest, one)| (digest.clone(), one.record.clone())).collect();
    let times = merged(run_times, row_times, &mut ToldSettings::of(&records));
    let one = |(time, named): (EnvironmentRuns, String)| {
        let known = all.remove(&time.digest)?;
        Some(BoardEnvironment { first: time.first, last: time.last, named, ..known })
    };
    let mut found: Vec<BoardEnvironment> = times.into_iter().filter_map(one).collect();
    found.sort_by(|a, b| (b.last, &a.record.digest).cmp(&(a.last, &b.record.digest)));
    found
}

/// From when on a board had which environment, oldest first, by the changes that its runs say and
/// the stretches of its rows. A run says what was when it began: where the recorder says otherwise
/// before and after it, that is so again from the next day on.
pub fn environment_steps(
    of_runs: &[(i64, String)],
    of_rows: &[RecordedStretch],
    told: &mut ToldSettings<'_>,
) -> Vec<(i64, String)> {
    let of_run: BTreeSet<&str> = of_runs.iter().map(|(_, digest)| digest.as_str()).collect();
    let mut said: Vec<(i64, &str)> = of_runs.iter().map(|(at, digest)| (*at, digest.as_str())).collect();
    for stretch in of_rows {
        let next_days = of_runs.iter().map(|(at, _)| at - at.rem_euclid(DAY) + DAY);
        let within = next_days.filter(|day| (stretch.from..stretch.to).contains(day));
        let all = [stretch.from, stretch.to].into_iter().chain(within);
        said.extend(all.map(|at| (at, stretch.digest.as_str())));
    }
    said.sort_by_key(|(at, _)| *at);
    let mut steps: Vec<(i64, String)> = Vec::new();
    // What a recorder says, by the run that says the same.
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for (at, digest) in said {
        let Some((_, last)) = steps.last_mut() else {
            steps.push((at, digest.to_owned()));
            continue;
        };
        if last == digest {
            continue;
        }
        let is_run = of_run.contains(digest);
        if is_run == of_run.contains(last.as_str()) || !told.is_same(last, digest) {
            let digest = known.get(digest).map_or(digest, String::as_str);
            steps.push((at, digest.to_owned()));
        } else if is_run {
            known.insert(std::mem::replace(last, digest.to_owned()), digest.to_owned());
        } else {
            known.insert(digest.to_owned(), last.clone());
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(digest: &str, release: &str, settings: &[(&str, &str)]) -> EnvironmentRecord {
        let settings: SettingsByName =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        EnvironmentRecord {
            digest: digest.into(),
            model: "a board".into(),
            release: release.into(),
            preempt: "full-rt".into(),
            settings: serde_json::to_string(&settings).unwrap(),
        }
    }

    /// Runs with a setting that no recorder tells, and what a recorder tells of the same kernels.
    fn records() -> BTreeMap<String, EnvironmentRecord> {
        let (old, new) = (("host.release", "6.1"), ("host.release", "6.12"));
        let words = ("cmdline quiet", "given");
        let all = [
            record("run-old", "6.1", &[old, words, ("/proc/x", "1")]),
            record("run-old-2", "6.1", &[old, words, ("/proc/x", "2")]),
            record("run-new", "6.12", &[new, words, ("/proc/x", "1")]),
            record("rows-old", "6.1", &[old, words]),
            record("rows-new", "6.12", &[new, words]),
            record("rows-isolated", "6.12", &[new, words, ("cmdline isolcpus", "2")]),
        ];
        all.into_iter().map(|one| (one.digest.clone(), one)).collect()
    }

    fn of(digest: &str, first: i64, last: i64, runs: u64) -> BoardEnvironment {
        let example = if runs > 0 { "r".to_owned() } else { String::new() };
        let record = records().remove(digest).unwrap();
        BoardEnvironment { record, first, last, runs, example, named: String::new() }
    }

    fn told(all: &[BoardEnvironment]) -> Vec<(&str, i64, i64, &str)> {
        all.iter().map(|one| (one.record.digest.as_str(), one.first, one.last, one.named.as_str())).collect()
    }

    #[test]
    fn what_both_tell_decides_and_a_word_that_is_not_there_was_not_given() {
        let records = records();
        let mut told = ToldSettings::of(&records);
        for (a, b, is) in [
            ("run-old", "rows-old", true),
            ("run-old-2", "rows-old", true),
            ("run-old", "rows-new", false),
            ("run-new", "rows-new", true),
            ("run-new", "rows-isolated", false),
            ("run-new", "unknown", false),
        ] {
            assert_eq!((told.is_same(a, b), told.is_same(b, a)), (is, is), "{a} {b}");
        }
    }

    #[test]
    fn a_recorder_that_says_the_same_makes_no_other_environment() {
        let all = environments_of(
            vec![of("run-old", 100, 200, 3), of("run-old-2", 300, 400, 2)],
            vec![of("rows-old", 50, 900, 0)],
        );
        assert_eq!(told(&all), [("run-old-2", 300, 900, "run-old-2"), ("run-old", 50, 200, "rows-old")]);
        assert_eq!((all[0].runs, all[1].runs), (2, 3));
    }

    #[test]
    fn what_a_recorder_says_later_is_what_the_board_is() {
        let (run, rows) = (of("run-old", 100, 200, 3), of("rows-new", 300, 900, 0));
        let before = environments_of(vec![run.clone()], vec![rows.clone()]);
        assert_eq!(told(&before), [("rows-new", 300, 900, "rows-new"), ("run-old", 100, 200, "run-old")]);
        assert_eq!((before[0].runs, before[0].example.as_str()), (0, ""));
        // A run that says more of it takes nothing from its name.
        let after = environments_of(vec![run, of("run-new", 700, 700, 1)], vec![rows]);
        assert_eq!(told(&after)[0], ("run-new", 300, 900, "rows-new"));
        assert!(environments_of(Vec::new(), Vec::new()).is_empty());
    }

    #[test]
    fn steps_go_by_whichever_is_newer() {
        let records = records();
        let steps = |runs: &[(i64, &str)], rows: &[(i64, i64, &str)]| -> Vec<(i64, String)> {
            let runs: Vec<_> = runs.iter().map(|&(at, digest)| (at, digest.to_owned())).collect();
            let rows: Vec<_> = rows
                .iter()
                .map(|&(from, to, digest)| RecordedStretch { from, to, digest: digest.to_owned() })
                .collect();
            environment_steps(&runs, &rows, &mut ToldSettings::of(&records))
        };
        let named = |all: &[(i64, &str)]| -> Vec<(i64, String)> {
            all.iter().map(|&(at, digest)| (at, digest.to_owned())).collect()
        };
        let rows = [(10, 8 * DAY, "rows-old"), (8 * DAY + 300, 20 * DAY, "rows-new")];
        assert_eq!(steps(&[], &rows), named(&[(10, "rows-old"), (8 * DAY + 300, "rows-new")]));
        // Runs that say the same say more, from when on it was so.
        let runs = [(DAY, "run-old"), (9 * DAY, "run-new")];
        assert_eq!(steps(&runs, &rows), named(&[(10, "run-old"), (8 * DAY + 300, "run-new")]));
        assert_eq!(steps(&runs, &[]), named(&runs));
        // The recorder is newer.
        assert_eq!(steps(&runs[..1], &rows), named(&[(10, "run-old"), (8 * DAY + 300, "rows-new")]));
        // A run with other settings for an hour, and one in which only it differs from the rows.
        let tried = [(DAY, "run-old"), (2 * DAY + 5, "run-new"), (4 * DAY, "run-old-2")];
        let found = steps(&tried, &rows[..1]);
        let wanted =
            [(10, "run-old"), (2 * DAY + 5, "run-new"), (3 * DAY, "run-old"), (4 * DAY, "run-old-2")];
        assert_eq!(found, named(&wanted));
    }
}
