//! Environments of machines and their times: from runs or recorders, whichever are newer.
//!
//! A run records more of a machine than a recorder, and one of another tool less, or nothing.
//! Missing settings are unknown: two records that agree in all common settings mean one
//! environment. The method and the user of a measurement are not settings of a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Environment of a machine, identified by its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRecord {
    pub digest: String,
    pub model: String,
    pub release: String,
    pub preempt: String,
    /// Settings by name, as a JSON object.
    pub settings: String,
}

/// First and last time of a board in an environment; it may have been in another in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRuns {
    pub digest: String,
    /// Start of the first and the last of its runs in it, or of its five minutes, in seconds since
    /// 1970.
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

/// Setting that stands for all options of the kernel's configuration.
pub const KERNEL_CONFIGURATION: &str = "kernel configuration";
/// Prefix of the names of command line words: an absent one was not given.
pub const WORD: &str = "cmdline ";
/// Setting that names the kernel.
pub const RELEASE: &str = "host.release";

/// Setting present in every record made on the machine itself: the command line and the lists of
/// CPUs were read then, too, and an absent one of these is empty.
pub const LOOKED_AT: &str = "host.clocksource";
pub const CPU_LISTS: [&str; 2] = ["host.isolated", "host.nohz_full"];
const EMPTY_LIST: &str = "[]";

/// Keys of machine, kernel and preemption among the settings, whose names never begin so.
const NAMES: [&str; 3] = ["\0model", "\0release", "\0preempt"];

/// Settings of a run that describe its method and its process.
const OF_RUN: [&str; 5] =
    ["load", "host.capabilities", "host.cgroup_rt_runtime_us", "host.memlock_limit", "host.rtprio_limit"];
const CGROUP: &str = "/sys/fs/cgroup/";

/// Settings that only root can read on some machines: runs of two users agree if one lacks them.
const FOR_ROOT: [&str; 5] =
    ["host.fair_server_runtime_ns", "host.high_res_timers", "host.hz", PREEMPT, KERNEL_CONFIGURATION];
const DEBUGFS: &str = "/sys/kernel/debug/";
const PREEMPT: &str = "host.preempt";
const UNKNOWN: &str = "unknown";

/// True if the presence of a setting depends on the user who measured.
pub fn is_for_root(name: &str) -> bool {
    FOR_ROOT.contains(&name) || name.starts_with(DEBUGFS)
}

/// True for a setting of the board rather than of a run.
pub fn is_of_board(name: &str) -> bool {
    !OF_RUN.contains(&name) && !name.starts_with(CGROUP)
}

/// Decodes the settings of an environment; `None` if they are damaged in the store.
pub fn read_settings(text: &str) -> Option<SettingsByName> {
    if text.is_empty() {
        return Some(SettingsByName::new());
    }
    let mut all: SettingsByName = serde_json::from_str(text).ok()?;
    all.retain(|name, value| name.as_str() != PREEMPT || value.as_str() != UNKNOWN);
    Some(all)
}

/// Decodes settings, with damaged ones as unknown.
pub fn settings_of(text: &str) -> SettingsByName {
    read_settings(text).unwrap_or_default()
}

/// Reduces settings to the known ones. A record made on the machine lists no CPUs if the list is
/// absent; an empty list in another was not read.
pub fn told_of(mut settings: SettingsByName) -> SettingsByName {
    if settings.contains_key(LOOKED_AT) {
        for name in CPU_LISTS {
            settings.entry(name.to_owned()).or_default();
        }
    } else {
        settings.retain(|_, value| value.as_str() != EMPTY_LIST);
    }
    settings
}

/// All known properties of a record that has these settings.
fn told_by(record: &EnvironmentRecord, settings: SettingsByName) -> SettingsByName {
    let mut all = told_of(settings);
    for (name, value) in NAMES.into_iter().zip([&record.model, &record.release, &record.preempt]) {
        if !value.is_empty() && value != UNKNOWN {
            all.insert(name.to_owned(), value.clone());
        }
    }
    all
}

fn tells_words(of: &SettingsByName) -> bool {
    of.contains_key(LOOKED_AT) || of.keys().any(|name| name.starts_with(WORD))
}

/// Value of a setting; `""` if it is absent.
pub fn value_of<'a>(of: &'a SettingsByName, name: &str) -> &'a str {
    of.get(name).map_or("", String::as_str)
}

/// Names of settings that both know and in which they differ; some appear twice.
pub fn differing<'a>(a: &'a SettingsByName, b: &'a SettingsByName) -> impl Iterator<Item = &'a String> {
    let words = tells_words(a) && tells_words(b);
    let is_told = move |name: &&String| {
        (words && name.starts_with(WORD)) || (a.contains_key(*name) && b.contains_key(*name))
    };
    a.keys().chain(b.keys()).filter(is_told).filter(move |name| value_of(a, name) != value_of(b, name))
}

fn say_the_same(a: &SettingsByName, b: &SettingsByName) -> bool {
    a.keys().chain(b.keys()).all(|name| match (a.get(name), b.get(name)) {
        (Some(a), Some(b)) => a == b,
        _ => is_for_root(name) || name == NAMES[2],
    })
}

/// Limit of pairs whose agreement is cached.
const MOST_PAIRS: usize = 1 << 16;

/// Known settings of environments by their digests; the settings of each are decoded once.
pub struct ToldSettings<'a> {
    records: &'a KnownRecords,
    read: BTreeMap<&'a str, Arc<SettingsByName>>,
    damaged: BTreeSet<&'a str>,
    agreed: BTreeMap<(&'a str, &'a str), bool>,
}

impl<'a> ToldSettings<'a> {
    pub fn of(records: &'a KnownRecords) -> ToldSettings<'a> {
        ToldSettings { records, read: BTreeMap::new(), damaged: BTreeSet::new(), agreed: BTreeMap::new() }
    }

    /// All known properties of an environment; empty for an unknown one.
    fn told(&mut self, digest: &str) -> Arc<SettingsByName> {
        let records = self.records;
        let Some(record) = records.get(digest) else { return Arc::default() };
        if let Some(known) = self.read.get(digest) {
            return known.clone();
        }
        let settings = read_settings(&record.settings);
        if settings.is_none() {
            self.damaged.insert(&record.digest);
        }
        let told = Arc::new(told_by(record, settings.unwrap_or_default()));
        self.read.insert(&record.digest, told.clone());
        told
    }

    /// True if the settings of an environment are damaged in the store: the changes that came with
    /// it are not known.
    pub fn is_damaged(&mut self, digest: &str) -> bool {
        self.told(digest);
        self.damaged.contains(digest)
    }

    /// Number of known settings of an environment: 0 for another tool's measurement, which then
    /// says nothing of the board.
    pub fn count(&mut self, digest: &str) -> usize {
        self.told(digest).len()
    }

    /// True if two agree in all properties known to both.
    pub fn agree(&mut self, a: &str, b: &str) -> bool {
        let records = self.records;
        let (Some(one), Some(other)) = (records.get(a), records.get(b)) else { return a == b };
        let key = (one.digest.as_str(), other.digest.as_str());
        if let Some(known) = self.agreed.get(&key) {
            return *known;
        }
        let (a, b) = (self.told(a), self.told(b));
        let agreed = differing(&a, &b).next().is_none();
        if self.agreed.len() >= MOST_PAIRS {
            self.agreed.clear();
        }
        self.agreed.insert(key, agreed);
        agreed
    }

    /// True if two are equal except for properties that one of two users could not read.
    pub fn is_same(&mut self, a: &str, b: &str) -> bool {
        if self.records.contains_key(a) && self.records.contains_key(b) {
            say_the_same(&self.told(a), &self.told(b))
        } else {
            a == b
        }
    }

    /// Merges the settings of several environments that agree into one record. Its digest is one of
    /// theirs, unless each of theirs names another environment, too.
    pub fn joined(&mut self, digest: &str, all: &BTreeSet<&str>) -> Arc<EnvironmentRecord> {
        let mut settings = SettingsByName::new();
        for one in all {
            settings.extend(self.told(one).iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let records = self.records;
        let record = records.get(digest).cloned().unwrap_or_default();
        if settings.len() == self.count(digest) {
            return record;
        }
        let [model, release, preempt] = NAMES.map(|name| settings.remove(name));
        settings.retain(|_, value| !value.is_empty());
        Arc::new(EnvironmentRecord {
            digest: digest.to_owned(),
            model: model.unwrap_or_default(),
            release: release.unwrap_or_default(),
            preempt: preempt.unwrap_or_else(|| record.preempt.clone()),
            settings: serde_json::to_string(&settings).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
pub mod fixture {
    use super::*;

    pub fn record(digest: &str, settings: &[(&str, &str)]) -> EnvironmentRecord {
        let settings: SettingsByName =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        EnvironmentRecord {
            digest: digest.into(),
            release: value_of(&settings, RELEASE).to_owned(),
            settings: serde_json::to_string(&settings).unwrap(),
            ..EnvironmentRecord::default()
        }
    }

    pub fn known(all: impl IntoIterator<Item = EnvironmentRecord>) -> KnownRecords {
        all.into_iter().map(|one| (one.digest.clone(), Arc::new(one))).collect()
    }

    /// Runs with a setting that no recorder has, records of a recorder for the same kernels, and
    /// results of another tool.
    pub fn records() -> KnownRecords {
        let (old, new) = (("host.release", "6.1"), ("host.release", "6.12"));
        let words = ("cmdline quiet", "given");
        let measured = [
            record("run-old", &[old, words, ("/proc/x", "1")]),
            record("run-old-2", &[old, words, ("/proc/x", "2")]),
            record("run-new", &[new, words, ("/proc/x", "1")]),
            record("rows-old", &[old, words]),
            record("rows-new", &[new, words]),
            record("rows-isolated", &[new, words, ("cmdline isolcpus", "2")]),
        ];
        let measured = measured.into_iter().map(|one| EnvironmentRecord {
            model: "a board".into(),
            preempt: "full-rt".into(),
            ..one
        });
        let nothing = [("host.siblings", "[]"), ("host.preempt", UNKNOWN)];
        let nothing = EnvironmentRecord { preempt: UNKNOWN.into(), ..record("nothing", &nothing) };
        known(measured.chain([nothing, record("kernel-new", &[new])]))
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
    fn what_another_tool_measured_tells_the_kernel_or_nothing() {
        let records = records();
        let mut told = ToldSettings::of(&records);
        assert_eq!(["nothing", "unknown"].map(|digest| told.count(digest)), [0, 0]);
        // Kernel and machine as names, and the kernel once more as a setting.
        assert_eq!(["kernel-new", "rows-new"].map(|digest| told.count(digest)), [2, 5]);
        for (a, b, is) in [
            ("kernel-new", "rows-new", true),
            ("kernel-new", "rows-isolated", true),
            ("kernel-new", "run-old", false),
        ] {
            assert_eq!((told.agree(a, b), told.agree(b, a)), (is, is), "{a} {b}");
        }
        let same = told.joined("run-new", &BTreeSet::from(["rows-new", "run-new"]));
        assert!(Arc::ptr_eq(&same, &records["run-new"]));
        let both = told.joined("kernel-new", &BTreeSet::from(["kernel-new", "run-new"]));
        let names = |one: &EnvironmentRecord| (one.model.clone(), one.release.clone(), one.preempt.clone());
        assert_eq!((both.digest.as_str(), names(&both)), ("kernel-new", names(&records["run-new"])));
        assert_eq!(settings_of(&both.settings), settings_of(&records["run-new"].settings));
    }

    #[test]
    fn who_looked_at_a_machine_knows_what_is_empty() {
        let of = |text: &str| told_of(settings_of(text));
        let differ = |a: &str, b: &str| differing(&of(a), &of(b)).next().is_some();
        let isolated = r#"{"host.clocksource":"tsc","host.isolated":"2-3"}"#;
        let words = r#"{"host.clocksource":"tsc","cmdline quiet":"given"}"#;
        for (a, b, is) in [
            (r#"{"host.clocksource":"tsc"}"#, isolated, true),
            (r#"{"host.release":"6.1"}"#, isolated, false),
            (r#"{"host.clocksource":"tsc"}"#, words, true),
            (r#"{"host.release":"6.1"}"#, words, false),
            (r#"{"host.siblings":"[]"}"#, r#"{"host.siblings":"[\"0-1\"]"}"#, false),
            (
                r#"{"host.clocksource":"tsc","host.siblings":"[]"}"#,
                r#"{"host.clocksource":"tsc","host.siblings":"[\"0-1\"]"}"#,
                true,
            ),
        ] {
            assert_eq!((differ(a, b), differ(b, a)), (is, is), "{a} {b}");
        }
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
        assert!(settings_of("no JSON").is_empty() && read_settings("no JSON").is_none());
        assert!(read_settings("{\"x\":1}").is_none() && read_settings("{}").is_some());
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
