//! Requested interrupts: their handlers and the CPUs that may take them.
//!
//! Source: `/proc/irq` in Documentation/core-api/irq/irq-affinity.rst,
//! Documentation/ABI/testing/sysfs-kernel-irq, and kernel/irq/debugfs.c. `/proc/interrupts` has the
//! same and more, but printing it takes the lock of each interrupt in turn, with interrupts off,
//! and sums up a counter per CPU: here one interrupt is read at a time, without its counts.

use super::line::{parse_cpus, parse_line};
use super::topology::numbered;
use super::whole;
use host::MachineFiles;
use model::fact::Fact;
use model::text::several;
use model::units::CpuSet;

/// Limit of listed interrupts; a machine with 8192 CPUs has fewer.
const IRQS_LIMIT: usize = 50_000;

/// Limit of CPUs in all sets together, beyond which interrupts are only counted: it bounds memory.
const CPUS_LIMIT: usize = 4 << 20;

/// The interrupts of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Irqs {
    /// Interrupts with a handler, by number. A number without a handler is only reserved and never
    /// occurs: it is not listed, and neither is one that was freed during the reading.
    pub irqs: Vec<Irq>,
    /// Interrupts over the limit, and those whose handlers could not be read.
    pub missed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Irq {
    /// Number in `/proc/irq`.
    pub number: u32,
    /// Names of its handlers, in the order in which they are called; several of them share the
    /// line.
    pub actions: Vec<String>,
    /// Interrupt controller, such as `PCI-MSIX-0000:00:04.0`; empty if not known.
    pub chip: String,
    /// CPUs that may take it. A change that waits for the next interrupt is included.
    pub allowed: Fact<CpuSet>,
    /// CPUs that do take it; absent before 4.13 and for controllers that do not report it.
    pub effective: Fact<CpuSet>,
    /// True if the kernel manages its affinity, which then cannot be changed (debugfs, for root).
    pub managed: Option<bool>,
    /// True if each CPU has a separate interrupt under this number, as with arm64's timers, or it
    /// cannot be moved, as with the first timer of x86 (debugfs, for root).
    pub per_cpu: Option<bool>,
}

/// Reads the interrupts of a machine: four or five short files each.
///
/// Absent without `/proc/irq`, as on machines without interrupts.
pub fn read_irqs(host: &MachineFiles) -> Fact<Irqs> {
    host.list("/proc/irq").map(|names| {
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| numbered(name, "")).collect();
        numbers.sort_unstable();
        let described = host.list(STATES).known().is_some_and(|names| !names.is_empty());
        let mut found = Irqs::default();
        let mut cpus = 0;
        for number in numbers {
            if found.irqs.len() >= IRQS_LIMIT || cpus > CPUS_LIMIT {
                found.missed += 1;
                continue;
            }
            match actions(host, number) {
                Some(actions) if actions.is_empty() => {}
                Some(actions) => {
                    let irq = read_irq(host, number, actions, described);
                    cpus += [&irq.allowed, &irq.effective]
                        .map(|set| set.known().map_or(0, CpuSet::len))
                        .iter()
                        .sum::<usize>();
                    found.irqs.push(irq);
                }
                None => found.missed += 1,
            }
        }
        found
    })
}

/// Directory of debugfs with the state of each interrupt (CONFIG_GENERIC_IRQ_DEBUGFS, 4.13 on).
const STATES: &str = "/sys/kernel/debug/irq/irqs";

fn read_irq(host: &MachineFiles, number: u32, actions: Vec<String>, described: bool) -> Irq {
    let cpus =
        |file: &str| whole::text(host, &format!("/proc/irq/{number}/{file}")).parse(|text| parse_cpus(&text));
    let line = |file: &str| {
        whole::text(host, &format!("/sys/kernel/irq/{number}/{file}")).parse(|text| parse_line(&text))
    };
    let state = if described {
        whole::text(host, &format!("{STATES}/{number}")).parse(|text| parse_state(&text))
    } else {
        Fact::Absent
    };
    Irq {
        number,
        actions,
        chip: line("chip_name").known().cloned().unwrap_or_default(),
        allowed: cpus("smp_affinity_list"),
        effective: cpus("effective_affinity_list"),
        managed: state.known().map(|state| state.managed),
        per_cpu: state.known().map(|state| state.per_cpu),
    }
}

/// Names of the handlers; none if they could not be read.
fn actions(host: &MachineFiles, number: u32) -> Option<Vec<String>> {
    match whole::text(host, &format!("/sys/kernel/irq/{number}/actions")).parse(|text| parse_actions(&text)) {
        Fact::Known(actions) => return Some(actions),
        // Since 4.9, and only with CONFIG_SPARSE_IRQ; before that, handlers show as directories.
        Fact::Absent => {}
        _ => return None,
    }
    match host.list(&format!("/proc/irq/{number}")) {
        Fact::Known(names) => Some(
            names
                .into_iter()
                .filter(|name| !FILES.contains(&name.as_str()))
                .map(|name| clean(&name))
                .collect(),
        ),
        Fact::Absent => Some(Vec::new()),
        _ => None,
    }
}

/// Files of `/proc/irq/N`, apart from a directory for each handler.
const FILES: [&str; 7] = [
    "affinity_hint",
    "effective_affinity",
    "effective_affinity_list",
    "node",
    "smp_affinity",
    "smp_affinity_list",
    "spurious",
];

/// Parses `/sys/kernel/irq/N/actions`: names separated by commas, nothing without a handler.
pub fn parse_actions(text: &str) -> Result<Vec<String>, String> {
    let text = text.trim();
    if text.len() > ACTIONS_LIMIT {
        return Err(format!(
            "expected names of handlers, found {}",
            several(text.len() as u64, "byte", "bytes")
        ));
    }
    Ok(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(clean).collect())
}

/// Limit in bytes; the kernel prints a page at most.
const ACTIONS_LIMIT: usize = 64 << 10;

fn clean(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// State of an interrupt in debugfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// True if the kernel spreads it over the CPUs and refuses any other affinity.
    pub managed: bool,
    /// True if it is per CPU, or cannot be moved.
    pub per_cpu: bool,
}

/// Parses `/sys/kernel/debug/irq/irqs/N`, which lists the name of each set bit on a line after
/// `dstate:`.
pub fn parse_state(text: &str) -> Result<State, String> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with("dstate:"));
    lines.next().ok_or("expected a line 'dstate:'")?;
    let mut state = State { managed: false, per_cpu: false };
    for line in lines {
        state.managed |= line == "IRQD_AFFINITY_MANAGED";
        // irqd_can_balance() in include/linux/irq.h: neither accepts an affinity.
        state.per_cpu |= matches!(line, "IRQD_PER_CPU" | "IRQD_NO_BALANCING");
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;
    use host::access::Access;
    use proptest::prelude::*;

    const MACHINE: &str = "/proc/irq/default_smp_affinity: f
        /proc/irq/9/smp_affinity_list: 0-3
        /proc/irq/9/effective_affinity_list: 0
        /sys/kernel/irq/9/actions: acpi
        /sys/kernel/irq/9/chip_name: IR-IO-APIC
        /proc/irq/10/smp_affinity_list: 0-3
        /sys/kernel/irq/10/actions:
        /proc/irq/120/smp_affinity_list: 2
        /sys/kernel/irq/120/actions: nvme0q3,nvme1q3
        /sys/kernel/debug/irq/irqs/120:
        | handler:  handle_edge_irq
        | dstate:   0x37609200
        |             IRQD_ACTIVATED
        |             IRQD_AFFINITY_MANAGED
        | node:     0
        /sys/kernel/debug/irq/irqs/9:
        | dstate:   0x01401200
        /proc/irq/0/smp_affinity_list: 0-3
        /sys/kernel/irq/0/actions: timer
        /sys/kernel/debug/irq/irqs/0:
        | dstate:   0x35408200
        |             IRQD_NO_BALANCING";

    #[test]
    fn whose_they_are_and_where_they_may_go() {
        let (host, _dir) = tree(MACHINE);
        let irqs = read_irqs(&host).known().cloned().unwrap();
        let numbers: Vec<u32> = irqs.irqs.iter().map(|irq| irq.number).collect();
        assert_eq!((numbers, irqs.missed), (vec![0, 9, 120], 0));
        let [timer, acpi, nvme] = irqs.irqs.as_slice() else { panic!("{irqs:?}") };
        assert_eq!(timer.per_cpu, Some(true));
        assert_eq!(
            (acpi.chip.as_str(), acpi.managed, acpi.per_cpu),
            ("IR-IO-APIC", Some(false), Some(false))
        );
        assert_eq!(acpi.effective.known().map(CpuSet::to_string).as_deref(), Some("0"));
        assert_eq!(nvme.actions, ["nvme0q3", "nvme1q3"]);
        assert_eq!(nvme.allowed.known().map(CpuSet::to_string).as_deref(), Some("2"));
        assert_eq!((nvme.chip.as_str(), nvme.managed, &nvme.effective), ("", Some(true), &Fact::Absent));
        assert_eq!(read_irqs(&tree("").0), Fact::Absent);
    }

    #[test]
    fn old_kernels_show_handlers_as_directories() {
        let (host, _dir) = tree(
            "/proc/irq/5/smp_affinity_list: 0
             /proc/irq/5/snd_ice1724/x:
             /proc/irq/6/smp_affinity_list -> smp_affinity_list
             /proc/irq/6/floppy/x:
             /proc/irq/7/spurious: count 0",
        );
        let irqs = read_irqs(&host).known().cloned().unwrap();
        let list: Vec<(u32, &str, Option<bool>)> =
            irqs.irqs.iter().map(|irq| (irq.number, irq.actions[0].as_str(), irq.managed)).collect();
        assert_eq!(list, [(5, "snd_ice1724", None), (6, "floppy", None)]);
        assert_eq!(irqs.irqs[1].allowed, Fact::Refused(libc::ELOOP));
    }

    #[test]
    fn a_refused_or_broken_one_is_counted() {
        let (host, _dir) = tree(
            "/proc/irq/5/smp_affinity_list: 0
             /sys/kernel/irq/5/actions -> actions
             /proc/irq/6/smp_affinity_list: x
             /sys/kernel/irq/6/actions: eth0
             /sys/kernel/debug/irq/irqs/6: nothing",
        );
        let irqs = read_irqs(&host).known().cloned().unwrap();
        assert_eq!((irqs.irqs.len(), irqs.missed, irqs.irqs[0].managed), (1, 1, None));
        assert!(matches!(irqs.irqs[0].allowed, Fact::Malformed(_)));
    }

    #[test]
    fn a_capture_has_the_same_without_addresses() {
        let text = format!(
            "{MACHINE}\n/proc/irq/30/smp_affinity_list: 1\n/sys/kernel/irq/30/actions: wlx0123456789ab"
        );
        let (host, _dir) = tree(&text);
        let host = host.recording();
        let live = read_irqs(&host);
        assert_eq!(live.known().unwrap().irqs[2].actions, ["wlx-address"]);
        let accesses = host.recorded().unwrap().accesses();
        assert!(accesses.values().all(
            |seen| !matches!(seen, Access::File(bytes) if bytes.windows(6).any(|part| part == b"012345"))
        ));
        assert_eq!(read_irqs(&MachineFiles::in_memory(accesses)), live);
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "(dstate:|IRQD_PER_CPU|,|\\PC{0,12}|\n){0,12}") {
            let _ = parse_state(&text);
            if let Ok(actions) = parse_actions(&text) {
                prop_assert!(actions.iter().all(|name| !name.is_empty() && !name.contains(',')));
            }
        }
    }
}
