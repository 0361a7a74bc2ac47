//! Reading the counts: the epoch is flipped, and the half that is no longer written is read and
//! cleared.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use host::clock;
use model::error::Result;
use model::units::{Cpu, Nanos};
use model::watch::{SeriesRows, WatchCoverage};

use crate::layout::{BOTH, COUNTS, CountedEvent, LATE_PULSES, WAKEUP, config, cpu, late_pulse, record};
use crate::recorder::KernelRecorder;
use crate::records::{Class, HOLDERS, ReleaseFound, SERIES_NAMES, WorstFound, keep_worst};
use crate::refusals;
use crate::slots::{Covered, Looked};

/// Pause between looks at busy CPUs: a program takes 1 us, longer while a hypervisor holds its CPU.
const WAIT: Nanos = Nanos(20_000_000);
const WAITS: usize = 5;
/// Time in which a CPU's store becomes visible to all, which takes nanoseconds; spent spinning, as
/// a sleep would be one more wake-up.
const STORED: Nanos = Nanos(100_000);
/// A maximum that is being written is looked at again.
const TRIES: usize = 5;

/// Records of one interval between two flips.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrainedEpoch {
    /// Start of the interval.
    pub mono_ns: Nanos,
    pub span_ns: Nanos,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, at its end.
    pub wall_offset: Nanos,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC, at its end.
    pub boot_offset: Nanos,
    pub series: Vec<SeriesRows>,
    /// The worst of each series, holder and kind of victims, over all CPUs.
    pub worst: Vec<WorstFound>,
    /// The worst of each CPU and of each chosen thread, if these are wanted; those of a thread have
    /// no CPU and no stacks.
    pub each: Vec<WorstFound>,
    pub coverage: WatchCoverage,
    /// The threads in slots that were there during all of the interval.
    pub threads: Vec<Covered>,
    pub counts: RecorderCounts,
    /// The latest pulses.
    pub late_pulses: Vec<LatePulse>,
}

/// A late pulse of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatePulse {
    pub cpu: Cpu,
    pub due: Nanos,
    pub came: Nanos,
    /// True if it found a function of the kernel, which may have had interrupts off.
    pub in_kernel: bool,
}

/// Counts of events that are no wake-up, or are counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecorderCounts {
    /// Wake-ups in the histograms.
    pub recorded: u64,
    /// Sleeps that ended without a waking, or a switch back, that was seen.
    pub unwoken: u64,
    /// Recorded wake-ups of threads that had been preempted before they slept.
    pub preempted: u64,
    /// Latencies that a suspend lay in: not recorded.
    pub suspended: u64,
    /// Begins and ends of suspends.
    pub suspends: u32,
    /// Wake-ups of more than 68.7 s; they are counted in the row of that.
    pub beyond: u64,
    /// Threads in slots.
    pub threads: usize,
    /// CPUs that were inside a program throughout; their counts follow with the next interval.
    pub late_cpus: usize,
    /// Events of a ring that were overwritten before they were read, or could not be read.
    pub lost_events: u64,
    /// Latencies dropped because events were lost within them.
    pub lost_spans: u64,
    /// Reads of a ring that failed.
    pub failed_reads: u64,
}

impl KernelRecorder {
    /// Ends the interval and begins the next, which counts everything from now on.
    pub fn flip(&mut self) {
        let word = self.maps.config.u32(0, config::EPOCH);
        word.store(word.load(Relaxed).wrapping_add(1), SeqCst);
    }

    /// Flips, and takes the counts of the last interval.
    pub fn take(&mut self) -> Result<DrainedEpoch> {
        self.maps.set_clocks_apart();
        self.flip();
        let end = clock::monotonic();
        let written = self.maps.config.u32(0, config::EPOCH).load(Relaxed);
        let busy = self.wait_for_programs();
        let mut drained = DrainedEpoch {
            mono_ns: self.began,
            span_ns: end - self.began,
            wall_offset: clock::wall_offset(),
            boot_offset: clock::boot_offset(),
            ..DrainedEpoch::default()
        };
        self.began = end;
        self.take_records(written.wrapping_sub(1), &busy, &mut drained)?;
        self.take_counts(&mut drained)?;
        drained.late_pulses = self.take_late_pulses();
        drained.counts.late_cpus = busy.iter().filter(|busy| **busy).count();
        Ok(drained)
    }

    /// Largest wake-up of a program's thread since the last flip: T + W, or W without T. Removes
    /// nothing, so it may be polled.
    pub fn largest(&self) -> Result<Option<WorstFound>> {
        let epoch = self.maps.config.u32(0, config::EPOCH).load(Relaxed);
        let mut largest: Option<WorstFound> = None;
        for cpu in self.maps.cpus.entries() {
            let first = record::of_cpu(cpu, epoch, 0, 0);
            let view = self.maps.records.view(first..first + record::CLASSES);
            let view = view.map_err(|error| refusals::no_map(&error))?;
            for (holder, series) in (0..HOLDERS.len()).flat_map(|holder| [(holder, BOTH), (holder, WAKEUP)]) {
                let class = Class::of_cpu(cpu, first, 2 * holder);
                let settled = (0..TRIES).find_map(|_| {
                    let quiet = || self.maps.cpus.u32(cpu, cpu::BUSY).load(SeqCst) == 0;
                    let (before, time) = (quiet(), class.time_of_maximum(&view, series));
                    let found = class.maximum(&view, series);
                    (before && quiet() && class.time_of_maximum(&view, series) == time).then_some(found)
                });
                let Some(mut found) = settled.flatten() else { continue };
                found.wakeup.worst_of.push(SERIES_NAMES[series].into());
                found.release = ReleaseFound::of(&self.maps.cpus, cpu, found.wakeup.mono_ns);
                if largest.as_ref().is_none_or(|last| last.wakeup.total() < found.wakeup.total()) {
                    largest = Some(found);
                }
            }
        }
        Ok(largest)
    }

    /// Waits for programs that may write to the old half; returns which CPUs still are in one. BUSY
    /// is set before the epoch is read, so a CPU that is not busy now reads the new one.
    fn wait_for_programs(&self) -> Vec<bool> {
        let cpus = &self.maps.cpus;
        let mut busy = vec![true; cpus.entries().len()];
        let flipped = clock::monotonic();
        while clock::monotonic() - flipped < STORED {
            std::hint::spin_loop();
        }
        for nth in 0..=WAITS {
            if nth > 0 {
                clock::sleep_for(WAIT);
            }
            for (cpu, busy) in busy.iter_mut().enumerate() {
                *busy = *busy && cpus.u32(cpu, cpu::BUSY).load(SeqCst) != 0;
            }
            if !busy.contains(&true) {
                break;
            }
        }
        busy
    }

    fn take_records(&mut self, epoch: u32, busy: &[bool], drained: &mut DrainedEpoch) -> Result<()> {
        drained.series =
            SERIES_NAMES.map(|series| SeriesRows { series, cpus: Vec::new(), threads: Vec::new() }).to_vec();
        for cpu in (0..busy.len()).filter(|cpu| !busy[*cpu]) {
            let first = record::of_cpu(cpu, epoch, 0, 0);
            let view = self.maps.records.view(first..first + record::CLASSES);
            let view = view.map_err(|error| refusals::no_map(&error))?;
            for class in 0..record::CLASSES {
                let class = Class::of_cpu(cpu, first, class);
                for (series, rows) in drained.series.iter_mut().enumerate() {
                    let Some(drained_row) = class.take(&view, series) else { continue };
                    rows.cpus.push(drained_row.row);
                    drained.counts.beyond += drained_row.beyond;
                    if let Some(worst) = drained_row.worst {
                        drained.each.extend(self.each.then(|| worst.clone()));
                        keep_worst(&mut drained.worst, worst, SERIES_NAMES[series]);
                    }
                }
            }
        }
        for (thread, chosen) in self.slots.chosen.iter().enumerate() {
            let Some(chosen) = chosen else { continue };
            let entry = record::of_thread(thread, epoch);
            let view = self.maps.threads.view(entry..entry + 1).map_err(|error| refusals::no_map(&error))?;
            let class = Class::of_thread(chosen, entry);
            for (series, rows) in drained.series.iter_mut().enumerate() {
                let Some(drained_row) = class.take(&view, series) else { continue };
                rows.threads.push(drained_row.row);
                drained.each.extend(drained_row.worst.filter(|_| self.each));
            }
        }
        self.take_switched(epoch, busy, drained)
    }

    fn take_late_pulses(&self) -> Vec<LatePulse> {
        let Some(cpu) = self.about().pulse else { return Vec::new() };
        let late = |nth: usize| {
            let at = config::LATE_PULSES + (nth * late_pulse::SIZE) as i16;
            let member = |of: i16| self.maps.config.u64(0, at + of);
            let came = || Nanos(member(late_pulse::CAME).load(SeqCst) as i64);
            let first = came();
            let in_kernel = member(late_pulse::IN_KERNEL).load(SeqCst) != 0;
            let late = Nanos(member(late_pulse::LATE).swap(0, SeqCst) as i64);
            // The program may write between these reads: skip a record of two pulses.
            let whole = late > Nanos(0) && came() == first;
            whole.then(|| LatePulse { cpu, due: first - late, came: first, in_kernel })
        };
        (0..LATE_PULSES).filter_map(late).collect()
    }

    fn take_counts(&mut self, drained: &mut DrainedEpoch) -> Result<()> {
        let mut sums = [0u64; COUNTS];
        for (cpu, last) in self.cpu_counts.iter_mut().enumerate() {
            let counts = self.maps.cpus.u64s(cpu, cpu::COUNTS, COUNTS);
            for ((sum, count), last) in sums.iter_mut().zip(counts).zip(last.iter_mut()) {
                let now = count.load(Relaxed);
                *sum += now.wrapping_sub(*last);
                *last = now;
            }
        }
        let of = |count: CountedEvent| sums[count as usize];
        let looked = self.slots.look(&self.maps.slots)?;
        let missed = self.missed_by_kernel();
        let skipped = missed.zip(self.missed).map(|(now, last)| now - last);
        self.missed = missed;
        let suspends = self.maps.config.u32(0, config::SUSPENDS).load(Relaxed);
        drained.coverage = coverage_of(&sums, &looked, skipped);
        drained.threads = looked.covered;
        drained.counts = RecorderCounts {
            recorded: of(CountedEvent::Recorded),
            unwoken: of(CountedEvent::Unwoken),
            preempted: of(CountedEvent::Preempted),
            suspended: of(CountedEvent::Suspended),
            suspends: suspends.wrapping_sub(std::mem::replace(&mut self.suspends, suspends)),
            threads: looked.threads,
            ..drained.counts
        };
        Ok(())
    }
}

/// Coverage of the recording, from the counters, the look at the threads, and the skipped programs.
pub(crate) fn coverage_of(counts: &[u64; COUNTS], looked: &Looked, skipped: Option<u64>) -> WatchCoverage {
    let of = |count: CountedEvent| counts[count as usize];
    WatchCoverage {
        recorded: looked.recorded,
        voluntary: looked.voluntary,
        collisions: of(CountedEvent::Collisions),
        skipped,
        ended: of(CountedEvent::Ended) + looked.swept,
        timers_unmatched: of(CountedEvent::Unmatched),
        woken_before_sleep: of(CountedEvent::Early),
        unwritten: 0,
    }
}
