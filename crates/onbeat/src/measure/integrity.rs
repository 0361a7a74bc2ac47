//! Integrity entries for a thread's end. An entry invalidates a run or limits its result.

use super::cycle::LoopEnd;
use host::rt::Usage;
use model::run::Integrity;
use model::text::several;
use model::units::{Cpu, Nanos};
use model::vocabulary::IntegrityKind;

/// Integrity entry for the whole machine or one CPU.
pub fn entry(
    kind: IntegrityKind,
    cpu: Option<Cpu>,
    invalidates: bool,
    detail: impl Into<String>,
) -> Integrity {
    Integrity { kind: kind.into(), cpu, detail: detail.into(), invalidates }
}

/// Entries for a measuring thread's end: migrations and page faults.
pub fn entries_of_end(cpu: Option<Cpu>, end: &LoopEnd, usage: &Usage, start: Nanos) -> Vec<Integrity> {
    let mut entries = Vec::new();
    if end.migrations > 0 {
        let (elsewhere, at) = end.first_migration;
        let detail = format!(
            "{} on another CPU than planned, the first on CPU {elsewhere} at {} of the run",
            several(end.migrations, "wake-up", "wake-ups"),
            at - start
        );
        entries.push(entry(IntegrityKind::Affinity, cpu, true, detail));
    }
    if usage.minor_faults + usage.major_faults > 0 {
        let detail = format!(
            "{} in the loop, {} of them with I/O; each delayed the wake-ups after it",
            several(usage.minor_faults + usage.major_faults, "page fault", "page faults"),
            usage.major_faults
        );
        entries.push(entry(IntegrityKind::PageFault, cpu, usage.major_faults > 0, detail));
    }
    entries
}

/// Entry for a run that was ended because of starvation: see `starvation`.
pub fn entry_of_starving(cpu: Option<Cpu>) -> Integrity {
    let words = "its measuring thread ran without a pause for 3 s, so onbeat's own thread could not run and \
                 no signal could end the run: the run was ended, its results are stored; increase -i, or \
                 exclude a CPU with -a";
    entry(IntegrityKind::Starved, cpu, false, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_end_has_no_entries() {
        let mut end = LoopEnd {
            ended: super::super::cycle::EndReason::Loops,
            scheduled: 9,
            last: Nanos(0),
            migrations: 0,
            first_migration: Default::default(),
            used: Nanos(0),
        };
        assert!(entries_of_end(Some(Cpu(1)), &end, &Usage::default(), Nanos(0)).is_empty());
        end.migrations = 2;
        let faults = Usage { minor_faults: 1, ..Usage::default() };
        let entries = entries_of_end(Some(Cpu(1)), &end, &faults, Nanos(0));
        let kinds: Vec<_> = entries.iter().map(|e| (e.kind.as_str(), e.invalidates)).collect();
        assert_eq!(kinds, [("affinity", true), ("page-fault", false)]);
    }
}
