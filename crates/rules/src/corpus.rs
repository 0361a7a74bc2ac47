//! The corpus: machines whose verdicts were reviewed one by one, and their changes after edits.
//!
//! A machine is a folder of `tests/corpus`: a capture, or `edits.txt` for the well-set machine. Its
//! verdicts are next to it, one file per purpose, `PROFILE.txt` or `PROFILE@CPUS.txt`;
//! `ONBEAT_GOLDEN=write` rewrites them.

#[cfg(test)]
pub mod tests {
    #![allow(clippy::disallowed_methods)] // The corpus is files, and writing it is asked for by a variable.

    use crate::audit::{Finding, audit};
    use crate::change::{Change, Persistence};
    use crate::contradictions::contradictions;
    use crate::fixture::Machine;
    use crate::follow::{complaints, law};
    use crate::intent::{Profile, intent};
    use crate::judgement::AuditVerdict;
    use crate::knob::Knob;
    use crate::{controls, find, knobs, setting, survey_request};
    use bundle::capture;
    use facts::texts::matched;
    use model::keyword::Keyword;
    use model::setting::Risk;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Capture on which the examples of the rules are tried as well: four CPUs, of which 2 and 3
    /// are isolated.
    const TUNED: &str = "debian-6.12-rt-tuned";

    /// The folders of the corpus, by name.
    pub fn machines() -> Vec<PathBuf> {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
        let mut dirs: Vec<PathBuf> =
            fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
        dirs.sort();
        dirs
    }

    /// The machine of a folder.
    pub fn machine(dir: &Path) -> Machine {
        if let Ok(edits) = fs::read_to_string(dir.join("edits.txt")) {
            let mut machine = Machine::base();
            machine.edit(&edits);
            return machine;
        }
        let host = capture::open(dir).unwrap().recording();
        facts::survey::survey(&host, &survey_request());
        Machine::of(host.recorded().unwrap().accesses())
    }

    /// Files with the verdicts of a machine, and the machine with the purpose of each.
    fn judged(dir: &Path) -> Vec<(PathBuf, Machine)> {
        let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let is_golden = |path: &PathBuf| {
            path.extension().is_some_and(|ending| ending == "txt") && !path.ends_with("edits.txt")
        };
        let mut goldens: Vec<PathBuf> = files.filter(is_golden).collect();
        goldens.sort();
        if goldens.is_empty() {
            goldens.push(dir.join("control-loop.txt"));
        }
        let machine = machine(dir);
        goldens.into_iter().map(|golden| (golden.clone(), meant(&machine, &golden))).collect()
    }

    /// A machine with the purpose and the CPUs in the name of a file of verdicts.
    fn meant(machine: &Machine, golden: &Path) -> Machine {
        let name = golden.file_stem().unwrap().to_str().unwrap();
        let (profile, cpus) =
            name.split_once('@').map_or((name, None), |(profile, cpus)| (profile, Some(cpus)));
        let mut machine = machine.clone();
        machine.edit(&format!("--profile {profile}"));
        cpus.iter().for_each(|cpus| machine.edit(&format!("--cpus {cpus}")));
        machine
    }

    fn line(found: &Finding) -> String {
        let words = if found.value.is_empty() { &found.reason } else { &found.value };
        let severity = if found.verdict == AuditVerdict::Fail { found.severity.name() } else { "" };
        format!("{:<14} {severity:<6} {}: {words}\n", found.verdict.name(), found.rule)
    }

    /// Compares the verdicts for one purpose with the recorded ones, or records them.
    fn judge(machine: &Machine, golden: &Path) -> Option<String> {
        let (survey, intent) = machine.survey();
        let text: String = audit(&survey, &intent).findings.iter().map(line).collect();
        if std::env::var("ONBEAT_GOLDEN").is_ok_and(|value| value == "write") {
            fs::write(golden, &text).unwrap();
        }
        let golden_text = fs::read_to_string(golden).unwrap_or_default();
        let differs =
            text.lines().zip(golden_text.lines().chain(std::iter::repeat(""))).find(|(is, was)| is != was);
        (golden_text != text).then(|| {
            format!(
                "{}:\n  was {}\n  is  {}",
                golden.display(),
                differs.unwrap_or_default().1,
                differs.unwrap_or_default().0
            )
        })
    }

    #[test]
    fn verdicts_are_those_that_were_read() {
        let dirs = machines();
        assert!(dirs.len() >= 12, "{} machines", dirs.len());
        let mut wrong = Vec::new();
        for dir in dirs {
            let judged = judged(&dir).into_iter();
            wrong.extend(judged.filter_map(|(golden, machine)| judge(&machine, &golden)));
        }
        assert!(
            wrong.is_empty(),
            "{}\nONBEAT_GOLDEN=write keeps what is: read each line first",
            wrong.join("\n")
        );
    }

    /// Each rule that passes on a real capture fails after the change on its page, and is unknown
    /// after the other.
    #[test]
    fn a_changed_capture_is_judged_otherwise() {
        let dir = machines().into_iter().find(|dir| dir.ends_with(TUNED)).unwrap();
        let machine = machine(&dir);
        let verdict = |knob, edits: &str| {
            let mut changed = machine.clone();
            changed.edit(edits);
            changed.finding(knob).verdict
        };
        let (mut tried, mut wrong) = (0, Vec::new());
        for knob in knobs::ALL {
            if verdict(knob, "") != AuditVerdict::Pass {
                continue;
            }
            tried += 1;
            let verdicts = [verdict(knob, knob.examples.fires), verdict(knob, knob.examples.unknown)];
            if verdicts != [AuditVerdict::Fail, AuditVerdict::Unknown] {
                wrong.push(format!("{}: {} and {}", knob.id, verdicts[0].name(), verdicts[1].name()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(tried * 3 > knobs::ALL.len(), "only {tried} rules pass on {TUNED}");
    }

    /// Each machine of the corpus with each of its purposes, and each on which an example of a rule
    /// fails, with a name.
    fn tried_on() -> Vec<(String, Machine)> {
        let mut all: Vec<(String, Machine)> = Vec::new();
        for (golden, machine) in machines().iter().flat_map(|dir| judged(dir)) {
            let dir = golden.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
            all.push((format!("{dir} {}", golden.file_stem().unwrap().to_string_lossy()), machine));
        }
        for knob in knobs::ALL {
            let mut machine = Machine::base();
            machine.edit(knob.examples.fires);
            all.push((format!("base, {}", knob.id), machine));
        }
        all
    }

    /// The advice of a rule makes it pass, is not in effect already, and makes no other rule fail.
    #[test]
    fn advice_that_is_followed_helps() {
        let (mut tried, mut wrong) = (0, Vec::new());
        for (name, machine) in tried_on() {
            let (count, found) = complaints(&machine);
            tried += count;
            wrong.extend(found.into_iter().map(|what| format!("{name}: {what}")));
        }
        assert!(wrong.is_empty(), "{}\n{} of {tried}", wrong.join("\n"), wrong.len());
        println!("{tried} pieces of advice were followed");
        assert!(tried > 300, "only {tried} pieces of advice were tried");
    }

    /// The changes of `onbeat tune` for a rule make it pass, also for all rules together; and every
    /// settable rule is set on some machine.
    #[test]
    fn what_is_set_helps() {
        let (mut set, mut wrong) = (BTreeSet::new(), Vec::new());
        for (name, machine) in set_on() {
            let (rules, found) = law::complaints(&machine);
            set.extend(rules);
            wrong.extend(found.into_iter().map(|what| format!("{name}: {what}")));
        }
        assert!(wrong.is_empty(), "{}\n{} complaints", wrong.join("\n"), wrong.len());
        let settable = knobs::ALL.iter().filter(|knob| knob.unsettable.is_empty()).map(|knob| knob.id);
        assert_eq!(set, settable.collect());
        let runtime = |knob: &&&Knob| set.contains(knob.id) && knob.persistence == Persistence::Runtime;
        assert!(knobs::ALL.iter().filter(runtime).count() >= 35);
    }

    /// The machines of [`tried_on`], and others on which rules are set.
    fn set_on() -> Vec<(String, Machine)> {
        let others = WHERE_OTHERS_ARE_SET.iter().map(|(name, edits)| {
            let mut machine = Machine::base();
            machine.edit(edits);
            ((*name).to_owned(), machine)
        });
        let worst = std::iter::once(("all of them at once".to_owned(), all_wrong()));
        tried_on().into_iter().chain(others).chain(worst).collect()
    }

    /// The well-set machine with everything wrong that rules can set.
    fn all_wrong() -> Machine {
        let mut machine = Machine::base();
        for knob in knobs::ALL.iter().filter(|knob| knob.unsettable.is_empty()) {
            machine.edit(knob.examples.fires);
        }
        machine
    }

    /// Machines on which rules are set in another way than in their examples.
    const WHERE_OTHERS_ARE_SET: &[(&str, &str)] = &[
        (
            "a clocksource that was chosen",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource: hpet
             /sys/devices/system/clocksource/clocksource0/available_clocksource: tsc hpet acpi_pm",
        ),
        (
            "lockup detectors with no CPU to keep them on",
            "/proc/sys/kernel/watchdog: 1
             /proc/sys/kernel/soft_watchdog: 1
             /proc/sys/kernel/nmi_watchdog: 1
             /proc/sys/kernel/watchdog_thresh: 10
             /proc/sys/kernel/watchdog_cpumask: 0-3
             --cpus 0-3",
        ),
        (
            "a limit below the top, and other governors",
            "/sys/devices/system/cpu/intel_pstate/no_turbo: 0
             /sys/devices/system/cpu/cpu2/cpufreq/scaling_driver: acpi-cpufreq
             /sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq: 2000000
             CONFIG_CPU_FREQ_GOV_SCHEDUTIL=y",
        ),
    ];

    /// Only these rules request changes that give up a safeguard or a CPU.
    #[test]
    fn what_is_given_up_is_known() {
        let mut high = BTreeSet::new();
        for (_, machine) in set_on() {
            let (survey, intent) = machine.survey();
            for found in audit(&survey, &intent).findings {
                let settings = setting::settings(&survey, &found.remedy).unwrap_or_default();
                let settable = find(found.rule).unwrap().unsettable.is_empty();
                if settable && settings.iter().any(|setting| setting.risk == Risk::High) {
                    high.insert(found.rule);
                }
            }
        }
        let known = ["ext-server", "fair-server", "rt-throttling", "smt-siblings", "watchdog"];
        assert_eq!(high, known.into());
    }

    /// Every file that a rule writes has a record.
    #[test]
    fn every_file_that_is_written_is_known() {
        let mut missing = BTreeSet::new();
        let (mut tried, mut given) = (BTreeSet::new(), BTreeSet::new());
        for (_, machine) in set_on() {
            let (survey, intent) = machine.survey();
            for found in audit(&survey, &intent).findings {
                let ways = found.remedy.parts.iter().flat_map(|part| &part.alternatives);
                let sets = find(found.rule).unwrap().sets;
                for (path, value) in
                    ways.flat_map(|way| way.changes.iter().chain(&way.persist)).flat_map(Change::writes)
                {
                    if path == sets || matched(sets, &path).is_some() {
                        given.insert(found.rule);
                    }
                    match controls::find(&path).map(|control| control.accepts.normalize(value, &survey)) {
                        Some(Ok(_)) => drop(tried.insert(path)),
                        Some(Err(why)) => drop(missing.insert(format!("{}: {path}: {why}", found.rule))),
                        None => drop(missing.insert(format!("{}: {path}", found.rule))),
                    }
                }
            }
        }
        assert!(missing.is_empty(), "{}", missing.into_iter().collect::<Vec<_>>().join("\n"));
        // The file that receives a value is one that the rule writes.
        let with_values = knobs::ALL.iter().filter(|knob| !knob.sets.is_empty()).map(|knob| knob.id);
        let never: Vec<&str> = with_values.filter(|rule| !given.contains(rule)).collect();
        assert!(never.is_empty(), "{never:?}");
        assert!(tried.len() > 60, "only {} files", tried.len());
    }

    /// Machines on which several rules want the same parameter or file set.
    const WITH_COMMON_PLACES: &[(&str, &str)] = &[
        (
            "fair server and managed interrupts",
            "/proc/cmdline: quiet isolcpus=2-3
             /sys/kernel/debug/sched/fair_server/cpu2/runtime: 50000000
             /proc/irq/901/smp_affinity_list: 0-3
             /proc/irq/901/effective_affinity_list: 2
             /sys/kernel/irq/901/actions: nvme0q1",
        ),
        (
            "ticks and managed interrupts",
            "/proc/cmdline: quiet isolcpus=nohz,domain,2-3
             /sys/devices/system/cpu/nohz_full: 2-3
             /sys/kernel/debug/sched/fair_server/cpu2/runtime: 50000000
             /proc/irq/901/smp_affinity_list: 0-3
             /proc/irq/901/effective_affinity_list: 2
             /sys/kernel/irq/901/actions: nvme0q1",
        ),
        (
            "too many isolated CPUs",
            "/proc/cmdline: quiet isolcpus=0-3 irqaffinity=2
             /sys/devices/system/cpu/isolated: 0-3
             --cpus 2-3
             /proc/irq/901/smp_affinity_list: 0-3
             /proc/irq/901/effective_affinity_list: 2
             /sys/kernel/irq/901/actions: nvme0q1",
        ),
        (
            "memory that is debugged by the build and by words",
            "CONFIG_SLUB_DEBUG=y
             CONFIG_SLUB_DEBUG_ON=y
             CONFIG_DEBUG_KMEMLEAK=y
             CONFIG_DEBUG_PAGEALLOC=y
             CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT=y
             CONFIG_PAGE_TABLE_CHECK=y
             CONFIG_PAGE_TABLE_CHECK_ENFORCED=y
             CONFIG_DEBUG_OBJECTS=y
             CONFIG_DEBUG_OBJECTS_ENABLE_DEFAULT=1
             cmdline + slab_debug=-
             cmdline + slab_debug=FZ
             cmdline + kmemleak=on
             cmdline + debug_pagealloc=on
             cmdline + page_table_check=on
             cmdline + debug_objects",
        ),
        (
            "lazy callbacks without their parameter",
            "/proc/sys/kernel/osrelease: 6.8.12
             /sys/module/rcutree/parameters/enable_rcu_lazy absent
             /boot/config-6.8.12:
             | # Automatically generated file; DO NOT EDIT.
             | # Linux/x86 6.8.12 Kernel Configuration
             | CONFIG_RCU_LAZY=y
             | CONFIG_RCU_NOCB_CPU=y
             | # Kernel hacking
             cmdline - rcu_nocbs=2-3
             cmdline + rcu_nocbs=2",
        ),
    ];

    /// The well-set machine after the changes of several rules' examples: each pair of rules is
    /// among those of one machine, unless the bits of their numbers all differ.
    fn wrong_together() -> impl Iterator<Item = (String, Machine)> {
        const BITS: usize = 8;
        (0..2 * BITS).map(|number| {
            let (bit, is_set) = (number / 2, number % 2 == 1);
            let mut machine = Machine::base();
            for (at, knob) in knobs::ALL.iter().enumerate() {
                if (at >> bit) & 1 == usize::from(is_set) {
                    machine.edit(knob.examples.fires);
                }
            }
            (format!("rules with bit {bit} {is_set}"), machine)
        })
    }

    /// No rule requests a change that another wants undone, whatever the purpose of the machine.
    #[test]
    fn no_two_rules_ask_for_opposites() {
        let mut wrong = Vec::new();
        let common = WITH_COMMON_PLACES.iter().map(|(name, edits)| {
            let mut machine = Machine::base();
            machine.edit(edits);
            ((*name).to_owned(), machine)
        });
        for (name, machine) in tried_on().into_iter().chain(common).chain(wrong_together()) {
            let survey = machine.read();
            for profile in Profile::ALL {
                let Ok(intent) = intent(&survey, *profile, machine.cpus.as_ref()) else { continue };
                let found = contradictions(&survey, &intent).into_iter();
                wrong.extend(found.map(|what| format!("{name}, {}: {what}", profile.name())));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
