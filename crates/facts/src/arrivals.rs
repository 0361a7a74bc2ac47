//! Events of each CPU, counted by name: interrupts, softirqs, context switches.
//!
//! Source: `/proc/interrupts` and `/proc/softirqs` in Documentation/filesystems/proc.rst; switches
//! as printed by kernel/sched/debug.c (`nr_switches` below `cpu#N`).

use std::collections::BTreeMap;

use model::units::{CPU_LIMIT, Cpu, CpuSet};

/// Event that a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArrivalKind {
    /// Interrupt of the CPU's local timer.
    Timer,
    Interrupt,
    Softirq,
    /// Switch from one thread to another, including the idle thread.
    Switch,
}

impl ArrivalKind {
    pub fn name(self) -> &'static str {
        match self {
            ArrivalKind::Timer => "timer",
            ArrivalKind::Interrupt => "interrupt",
            ArrivalKind::Softirq => "softirq",
            ArrivalKind::Switch => "switch",
        }
    }
}

/// Counters by CPU, kind and name.
pub type ArrivalCounts = BTreeMap<(Cpu, ArrivalKind, String), u64>;

/// Limit of lines; a machine with 8192 CPUs has fewer.
const LINES_LIMIT: usize = 100_000;

/// Adds the counters of some CPUs in `/proc/interrupts`, each under its label and its description.
pub fn count_interrupts(text: &str, cpus: &CpuSet, counts: &mut ArrivalCounts) {
    rows(text, cpus, |label, description, cpu, count| {
        let name = match description {
            "" => label.to_owned(),
            words => format!("{label}: {words}"),
        };
        let kind = if is_timer(label, description) { ArrivalKind::Timer } else { ArrivalKind::Interrupt };
        counts.insert((cpu, kind, name), count);
    });
}

/// Adds the counters of some CPUs in `/proc/softirqs`.
pub fn count_softirqs(text: &str, cpus: &CpuSet, counts: &mut ArrivalCounts) {
    rows(text, cpus, |label, _, cpu, count| {
        counts.insert((cpu, ArrivalKind::Softirq, label.to_owned()), count);
    });
}

/// Adds the switches of some CPUs in `/sys/kernel/debug/sched/debug`, or `/proc/sched_debug` before
/// 5.13.
pub fn count_switches(text: &str, cpus: &CpuSet, counts: &mut ArrivalCounts) {
    let mut cpu = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("cpu#") {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            cpu = digits.parse().ok().filter(|&number: &u32| number < CPU_LIMIT).map(Cpu);
        }
        let (Some(cpu), Some(rest)) = (cpu, line.trim_start().strip_prefix(".nr_switches")) else { continue };
        let count = rest.trim_start_matches([' ', ':']).trim().parse();
        if let (Ok(count), true) = (count, cpus.contains(cpu)) {
            counts.insert((cpu, ArrivalKind::Switch, "between threads".to_owned()), count);
        }
    }
}

/// Increase between two counts; a smaller counter has wrapped at 32 bits, or started anew.
pub fn between(before: &ArrivalCounts, after: &ArrivalCounts) -> ArrivalCounts {
    let grown = after.iter().filter_map(|(key, now)| {
        let then = before.get(key).copied().unwrap_or(0);
        let count = if *now >= then { now - then } else { now.saturating_add(1 << 32).saturating_sub(then) };
        (count > 0).then(|| (key.clone(), count))
    });
    grown.collect()
}

/// True for the local timer of each CPU: x86's, and those of other architectures by their handlers.
fn is_timer(label: &str, description: &str) -> bool {
    const HANDLERS: [&str; 5] = ["arch_timer", "riscv-timer", "twd", "timebase", "local_timer"];
    label == "LOC" || description.split_whitespace().any(|word| HANDLERS.contains(&word))
}

/// Calls `each` for each counter of these CPUs: label, words after the counters, CPU, count. The
/// columns are those of the online CPUs, so their numbers can have gaps.
fn rows(text: &str, cpus: &CpuSet, mut each: impl FnMut(&str, &str, Cpu, u64)) {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default().split_whitespace();
    let column =
        |word: &str| word.strip_prefix("CPU")?.parse().ok().filter(|&n: &u32| n < CPU_LIMIT).map(Cpu);
    let columns: Vec<Cpu> = header.map_while(column).collect();
    for line in lines.take(LINES_LIMIT) {
        let Some((label, rest)) = line.split_once(':') else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let numbers: Vec<u64> =
            words.iter().map_while(|word| word.parse().ok()).take(columns.len()).collect();
        // A count for the whole machine looks like the first CPU's.
        if numbers.len() < columns.len() || matches!(label.trim(), "ERR" | "MIS" | "Err") {
            continue;
        }
        let description = words[numbers.len()..].join(" ");
        for (cpu, count) in columns.iter().zip(numbers).filter(|(cpu, _)| cpus.contains(**cpu)) {
            each(label.trim(), &description, *cpu, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(text: &str, cpus: &str, count: fn(&str, &CpuSet, &mut ArrivalCounts)) -> Vec<String> {
        let mut counts = ArrivalCounts::new();
        count(text, &CpuSet::parse(cpus).unwrap(), &mut counts);
        let line = |((cpu, kind, name), count): (&(Cpu, ArrivalKind, String), &u64)| {
            format!("{cpu} {} {name} {count}", kind.name())
        };
        counts.iter().map(line).collect()
    }

    #[test]
    fn interrupts_have_their_names() {
        let text = "           CPU0       CPU2
 24:          1          5  PCI-MSIX-0000:00:04.0   0-edge      virtio0-config
LOC:        100        200   Local timer interrupts
ERR:          9
 11:          3          4   GICv2  27 Level     arch_timer
";
        let expected = [
            "2 timer 11: GICv2 27 Level arch_timer 4",
            "2 timer LOC: Local timer interrupts 200",
            "2 interrupt 24: PCI-MSIX-0000:00:04.0 0-edge virtio0-config 5",
        ];
        assert_eq!(counted(text, "2-3", count_interrupts), expected);
        assert!(counted("CPU0\nERR: 1\n", "0", count_interrupts).is_empty());
    }

    #[test]
    fn softirqs_and_switches() {
        let softirqs = "                    CPU0       CPU1\n          HI:          0          7\n";
        assert_eq!(counted(softirqs, "1", count_softirqs), ["1 softirq HI 7"]);
        let debug = "cpu#0, 2400.000 MHz\n  .nr_running  : 1\n  .nr_switches                   : 12\n\
                     cpu#1, 2400.000 MHz\n  .nr_switches                   : 34\n";
        assert_eq!(counted(debug, "1", count_switches), ["1 switch between threads 34"]);
    }

    #[test]
    fn what_came_in_between() {
        let key = |name: &str| (Cpu(2), ArrivalKind::Interrupt, name.to_owned());
        let counts = |rows: &[(&str, u64)]| -> ArrivalCounts {
            rows.iter().map(|(name, count)| (key(name), *count)).collect()
        };
        let before = counts(&[("a", 5), ("b", 5), ("wraps", u64::from(u32::MAX))]);
        let after = counts(&[("a", 5), ("b", 7), ("new", 2), ("wraps", 1)]);
        assert_eq!(between(&before, &after), counts(&[("b", 2), ("new", 2), ("wraps", 2)]));
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "(CPU[0-9]{1,5} ?){0,3}\n([ A-Z0-9:.#]{0,20}\\PC?\n){0,6}") {
            for count in [count_interrupts, count_softirqs, count_switches] {
                count(&text, &CpuSet::parse("0-3").unwrap(), &mut ArrivalCounts::new());
            }
        }
    }
}
