//! Invalid texts: truncated, another kernel's, or contradicting each other. None of them makes a
//! rule pass.
//!
//! Each text of the whole corpus is damaged in turn; a rule that failed or was unknown must not
//! pass because of that. Damaged texts that are indistinguishable from complete ones are counted,
//! and named here.

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // The corpus is files, and so is the source.

    use crate::audit::finding;
    use crate::corpus::tests::{machine, machines};
    use crate::fixture::Machine;
    use crate::judgement::AuditVerdict;
    use crate::knob::Knob;
    use crate::knobs;
    use facts::survey::Survey;
    use host::access::Access;
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::Path;

    /// A machine with its judgements before its texts were damaged.
    struct Judged {
        machine: Machine,
        survey: Survey,
        verdicts: BTreeMap<&'static str, AuditVerdict>,
    }

    impl Judged {
        fn of(machine: Machine) -> Judged {
            let (survey, intent) = machine.survey();
            let judged = |knob: &&'static Knob| (knob.id, finding(knob, &survey, &intent).verdict);
            let verdicts = knobs::ALL.iter().map(judged).collect();
            Judged { machine, survey, verdicts }
        }

        /// Rules that pass with other texts and did not before.
        fn gained(&self, texts: &[(String, Access)]) -> Vec<&'static str> {
            let mut machine = self.machine.clone();
            machine.answers.extend(texts.iter().cloned());
            let (survey, intent) = machine.survey();
            let all = self.differs(&survey);
            let sees = |knob: &Knob| {
                all || knob.reads.iter().any(|text| self.survey.texts.all(text) != survey.texts.all(text))
            };
            let passes = |knob: &&&'static Knob| {
                matches!(self.verdicts[knob.id], AuditVerdict::Fail | AuditVerdict::Unknown)
                    && sees(knob)
                    && finding(knob, &survey, &intent).verdict == AuditVerdict::Pass
            };
            knobs::ALL.iter().filter(passes).map(|knob| knob.id).collect()
        }

        /// True if anything except the single texts differs.
        fn differs(&self, survey: &Survey) -> bool {
            let was = &self.survey;
            was.facts != survey.facts
                || was.irqs != survey.irqs
                || was.threads != survey.threads
                || was.groups != survey.groups
                || was.swaps != survey.swaps
                || was.limits_conf != survey.limits_conf
                || was.watchdog_timers != survey.watchdog_timers
        }
    }

    /// The machine with a configuration of only the options whose names occur in the source: the
    /// rest, ten thousand lines, is never looked up but takes time to scan.
    fn short(mut machine: Machine, asked: &BTreeSet<String>) -> Machine {
        for (path, seen) in &mut machine.answers {
            if let (true, Access::File(bytes)) = (path.starts_with("/boot/config-"), seen) {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let lines = text.lines().filter(|line| match line.split_once("CONFIG_") {
                    Some((_, rest)) => asked.contains(rest.split(['=', ' ']).next().unwrap_or_default()),
                    None => true,
                });
                *bytes = lines.map(|line| format!("{line}\n")).collect::<String>().into_bytes();
            }
        }
        machine
    }

    /// Words in capitals in the source of rules and facts.
    fn paths_read() -> BTreeSet<String> {
        let mut words = BTreeSet::new();
        let mut dirs = ["rules/src", "facts/src"]
            .map(|dir| Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(dir))
            .to_vec();
        while let Some(dir) = dirs.pop() {
            for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    words.extend(
                        fs::read_to_string(path)
                            .unwrap_or_default()
                            .split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_')
                            .filter(|word| word.len() > 1)
                            .map(|word| word.trim_start_matches("CONFIG_").to_owned()),
                    );
                }
            }
        }
        words
    }

    /// A path with `#` for its numbers: texts of one kind are parsed in the same way.
    fn kind(path: &str) -> String {
        let mut kind = String::new();
        for letter in path.chars() {
            if !letter.is_ascii_digit() {
                kind.push(letter);
            } else if !kind.ends_with('#') {
                kind.push('#');
            }
        }
        kind
    }

    /// First text of each kind that a machine has, and the last, which another rule may read.
    fn texts(machine: &Machine) -> Vec<(String, Vec<u8>)> {
        let mut kinds: BTreeMap<String, Vec<(String, Vec<u8>)>> = BTreeMap::new();
        for (path, seen) in &machine.answers {
            if let Access::File(bytes) = seen {
                kinds.entry(kind(path)).or_default().push((path.clone(), bytes.clone()));
            }
        }
        let ends = |texts: Vec<(String, Vec<u8>)>| [texts.first().cloned(), texts.last().cloned()];
        let found: BTreeSet<_> = kinds.into_values().flat_map(ends).flatten().collect();
        found.into_iter().collect()
    }

    /// Positions of cuts: at the start, in the first word, in the middle, before the last letter,
    /// before the end mark, and at the end of some line.
    fn cuts(bytes: &[u8]) -> BTreeSet<usize> {
        let line_ends: Vec<usize> =
            bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
        let lines = [line_ends.first(), line_ends.get(line_ends.len() / 2)].into_iter().flatten().copied();
        let inner =
            [0, 1, 120, bytes.len() / 2, bytes.len().saturating_sub(2), bytes.len().saturating_sub(1)];
        inner.into_iter().chain(lines).filter(|&at| at < bytes.len()).collect()
    }

    #[test]
    fn no_rule_passes_because_a_text_is_cut_short() {
        let (mut tried, mut wrong, mut known) = (0, BTreeMap::<String, usize>::new(), BTreeSet::new());
        let asked = paths_read();
        for dir in machines() {
            let judged = Judged::of(short(machine(&dir), &asked));
            for (path, bytes) in texts(&judged.machine) {
                // The same text of the same kind has been cut on another machine.
                if !known.insert((kind(&path), bytes.clone())) {
                    continue;
                }
                for at in cuts(&bytes) {
                    tried += 1;
                    let end = if bytes[..at].last() == Some(&b'\n') { "at the end of a line" } else { "" };
                    for rule in judged.gained(&[(path.clone(), Access::File(bytes[..at].to_vec()))]) {
                        *wrong.entry(format!("{rule}: {} {end}", kind(&path))).or_default() += 1;
                    }
                }
            }
            println!("{} {tried}", dir.display());
        }
        println!("{tried} cut texts, {} passes from them", wrong.values().sum::<usize>());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Path and text of a machine's configuration.
    fn configuration(machine: &Machine) -> Option<(&String, &Vec<u8>)> {
        machine.answers.iter().find_map(|(path, seen)| match seen {
            Access::File(bytes) if path.starts_with("/boot/config-") => Some((path, bytes)),
            _ => None,
        })
    }

    /// Another machine's configuration in place of the right one: unchanged, and with the version
    /// that fits.
    #[test]
    fn no_rule_passes_because_a_configuration_is_another_kernels() {
        let asked = paths_read();
        let dirs = machines();
        let all: Vec<Judged> = dirs.iter().map(|dir| Judged::of(short(machine(dir), &asked))).collect();
        let texts: BTreeSet<&Vec<u8>> =
            all.iter().filter_map(|one| Some(configuration(&one.machine)?.1)).collect();
        let made_from = configuration(&Machine::base()).expect("a configuration").1.clone();
        let (mut tried, mut wrong) = (0, Vec::new());
        for (judged, dir) in all.iter().zip(&dirs) {
            let Some((path, own)) = configuration(&judged.machine) else { continue };
            // A synthetic machine's configuration has the header, model and version of its source:
            // they are indistinguishable.
            let made_from = |text: &Vec<u8>| dir.join("edits.txt").exists() && *text == made_from;
            for text in texts.iter().filter(|text| **text != own && !made_from(text)) {
                tried += 1;
                for rule in judged.gained(&[(path.clone(), Access::File((*text).clone()))]) {
                    let head = String::from_utf8_lossy(text).lines().take(4).collect::<Vec<_>>().join(" ");
                    wrong.push(format!("{}: {rule} with {head}", dir.display()));
                }
            }
        }
        println!("{tried} foreign configurations, {} passes from them", wrong.len());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// A configuration with only some options.
    const HEADLESS: &str = "/boot/config-6.12.9-rt-amd64: CONFIG_PREEMPT_RT=y";

    /// Texts that cannot both be true, and a rule that reads them.
    const CONTRADICTIONS: &[(&str, &str)] = &[
        ("preemption-model", "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\n/sys/kernel/realtime: 1"),
        ("preemption-model", "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\n/sys/kernel/debug absent"),
        ("preemption-model", "/proc/sys/kernel/version: #1 SMP PREEMPT_RT\n/sys/kernel/realtime: 0"),
        (
            "preemption-model",
            "/proc/sys/kernel/version absent\n/sys/kernel/debug/sched/preempt: none (voluntary) \
             full",
        ),
        ("preemption-model", "/proc/sys/kernel/version refused\n/sys/kernel/debug absent"),
        ("threaded-interrupts", "/proc/sys/kernel/version refused\n/sys/kernel/debug absent"),
        ("lock-debugging", HEADLESS),
        ("latency-tracers", "/boot/config-6.12.9-rt-amd64: CONFIG_PREEMPT_RT=y\n/sys/kernel/tracing absent"),
        ("coverage-instrumentation", HEADLESS),
        (
            "preemption-model",
            "/proc/sys/kernel/version: #1 SMP PREEMPT_RT\n/sys/kernel/debug/sched/preempt: none \
             (voluntary) full",
        ),
        (
            "preemption-model",
            "--profile audio\n/proc/sys/kernel/version: #1 SMP\n/sys/kernel/debug/sched/preempt: \
             none voluntary (full)",
        ),
        (
            "preemption-model",
            "--profile audio\n/proc/sys/kernel/version: #1 SMP PREEMPT\n\
             /sys/kernel/debug/sched/preempt: (full) lazy",
        ),
        (
            "watchdog",
            "/proc/sys/kernel/watchdog: 0\n/proc/sys/kernel/soft_watchdog: 1\n\
             /proc/sys/kernel/nmi_watchdog: 0",
        ),
        (
            "watchdog",
            "/proc/sys/kernel/watchdog: 1\n/proc/sys/kernel/soft_watchdog: 0\n\
             /proc/sys/kernel/nmi_watchdog: 0",
        ),
        (
            "clocksource",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource: tsc\n\
             /sys/devices/system/clocksource/clocksource0/available_clocksource: hpet acpi_pm",
        ),
        (
            "smt-siblings",
            "--cpus 2-3\n/sys/devices/system/cpu/cpu0/topology/core_cpus_list: 0,2\n\
             /sys/devices/system/cpu/cpu2/topology/core_cpus_list: 2",
        ),
        (
            "cpufreq-governor",
            "--cpus 2-3\n/sys/devices/system/cpu/cpufreq/policy2/scaling_governor: schedutil\n\
             /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: performance\n\
             /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor: performance",
        ),
        ("cpu-isolation", "/sys/devices/system/cpu/online: 0-3\n/sys/devices/system/cpu/present: 0-1"),
        ("swap", "/proc/meminfo: SwapTotal: 1024 kB\n/proc/swaps: Filename Type Size Used Priority"),
        ("pressure-stall-accounting", "cmdline + psi=0\n/proc/pressure/cpu: some avg10=0.00"),
    ];

    #[test]
    fn no_rule_passes_because_texts_contradict_each_other() {
        let (mut tried, mut wrong) = (0, Vec::new());
        for (rule, edits) in CONTRADICTIONS {
            let mut machine = Machine::base();
            machine.edit(edits);
            let knob = crate::find(rule).unwrap();
            let found = machine.finding(knob);
            tried += 1;
            if found.verdict == AuditVerdict::Pass {
                wrong.push(format!("{rule} passes with {edits}: {}", found.value));
            }
        }
        println!("{tried} contradictions, {} passes from them", wrong.len());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
