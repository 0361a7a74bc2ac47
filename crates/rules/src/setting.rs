//! Settings that `onbeat tune` makes for a finding: the changes of its remedy that it can make and
//! undo, and each as settings of the kernel.

use crate::change::{AdviceReason, Change, ThreadId};
use crate::controls;
use crate::knob::Knob;
use crate::knobs::unsettable;
use crate::partition;
use crate::remedy::{Part, Remedy};
use facts::Fact;
use facts::survey::Survey;
use facts::texts::{filled, matched};
use model::setting::{Comparison, Key, Risk, Setting, TaskSetting};
use model::units::{Cpu, CpuSet};

/// For each part of a remedy, the changes of the first alternative that can be made now and undone.
///
/// # Errors
/// The reason why one of its parts cannot be made.
pub fn changes(remedy: &Remedy) -> Result<Vec<&Change>, String> {
    let mut all: Vec<&Change> = Vec::new();
    for part in &remedy.parts {
        let way = part.settable().ok_or_else(|| why_not(part))?;
        // Several parts may contain the same change.
        all.extend(way.changes.iter().filter(|change| !all.contains(change)).collect::<Vec<_>>());
    }
    if all.is_empty() { Err("what to do depends on the machine".to_owned()) } else { Ok(all) }
}

/// Reason why no alternative of a part can be made, by the change that its first one needs.
fn why_not(part: &Part) -> String {
    let first = part.alternatives.first().into_iter().flat_map(|way| &way.changes);
    let hindrance = first.into_iter().find(|change| !change.is_settable());
    let why = match hindrance {
        Some(Change::CmdlineAdd { .. } | Change::CmdlineRemove { .. }) => unsettable::BOOT,
        Some(Change::Kconfig { .. }) => unsettable::BUILT,
        Some(Change::Disable { .. }) => unsettable::PROGRAM,
        Some(Change::Advice { reason, .. }) => match reason {
            AdviceReason::Machine => unsettable::MACHINE,
            AdviceReason::Kernel => "it needs another kernel",
            AdviceReason::Program => unsettable::PROGRAM,
            AdviceReason::NotNow => "it must not be set in the present state of the machine",
            AdviceReason::Threads => "it is not known which threads it applies to",
            AdviceReason::Choice => "you have to choose a value",
        },
        _ => "what to do depends on the machine",
    };
    why.to_owned()
}

/// Settings of a remedy on a machine, in the order in which they are made.
///
/// # Errors
/// The reason why one of its parts cannot be set.
pub fn settings(survey: &Survey, remedy: &Remedy) -> Result<Vec<Setting>, String> {
    let mut all = Vec::new();
    for change in changes(remedy)? {
        match change {
            Change::Partition { cpus, .. } => {
                all.extend(partition::settings(survey, cpus).map_err(|obstacle| obstacle.to_string())?);
            }
            change => all.extend(of_change(change, survey)),
        }
    }
    if all.is_empty() { Err("it is not known which files to write".to_owned()) } else { Ok(all) }
}

/// A change as settings; none for a partition and for changes at boot.
///
/// Files without a record in [`controls`] have none either, which a test prevents.
pub fn of_change(change: &Change, survey: &Survey) -> Vec<Setting> {
    match change {
        Change::Affinity { threads, cpus, .. } => {
            threads.iter().map(|thread| affinity(*thread, cpus)).collect()
        }
        Change::Policy { threads, fifo, .. } => threads.iter().map(|thread| policy(*thread, *fifo)).collect(),
        _ => {
            let one = |(path, value): (String, &str)| {
                controls::find(&path).and_then(|control| control.setting(&path, value, survey))
            };
            change.writes().into_iter().filter_map(one).collect()
        }
    }
}

fn task(thread: ThreadId, what: TaskSetting) -> Key {
    Key::Task { tid: thread.tid, start: thread.start, what }
}

/// Optional, because a thread may end before its setting is made, and a few refuse.
fn affinity(thread: ThreadId, cpus: &CpuSet) -> Setting {
    Setting {
        readback: Comparison::List,
        optional: true,
        ..Setting::new(task(thread, TaskSetting::Affinity), cpus.to_string())
    }
}

fn policy(thread: ThreadId, fifo: Option<u32>) -> Setting {
    let wanted = fifo.map_or("other 0".to_owned(), |priority| format!("fifo {priority}"));
    Setting { risk: Risk::Medium, optional: true, ..Setting::new(task(thread, TaskSetting::Policy), wanted) }
}

/// A setting of a kernel thread in a document, in the form in which rules set it.
///
/// # Errors
/// The expected value.
pub fn of_thread(thread: ThreadId, what: TaskSetting, wanted: &str) -> Result<Setting, String> {
    match (what, wanted.split_once(' ')) {
        (TaskSetting::Affinity, _) => match CpuSet::parse(wanted) {
            Ok(cpus) if !cpus.is_empty() => Ok(affinity(thread, &cpus)),
            _ => Err("it takes a list of CPUs such as 0-1".to_owned()),
        },
        (TaskSetting::Policy, Some(("other", "0"))) => Ok(policy(thread, None)),
        (TaskSetting::Policy, Some(("fifo", priority))) => match priority.parse() {
            Ok(priority @ 1..=99) => Ok(policy(thread, Some(priority))),
            _ => Err("it takes a priority from 1 to 99".to_owned()),
        },
        (TaskSetting::Policy, _) => Err("it takes 'other 0' or 'fifo N'".to_owned()),
        (TaskSetting::Group, _) => Err("a process is moved by `onbeat isolate move PID in`".to_owned()),
    }
}

/// Settings of a rule with a value other than the recommended one: for the files in a failing
/// finding, else for those of the audited CPUs, or of all devices.
///
/// # Errors
/// The expected value, or the reason why none can be given.
pub fn with_value(
    survey: &Survey,
    knob: &Knob,
    remedy: &Remedy,
    cpus: &CpuSet,
    value: &str,
) -> Result<Vec<Setting>, String> {
    if !knob.unsettable.is_empty() {
        return Err(knob.unsettable.to_owned());
    }
    let control = controls::of_pattern(knob.sets).ok_or("the rule sets no value: give its name alone")?;
    // A setting that must not be made in the present state cannot have another value either.
    if let Some(first) = remedy.not_now() {
        return Err(format!("it must not be set in the present state of the machine: {first}"));
    }
    // Settings that must come first are unchanged: no throttling before another fair server.
    let usual = settings(survey, remedy).unwrap_or_default();
    let is_of = |setting: &Setting| matched(knob.sets, &setting.key.path()).is_some();
    let failing: Vec<String> =
        usual.iter().filter(|setting| is_of(setting)).map(|setting| setting.key.path()).collect();
    let paths = if failing.is_empty() { files(knob.sets, survey, cpus) } else { failing };
    if paths.is_empty() {
        return Err(format!("nothing to set: no {} is known", knob.sets.replace('#', "N")));
    }
    let mut all: Vec<Setting> = usual.iter().take_while(|setting| !is_of(setting)).cloned().collect();
    for path in paths {
        let value = control.normalize(&path, value, survey)?;
        all.extend(control.setting(&path, &value, survey));
    }
    Ok(all)
}

/// Files of a pattern: those of these CPUs if it is per CPU.
fn files(pattern: &'static str, survey: &Survey, cpus: &CpuSet) -> Vec<String> {
    if !pattern.contains(['#', '*']) {
        return vec![pattern.to_owned()];
    }
    let of_cpus = pattern.contains("/cpu#/");
    match survey.texts.all(pattern) {
        Fact::Known(texts) => {
            let ours = |names: &[String]| {
                let cpu = names.first().and_then(|name| name.parse().ok()).map(Cpu);
                !of_cpus || cpu.is_some_and(|cpu| cpus.contains(cpu))
            };
            texts.iter().filter(|text| ours(&text.names)).map(|text| text.path.clone()).collect()
        }
        // Files of facts, which are not in the texts: the servers of each CPU.
        _ if of_cpus => cpus.iter().map(|cpu| filled(pattern, &[cpu.to_string()])).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::finding;
    use crate::fixture::Machine;
    use proptest::prelude::*;

    /// Checks the settings of a rule with a value on the well-set machine after some edits, as
    /// `KEY=WANTED`, or the refusal.
    #[track_caller]
    fn check(edits: &str, rule: &str, value: &str, expected: &str) {
        let mut machine = Machine::base();
        machine.edit(edits);
        let (survey, intent) = machine.survey();
        let knob = crate::find(rule).unwrap();
        let remedy = finding(knob, &survey, &intent).remedy;
        let text = match with_value(&survey, knob, &remedy, &intent.cpus, value) {
            Ok(settings) => {
                let one = |setting: &Setting| format!("{}={}", setting.key, setting.wanted);
                settings.iter().map(one).collect::<Vec<_>>().join(" ")
            }
            Err(why) => why,
        };
        assert_eq!(text, expected);
    }

    #[test]
    fn a_value_is_for_the_files_of_the_rule() {
        check("", "swappiness", "5", "sysctl:vm.swappiness=5");
        check("", "swappiness", "500", "'500' is not a number from 0 to 200");
        check("/proc/sys/vm/stat_interval: 1", "vmstat-interval", "120", "sysctl:vm.stat_interval=120");
        let governors = "sysfs:devices/system/cpu/cpu2/cpufreq/scaling_governor=schedutil \
                         sysfs:devices/system/cpu/cpu3/cpufreq/scaling_governor=schedutil";
        check("", "cpufreq-governor", "schedutil", governors);
        check("/proc/sys/kernel/printk: 7 4 1 7", "console-loglevel", "1", "sysctl:kernel.printk=1 4 1 7");
        check(
            "/proc/sys/vm/laptop_mode absent",
            "laptop-mode",
            "0",
            "this kernel has no /proc/sys/vm/laptop_mode",
        );
        check("", "swap", "0", crate::find("swap").unwrap().unsettable);
        check("", "turbo", "0", "the rule sets no value: give its name alone");
        check("", "irq-affinity", "1", "nothing to set: no /proc/irq/N/smp_affinity_list is known");
    }

    #[test]
    fn what_has_to_be_set_before_it_stays() {
        let servers = "sysfs:kernel/debug/sched/fair_server/cpu2/runtime=25000000";
        let on = "/sys/kernel/debug/sched/fair_server/cpu2/runtime: 50000000
                  /proc/sys/kernel/sched_rt_runtime_us: 950000";
        check(
            &format!("{on}\n--cpus 2-3\n/sys/devices/system/cpu/isolated:"),
            "fair-server",
            "25000000",
            &format!("sysctl:kernel.sched_rt_runtime_us=-1 {servers}"),
        );
        check(
            on,
            "fair-server",
            "25000000",
            "it must not be set in the present state of the machine: replace isolcpus=managed_irq,domain,2-3 \
             by isolcpus=managed_irq,2-3 on the kernel's command line; then `onbeat isolate create 2-3 \
             --yes` sets both in their order",
        );
    }

    #[test]
    fn a_remedy_without_files_is_not_done() {
        let nowhere = Remedy::from(Change::each(Vec::new(), "/sys/class/net/NAME/x", "", 0));
        assert!(settings(&Machine::base().read(), &nowhere).is_err());
        assert!(settings(&Machine::base().read(), &Remedy::default()).is_err());
    }

    proptest! {
        /// An accepted value is accepted again as it is written; others are refused.
        #[test]
        fn any_value_is_refused_or_written(value in "[0-9a-fnx,/ -]{0,12}|.{0,12}") {
            let (survey, intent) = Machine::base().survey();
            for knob in crate::knobs::ALL {
                let none = Remedy::default();
                for setting in with_value(&survey, knob, &none, &intent.cpus, &value).unwrap_or_default() {
                    let control = controls::find(&setting.key.path()).unwrap();
                    let first = setting.wanted.split(' ').next().unwrap_or_default();
                    prop_assert_eq!(control.accepts.normalize(first, &survey), Ok(first.to_owned()));
                    prop_assert!(!setting.wanted.contains('\n'));
                }
            }
        }
    }

    #[test]
    fn what_is_left_says_why() {
        let mut machine = Machine::base();
        machine
            .edit("/sys/devices/system/cpu/isolated:\n--cpus 2-3\ncmdline - isolcpus=managed_irq,domain,2-3");
        let (survey, intent) = machine.survey();
        let isolation = finding(crate::find("cpu-isolation").unwrap(), &survey, &intent).remedy;
        let partition = settings(&survey, &isolation).unwrap();
        let last = partition.last().map(|setting| (setting.key.to_string(), setting.wanted.as_str()));
        let key = "cgroup:onbeat/rt/cpuset.cpus.partition".to_owned();
        assert_eq!(last, Some((key, "isolated")), "a partition is a matter of settings, too");
        let boot = Remedy::from(Change::cmdline_add("nohz_full=2-3"));
        assert_eq!(settings(&survey, &boot), Err(unsettable::BOOT.to_owned()));
        let unknown = Remedy::advice(AdviceReason::Choice, "see");
        assert_eq!(settings(&survey, &unknown), Err("you have to choose a value".to_owned()));
    }
}
