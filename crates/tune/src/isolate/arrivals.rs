//! Interrupts, softirqs and switches that arrived on the isolated CPUs while counted.

use facts::arrivals::{ArrivalCounts, between, count_interrupts, count_softirqs, count_switches};
use host::MachineFiles;
use model::fact::Fact;
use model::isolation::Arrivals;
use model::sort::CompactSort;
use model::units::CpuSet;

/// File with the scheduler's counters, on debugfs, and before 5.13.
const SCHEDULER: [&str; 2] = ["/sys/kernel/debug/sched/debug", "/proc/sched_debug"];

/// Present counters of these CPUs; none if even interrupts are not readable.
pub fn counts(files: &MachineFiles, cpus: &CpuSet) -> Option<ArrivalCounts> {
    let files = files.unrecorded();
    let mut counts = ArrivalCounts::new();
    let Fact::Known(interrupts) = files.read_text("/proc/interrupts") else { return None };
    count_interrupts(&interrupts, cpus, &mut counts);
    if let Fact::Known(softirqs) = files.read_text("/proc/softirqs") {
        count_softirqs(&softirqs, cpus, &mut counts);
    }
    let scheduler = SCHEDULER.iter().find_map(|path| files.read_text(path).known().cloned());
    if let Some(text) = scheduler {
        count_switches(&text, cpus, &mut counts);
    }
    Some(counts)
}

/// Arrivals between two counts: by CPU, the most frequent first.
pub fn arrivals(before: &ArrivalCounts, after: &ArrivalCounts) -> Vec<Arrivals> {
    let row = |((cpu, kind, name), count): (_, u64)| -> Arrivals {
        let (cpu, kind): (model::units::Cpu, facts::arrivals::ArrivalKind) = (cpu, kind);
        Arrivals { cpu: cpu.0, kind: kind.name().to_owned(), name, count }
    };
    let mut rows: Vec<Arrivals> = between(before, after).into_iter().map(row).collect();
    rows.compact_sort_by(|a, b| (a.cpu, b.count, &a.name).cmp(&(b.cpu, a.count, &b.name)));
    rows
}
