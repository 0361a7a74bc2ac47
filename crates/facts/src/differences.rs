//! Differences between two machines, or two states of one: plan, host, command line, configuration,
//! settings.
//!
//! The settings are all files of the kernel in a bundle, one value a file; values that change on
//! their own (counters, limits of the process, the present clock frequency) are not compared.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::kconfig::{Kconfig, parse_compressed, parse_kconfig};
use model::run::Run;
use model::sort::CompactSort;
use model::spike::OVER_ASKED;

/// Limit of a setting in bytes: a longer value is a text.
const LONGEST: usize = 256;
/// Prefix of an option of the configuration.
const OPTION: &str = "CONFIG_";
/// Limit of listed options; further ones are counted.
const MOST_OPTIONS: usize = 200;
/// Fields that change on their own, are compared in another way, or are results rather than
/// conditions.
const NOT_SETTINGS: &[&str] = &[
    "/proc/self/",
    "/proc/cmdline",
    "/proc/config",
    "/boot/",
    "/lib/modules/",
    "/proc/interrupts",
    "/proc/stat",
];
const NOT_CONDITIONS: &[&str] = &[
    "plan.seed",
    "plan.notes",
    "plan.duration_ns",
    "plan.loops",
    "plan.limit_ns",
    "host.unknown",
    "host.cmdline",
];

/// A difference; a value is `""` if its side does not have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Name of the setting: `host.release`, `cmdline isolcpus`, `CONFIG_HZ`, a file.
    pub what: String,
    /// Value in A; if A's runs differ, their values with `|` between.
    pub a: String,
    /// Value in B.
    pub b: String,
}

impl Difference {
    /// True if both sides have the same set of several values: only runs within a side differ.
    pub fn is_mixed(&self) -> bool {
        self.a == self.b
    }
}

/// The conditions of one run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: BTreeMap<String, String>,
    kconfig: Option<Kconfig>,
    /// True if a missing value is unknown, rather than absent.
    is_partial: bool,
}

/// Values that state nothing.
pub const NOT_STATED: [&str; 4] = ["", "[]", "unknown", "(none)"];

impl Settings {
    /// Settings of a run and of the kernel's files in its bundle.
    pub fn of(run: &Run, files: &[(String, Vec<u8>)]) -> Settings {
        let mut values = BTreeMap::new();
        for (name, part) in
            [("plan", serde_json::to_value(&run.plan)), ("host", serde_json::to_value(&run.host))]
        {
            let Ok(serde_json::Value::Object(fields)) = part else { continue };
            for (field, value) in fields {
                let value = match value {
                    serde_json::Value::String(text) => text,
                    serde_json::Value::Null => String::new(),
                    other => other.to_string(),
                };
                values.insert(format!("{name}.{field}"), value);
            }
        }
        values.retain(|what, _| !NOT_CONDITIONS.contains(&what.as_str()));
        values.insert("onbeat".into(), run.version.clone());
        let loads: Vec<&str> = run.loads.iter().map(|load| load.spec.as_str()).collect();
        values.insert("load".into(), loads.join(","));
        let cpus: BTreeSet<&str> = run.loads.iter().map(|load| load.cpus.as_str()).collect();
        values.insert("plan.load_cpus".into(), cpus.into_iter().collect::<Vec<_>>().join(" and "));
        // What is recorded delays what a hunt measures.
        if let Some(recorder) = &run.recorder {
            let stacks = !recorder.stacks.is_empty() || recorder.stacks_cost_ns.is_some();
            let calls = recorder.events.iter().any(|event| event.starts_with("raw_syscalls:"));
            let recorded = [("plan.stacks", stacks), ("plan.calls", calls)].into_iter();
            let recorded = recorded.filter(|(_, is_recorded)| *is_recorded);
            values.extend(recorded.map(|(what, _)| (what.to_owned(), "true".to_owned())));
            // One that the run took from its first wake-ups is a result.
            let asked = recorder.over_ns.filter(|_| recorder.over_why == OVER_ASKED);
            values.extend(asked.map(|over| ("plan.threshold_ns".to_owned(), over.0.to_string())));
        }
        values.extend(run.program.as_ref().map(|of| ("plan.program".to_owned(), of.name.clone())));
        values.extend(words_of(&run.host.cmdline));
        values.extend(files.iter().filter_map(|(path, bytes)| setting(path, bytes)));
        let kconfig = files.iter().find_map(|(path, bytes)| configuration(path, bytes));
        Settings { values, kconfig, is_partial: false }
    }

    /// Adds a condition.
    pub fn with(mut self, what: &str, value: String) -> Settings {
        self.values.insert(what.to_owned(), value);
        self
    }

    /// Marks them as those of another tool's file: what it does not contain is unknown.
    pub fn partial(mut self) -> Settings {
        self.values.retain(|_, value| !NOT_STATED.contains(&value.as_str()));
        self.is_partial = true;
        self
    }

    /// Value of a condition other than the kernel's options, `""` if it has none; none if that is
    /// not known.
    fn value(&self, what: &str) -> Option<String> {
        let value = self.values.get(what).cloned();
        if self.is_partial { value } else { Some(value.unwrap_or_default()) }
    }

    /// Values by the names of their settings, without those of the kernel's configuration.
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// Options of the kernel's configuration.
    pub fn options(&self) -> BTreeMap<&str, &str> {
        self.kconfig.as_ref().map(Kconfig::options).unwrap_or_default()
    }
}

/// Words of the command line by name; a word that occurs twice has both values.
fn words_of(cmdline: &str) -> BTreeMap<String, String> {
    let mut words: BTreeMap<String, String> = BTreeMap::new();
    for word in cmdline.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, "given"));
        // Image and disk are not conditions of the kernel's behaviour.
        if ["BOOT_IMAGE", "root", "initrd"].contains(&name) {
            continue;
        }
        let all = words.entry(format!("cmdline {name}")).or_default();
        if !all.is_empty() {
            all.push(' ');
        }
        all.push_str(value);
    }
    words
}

fn setting(path: &str, bytes: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let plain = text.len() <= LONGEST && !text.contains('\n');
    let settled = !NOT_SETTINGS.iter().any(|start| path.starts_with(start)) && !path.ends_with("stat");
    (plain && settled).then(|| (path.to_owned(), text.to_owned()))
}

fn configuration(path: &str, bytes: &[u8]) -> Option<Kconfig> {
    if path == "/proc/config.gz" {
        return parse_compressed(bytes).ok();
    }
    let named =
        path.starts_with("/boot/config-") || (path.starts_with("/lib/modules/") && path.ends_with("/config"));
    if named { parse_kconfig(String::from_utf8(bytes.to_vec()).ok()?).ok() } else { None }
}

/// Differences between the runs of A and those of B, or within either, in a fixed order.
pub fn differences(a: &[Settings], b: &[Settings]) -> Vec<Difference> {
    let names: BTreeSet<&String> = a.iter().chain(b).flat_map(|one| one.values.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let values = |side: &[Settings]| -> BTreeSet<String> {
            side.iter().map(|one| one.values.get(name).cloned().unwrap_or_default()).collect()
        };
        let (a, b) = (values(a), values(b));
        if a != b || a.len() > 1 {
            found.push(Difference { what: name.clone(), a: joined(&a), b: joined(&b) });
        }
    }
    found.extend(options(a, b));
    sides_first(&mut found);
    found
}

/// Differences between several runs, in a fixed order: each condition with its value in each run,
/// `""` if the run does not have it, none if that is not known.
pub fn among(all: &[Settings]) -> Vec<(String, Vec<Option<String>>)> {
    let names: BTreeSet<&str> = all.iter().flat_map(|one| one.values.keys().map(String::as_str)).collect();
    let named = names.into_iter().map(|name| {
        let values: Vec<Option<String>> = all.iter().map(|one| one.value(name)).collect();
        (name.to_owned(), values)
    });
    // Each configuration is parsed once: it has thousands of options.
    let tables: Vec<_> = all.iter().map(|one| one.kconfig.as_ref().map(Kconfig::options)).collect();
    let options: BTreeSet<&str> = tables.iter().flatten().flat_map(|table| table.keys().copied()).collect();
    let options = options.into_iter().map(|option| {
        let value = |table: &BTreeMap<&str, &str>| table.get(option).copied().unwrap_or("n").to_owned();
        (format!("{OPTION}{option}"), tables.iter().map(|table| table.as_ref().map(value)).collect())
    });
    let of_all = named.chain(options);
    let differs = |(_, values): &(String, Vec<Option<String>>)| {
        values.iter().flatten().collect::<BTreeSet<_>>().len() > 1
    };
    of_all.filter(differs).collect()
}

/// Values of one condition on a side, `(none)` for a run without it if others have one.
pub fn joined(values: &BTreeSet<String>) -> String {
    let value = |value: &String| match value.as_str() {
        "" if values.len() > 1 => "(none)".to_owned(),
        value => value.to_owned(),
    };
    values.iter().map(value).collect::<Vec<_>>().join(" | ")
}

/// Sorts differences between the sides before those within both sides alike: only the first ones
/// are displayed.
pub fn sides_first(found: &mut [Difference]) {
    found.compact_sort_by_key(Difference::is_mixed);
}

fn options(a: &[Settings], b: &[Settings]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, side) in [("A", a), ("B", b)] {
        let configs: Vec<_> = side.iter().filter_map(|one| one.kconfig.as_ref()).collect();
        if configs.windows(2).any(|pair| pair[0] != pair[1]) {
            let text = "several configurations".to_owned();
            let (in_a, in_b) = if name == "A" { (text, String::new()) } else { (String::new(), text) };
            found.push(Difference { what: format!("kernel configurations of {name}"), a: in_a, b: in_b });
        }
    }
    let first = |side: &'_ [Settings]| side.iter().find_map(|one| one.kconfig.clone());
    let (Some(a), Some(b)) = (first(a), first(b)) else { return found };
    if a == b {
        return found;
    }
    let tables = (a.options(), b.options());
    let names: BTreeSet<&&str> = tables.0.keys().chain(tables.1.keys()).collect();
    let value = |table: &BTreeMap<&str, &str>, name: &str| table.get(name).copied().unwrap_or("n").to_owned();
    let differing = names.into_iter().filter_map(|name| {
        let (a, b) = (value(&tables.0, name), value(&tables.1, name));
        (a != b).then(|| Difference { what: format!("{OPTION}{name}"), a, b })
    });
    let mut differing: Vec<Difference> = differing.collect();
    let more = differing.len().saturating_sub(MOST_OPTIONS);
    differing.truncate(MOST_OPTIONS);
    found.extend(differing);
    if more > 0 {
        let count = format!("{more} more");
        found.push(Difference { what: "kernel configuration".into(), a: count.clone(), b: count });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(cmdline: &str, config: &str, governor: &str) -> Settings {
        let mut run = Run { version: "0.1.0".into(), ..Run::default() };
        run.host.cmdline = cmdline.into();
        run.plan.policy = "fifo".into();
        let whole = format!("# Automatically generated file; DO NOT EDIT.\n{config}\n# Kernel hacking\n");
        let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
        let files = [
            file("/boot/config-6.12", &whole),
            file("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", &format!("{governor}\n")),
            file("/proc/self/limits", governor),
            file("/proc/cpuinfo", &"a\nb".repeat(9)),
        ];
        Settings::of(&run, &files)
    }

    fn words(found: &[Difference]) -> Vec<String> {
        found.iter().map(|one| format!("{}: {} -> {}", one.what, one.a, one.b)).collect()
    }

    #[test]
    fn of_several_runs_every_condition_that_differs_is_listed() {
        let load = |spec: &str| {
            let run = Run {
                loads: vec![model::load::LoadRun { spec: spec.into(), ..Default::default() }],
                ..Run::default()
            };
            Settings::of(&run, &[])
        };
        let none = Settings::of(&Run::default(), &[]);
        let value = |text: &str| Some(text.to_owned());
        let found = among(&[none.clone(), none.clone(), load("cpu")]);
        assert_eq!(found, [("load".to_owned(), vec![value(""), value(""), value("cpu")])]);
        // A value that another tool's file does not contain is not known to be absent.
        assert_eq!(among(&[none.partial(), load("cpu")]), []);
        let (a, b) = (settings("quiet", "CONFIG_HZ=250", "x"), settings("", "CONFIG_PREEMPT=y", "x"));
        let names: Vec<String> = among(&[a, b, load("cpu")]).into_iter().map(|(name, _)| name).collect();
        for wanted in ["cmdline quiet", "CONFIG_HZ", "CONFIG_PREEMPT", "load", "plan.policy"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted}: {names:?}");
        }
    }

    #[test]
    fn what_differs_is_named_with_both_values() {
        let a =
            settings("quiet root=/dev/sda1", "CONFIG_HZ=250\n# CONFIG_PREEMPT_RT is not set\n", "powersave");
        let b = settings("isolcpus=2 root=/dev/sdb1", "CONFIG_HZ=250\nCONFIG_PREEMPT_RT=y\n", "performance");
        let path = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
        assert_eq!(
            words(&differences(std::slice::from_ref(&a), &[b])),
            [
                format!("{path}: powersave -> performance"),
                "cmdline isolcpus:  -> 2".into(),
                "cmdline quiet: given -> ".into(),
                "CONFIG_PREEMPT_RT: n -> y".into()
            ]
        );
        assert_eq!(differences(std::slice::from_ref(&a), std::slice::from_ref(&a)), []);
    }

    #[test]
    fn only_stacks_that_were_recorded_are_a_condition() {
        let of = |recorder| Settings::of(&Run { recorder, ..Run::default() }, &[]);
        let hunt = |stacks_cost_ns| of(Some(model::spike::Recorder { stacks_cost_ns, ..Default::default() }));
        assert_eq!(differences(&[of(None)], &[hunt(None)]), []);
        let stacks = hunt(Some(model::units::Nanos(900)));
        assert_eq!(words(&differences(&[of(None)], &[stacks])), ["plan.stacks:  -> true"]);
    }

    #[test]
    fn settings_of_the_recorder_and_its_program_are_conditions() {
        let hunt = |over: i64, why: &str, events: &[&str], program: &str| {
            let recorder = model::spike::Recorder {
                over_ns: Some(model::units::Nanos(over)),
                over_why: why.into(),
                events: events.iter().map(|event| (*event).to_owned()).collect(),
                ..Default::default()
            };
            let program = model::run::ProgramRun { name: program.into(), ..Default::default() };
            Settings::of(&Run { recorder: Some(recorder), program: Some(program), ..Run::default() }, &[])
        };
        let calls = ["raw_syscalls:sys_enter"];
        let (a, b) = (hunt(100, OVER_ASKED, &calls, "arm"), hunt(500, OVER_ASKED, &[], "leg"));
        let changes = ["plan.calls: true -> ", "plan.program: arm -> leg", "plan.threshold_ns: 100 -> 500"];
        assert_eq!(words(&differences(&[a], &[b])), changes);
        let [a, b] = [100, 500].map(|over| hunt(over, "three times the median", &[], "arm"));
        assert_eq!(differences(&[a], &[b]), []);
    }

    #[test]
    fn the_cpus_of_a_load_are_a_condition() {
        let on = |cpus: &str| {
            let load = model::load::LoadRun { spec: "cpu".into(), cpus: cpus.into(), ..Default::default() };
            Settings::of(&Run { loads: vec![load.clone(), load], ..Run::default() }, &[])
        };
        assert_eq!(words(&differences(&[on("0")], &[on("1")])), ["plan.load_cpus: 0 -> 1"]);
    }

    #[test]
    fn differences_within_a_side_are_reported_too() {
        let runs =
            [settings("", "CONFIG_HZ=250\n", "powersave"), settings("", "CONFIG_HZ=100\n", "ondemand")];
        let text = words(&differences(&runs, &runs));
        assert!(
            text.iter().any(|line| line.ends_with("ondemand | powersave -> ondemand | powersave")),
            "{text:?}"
        );
        assert!(text.iter().any(|line| line.starts_with("kernel configurations of A")), "{text:?}");
    }

    #[test]
    fn what_is_mixed_on_both_sides_comes_after_what_differs_between_them() {
        let mixed = |word: &str| [settings(&format!("a=1 {word}"), "", "x"), settings(word, "", "x")];
        let found = differences(&mixed("z=1"), &mixed("z=2"));
        assert_eq!(words(&found), ["cmdline z: 1 -> 2", "cmdline a: (none) | 1 -> (none) | 1"]);
        assert_eq!(found.iter().map(Difference::is_mixed).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_long_list_of_options_is_counted() {
        let config = |value: &str| (0..300).map(|i| format!("CONFIG_X{i}={value}\n")).collect::<String>();
        let found = differences(&[settings("", &config("y"), "")], &[settings("", &config("m"), "")]);
        assert_eq!((found.len(), found[MOST_OPTIONS].a.as_str()), (MOST_OPTIONS + 1, "100 more"));
        assert_eq!(differences(&[], &[]), []);
    }
}
