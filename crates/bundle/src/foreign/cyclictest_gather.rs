//! Collected lines of cyclictest's text, from which [`super::cyclictest_text`] makes a run.

use std::collections::{BTreeMap, BTreeSet};

use super::cyclictest_line::{Line, Summary};
use super::{BUCKET_LIMIT, OVERFLOW_LIMIT};
use model::keyword::Word;
use model::run::{Integrity, Run, WORST};
use model::text::several;
use model::units::{Cpu, Nanos};
use model::vocabulary::{Ended, IdleStates, IntegrityKind, Policy};

/// Numbers of a comment, with the number of its line.
pub(super) type Numbers = Option<(usize, Vec<i128>)>;

/// Contents of the lines, before any conclusion.
#[derive(Default)]
pub(super) struct Gathered {
    /// Non-empty buckets by column; the last column may turn out to be the sum of the others.
    pub columns: Vec<Vec<(u64, u64)>>,
    pub last_bucket: Option<u64>,
    pub rows: usize,
    pub held: usize,
    /// First row whose last count is not the sum of those before it.
    pub not_a_sum: Option<usize>,
    pub total: Numbers,
    pub min: Numbers,
    pub avg: Numbers,
    pub max: Numbers,
    pub overflows: Numbers,
    pub smis: Numbers,
    pub overflow_cycles: BTreeMap<usize, Vec<u64>>,
    pub overflow_cycles_kept: usize,
    pub overflow_cycles_dropped: usize,
    pub summaries: BTreeMap<usize, Summary>,
    /// Threads of a live display, whose totals were read while they changed.
    pub displayed: BTreeSet<usize>,
    pub policy: String,
    /// The three load averages, `""` if they are not stated.
    pub load: String,
    pub cpus: BTreeMap<usize, Cpu>,
    /// Intervals in microseconds, as `-v` prints them.
    pub intervals: BTreeMap<usize, u32>,
    /// Number and latency of each sample, by thread, in the order of the file.
    pub samples: BTreeMap<usize, Vec<(u64, i64)>>,
    /// Latency and time in microseconds of each spike, by thread, the largest first.
    pub spikes: BTreeMap<usize, Vec<(i64, u64)>>,
    pub spikes_dropped: u64,
    pub broke: bool,
    pub idle_held: bool,
}

impl Gathered {
    /// Adds the content of a line with this number, or refuses a contradiction to earlier lines.
    pub(super) fn take(&mut self, number: usize, line: Line) -> Result<(), String> {
        match line {
            Line::Row(bucket, counts) => return self.take_row(number, bucket, &counts),
            Line::Total(list) => return once(&mut self.total, number, list),
            Line::Min(list) => return once(&mut self.min, number, list),
            Line::Avg(list) => return once(&mut self.avg, number, list),
            Line::Max(list) => return once(&mut self.max, number, list),
            Line::Overflows(list) => return once(&mut self.overflows, number, list),
            Line::Smis(list) => return once(&mut self.smis, number, list),
            Line::OverflowCycles(thread, mut cycles) => {
                let room = OVERFLOW_LIMIT - self.overflow_cycles_kept;
                self.overflow_cycles_dropped += cycles.len().saturating_sub(room);
                cycles.truncate(room);
                self.overflow_cycles_kept += cycles.len();
                if self.overflow_cycles.insert(thread, cycles).is_some() {
                    return Err(format!("duplicate # Thread {thread}: expected one result in a file"));
                }
            }
            Line::Summary(thread, summary) => {
                let units = self.summaries.values().filter_map(|other| other.unit).zip(summary.unit);
                if units.into_iter().any(|(other, unit)| other != unit) {
                    return Err("a T: line in another unit than those before: expected one run; give each \
                                output alone"
                        .into());
                }
                if self.summaries.insert(thread, summary).is_some() {
                    self.displayed.insert(thread);
                }
            }
            Line::Policy(name, load) => (self.policy, self.load) = (name, load),
            Line::ThreadCpu(thread, cpu) => {
                self.cpus.insert(thread, cpu);
            }
            Line::ThreadInterval(thread, us) => {
                self.intervals.insert(thread, us);
            }
            Line::Sample(thread, cycle, latency) => {
                self.samples.entry(thread).or_default().push((cycle, latency))
            }
            Line::Spike(thread, latency, time) => self.take_spike(thread, latency, time),
            Line::Break => self.broke = true,
            Line::IdleHeld => self.idle_held = true,
            Line::Heading | Line::Frame | Line::Comment | Line::Other => {}
        }
        Ok(())
    }

    /// System management interrupts that `--smi` counted, by thread.
    pub(super) fn interrupts_of_management(&self) -> Vec<Integrity> {
        let listed = self.smis.iter().flat_map(|numbers| numbers.1.iter().copied().enumerate());
        let counts: BTreeMap<usize, i128> = self
            .summaries
            .iter()
            .map(|(&thread, summary)| (thread, i128::from(summary.smi)))
            .chain(listed)
            .filter(|(_, count)| *count > 0)
            .collect();
        let entry = |(thread, count): (usize, i128)| Integrity {
            kind: IntegrityKind::Smi.into(),
            cpu: self.cpus.get(&thread).copied(),
            detail: several(u64::try_from(count).unwrap_or(u64::MAX), "SMI", "SMIs")
                + &format!(" during the run, on the CPU of thread {thread}"),
            invalidates: false,
        };
        counts.into_iter().map(entry).collect()
    }

    /// Fills the plan from the lines.
    pub(super) fn describe(&self, run: &mut Run) {
        let plan = &mut run.plan;
        let intervals: Vec<i64> = self.summaries.values().map(|s| i64::from(s.interval_us)).collect();
        let steps: Vec<i64> = intervals.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if let Some(us) = intervals.first() {
            plan.interval_ns = Some(Nanos(us * Nanos::MICRO.0));
            plan.distance_ns = match steps.first() {
                Some(&step) if steps.iter().all(|&other| other == step) => Some(Nanos(step * Nanos::MICRO.0)),
                _ => None,
            };
        }
        let mut priorities = self.summaries.values().map(|s| s.priority);
        if let Some(first) = priorities.next() {
            plan.priority = Some(first).filter(|first| priorities.all(|other| other == *first));
        }
        match Word::<Policy>::from(self.policy.as_str()) {
            Word::Known(policy) => plan.policy = policy.into(),
            Word::Other(_) if plan.priority == Some(0) => plan.policy = Policy::Other.into(),
            // The command line found is not that of these threads, which have a priority.
            Word::Other(_) if plan.priority.is_some() && plan.policy == Policy::Other => {
                plan.policy = Policy::Fifo.into();
            }
            Word::Other(_) => {}
        }
        if !self.load.is_empty() {
            plan.notes.push(format!("load average {}", self.load));
        }
        if self.idle_held {
            plan.idle = IdleStates::Held.into();
        }
        if self.broke {
            run.ended = Ended::Limit.into();
        }
        if self.spikes_dropped > 0 {
            let dropped = several(self.spikes_dropped, "smaller spike", "smaller spikes");
            plan.notes.push(format!("{dropped} of --spike omitted"));
        }
        if self.overflow_cycles_dropped > 0 {
            let dropped = several(
                self.overflow_cycles_dropped as u64,
                "cycle number of an overflow",
                "cycle numbers of overflows",
            );
            plan.notes.push(format!("{dropped} beyond {OVERFLOW_LIMIT} left out"));
        }
    }

    /// Keeps the largest spikes.
    fn take_spike(&mut self, thread: usize, latency: i64, time: u64) {
        let spikes = self.spikes.entry(thread).or_default();
        spikes.push((latency, time));
        spikes.sort_unstable_by_key(|spike| (std::cmp::Reverse(spike.0), spike.1));
        self.spikes_dropped += spikes.len().saturating_sub(WORST) as u64;
        spikes.truncate(WORST);
    }

    fn take_row(&mut self, number: usize, bucket: u64, counts: &[u64]) -> Result<(), String> {
        if let Some(last) = self.last_bucket.filter(|&last| last >= bucket) {
            return Err(format!("bucket {bucket} after {last}: expected ascending rows of one histogram"));
        }
        if self.last_bucket.is_none() {
            self.columns = vec![Vec::new(); counts.len()];
        }
        self.last_bucket = Some(bucket);
        self.rows += 1;
        if counts.len() != self.columns.len() {
            return Err(format!(
                "expected {} counts as in the rows before, found {}",
                self.columns.len(),
                counts.len()
            ));
        }
        for (column, &count) in self.columns.iter_mut().zip(counts).filter(|(_, count)| **count > 0) {
            column.push((bucket, count));
            self.held += 1;
        }
        // With a sum there is at most one more count per row than buckets of samples.
        if self.held > 2 * BUCKET_LIMIT {
            return Err(format!("expected at most {BUCKET_LIMIT} buckets that are not empty"));
        }
        let (last, others) = counts.split_last().unwrap_or((&0, &[]));
        let sum = others.iter().try_fold(0u64, |sum, &count| sum.checked_add(count));
        if sum != Some(*last) {
            self.not_a_sum.get_or_insert(number);
        }
        Ok(())
    }
}

fn once(slot: &mut Numbers, number: usize, list: Vec<i128>) -> Result<(), String> {
    match slot.replace((number, list)) {
        None => Ok(()),
        Some((before, _)) => {
            Err(format!("the same comment as on line {before}: expected one result in a file"))
        }
    }
}
