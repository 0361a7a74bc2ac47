//! Time that the hypervisor took from measured CPUs, from /proc/stat.

use crate::measure::integrity::entry;
use facts::stat::steal_ticks;
use host::RereadFile;
use model::run::Integrity;
use model::text::several;
use model::units::{Cpu, Nanos};
use model::vocabulary::IntegrityKind;

/// The kernel accounts steal and the time of tasks in ticks of USER_HZ, which is 100 on all
/// architectures that onbeat supports (proc(5)).
pub const USER_TICK: Nanos = Nanos(10_000_000);

/// Maximum length of a CPU's line in /proc/stat: its name and ten numbers, none of which reaches 13
/// digits in a machine's life.
const STAT_LINE: usize = 144;

/// Steal per measured CPU, from /proc/stat.
pub struct Steal {
    file: Option<RereadFile>,
    counted: bool,
    cpus: Vec<(Cpu, u64, Nanos)>,
}

impl Steal {
    /// Starts to count on a virtual machine; elsewhere there is no steal and nothing is read.
    pub fn new(cpus: impl Iterator<Item = Cpu>, virtualization: &str) -> Steal {
        let cpus: Vec<_> = cpus.map(|cpu| (cpu, u64::MAX, Nanos(0))).collect();
        // The lines of the CPUs come first; the rest is long and not needed here.
        let lines = cpus.last().map_or(0, |last| last.0.0 as usize + 2);
        let open = || RereadFile::open("/proc/stat", lines * STAT_LINE).ok();
        let file = if virtualization == "none" { None } else { open() };
        let mut steal = Steal { counted: file.is_some(), file, cpus };
        steal.read();
        steal
    }

    /// Reads the counters, for [`Steal::take`].
    pub fn read(&mut self) {
        let Steal { file, cpus, .. } = self;
        if let Some(text) = file.as_mut().and_then(|file| file.read().ok()) {
            add_steal(cpus, text);
        }
    }

    /// Counters that a test fills in.
    #[cfg(test)]
    pub fn fed(cpus: impl Iterator<Item = Cpu>) -> Steal {
        Steal { file: None, counted: true, cpus: cpus.map(|cpu| (cpu, u64::MAX, Nanos(0))).collect() }
    }

    /// Like [`Steal::read`], from a text.
    #[cfg(test)]
    pub fn count(&mut self, text: &[u8]) {
        add_steal(&mut self.cpus, text);
    }

    /// Steal of a CPU since the last call for it, so that each tick belongs to one block; none if
    /// it is not counted.
    pub fn take(&mut self, cpu: Cpu) -> Option<Nanos> {
        self.counted.then_some(())?;
        let index = self.cpus.binary_search_by_key(&cpu, |known| known.0).ok()?;
        Some(std::mem::take(&mut self.cpus[index].2))
    }
}

/// Adds the increase of each CPU's counter in the text of /proc/stat.
fn add_steal(cpus: &mut [(Cpu, u64, Nanos)], text: &[u8]) {
    steal_ticks(text, |cpu, ticks| {
        if let Ok(index) = cpus.binary_search_by_key(&cpu, |known| known.0) {
            let known = &mut cpus[index];
            let added = if known.1 == u64::MAX { 0 } else { ticks.saturating_sub(known.1) };
            known.2 = known.2 + Nanos(added as i64 * USER_TICK.0);
            known.1 = ticks;
        }
    });
}

/// Steal of one CPU over the run, and whether it coincides with the worst wake-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct StealSummary {
    blocks: u64,
    total: Nanos,
    worst: Nanos,
    worst_steal: Nanos,
}

impl StealSummary {
    /// Adds a block: its worst latency and its steal.
    pub fn add(&mut self, max: Option<Nanos>, steal: Nanos) {
        if steal.0 > 0 {
            self.blocks += 1;
            self.total = self.total + steal;
        }
        if let Some(max) = max.filter(|max| *max > self.worst) {
            (self.worst, self.worst_steal) = (max, steal);
        }
    }

    /// Integrity entry, if the hypervisor took any time.
    pub fn entry(&self, cpu: Cpu) -> Option<Integrity> {
        let StealSummary { blocks, total, worst, worst_steal } = *self;
        let coincides = if worst_steal.0 > 0 {
            format!("; {worst_steal} of it in the second of the worst wake-up ({worst})")
        } else {
            format!("; none in the second of the worst wake-up ({worst})")
        };
        let detail = format!(
            "hypervisor steal {total} in {} of the run, in units of 10 ms{coincides}",
            several(blocks, "second", "seconds")
        );
        (blocks > 0).then(|| entry(IntegrityKind::Steal, Some(cpu), false, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_entries_show_whether_they_coincide_with_the_worst() {
        let mut sum = StealSummary::default();
        sum.add(Some(Nanos(50)), Nanos(0));
        assert_eq!(sum.entry(Cpu(0)), None);
        sum.add(Some(Nanos(40)), USER_TICK);
        let detail = sum.entry(Cpu(0)).expect("steal").detail;
        assert!(detail.contains("none in the second") && detail.contains("in 1 second of"), "{detail}");
        sum.add(Some(Nanos(7_000_000)), USER_TICK);
        let detail = sum.entry(Cpu(0)).expect("steal").detail;
        assert!(
            detail.contains("20 ms in 2 seconds") && detail.contains("; 10 ms of it in the second of"),
            "{detail}"
        );
    }
}
