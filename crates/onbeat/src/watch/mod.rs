//! `onbeat watch`: every wake-up of every real-time thread, for months.
//!
//! The kernel's programs count, or a ring is read and counted ([`recorder`]). At the end of an
//! interval the counts are read, the worst wake-ups get names, and the interval is written. In
//! between this process sleeps, except for occasional looks at the machine.

pub mod chosen;
pub mod culprits;
pub mod edges;
pub mod machine;
pub mod marks;
pub mod names;
pub mod unit;
mod waiting;

use std::collections::BTreeMap;

use bundle::record::write::RecordWriter;
use host::{RecordFolder, clock, rt};
use model::error::Result;
use model::run::Host;
use model::text::several;
use model::units::{Cpu, Nanos};
use model::watch::{WatchInterval, WatchRun, WatchSeries, WorstWakeup};
use recorder::{DrainedEpoch, Reading, WakeupRecorder};
use report::watch::last_words::WatchFound;
use rules::culprits::watched::CulpritNames;

use crate::alarm::{AlarmCause, Alarms};
use crate::measure::watch::steal::Steal;
use chosen::ChosenThreads;
use culprits::IntervalEvidence;
use machine::MachineReader;
use marks::MarkFinder;
use names::StackNames;
use waiting::WaitingIntervals;

/// Interval of looks at the machine: all wake-ups of this process together are one a minute.
const LOOK: Nanos = Nanos(100_000_000_000);

/// Interval of reads of the recorder if alarms are requested.
const LOOK_FOR_ALARMS: Nanos = Nanos(60_000_000_000);

/// Interval of looks for threads that are chosen by name: a restarted program has no separate
/// histogram until then.
const LOOK_FOR_THREADS: Nanos = Nanos(10_000_000_000);

/// Interval, duration and description of a watch.
pub struct WatchPlan {
    pub interval: Nanos,
    /// Duration; without one, the watch ends at a signal.
    pub duration: Option<Nanos>,
    pub run: WatchRun,
}

/// Open resources of a watch.
pub struct Watch {
    pub plan: WatchPlan,
    pub recorder: WakeupRecorder,
    pub writer: RecordWriter<RecordFolder>,
    pub stacks: StackNames,
    pub beside: MachineReader,
    pub alarms: Alarms,
    /// Time of the wake-up of the last alarm.
    pub alarmed: Nanos,
    pub host: Host,
    pub chosen: ChosenThreads,
}

/// Result of a watch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchResult {
    /// The worst is that of a program's thread, not delayed by one of the same or a higher
    /// priority: the largest that the kernel or the hardware caused, else the largest of all.
    pub found: WatchFound,
    /// Intervals that could not be written in spite of retries.
    pub unwritten: u64,
    /// True if a signal ended it.
    pub stopped: bool,
}

/// Event reported during a watch.
pub enum WatchEvent<'a> {
    /// An interval has ended.
    Interval(&'a WatchInterval),
    /// Remark for the user.
    Remark(String),
}

impl Watch {
    /// Records until the time is over or a signal comes; the open interval is written at the end.
    ///
    /// # Errors
    /// The counts of the kernel cannot be read.
    pub fn run(mut self, mut tell: impl FnMut(WatchEvent<'_>)) -> Result<WatchResult> {
        let (begun, interval_length) = (clock::monotonic(), self.plan.interval);
        let end = self.plan.duration.map(|duration| begun + duration);
        let mut result = WatchResult::default();
        let mut marks = MarkFinder::default();
        let mut culprits = CulpritNames::default();
        let online = self.beside.look().online;
        let mut steal = Steal::new(online.iter(), &self.host.virtualization);
        let mut waiting = WaitingIntervals::default();
        let next_end = |now, due| edges::next_end(now, due, clock::wall_offset(), interval_length);
        let mut next_interval = next_end(begun, begun);
        let look = self.look_interval();
        marks.look(self.beside.look());
        rt::release_code_pages(); // what armed the recorder
        loop {
            let due = end.map_or(next_interval, |end| end.min(next_interval));
            let woken = rt::wait_until(due.min(clock::monotonic() + look));
            let now = clock::monotonic();
            let stopped = woken == rt::Woken::Stop;
            let over = stopped || end.is_some_and(|end| now >= end);
            marks.look(self.beside.look());
            self.look_for_alarms(&culprits, &mut tell)?;
            let changed = self.chosen.look(&mut self.recorder);
            changed.into_iter().for_each(|line| tell(WatchEvent::Remark(line)));
            if over || now >= next_interval {
                let drained = self.recorder.take()?;
                steal.read();
                let stolen: BTreeMap<Cpu, Nanos> =
                    online.iter().filter_map(|cpu| Some((cpu, steal.take(cpu)?))).collect();
                losses(&drained).into_iter().for_each(|line| tell(WatchEvent::Remark(line)));
                let interval = self.interval(drained, &mut marks, &mut culprits, &stolen);
                note(&interval, &mut result);
                tell(WatchEvent::Interval(&interval));
                let told = waiting.write(&mut self.writer, &self.plan.run, interval);
                told.into_iter().for_each(|line| tell(WatchEvent::Remark(line)));
                rt::release_code_pages(); // what named and wrote
                next_interval = next_end(now, next_interval);
            }
            if over {
                let ended = self.alarms.end().into_iter().chain(self.alarms.notes().into_iter().take(1));
                ended.for_each(|line| tell(WatchEvent::Remark(line)));
                result.stopped = stopped;
                result.unwritten = waiting.unwritten();
                return Ok(result);
            }
        }
    }

    /// Time between two looks at the machine, the alarms and the chosen threads.
    fn look_interval(&self) -> Nanos {
        match (self.chosen.has_names(), self.alarms.limit()) {
            (true, _) => LOOK_FOR_THREADS,
            (false, Some(_)) => LOOK_FOR_ALARMS,
            (false, None) => LOOK,
        }
    }

    /// Raises an alarm for the largest wake-up since the last interval, once.
    fn look_for_alarms(
        &mut self,
        culprits: &CulpritNames,
        tell: &mut impl FnMut(WatchEvent<'_>),
    ) -> Result<()> {
        if self.alarms.limit().is_none() {
            return Ok(());
        }
        self.alarms.look().into_iter().for_each(|line| tell(WatchEvent::Remark(line)));
        let Some(worst) = self.recorder.largest()? else { return Ok(()) };
        if !self.alarms.is_due(worst.wakeup.total()) || self.alarmed == worst.wakeup.mono_ns {
            return Ok(());
        }
        self.alarmed = worst.wakeup.mono_ns;
        // The interval's end counts it for the names.
        let mut names = culprits.clone();
        let beside = IntervalEvidence::default();
        let named = culprits::named(vec![worst], beside, &self.host, &mut self.stacks, &mut names);
        for worst in named {
            let late = AlarmCause {
                latency: worst.total(),
                cpu: worst.cpu.map_or(0, |cpu| cpu.0),
                victim: worst.victim.comm.clone(),
                victim_pid: worst.victim.pid.or(worst.victim.tid).unwrap_or(0),
                culprit: worst.culprit.name.clone(),
            };
            for line in self.alarms.take(&late, clock::monotonic()) {
                tell(WatchEvent::Remark(line));
            }
        }
        Ok(())
    }

    fn interval(
        &mut self,
        drained: DrainedEpoch,
        marks: &mut MarkFinder,
        culprits: &mut CulpritNames,
        stolen: &BTreeMap<Cpu, Nanos>,
    ) -> WatchInterval {
        let mut series = drained.series;
        let beside = IntervalEvidence { series: &series, pulses: &drained.late_pulses, stolen: Some(stolen) };
        let mut worst = culprits::named(drained.worst, beside, &self.host, &mut self.stacks, culprits);
        worst.iter_mut().for_each(|worst| worst.wall_ns = Nanos(worst.mono_ns.0 + drained.wall_offset.0));
        // The cause of the time until the switch had no part in the switch itself.
        let until = series.iter_mut().filter(|series| series.series != WatchSeries::Switch);
        for row in until.flat_map(|series| series.cpus.iter_mut()) {
            let same = |worst: &&WorstWakeup| Some(worst.mono_ns) == row.max_mono_ns && worst.cpu == row.cpu;
            if let Some(worst) = worst.iter().find(same) {
                row.culprit = worst.culprit.clone();
            }
        }
        let environment = self.beside.environment();
        let mut marks = marks.take();
        if drained.counts.suspends > 0 {
            marks::note_suspend(&mut marks, drained.mono_ns, drained.mono_ns + drained.span_ns);
        }
        let by_ring = self.recorder.about().reading == Reading::Ring;
        WatchInterval {
            mono_ns: drained.mono_ns,
            span_ns: drained.span_ns,
            wall_ns: Nanos(drained.mono_ns.0 + drained.wall_offset.0),
            env: environment.env.clone(),
            environment: Some(environment),
            integrity: [integrity(&drained.counts, by_ring), self.chosen.take_changes()].concat(),
            series,
            worst,
            coverage: drained.coverage,
            marks,
            ..WatchInterval::default()
        }
    }
}

/// Counts an interval for the result.
fn note(interval: &WatchInterval, result: &mut WatchResult) {
    let found = &mut result.found;
    found.intervals += 1;
    found.recorded += wakeups_of(interval);
    found.span_ns = found.span_ns + interval.span_ns;
    found.coverage.add(&interval.coverage);
    if let Some(worst) = worst_of(interval) {
        if found.worst.as_ref().is_none_or(|last| last.total() < worst.total()) {
            found.worst = Some(worst.clone());
        }
    }
}

/// Worst wake-up of an interval for users: programs' threads precede the kernel's, and latencies
/// not caused by a thread of the same or a higher priority precede the others.
pub fn worst_of(interval: &WatchInterval) -> Option<&WorstWakeup> {
    use model::watch::{Holder, Victims};
    let rank =
        |worst: &&WorstWakeup| (worst.victims == Victims::User, worst.holder == Holder::Lower, worst.total());
    interval.worst.iter().max_by_key(rank)
}

/// Number of wake-ups in an interval's histograms.
fn wakeups_of(interval: &WatchInterval) -> u64 {
    let waits = interval.series.iter().filter(|series| series.series == WatchSeries::Wakeup);
    waits.flat_map(|series| &series.cpus).map(|row| row.n).sum()
}

/// Remark on the losses of a ring that is too small for a load.
fn losses(drained: &DrainedEpoch) -> Option<String> {
    let counts = &drained.counts;
    (counts.lost_events > 0).then(|| {
        format!(
            "{} of the trace ring, and with them {}, are missing from this interval: the ring is too small \
             for the rate of wake-ups",
            several(counts.lost_events, "event", "events"),
            several(counts.lost_spans, "latency", "latencies")
        )
    })
}

fn integrity(counts: &recorder::RecorderCounts, by_ring: bool) -> Vec<String> {
    let mut found = Vec::new();
    if by_ring {
        found.push("recorded through a trace ring: no stacks".to_owned());
    }
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            found.push(format!("{what}: {count}"));
        }
    };
    say(counts.unwoken, "thread runs without an observed wake-up");
    say(counts.suspended, "latencies across a suspend, not recorded");
    say(counts.beyond, "latencies above 68.7 s, counted as 68.7 s");
    say(counts.lost_events, "lost events of the trace ring");
    say(counts.lost_spans, "latencies with lost events, not recorded");
    say(counts.failed_reads, "failed reads of the trace ring");
    say(counts.late_cpus as u64, "CPUs with counts delayed to the next interval");
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::watch::{Holder, Victims};

    #[test]
    fn the_worst_is_the_kernel_s_fault_before_the_application_s_own() {
        let worst = |ns, holder: Holder, victims: Victims| WorstWakeup {
            wakeup_ns: Some(Nanos(ns)),
            holder: holder.into(),
            victims: victims.into(),
            ..WorstWakeup::default()
        };
        let interval = WatchInterval {
            worst: vec![
                worst(900, Holder::Higher, Victims::User),
                worst(50, Holder::Lower, Victims::User),
                worst(40, Holder::Lower, Victims::User),
                worst(5000, Holder::Lower, Victims::Kernel),
            ],
            ..WatchInterval::default()
        };
        assert_eq!(worst_of(&interval).unwrap().total(), Nanos(50));
        assert_eq!(worst_of(&WatchInterval::default()), None);
    }

    #[test]
    fn what_was_not_counted_as_usual_is_said() {
        let counts =
            recorder::RecorderCounts { suspended: 2, late_cpus: 1, ..recorder::RecorderCounts::default() };
        assert_eq!(integrity(&counts, false).len(), 2);
        assert_eq!(integrity(&recorder::RecorderCounts::default(), false), Vec::<String>::new());
        assert_eq!(integrity(&recorder::RecorderCounts::default(), true).len(), 1);
        assert_eq!(losses(&DrainedEpoch { counts, ..DrainedEpoch::default() }), None);
        let counts = recorder::RecorderCounts { lost_events: 7, lost_spans: 1, ..counts };
        let said = losses(&DrainedEpoch { counts, ..DrainedEpoch::default() }).unwrap();
        assert!(said.starts_with("7 events") && said.contains("1 latency"), "{said}");
        assert_eq!(integrity(&counts, false).len(), 4);
    }
}
