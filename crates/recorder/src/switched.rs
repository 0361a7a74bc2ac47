//! Reads the histograms of S and of T + W + S, if they are recorded.

use std::sync::atomic::Ordering::Relaxed;

use host::bpf::MapView;
use model::error::Result;
use model::units::{Cpu, Nanos};
use model::watch::{Holder, SeriesRows, WatchSeries, WatchTask, WorstWakeup};

use crate::drain::DrainedEpoch;
use crate::layout::switched;
use crate::recorder::KernelRecorder;
use crate::records::{Class, DrainedRow, HOLDERS, RowOwner, VICTIMS, WorstFound, comm_of, keep_worst};
use crate::refusals;

/// The series in the order of a record's histograms.
const NAMES: [WatchSeries; switched::SERIES] = [WatchSeries::Switch, WatchSeries::TimerWakeupSwitch];
const OF_CPU: [Option<Holder>; switched::SERIES] = [None, Some(Holder::Lower)];

impl KernelRecorder {
    /// Adds the series' records of an epoch.
    pub(crate) fn take_switched(&self, epoch: u32, busy: &[bool], drained: &mut DrainedEpoch) -> Result<()> {
        let Some([records, threads]) = &self.maps.switched else { return Ok(()) };
        let mut all = NAMES.map(|series| SeriesRows { series, cpus: Vec::new(), threads: Vec::new() });
        for cpu in (0..busy.len()).filter(|cpu| !busy[*cpu]) {
            let first = switched::of_cpu(cpu, epoch, 0);
            let view = records.view(first..first + VICTIMS.len());
            let view = view.map_err(|error| refusals::no_map(&error))?;
            for (entry, victims) in (first..).zip(VICTIMS) {
                for (series, rows) in all.iter_mut().enumerate() {
                    let (cpu, holder) = (Some(Cpu(cpu as u32)), OF_CPU[series]);
                    let class = Class { owner: RowOwner { cpu, holder, victims, thread: None }, entry };
                    let Some(drained_row) = take(&class, &view, series) else { continue };
                    rows.cpus.push(drained_row.row);
                    drained.counts.beyond += drained_row.beyond;
                    if let Some(worst) = drained_row.worst {
                        keep_worst(&mut drained.worst, worst, NAMES[series]);
                    }
                }
            }
        }
        for (thread, chosen) in self.slots.chosen.iter().enumerate() {
            let Some(chosen) = chosen else { continue };
            let entry = switched::of_thread(thread, epoch);
            let view = threads.view(entry..entry + 1).map_err(|error| refusals::no_map(&error))?;
            let class = Class::of_thread(chosen, entry);
            for (series, rows) in all.iter_mut().enumerate() {
                rows.threads.extend(take(&class, &view, series).map(|drained_row| drained_row.row));
            }
        }
        drained.series.extend(all);
        Ok(())
    }
}

/// Moves a histogram and its maximum out of the record.
fn take(class: &Class, view: &MapView, series: usize) -> Option<DrainedRow> {
    let base = (switched::MAXIMA + series * switched::LARGEST) as i16;
    let worst = largest(class, view, base);
    view.u64s(class.entry, base, switched::LARGEST / 8).iter().for_each(|word| word.store(0, Relaxed));
    class.drain_rows(view, series, NAMES[series], worst)
}

/// The largest; the previous thread is known only if it is a maximum of another series, too.
fn largest(class: &Class, view: &MapView, base: i16) -> Option<WorstFound> {
    let span = |member: i16| {
        let ns = view.u64(class.entry, base + member).load(Relaxed) as i64;
        Some(Nanos(ns)).filter(|span| span.0 >= 0)
    };
    let short = |member: i16| view.u32(class.entry, base + member).load(Relaxed);
    let time = span(switched::TIME).filter(|time| time.0 != 0)?;
    let wakeup = WorstWakeup {
        holder: HOLDERS.get(short(switched::HOLDER) as usize).copied().map(Into::into).unwrap_or_default(),
        victims: class.owner.victims.into(),
        timer_ns: span(switched::LATE),
        wakeup_ns: span(switched::WAIT),
        switch_ns: span(switched::SWITCH),
        mono_ns: time,
        cpu: class.owner.cpu,
        victim: WatchTask {
            comm: comm_of(view, class.entry, base + switched::VICTIM_COMM),
            pid: Some(short(switched::VICTIM_PROCESS) as i32),
            tid: Some(short(switched::VICTIM) as i32),
            prio: Some(short(switched::VICTIM_PRIO) as i32),
            ..WatchTask::default()
        },
        ..WorstWakeup::default()
    };
    Some(WorstFound { wakeup, ..WorstFound::default() })
}
