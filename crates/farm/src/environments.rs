//! What machines were, and when: runs say it, and the rows of recorders, whichever are newer.
//!
//! A run tells more of a machine than a recorder does. Where the two agree in all that both tell
//! they mean one environment, which then is the run's. How and by whom it was measured is no
//! setting of a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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

/// When a board was in an environment, first and last; it may have been in another in between.
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

/// Environments by their digests.
pub type KnownRecords = BTreeMap<String, Arc<EnvironmentRecord>>;

/// Settings by name.
pub type SettingsByName = BTreeMap<String, String>;

/// The setting that stands for all options of the kernel's configuration.
pub const KERNEL_CONFIGURATION: &str = "kernel configuration";
/// What the names of words of the command line begin with: one that is not there was not given.
const WORD: &str = "cmdline ";

/// What runs say of how they measured, and of their own process.
const OF_RUN: [&str; 5] =
    ["load", "host.capabilities", "host.cgroup_rt_runtime_us", "host.memlock_limit", "host.rtprio_limit"];
const CGROUP: &str = "/sys/fs/cgroup/";

/// What only root may be able to read, on some machines: where one of two runs does not tell it, it
/// is not known whether it differs.
const FOR_ROOT: [&str; 5] =
    ["host.fair_server_runtime_ns", "host.high_res_timers", "host.hz", PREEMPT, KERNEL_CONFIGURATION];
const DEBUGFS: &str = "/sys/kernel/debug/";
const PREEMPT: &str = "host.preempt";
const UNKNOWN: &str = "unknown";

/// Whether a setting may be there or not by which user measured.
pub fn is_for_root(name: &str) -> bool {
    FOR_ROOT.contains(&name) || name.starts_with(DEBUGFS)
}

/// Whether a setting is one of the board, and not of a run.
pub fn is_of_board(name: &str) -> bool {
    !OF_RUN.contains(&name) && !name.starts_with(CGROUP)
}

/// The settings of an environment; those that farms of earlier versions kept of its runs are left
/// out.
pub fn settings_of(text: &str) -> SettingsByName {
    let mut all: SettingsByName = serde_json::from_str(text).unwrap_or_default();
    all.retain(|name, value| is_of_board(name) && (name.as_str() != PREEMPT || value.as_str() != UNKNOWN));
    all
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

fn may_be_alike(a: &str, b: &str) -> bool {
    let is_known = |text: &str| !text.is_empty() && text != UNKNOWN;
    a == b || !is_known(a) || !is_known(b)
}

fn say_the_same(a: &SettingsByName, b: &SettingsByName) -> bool {
    a.keys().chain(b.keys()).all(|name| match (a.get(name), b.get(name)) {
        (Some(a), Some(b)) => a == b,
        _ => is_for_root(name),
    })
}

/// Environments by their digests, of which some are the same; the settings of each are read once.
pub struct ToldSettings<'a> {
    records: &'a KnownRecords,
    read: BTreeMap<&'a str, SettingsByName>,
    agreed: BTreeMap<(&'a str, &'a str), bool>,
}

impl<'a> ToldSettings<'a> {
    pub fn of(records: &'a KnownRecords) -> ToldSettings<'a> {
        ToldSettings { records, read: BTreeMap::new(), agreed: BTreeMap::new() }
    }

    /// Whether an environment of a run and one of a recorder agree in all that both tell.
    pub fn agree(&mut self, a: &str, b: &str) -> bool {
        let records = self.records;
        let (Some(one), Some(other)) = (records.get(a), records.get(b)) else { return a == b };
        let key = (one.digest.as_str(), other.digest.as_str());
        if let Some(known) = self.agreed.get(&key) {
            return *known;
        }
        let names =
            [(&one.model, &other.model), (&one.release, &other.release), (&one.preempt, &other.preempt)];
        let agreed = names.into_iter().all(|(a, b)| may_be_alike(a, b))
            && self
                .both(one, other)
                .is_some_and(|[a, b]| told_by_both(a, b).into_iter().all(|name| a.get(name) == b.get(name)));
        self.agreed.insert(key, agreed);
        agreed
    }

    /// Whether two runs, or two recorders, say the same.
    pub fn is_same(&mut self, a: &str, b: &str) -> bool {
        let records = self.records;
        let (Some(one), Some(other)) = (records.get(a), records.get(b)) else { return a == b };
        (&one.model, &one.release) == (&other.model, &other.release)
            && may_be_alike(&one.preempt, &other.preempt)
            && self.both(one, other).is_some_and(|[a, b]| say_the_same(a, b))
    }

    /// The settings of two environments, each read at its first turn.
    fn both(
        &mut self,
        one: &'a EnvironmentRecord,
        other: &'a EnvironmentRecord,
    ) -> Option<[&SettingsByName; 2]> {
        for record in [one, other] {
            self.read.entry(&record.digest).or_insert_with(|| settings_of(&record.settings));
        }
        Some([self.read.get(one.digest.as_str())?, self.read.get(other.digest.as_str())?])
    }
}

#[cfg(test)]
pub mod fixture {
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
    pub fn records() -> KnownRecords {
        let (old, new) = (("host.release", "6.1"), ("host.release", "6.12"));
        let words = ("cmdline quiet", "given");
        let all = [
            record("run-old", "6.1", &[old, words, ("/proc/x", "1")]),
            record("run-old-2", "6.1", &[old, words, ("/proc/x", "2")]),
            record("run-new", "6.12", &[new, words, ("/proc/x", "1")]),
            record("rows-old", "6.1", &[old, words]),
            record("rows-new", "6.12", &[new, words]),
            record("rows-isolated", "6.12", &[new, words, ("cmdline isolcpus", "2")]),
            // As farms of earlier versions kept them.
            record("run-new-load", "6.12", &[new, words, ("/proc/x", "1"), ("load", "cpu:1")]),
            record("run-new-root", "6.12", &[new, words, ("/proc/x", "1"), ("host.capabilities", "[]")]),
        ];
        all.into_iter().map(|one| (one.digest.clone(), Arc::new(one))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::records;
    use super::*;

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
            assert_eq!((told.agree(a, b), told.agree(b, a), told.agree(a, b)), (is, is, is), "{a} {b}");
        }
        assert!(!told.is_same("run-old", "run-old-2") && !told.is_same("run-old", "rows-old"));
    }

    #[test]
    fn what_is_of_a_run_is_no_setting() {
        for (name, is) in [
            ("load", false),
            ("host.capabilities", false),
            ("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", false),
            ("host.rt_runtime_us", true),
            ("cmdline load", true),
            ("/proc/sys/kernel/sched_rt_runtime_us", true),
        ] {
            assert_eq!(is_of_board(name), is, "{name}");
        }
        assert_eq!(settings_of(r#"{"load":"cpu:1","x":"1"}"#).into_keys().collect::<Vec<_>>(), ["x"]);
        assert!(settings_of("no JSON").is_empty());
        let records = records();
        let mut told = ToldSettings::of(&records);
        assert!(told.is_same("run-new", "run-new-load") && told.is_same("run-new-root", "run-new-load"));
    }

    #[test]
    fn what_a_user_could_not_read_is_no_other_setting() {
        let of = |digest: &str, preempt: &str, settings: &str| {
            let (digest, preempt, settings) = (digest.to_owned(), preempt.to_owned(), settings.to_owned());
            let record = EnvironmentRecord { digest, preempt, settings, ..EnvironmentRecord::default() };
            (record.digest.clone(), Arc::new(record))
        };
        let records = KnownRecords::from([
            of("user", UNKNOWN, r#"{"x":"1","host.preempt":"unknown"}"#),
            of(
                "root",
                "full",
                r#"{"x":"1","host.preempt":"full","host.hz":"250","/sys/kernel/debug/y":"1"}"#,
            ),
            of("set", "full", r#"{"x":"1","host.preempt":"full","host.hz":"250","/sys/kernel/debug/y":"2"}"#),
            of("lazy", "lazy", r#"{"x":"1","host.preempt":"lazy"}"#),
            of("other", "full", r#"{"host.preempt":"full"}"#),
        ]);
        let mut told = ToldSettings::of(&records);
        for (a, b, is) in [
            ("user", "root", true),
            ("user", "set", true),
            ("root", "set", false),
            ("root", "lazy", false),
            ("user", "other", false),
        ] {
            assert_eq!((told.is_same(a, b), told.is_same(b, a)), (is, is), "{a} {b}");
        }
    }
}
