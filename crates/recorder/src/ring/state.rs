//! The ring and its counts.

use host::clock;
use host::threads::thread_facts;
use model::error::{Failure, Result};
use model::keyword::Word;
use model::units::{CpuSet, Nanos};
use model::watch::{SeriesRows, WorstWakeup};

use super::machine::WakeupMachine;
use super::order::{RingStep, TimeOrder};
use super::source::{RingSource, has_other_numbers, wait_for_writers, written_until};
use super::tally::{RingTallies, RingTally};
use super::threads::{RingThreads, ThreadNames};
use crate::drain::{DrainedEpoch, RecorderCounts, coverage_of};
use crate::held::clocks_are_apart;
use crate::layout::{BOTH, COUNTS, CountedEvent, WAKEUP};
use crate::recorder::Options;
use crate::records::{CountedRows, DrainedRow, RowOwner, SERIES_NAMES, WorstFound, keep_worst};
use crate::slots::Looked;

/// Bounds of the time between two passes.
const SHORTEST: Nanos = Nanos(20_000_000);
const LONGEST: Nanos = Nanos::SECOND;

/// State of the ring recorder.
pub struct RingState {
    source: RingSource,
    order: TimeOrder,
    machine: WakeupMachine,
    threads: RingThreads,
    /// Start of the interval.
    began: Nanos,
    /// Events that were lost since then.
    lost: u64,
    /// Number of lost events that no page reports, since the beginning.
    lost_besides: u64,
    /// Number of suspends at the start of the interval.
    suspends: u32,
    period: Nanos,
    passed: Nanos,
    /// True if the worst of each CPU and thread are wanted.
    each: bool,
}

impl RingState {
    /// Creates the ring and starts recording; also returns the kinds of timers that are not known.
    pub fn arm(options: &Options, cpus: &CpuSet, online: usize) -> Result<(RingState, Vec<&'static str>)> {
        let mut source = RingSource::open(cpus, online, options.ring_kib)?;
        let learned = source.learn();
        if has_other_numbers(&learned) {
            return Err(Failure::not_supported(
                "in a PID namespace events have other thread numbers: run onbeat outside the container",
            ));
        }
        let kind_of = |tid| thread_facts(tid).map(|facts| facts.kernel);
        let mut machine = WakeupMachine::new(learned.functions.clone(), options.all, kind_of);
        let threads = RingThreads::new(options.chosen_limit);
        if options.all {
            threads.add_present(&mut machine);
        }
        source.arm(&learned.functions)?;
        let now = clock::monotonic();
        let mut state = RingState {
            order: TimeOrder::new(source.cpus(), now),
            source,
            machine,
            threads,
            began: now,
            lost: 0,
            lost_besides: 0,
            suspends: 0,
            period: SHORTEST,
            passed: now,
            each: options.each,
        };
        // Threads that slept during arming were not recorded.
        state.look();
        state.machine.take_counted();
        state.began = state.order.until();
        Ok((state, learned.unknown))
    }

    /// True if suspends are seen.
    pub fn sees_suspends(&self) -> bool {
        self.source.sees_suspends
    }

    pub fn buffer_kib(&self) -> u64 {
        self.source.buffer_kib
    }

    /// Counts all events up to now; returns the longest time until the next pass.
    pub fn pass_now(&mut self) -> Nanos {
        self.machine.clocks_apart = clocks_are_apart();
        let lost = self.lost;
        self.pass(written_until());
        let now = clock::monotonic();
        let bytes = self.source.recorded_bytes();
        let room = self.source.buffer_kib << 10;
        let elapsed = now - std::mem::replace(&mut self.passed, now);
        self.period = if self.lost > lost { SHORTEST } else { next(self.period, elapsed, bytes, room) };
        self.period
    }

    fn pass(&mut self, until: Nanos) {
        if until <= self.order.until() {
            return;
        }
        let (source, machine) = (&mut self.source, &mut self.machine);
        self.order.begin(until);
        while let Some(step) = self.order.next(|nth| source.read(nth)) {
            match step {
                RingStep::Event(event) => machine.take(&event),
                RingStep::GapBegins(..) => machine.gap_begins(),
                RingStep::GapEnds(cpu, at, lost) => {
                    machine.gap_ends(cpu, at);
                    self.lost += lost;
                }
            }
        }
    }

    /// Compares the recorded wake-ups with the threads' counts.
    fn look(&mut self) -> Looked {
        let mut looked = Looked { voluntary: Some(0), ..Looked::default() };
        self.pass_now();
        let looks = self.threads.look(&self.machine);
        wait_for_writers();
        for look in &looks {
            self.pass(look.at);
            self.threads.compare(look, &mut self.machine, &mut looked);
        }
        self.threads.sweep_chosen();
        self.pass_now();
        looked
    }

    /// Gives a thread separate histograms.
    pub fn choose(&mut self, tid: u32) -> Result<()> {
        wait_for_writers();
        self.pass_now();
        self.threads.choose(&mut self.machine, tid)
    }

    /// Takes the counts.
    pub fn take(&mut self) -> DrainedEpoch {
        let looked = self.look();
        let end = self.order.until();
        let (counts, spanning, tallies) = self.machine.take_counted();
        let mut drained = DrainedEpoch {
            mono_ns: self.began,
            span_ns: end - self.began,
            wall_offset: clock::wall_offset(),
            boot_offset: clock::boot_offset(),
            ..DrainedEpoch::default()
        };
        self.began = end;
        self.take_rows(tallies, &mut drained);
        self.take_counts(&counts, spanning, looked, &mut drained);
        drained
    }

    fn take_rows(&self, tallies: RingTallies, drained: &mut DrainedEpoch) {
        let mut names = ThreadNames::default();
        let (mut worst, mut beyond) = (Vec::new(), 0);
        let mut series =
            SERIES_NAMES.map(|series| SeriesRows { series, cpus: Vec::new(), threads: Vec::new() });
        for ((cpu, holder, victims), of_class) in tallies.cpus {
            let owner = RowOwner::of_cpu(cpu, holder, victims);
            for (nth, tally) in of_class.into_iter().enumerate() {
                let Some(drained_row) = row(&owner, tally, nth, &mut names) else { continue };
                series[nth].cpus.push(drained_row.row);
                beyond += drained_row.beyond;
                if let Some(found) = drained_row.worst {
                    drained.each.extend(self.each.then(|| found.clone()));
                    keep_worst(&mut worst, found, SERIES_NAMES[nth]);
                }
            }
        }
        for (tid, of_thread) in tallies.threads {
            let Some(chosen) = self.threads.chosen.iter().find(|chosen| chosen.tid == tid) else { continue };
            let owner = RowOwner::of_thread(chosen);
            for (nth, tally) in of_thread.into_iter().enumerate() {
                let Some(drained_row) = row(&owner, tally, nth, &mut names) else { continue };
                series[nth].threads.push(drained_row.row);
                let of_thread = |found: WorstFound| WorstFound {
                    wakeup: WorstWakeup { cpu: None, holder: Word::default(), ..found.wakeup },
                    ..found
                };
                drained.each.extend(drained_row.worst.filter(|_| self.each).map(of_thread));
            }
        }
        (drained.series, drained.worst, drained.counts.beyond) = (series.into(), worst, beyond);
    }

    fn take_counts(
        &mut self,
        counts: &[u64; COUNTS],
        spanning: u64,
        looked: Looked,
        drained: &mut DrainedEpoch,
    ) {
        let of = |count: CountedEvent| counts[count as usize];
        let suspends = self.machine.suspends();
        let besides = self.source.lost_besides();
        let lost = std::mem::take(&mut self.lost)
            + besides.saturating_sub(std::mem::replace(&mut self.lost_besides, besides));
        drained.coverage = coverage_of(counts, &looked, Some(lost));
        drained.threads = looked.covered;
        drained.counts = RecorderCounts {
            recorded: of(CountedEvent::Recorded),
            unwoken: of(CountedEvent::Unwoken),
            preempted: of(CountedEvent::Preempted),
            suspended: of(CountedEvent::Suspended),
            suspends: suspends - std::mem::replace(&mut self.suspends, suspends),
            threads: looked.threads,
            lost_events: lost,
            lost_spans: spanning,
            failed_reads: std::mem::take(&mut self.source.failed),
            ..drained.counts
        };
    }

    /// The largest wake-up of a program's thread since the last time.
    pub fn largest(&mut self) -> Option<WorstFound> {
        self.pass_now();
        let of_programs = self.machine.tallies().cpus.iter().filter(|((.., victims), _)| *victims == 0);
        let found = of_programs.flat_map(|(_, of_class)| {
            [BOTH, WAKEUP].into_iter().filter_map(move |series| Some((of_class[series].worst?.1, series)))
        });
        let (largest, series) =
            found.max_by_key(|(sample, _)| sample.wait + sample.late.unwrap_or(Nanos(0)))?;
        let mut largest = largest.found();
        largest.wakeup.worst_of.push(SERIES_NAMES[series].into());
        ThreadNames::default().complete(&mut largest);
        Some(largest)
    }

    /// Stops recording; counts can still be taken.
    pub fn disarm(&mut self) {
        // A recording that cannot be stopped now ends with the instance.
        let _ = self.source.record(false);
    }
}

fn row(owner: &RowOwner, tally: RingTally, series: usize, names: &mut ThreadNames) -> Option<DrainedRow> {
    let worst = tally.worst.map(|(_, sample)| {
        let mut found = sample.found();
        names.complete(&mut found);
        found
    });
    let filled = tally.rows.into_iter().collect();
    owner.row(CountedRows { filled, sum: Nanos(tally.sum), least: tally.least, worst }, SERIES_NAMES[series])
}

/// Time until the next pass, such that the fullest ring is a quarter full by then; at most twice
/// the last time, as a load may have begun.
fn next(last: Nanos, elapsed: Nanos, bytes: u64, room: u64) -> Nanos {
    let quarter = i128::from(elapsed.0.max(1)) * i128::from(room / 4) / i128::from(bytes.max(1));
    let wanted = Nanos(i64::try_from(quarter).unwrap_or(i64::MAX));
    wanted.min(last + last).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuller_the_ring_the_sooner_the_next_look() {
        let ms = |ms: i64| Nanos(ms * 1_000_000);
        assert_eq!(next(ms(100), ms(100), 0, 1 << 20), ms(200));
        assert_eq!(next(ms(800), ms(800), 0, 1 << 20), LONGEST);
        assert_eq!(next(ms(400), ms(400), 1 << 19, 1 << 20), ms(200));
        assert_eq!(next(ms(100), ms(100), 1 << 30, 1 << 20), SHORTEST);
    }
}
