//! One record of the kernel: histograms and maxima to values.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use host::bpf::MapView;
use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use model::watch::{Holder, Victims, WatchRow, WatchSeries, WatchTask, WorstWakeup};

use crate::layout::{BEYOND, SERIES, cpu, histogram, maximum, record, release};
use crate::programs::counting::LEAST_FROM;
use crate::slots::ChosenThread;

/// The series in the order of a record's histograms.
pub(crate) const SERIES_NAMES: [WatchSeries; SERIES] =
    [WatchSeries::Timer, WatchSeries::Wakeup, WatchSeries::TimerWakeup];
pub(crate) const HOLDERS: [Holder; 3] = [Holder::Lower, Holder::Equal, Holder::Higher];
pub(crate) const VICTIMS: [Victims; 2] = [Victims::User, Victims::Kernel];

/// A worst wake-up with its stacks as addresses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorstFound {
    pub wakeup: WorstWakeup,
    /// Stack in the timer's interrupt; empty without T, and if an earlier T of the interval was
    /// larger on that CPU.
    pub expiry: Vec<u64>,
    /// Stack of the previous thread at the switch.
    pub switch: Vec<u64>,
    /// Stack of the victim when it slept again; empty if it did not before the interval ended.
    pub sleeps: Vec<u64>,
    /// Release of a contended lock before its end.
    pub release: Option<ReleaseFound>,
}

/// Last release of a contended lock on another CPU before the end of a wake-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReleaseFound {
    pub mono_ns: Nanos,
    /// Time of the last release before it by another thread.
    pub before_ns: Nanos,
    /// Thread that released it.
    pub task: WatchTask,
    /// Its stack.
    pub stack: Vec<u64>,
}

impl ReleaseFound {
    /// The release kept with a maximum of a CPU at this time.
    pub(crate) fn of(cpus: &MapView, cpu: usize, at: Nanos) -> Option<ReleaseFound> {
        let long = |place: i16| cpus.u64(cpu, place).load(SeqCst);
        let short = |member: i16| cpus.u32(cpu, cpu::FREED_RELEASE + member).load(Relaxed) as i32;
        let is_kept = || long(cpu::FREED) as i64 == at.0;
        let before = is_kept();
        let room = release::STACK_ROOM;
        let bytes = usize::try_from(short(release::BYTES)).unwrap_or(0).min(room);
        let found = ReleaseFound {
            mono_ns: Nanos(long(cpu::FREED_RELEASE + release::TIME) as i64),
            before_ns: Nanos(long(cpu::FREED_OTHER) as i64),
            task: WatchTask {
                comm: comm_of(cpus, cpu, cpu::FREED_RELEASE + release::COMM),
                tid: Some(short(release::TID)),
                ..WatchTask::default()
            },
            stack: addresses_of(cpus, cpu, cpu::FREED_RELEASE + release::STACK, bytes),
        };
        // The program may write between these reads; and a stack without its end may be one in an
        // interrupt's handler, whose lock is not the thread's.
        (before && is_kept() && bytes < room).then_some(found)
    }
}

/// Counts of a class in a series.
pub(crate) struct CountedRows {
    /// Rows that are not empty.
    pub filled: Vec<(usize, u64)>,
    pub sum: Nanos,
    pub least: Option<Nanos>,
    pub worst: Option<WorstFound>,
}

/// One histogram that was read.
pub(crate) struct DrainedRow {
    pub row: WatchRow,
    pub worst: Option<WorstFound>,
    /// Samples beyond the last row.
    pub beyond: u64,
}

/// Owner of a row: the threads whose wake-ups it counts.
pub(crate) struct RowOwner {
    pub cpu: Option<Cpu>,
    pub holder: Option<Holder>,
    pub victims: Victims,
    pub thread: Option<WatchTask>,
}

impl RowOwner {
    /// Owner of all rows of a chosen thread.
    pub fn of_thread(chosen: &ChosenThread) -> RowOwner {
        RowOwner { cpu: None, holder: None, victims: chosen.victims, thread: Some(chosen.task.clone()) }
    }

    /// Owner of rows on a CPU, by the number of the holder and that of the victims.
    pub fn of_cpu(cpu: Cpu, holder: usize, victims: usize) -> RowOwner {
        RowOwner { cpu: Some(cpu), holder: Some(HOLDERS[holder]), victims: VICTIMS[victims], thread: None }
    }

    /// The row and the largest wake-up; `None` if there were none.
    pub fn row(&self, counted: CountedRows, series: WatchSeries) -> Option<DrainedRow> {
        let CountedRows { filled, sum, least, worst } = counted;
        if filled.is_empty() {
            return None;
        }
        let n = filled.iter().map(|(_, count)| count).sum();
        let in_row =
            |wanted: usize| filled.iter().find(|(row, _)| *row == wanted).map_or(0, |(_, count)| *count);
        let found = worst.as_ref().map(|worst| &worst.wakeup);
        let row = WatchRow {
            cpu: self.cpu,
            thread: self.thread.clone(),
            holder: self.holder.map(Into::into).unwrap_or_default(),
            victims: self.victims.into(),
            n,
            early: in_row(0),
            min_ns: least,
            sum_ns: sum,
            max_ns: found.and_then(|found| found.value(series)),
            max_mono_ns: found.map(|found| found.mono_ns),
            hist: RowCounts::of_rows(filled.iter().copied()),
            victim: found.map(|found| found.victim.clone()).unwrap_or_default(),
            ..WatchRow::default()
        };
        Some(DrainedRow { row, worst, beyond: in_row(BEYOND) })
    }
}

/// A record of the kernel's.
pub(crate) struct Class {
    pub owner: RowOwner,
    pub entry: usize,
}

impl Class {
    /// Class of all wake-ups of a chosen thread.
    pub fn of_thread(chosen: &ChosenThread, entry: usize) -> Class {
        Class { owner: RowOwner::of_thread(chosen), entry }
    }

    /// Class of a CPU whose first record is that of lower priorities and user threads.
    pub fn of_cpu(cpu: usize, first: usize, class: usize) -> Class {
        Class { owner: RowOwner::of_cpu(Cpu(cpu as u32), class / 2, class % 2), entry: first + class }
    }

    /// Moves a histogram and its maximum out of the record.
    pub fn take(&self, view: &MapView, series: usize) -> Option<DrainedRow> {
        let worst = self.maximum(view, series);
        self.clear_maximum(view, series);
        self.drain_rows(view, series, SERIES_NAMES[series], worst)
    }

    /// Moves a histogram out; with its maximum, which was.
    pub fn drain_rows(
        &self,
        view: &MapView,
        number: usize,
        series: WatchSeries,
        worst: Option<WorstFound>,
    ) -> Option<DrainedRow> {
        let at = |member: i16| (number * histogram::SIZE) as i16 + member;
        let rows = view.u32s(self.entry, at(histogram::ROWS), BEYOND + 1);
        let filled: Vec<(usize, u64)> = rows
            .iter()
            .enumerate()
            .filter(|(_, count)| count.load(Relaxed) != 0)
            .map(|(row, count)| (row, u64::from(count.swap(0, Relaxed))))
            .collect();
        let sum = view.u64(self.entry, at(histogram::SUM)).swap(0, Relaxed) as i64;
        let least = view.u64(self.entry, at(histogram::LEAST)).swap(0, Relaxed);
        let least = (least != 0).then(|| Nanos((LEAST_FROM - least) as i64));
        self.owner.row(CountedRows { filled, sum: Nanos(sum), least, worst }, series)
    }

    /// Offset and size of the maximum of a series.
    fn place_of_maximum(&self, series: usize) -> (i16, usize) {
        let size = if self.owner.cpu.is_some() { maximum::SIZE } else { maximum::SHORT };
        ((record::MAXIMA + series * size) as i16, size)
    }

    fn clear_maximum(&self, view: &MapView, series: usize) {
        let (base, size) = self.place_of_maximum(series);
        view.u64s(self.entry, base, size / 8).iter().for_each(|word| word.store(0, Relaxed));
    }

    /// Time of the maximum of a series.
    pub fn time_of_maximum(&self, view: &MapView, series: usize) -> u64 {
        view.u64(self.entry, self.place_of_maximum(series).0 + maximum::TIME).load(SeqCst)
    }

    /// The maximum of a series.
    pub fn maximum(&self, view: &MapView, series: usize) -> Option<WorstFound> {
        let (base, _) = self.place_of_maximum(series);
        let long = |member: i16| view.u64(self.entry, base + member).load(Relaxed);
        let short = |member: i16| view.u32(self.entry, base + member).load(Relaxed);
        let comm = |member: i16| comm_of(view, self.entry, base + member);
        if long(maximum::TIME) == 0 {
            return None;
        }
        let span = |member: i16| Some(Nanos(long(member) as i64)).filter(|span| span.0 >= 0);
        let process = Some(short(maximum::VICTIM_PROCESS) as i32).filter(|process| *process != 0);
        let previous = WatchTask {
            comm: comm(maximum::PREVIOUS_COMM),
            prio: Some(short(maximum::PREVIOUS_PRIO) as i32),
            ..task_of(long(maximum::PREVIOUS))
        };
        let late = span(maximum::LATE);
        let wait = Nanos(long(maximum::WAIT) as i64);
        let held = long(maximum::HELD).checked_sub(1).map(|held| Nanos(held as i64).min(wait));
        let mut interrupted = late.map(|_| WatchTask {
            comm: comm(maximum::INTERRUPTED_COMM),
            prio: Some(short(maximum::INTERRUPTED_PRIO) as i32).filter(|prio| *prio != i32::MIN),
            ..task_of(long(maximum::INTERRUPTED))
        });
        // The thread that the timer interrupted is usually the one that was switched out; idle
        // threads of all CPUs have the number 0.
        let is_previous = |task: &&mut WatchTask| {
            task.tid != Some(0) && (task.pid, task.tid) == (previous.pid, previous.tid)
        };
        if let Some(task) = interrupted.as_mut().filter(is_previous) {
            let prio = task.prio.or(previous.prio);
            *task = WatchTask { prio, ..previous.clone() };
        }
        let interrupted = interrupted.unwrap_or_default();
        let wakeup = WorstWakeup {
            holder: self.owner.holder.map(Into::into).unwrap_or_default(),
            victims: self.owner.victims.into(),
            timer_ns: late,
            wakeup_ns: Some(wait),
            held_ns: held,
            switch_ns: long(maximum::SWITCH_TIME).checked_sub(1).map(|span| Nanos(span as i64)),
            mono_ns: Nanos(long(maximum::TIME) as i64),
            cpu: self.owner.cpu,
            victim: WatchTask {
                comm: comm(maximum::VICTIM_COMM),
                pid: process,
                tid: Some(short(maximum::VICTIM) as i32),
                prio: Some(short(maximum::VICTIM_PRIO) as i32),
                ..WatchTask::default()
            },
            previous,
            interrupted,
            ..WorstWakeup::default()
        };
        let stacks = self.owner.cpu.is_some();
        let addresses = |place: i16, bytes: i16, room: usize| match short(bytes) as i32 {
            bytes if stacks && bytes > 0 => {
                addresses_of(view, self.entry, base + place, (bytes as usize).min(room))
            }
            _ => Vec::new(),
        };
        Some(WorstFound {
            wakeup,
            expiry: addresses(maximum::EXPIRY, maximum::EXPIRY_BYTES, maximum::STACK_ROOM),
            switch: addresses(maximum::SWITCH, maximum::SWITCH_BYTES, maximum::STACK_ROOM),
            sleeps: addresses(maximum::SLEEP, maximum::SLEEP_BYTES, maximum::SLEEP_ROOM),
            release: None,
        })
    }
}

/// The process in the upper half, the thread in the lower.
fn task_of(both: u64) -> WatchTask {
    WatchTask { pid: Some((both >> 32) as i32), tid: Some(both as u32 as i32), ..WatchTask::default() }
}

pub(crate) fn comm_of(view: &MapView, entry: usize, place: i16) -> String {
    let words = view.u64s(entry, place, 2);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn addresses_of(view: &MapView, entry: usize, place: i16, bytes: usize) -> Vec<u64> {
    let words = view.u64s(entry, place, bytes / 8);
    words.iter().map(|word| word.load(Relaxed)).take_while(|address| *address != 0).collect()
}

/// Keeps the largest of a series, holder and kind of victims; one wake-up may be the largest of
/// several.
pub(crate) fn keep_worst(list: &mut Vec<WorstFound>, new: WorstFound, series: WatchSeries) {
    let value = new.wakeup.value(series);
    // S does not depend on the previous holder of the CPU.
    let any_holder = series == WatchSeries::Switch;
    let same_class = |other: &WorstFound| {
        (any_holder || other.wakeup.holder == new.wakeup.holder)
            && other.wakeup.victims == new.wakeup.victims
            && other.wakeup.worst_of.contains(&series.into())
    };
    if let Some(last) = list.iter_mut().find(|other| same_class(other)) {
        if last.wakeup.value(series) >= value {
            return;
        }
        last.wakeup.worst_of.retain(|of| *of != series);
    }
    list.retain(|other| !other.wakeup.worst_of.is_empty());
    match list.iter_mut().find(|other| other.wakeup.is_same(&new.wakeup)) {
        Some(same) => same.take_also(new, series),
        None => {
            let mut new = new;
            new.wakeup.worst_of.push(series.into());
            list.push(new);
        }
    }
}

impl WorstFound {
    /// Merges the same wake-up from another series' record.
    fn take_also(&mut self, other: WorstFound, series: WatchSeries) {
        self.wakeup.worst_of.push(series.into());
        let fuller = |own: &mut Vec<u64>, other: Vec<u64>| {
            if own.is_empty() {
                *own = other;
            }
        };
        fuller(&mut self.expiry, other.expiry);
        fuller(&mut self.switch, other.switch);
        fuller(&mut self.sleeps, other.sleeps);
        self.release = self.release.take().or(other.release);
        self.wakeup.switch_ns = self.wakeup.switch_ns.or(other.wakeup.switch_ns);
        if self.wakeup.victim.pid.is_none() {
            self.wakeup.victim.pid = other.wakeup.victim.pid;
        }
        if self.wakeup.interrupted.comm.is_empty() {
            self.wakeup.interrupted = other.wakeup.interrupted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(mono: i64, holder: Holder, wakeup: i64, switch: Option<i64>) -> WorstFound {
        let wakeup = WorstWakeup {
            holder: holder.into(),
            wakeup_ns: Some(Nanos(wakeup)),
            switch_ns: switch.map(Nanos),
            mono_ns: Nanos(mono),
            ..WorstWakeup::default()
        };
        WorstFound { wakeup, ..WorstFound::default() }
    }

    #[test]
    fn one_wake_up_is_the_worst_of_several_series() {
        let mut list = Vec::new();
        keep_worst(
            &mut list,
            WorstFound { switch: vec![7], ..worst(1, Holder::Lower, 50, None) },
            WatchSeries::Wakeup,
        );
        keep_worst(&mut list, worst(1, Holder::Lower, 50, Some(3)), WatchSeries::Switch);
        assert_eq!((list.len(), list[0].switch.len(), list[0].wakeup.switch_ns), (1, 1, Some(Nanos(3))));
        assert_eq!(list[0].wakeup.worst_of, [WatchSeries::Wakeup, WatchSeries::Switch]);
    }

    #[test]
    fn the_worst_switch_is_one_whoever_held_the_cpu() {
        let mut list = Vec::new();
        keep_worst(&mut list, worst(1, Holder::Lower, 50, Some(3)), WatchSeries::Switch);
        keep_worst(&mut list, worst(2, Holder::Equal, 50, Some(4)), WatchSeries::Switch);
        keep_worst(&mut list, worst(3, Holder::Higher, 50, Some(2)), WatchSeries::Switch);
        let times = |list: &[WorstFound]| list.iter().map(|one| one.wakeup.mono_ns.0).collect::<Vec<_>>();
        assert_eq!(times(&list), [2]);
        // For waits there is one per holder.
        keep_worst(&mut list, worst(4, Holder::Lower, 60, None), WatchSeries::Wakeup);
        keep_worst(&mut list, worst(5, Holder::Higher, 50, None), WatchSeries::Wakeup);
        assert_eq!(times(&list), [2, 4, 5]);
    }
}
