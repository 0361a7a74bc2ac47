//! What may spoil a run while it goes on: clock steps, suspend, steal, CPUs going offline, page faults.
//!
//! Read by the housekeeping thread once a second, from files it holds open, into buffers it keeps.
//! Nothing here makes the kernel interrupt a measured CPU.

use super::cycle::LoopEnd;
use facts::stat::steal_ticks;
use host::rt::Usage;
use host::{KeptOpen, clock};
use model::run::Integrity;
use model::text::several;
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::IntegrityKind;

/// The kernel accounts steal and the time of tasks in ticks of USER_HZ, which is 100 wherever Linux runs (proc(5)).
pub const USER_TICK: Nanos = Nanos(10_000_000);

/// A CPU's line in /proc/stat: its name and ten numbers, none of which reaches 13 digits in a machine's life.
const STAT_LINE: usize = 144;

/// CLOCK_REALTIME may be slewed by 500 ppm (adjtimex(2)); a change beyond that is a step.
const SLEW_PPM: i64 = 1_000;

/// Below this, a change of a clock's offset may be the reading's own error.
const CLOCK_NOISE: Nanos = Nanos(1_000_000);

/// An integrity entry of the whole machine or of one CPU.
pub fn entry(
    kind: IntegrityKind,
    cpu: Option<Cpu>,
    invalidates: bool,
    detail: impl Into<String>,
) -> Integrity {
    Integrity { kind: kind.into(), cpu, detail: detail.into(), invalidates }
}

/// The offsets of the clocks to CLOCK_MONOTONIC, as last seen.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// When they were read.
    pub at: Nanos,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    pub wall: Nanos,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC: time spent suspended.
    pub boot: Nanos,
}

impl Clocks {
    /// Reads the clocks.
    pub fn read() -> Clocks {
        Clocks { at: clock::monotonic(), wall: clock::wall_offset(), boot: clock::boot_offset() }
    }

    /// What happened to the clocks between two readings.
    pub fn compare(self, later: Clocks) -> Option<Integrity> {
        let suspended = later.boot - self.boot;
        if suspended > CLOCK_NOISE {
            return Some(entry(
                IntegrityKind::Suspend,
                None,
                true,
                format!("the machine was suspended for {suspended}; CLOCK_MONOTONIC stood still"),
            ));
        }
        let step = later.wall - self.wall;
        let slewed = (later.at - self.at).0 / 1_000_000 * SLEW_PPM;
        (step.0.abs() > slewed + CLOCK_NOISE.0).then(|| {
            entry(IntegrityKind::ClockStep, None, false, format!("the wall clock was stepped by {step}; latencies are of CLOCK_MONOTONIC and not touched by it, wall times before and after differ"))
        })
    }
}

/// Steal per measured CPU, from /proc/stat.
pub struct Steal {
    file: Option<KeptOpen>,
    counted: bool,
    cpus: Vec<(Cpu, u64, Nanos)>,
}

impl Steal {
    /// Begins to count, on a virtual machine; elsewhere there is no steal and nothing is read.
    pub fn new(cpus: impl Iterator<Item = Cpu>, virtualization: &str) -> Steal {
        let cpus: Vec<_> = cpus.map(|cpu| (cpu, u64::MAX, Nanos(0))).collect();
        // The lines of the CPUs come first; what follows is long and of no use here.
        let lines = cpus.last().map_or(0, |last| last.0.0 as usize + 2);
        let open = || KeptOpen::open("/proc/stat", lines * STAT_LINE).ok();
        let file = if virtualization == "none" { None } else { open() };
        let mut steal = Steal { counted: file.is_some(), file, cpus };
        steal.read();
        steal
    }

    /// Reads the counters; [`Steal::take`] then tells what was added since it was last asked.
    pub fn read(&mut self) {
        let Steal { file, cpus, .. } = self;
        if let Some(text) = file.as_mut().and_then(|file| file.read().ok()) {
            add_steal(cpus, text);
        }
    }

    /// Counters that are fed by hand.
    #[cfg(test)]
    pub fn fed(cpus: impl Iterator<Item = Cpu>) -> Steal {
        Steal { file: None, counted: true, cpus: cpus.map(|cpu| (cpu, u64::MAX, Nanos(0))).collect() }
    }

    /// As [`Steal::read`], from a text.
    #[cfg(test)]
    pub fn count(&mut self, text: &[u8]) {
        add_steal(&mut self.cpus, text);
    }

    /// The steal of a CPU since it was last asked for, so that each tick belongs to one block; none where
    /// it is not counted.
    pub fn take(&mut self, cpu: Cpu) -> Option<Nanos> {
        self.counted.then_some(())?;
        let index = self.cpus.binary_search_by_key(&cpu, |known| known.0).ok()?;
        Some(std::mem::take(&mut self.cpus[index].2))
    }
}

/// Adds what the text of /proc/stat counts beyond what is known of each CPU.
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

    /// The entry, if the hypervisor took any time.
    pub fn entry(&self, cpu: Cpu) -> Option<Integrity> {
        let StealSummary { blocks, total, worst, worst_steal } = *self;
        let coincides = if worst_steal.0 > 0 {
            format!("; the worst wake-up ({worst}) lies in a second with {worst_steal} of it")
        } else {
            format!("; none in the second of the worst wake-up ({worst})")
        };
        let detail = format!(
            "the hypervisor took {total} in {} of the run, counted in ticks of 10 ms{coincides}",
            several(blocks, "second", "seconds")
        );
        (blocks > 0).then(|| entry(IntegrityKind::Steal, Some(cpu), false, detail))
    }
}

/// Which of the measured CPUs are still online.
pub struct Online {
    file: Option<KeptOpen>,
    gone: CpuSet,
}

impl Online {
    /// Opens the kernel's list.
    pub fn new() -> Online {
        Online { file: KeptOpen::open("/sys/devices/system/cpu/online", 4096).ok(), gone: CpuSet::default() }
    }

    /// The measured CPUs that went offline since the last look.
    pub fn lost(&mut self, measured: &CpuSet) -> Vec<Integrity> {
        let text = self.file.as_mut().and_then(|file| file.read().ok());
        let Some(online) = text.and_then(|text| CpuSet::parse(std::str::from_utf8(text).ok()?).ok()) else {
            return Vec::new();
        };
        let lost = measured.without(&online).without(&self.gone);
        self.gone = self.gone.or(&lost);
        let words =
            "went offline during the run: its thread was moved, and what it counted since is another cpu's";
        lost.iter().map(|cpu| entry(IntegrityKind::Offline, Some(cpu), true, words)).collect()
    }
}

impl Default for Online {
    fn default() -> Online {
        Online::new()
    }
}

/// What a measuring thread's end tells: migrations and page faults.
pub fn entries_of_end(cpu: Cpu, end: &LoopEnd, usage: &Usage, start: Nanos) -> Vec<Integrity> {
    let mut entries = Vec::new();
    if end.migrations > 0 {
        let (elsewhere, at) = end.first_migration;
        let detail = format!(
            "{} of it came on another CPU, the first on CPU {elsewhere} at {} of the run",
            several(end.migrations, "wake-up", "wake-ups"),
            at - start
        );
        entries.push(entry(IntegrityKind::Affinity, Some(cpu), true, detail));
    }
    if usage.minor_faults + usage.major_faults > 0 {
        let detail = format!(
            "{} in the loop, {} of them with I/O; each delayed what came after it",
            several(usage.minor_faults + usage.major_faults, "page fault", "page faults"),
            usage.major_faults
        );
        entries.push(entry(IntegrityKind::PageFault, Some(cpu), usage.major_faults > 0, detail));
    }
    entries
}

/// Why a run was ended from inside: see `deadman`.
pub fn entry_of_starving(cpu: Cpu) -> Integrity {
    let words = "its measuring thread ran without a pause for 3 s while onbeat's own thread, and with it a signal to end the run, found no time: the run was ended, what it had measured is kept; give a longer -i, or leave a CPU out with -a";
    entry(IntegrityKind::Starved, Some(cpu), false, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(at_s: i64, wall_ms: i64, boot_ms: i64) -> Clocks {
        Clocks {
            at: Nanos(at_s * 1_000_000_000),
            wall: Nanos(wall_ms * 1_000_000),
            boot: Nanos(boot_ms * 1_000_000),
        }
    }

    #[test]
    fn slewing_is_not_a_step() {
        let kind = |later: Clocks| clocks(0, 0, 0).compare(later).map(|e| (e.kind, e.invalidates));
        assert_eq!(kind(clocks(10, 5, 0)), None);
        assert_eq!(kind(clocks(10, 40, 0)), Some(("clock-step".into(), false)));
        assert_eq!(kind(clocks(10, -40, 0)), Some(("clock-step".into(), false)));
        assert_eq!(kind(clocks(10, 5_000, 5_000)), Some(("suspend".into(), true)));
    }

    #[test]
    fn steal_says_whether_it_coincides_with_the_worst() {
        let mut sum = StealSummary::default();
        sum.add(Some(Nanos(50)), Nanos(0));
        assert_eq!(sum.entry(Cpu(0)), None);
        sum.add(Some(Nanos(40)), USER_TICK);
        let detail = sum.entry(Cpu(0)).expect("steal").detail;
        assert!(detail.contains("none in the second") && detail.contains("in 1 second of"), "{detail}");
        sum.add(Some(Nanos(7_000_000)), USER_TICK);
        let detail = sum.entry(Cpu(0)).expect("steal").detail;
        assert!(
            detail.contains("20 ms in 2 seconds") && detail.contains("(7 ms) lies in a second with 10 ms"),
            "{detail}"
        );
    }

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
        assert!(entries_of_end(Cpu(1), &end, &Usage::default(), Nanos(0)).is_empty());
        end.migrations = 2;
        let faults = Usage { minor_faults: 1, ..Usage::default() };
        let entries = entries_of_end(Cpu(1), &end, &faults, Nanos(0));
        let kinds: Vec<_> = entries.iter().map(|e| (e.kind.as_str(), e.invalidates)).collect();
        assert_eq!(kinds, [("affinity", true), ("page-fault", false)]);
    }
}
