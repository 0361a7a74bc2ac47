//! Reading what was counted: the epoch is flipped, and the half that nobody writes any more is read
//! and cleared.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use host::bpf::MapView;
use host::clock;
use model::error::Result;
use model::keyword::Word;
use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use model::watch::{
    Holder, SeriesRows, Victims, WatchCoverage, WatchRow, WatchSeries, WatchTask, WorstWakeup,
};

use crate::layout::{BEYOND, COUNTS, Count, SERIES, config, cpu, histogram, maximum, record};
use crate::programs::counting::LEAST_FROM;
use crate::recorder::Recorder;
use crate::refusals;

/// The series in the order of a record's histograms.
const SERIES_NAMES: [WatchSeries; SERIES] =
    [WatchSeries::Timer, WatchSeries::Wakeup, WatchSeries::TimerWakeup];
const HOLDERS: [Holder; 3] = [Holder::Lower, Holder::Equal, Holder::Higher];
const VICTIMS: [Victims; 2] = [Victims::User, Victims::Kernel];

/// A program runs for a microsecond; where a hypervisor holds a CPU it may take longer.
const WAIT: Nanos = Nanos(20_000_000);
const WAITS: usize = 5;

/// What was recorded since the last time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drained {
    /// When it began.
    pub mono_ns: Nanos,
    pub span_ns: Nanos,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, at its end.
    pub wall_offset: Nanos,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC, at its end.
    pub boot_offset: Nanos,
    pub series: Vec<SeriesRows>,
    /// The worst of each series, holder and kind of victims, over all CPUs.
    pub worst: Vec<Worst>,
    pub coverage: WatchCoverage,
    pub counts: Counts,
}

/// A worst wake-up with its stacks as addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worst {
    pub wakeup: WorstWakeup,
    /// Whether the stack is that of the timer's expiry; else of the switch.
    pub at_expiry: bool,
    pub stack: Vec<u64>,
    /// Of the victim when it slept again; empty where it did not before the interval ended.
    pub sleeps: Vec<u64>,
}

/// What was seen and could not be counted as a wake-up, or only apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Wake-ups in the histograms.
    pub recorded: u64,
    /// Threads that slept and ran again, and whose waking was not seen.
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
    /// CPUs that were in the middle of a program all the time: theirs comes with the next interval.
    pub late_cpus: usize,
}

impl Recorder {
    /// Ends the interval and begins the next; what comes from now on is counted there.
    pub fn flip(&mut self) {
        let word = self.maps.config.u32(0, config::EPOCH);
        word.store(word.load(Relaxed).wrapping_add(1), SeqCst);
    }

    /// Flips, and takes what the last interval has.
    pub fn take(&mut self) -> Result<Drained> {
        self.maps.set_clocks_apart();
        self.flip();
        let end = clock::monotonic();
        let written = self.maps.config.u32(0, config::EPOCH).load(Relaxed);
        let busy = self.wait_for_programs();
        let mut drained = Drained {
            mono_ns: self.began,
            span_ns: end - self.began,
            wall_offset: clock::wall_offset(),
            boot_offset: clock::boot_offset(),
            ..Drained::default()
        };
        self.began = end;
        self.take_records(written.wrapping_sub(1), &busy, &mut drained)?;
        self.take_counts(&mut drained)?;
        drained.counts.late_cpus = busy.iter().filter(|busy| **busy).count();
        Ok(drained)
    }

    /// Whether each CPU still is in a program that may write to the old half. It says that it is
    /// busy before it reads the epoch, so that one that is not busy now reads the new one.
    fn wait_for_programs(&self) -> Vec<bool> {
        let cpus = &self.maps.cpus;
        let mut busy = vec![true; cpus.entries().len()];
        for _ in 0..WAITS {
            clock::sleep_for(WAIT);
            for (cpu, busy) in busy.iter_mut().enumerate() {
                *busy = *busy && cpus.u32(cpu, cpu::BUSY).load(SeqCst) != 0;
            }
            if !busy.contains(&true) {
                break;
            }
        }
        busy
    }

    fn take_records(&mut self, epoch: u32, busy: &[bool], drained: &mut Drained) -> Result<()> {
        drained.series =
            SERIES_NAMES.map(|series| SeriesRows { series, cpus: Vec::new(), threads: Vec::new() }).to_vec();
        for cpu in (0..busy.len()).filter(|cpu| !busy[*cpu]) {
            let first = record::of_cpu(cpu, epoch, 0, 0);
            let view = self.maps.records.view(first..first + record::CLASSES);
            let view = view.map_err(|error| refusals::no_map(&error))?;
            for class in 0..record::CLASSES {
                let class = Class {
                    cpu: Some(Cpu(cpu as u32)),
                    holder: Some(HOLDERS[class / 2]),
                    victims: VICTIMS[class % 2],
                    thread: None,
                    entry: first + class,
                };
                for series in 0..SERIES {
                    class.take(&view, series, drained);
                }
            }
        }
        for (thread, task) in
            self.slots.chosen.iter().enumerate().filter_map(|(at, task)| Some((at, task.as_ref()?)))
        {
            let entry = record::of_thread(thread, epoch);
            let view = self.maps.threads.view(entry..entry + 1).map_err(|error| refusals::no_map(&error))?;
            let class =
                Class { cpu: None, holder: None, victims: Victims::User, thread: Some(task.clone()), entry };
            for series in 0..SERIES {
                class.take(&view, series, drained);
            }
        }
        Ok(())
    }

    fn take_counts(&mut self, drained: &mut Drained) -> Result<()> {
        let mut sums = [0u64; COUNTS];
        for (cpu, last) in self.cpu_counts.iter_mut().enumerate() {
            let counts = self.maps.cpus.u64s(cpu, cpu::COUNTS, COUNTS);
            for ((sum, count), last) in sums.iter_mut().zip(counts).zip(last.iter_mut()) {
                let now = count.load(Relaxed);
                *sum += now.wrapping_sub(*last);
                *last = now;
            }
        }
        let of = |count: Count| sums[count as usize];
        let looked = self.slots.look(&self.maps.slots)?;
        let missed = self.missed_by_kernel();
        let skipped = missed.zip(self.missed).map(|(now, last)| now - last);
        self.missed = missed;
        let suspends = self.maps.config.u32(0, config::SUSPENDS).load(Relaxed);
        drained.coverage = WatchCoverage {
            recorded: looked.recorded,
            voluntary: looked.voluntary,
            collisions: of(Count::Collisions),
            skipped,
            ended: of(Count::Ended) + looked.swept,
            timers_unmatched: of(Count::Unmatched),
            woken_before_sleep: of(Count::Early),
            unwritten: 0,
        };
        drained.counts = Counts {
            recorded: of(Count::Recorded),
            unwoken: of(Count::Unwoken),
            preempted: of(Count::Preempted),
            suspended: of(Count::Suspended),
            suspends: suspends.wrapping_sub(std::mem::replace(&mut self.suspends, suspends)),
            threads: looked.threads,
            ..drained.counts
        };
        Ok(())
    }
}

/// Of whom a record is.
struct Class {
    cpu: Option<Cpu>,
    holder: Option<Holder>,
    victims: Victims,
    thread: Option<WatchTask>,
    entry: usize,
}

impl Class {
    /// Moves a histogram and its maximum out of the record.
    fn take(&self, view: &MapView, series: usize, drained: &mut Drained) {
        let at = |member: i16| (series * histogram::SIZE) as i16 + member;
        let rows = view.u32s(self.entry, at(histogram::ROWS), BEYOND + 1);
        let filled: Vec<(usize, u64)> = rows
            .iter()
            .enumerate()
            .filter(|(_, count)| count.load(Relaxed) != 0)
            .map(|(row, count)| (row, u64::from(count.swap(0, Relaxed))))
            .collect();
        let sum = view.u64(self.entry, at(histogram::SUM)).swap(0, Relaxed) as i64;
        let least = view.u64(self.entry, at(histogram::LEAST)).swap(0, Relaxed);
        let worst = self.maximum(view, series);
        if filled.is_empty() {
            return;
        }
        let n = filled.iter().map(|(_, count)| count).sum();
        let in_row =
            |wanted: usize| filled.iter().find(|(row, _)| *row == wanted).map_or(0, |(_, count)| *count);
        if self.cpu.is_some() {
            drained.counts.beyond += in_row(BEYOND);
        }
        let found = worst.as_ref().map(|worst| &worst.wakeup);
        let row = WatchRow {
            cpu: self.cpu,
            thread: self.thread.clone(),
            holder: self.holder.map(Into::into).unwrap_or_default(),
            victims: self.victims.into(),
            n,
            early: in_row(0),
            min_ns: (least != 0).then(|| Nanos((LEAST_FROM - least) as i64)),
            sum_ns: Nanos(sum),
            max_ns: found.and_then(|found| found.value(SERIES_NAMES[series])),
            max_mono_ns: found.map(|found| found.mono_ns),
            hist: RowCounts::of_rows(filled.iter().copied()),
            victim: found.map(|found| found.victim.clone()).unwrap_or_default(),
            ..WatchRow::default()
        };
        let rows = &mut drained.series[series];
        if self.cpu.is_some() {
            rows.cpus.push(row)
        } else {
            rows.threads.push(row)
        }
        if let Some(worst) = worst.filter(|_| self.cpu.is_some()) {
            drained.keep_worst(worst, SERIES_NAMES[series]);
        }
    }

    /// The maximum of a series, which is cleared.
    fn maximum(&self, view: &MapView, series: usize) -> Option<Worst> {
        let size = if self.cpu.is_some() { maximum::SIZE } else { maximum::SHORT };
        let base = (record::MAXIMA + series * size) as i16;
        let long = |member: i16| view.u64(self.entry, base + member).load(Relaxed);
        let short = |member: i16| view.u32(self.entry, base + member).load(Relaxed);
        let comm = |member: i16| comm_of(view, self.entry, base + member);
        if long(maximum::TIME) == 0 {
            return None;
        }
        let span = |member: i16| Some(Nanos(long(member) as i64)).filter(|span| span.0 >= 0);
        let process = Some(short(maximum::VICTIM_PROCESS) as i32).filter(|process| *process != 0);
        let interrupted = long(maximum::INTERRUPTED);
        let late = span(maximum::LATE);
        let wakeup = WorstWakeup {
            holder: self.holder.map(Into::into).unwrap_or_default(),
            victims: self.victims.into(),
            timer_ns: late,
            wakeup_ns: Some(Nanos(long(maximum::WAIT) as i64)),
            mono_ns: Nanos(long(maximum::TIME) as i64),
            cpu: self.cpu,
            victim: WatchTask {
                comm: comm(maximum::VICTIM_COMM),
                pid: process,
                tid: Some(short(maximum::VICTIM) as i32),
                prio: Some(short(maximum::VICTIM_PRIO) as i32),
                ..WatchTask::default()
            },
            previous: WatchTask {
                comm: comm(maximum::PREVIOUS_COMM),
                prio: Some(short(maximum::PREVIOUS_PRIO) as i32),
                ..task_of(long(maximum::PREVIOUS))
            },
            interrupted: match late {
                None => WatchTask::default(),
                Some(_) => WatchTask {
                    comm: comm(maximum::INTERRUPTED_COMM),
                    prio: Some(short(maximum::INTERRUPTED_PRIO) as i32).filter(|prio| *prio != i32::MIN),
                    ..task_of(interrupted)
                },
            },
            ..WorstWakeup::default()
        };
        let stacks = self.cpu.is_some();
        let addresses = |place: i16, bytes: i16, room: usize| match short(bytes) as i32 {
            bytes if stacks && bytes > 0 => {
                addresses_of(view, self.entry, base + place, (bytes as usize).min(room))
            }
            _ => Vec::new(),
        };
        let worst = Worst {
            wakeup,
            at_expiry: short(maximum::STACK_OF) == 1,
            stack: addresses(maximum::STACK, maximum::STACK_BYTES, maximum::STACK_ROOM),
            sleeps: addresses(maximum::SLEEP, maximum::SLEEP_BYTES, maximum::SLEEP_ROOM),
        };
        view.u64s(self.entry, base, size / 8).iter().for_each(|word| word.store(0, Relaxed));
        Some(worst)
    }
}

/// The process in the upper half, the thread in the lower.
fn task_of(both: u64) -> WatchTask {
    WatchTask { pid: Some((both >> 32) as i32), tid: Some(both as u32 as i32), ..WatchTask::default() }
}

fn comm_of(view: &MapView, entry: usize, place: i16) -> String {
    let words = view.u64s(entry, place, 2);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn addresses_of(view: &MapView, entry: usize, place: i16, bytes: usize) -> Vec<u64> {
    let words = view.u64s(entry, place, bytes / 8);
    words.iter().map(|word| word.load(Relaxed)).take_while(|address| *address != 0).collect()
}

impl Drained {
    /// Keeps the largest of a series, holder and kind of victims; one wake-up may be that of
    /// several.
    fn keep_worst(&mut self, new: Worst, series: WatchSeries) {
        let value = new.wakeup.value(series);
        let same_class = |other: &Worst| {
            other.wakeup.holder == new.wakeup.holder
                && other.wakeup.victims == new.wakeup.victims
                && other.wakeup.worst_of.contains(&series.into())
        };
        if let Some(last) = self.worst.iter_mut().find(|other| same_class(other)) {
            if last.wakeup.value(series) >= value {
                return;
            }
            last.wakeup.worst_of.retain(|of| *of != Word::from(series));
        }
        self.worst.retain(|other| !other.wakeup.worst_of.is_empty());
        match self.worst.iter_mut().find(|other| other.wakeup.is_same(&new.wakeup)) {
            Some(same) => same.take_also(new, series),
            None => {
                let mut new = new;
                new.wakeup.worst_of.push(series.into());
                self.worst.push(new);
            }
        }
    }
}

impl Worst {
    /// The same wake-up from another series' record: what was known of it there.
    fn take_also(&mut self, other: Worst, series: WatchSeries) {
        self.wakeup.worst_of.push(series.into());
        if self.stack.is_empty()
            || (other.at_expiry && series != WatchSeries::Wakeup && !other.stack.is_empty())
        {
            (self.stack, self.at_expiry) = (other.stack, other.at_expiry);
        }
        if self.sleeps.is_empty() {
            self.sleeps = other.sleeps;
        }
        if self.wakeup.victim.pid.is_none() {
            self.wakeup.victim.pid = other.wakeup.victim.pid;
        }
        if self.wakeup.interrupted.comm.is_empty() {
            self.wakeup.interrupted = other.wakeup.interrupted;
        }
    }
}
