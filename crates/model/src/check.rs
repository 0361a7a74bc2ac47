//! Consistency of the numbers of a run: a run edited by hand or damaged must not reach a picture or
//! a statistic as if it were measured.

use super::run::{CpuRun, Run, Worst};
use crate::error::{self, Failure};
use crate::histogram::{Bucket, total_of};
use crate::text::several;
use crate::units::Nanos;
use crate::vocabulary::{Command, SchedulePhase};

impl Run {
    /// Checks that the numbers of a run agree with each other; the error is the first
    /// contradiction.
    pub fn check(&self) -> Result<(), String> {
        for pair in self.cpus.windows(2) {
            if pair[0].key() >= pair[1].key() {
                return Err(format!("cpus are not ascending at {}", pair[1].name()));
            }
        }
        for cpu in &self.cpus {
            let checked =
                cpu.check().and_then(|()| if self.is_exact() { self.check_exact(cpu) } else { Ok(()) });
            checked.map_err(|what| format!("{}: {what}", cpu.name()))?;
        }
        let bound = self.cpus.iter().any(|cpu| cpu.cpu.is_some());
        let planned =
            !bound || self.cpus.iter().map(|cpu| cpu.cpu).eq(self.plan.cpus.iter().copied().map(Some));
        // A run is only a plan until its threads exist.
        let begun = self.complete || !self.cpus.is_empty();
        if self.is_exact() && begun && !planned {
            return Err("cpus differ from the plan".into());
        }
        Ok(())
    }

    /// True if all of it was counted by threads of onbeat, on the CPUs of the plan.
    fn is_exact(&self) -> bool {
        self.command == Command::Measure || self.command == Command::Probe
    }

    /// Checks the additional contents of onbeat's runs: exact extremes that fit their rows.
    fn check_exact(&self, cpu: &CpuRun) -> Result<(), String> {
        let rows = &cpu.histogram;
        let early: u64 = rows.iter().filter(|bucket| bucket.upper.0 <= 0).map(|bucket| bucket.count).sum();
        if let Some(count) = cpu.early.filter(|count| *count != early) {
            return Err(format!("early is {count}, but the histogram holds {early}"));
        }
        let within = |bucket: Option<&Bucket>, value: Option<Nanos>| match (bucket, value) {
            (Some(bucket), Some(value)) => bucket.lower <= value && value < bucket.upper,
            (bucket, value) => bucket.is_none() && value.is_none(),
        };
        if !within(rows.first(), cpu.min_ns) || !within(rows.last(), cpu.max_ns) {
            return Err("min_ns and max_ns do not fit the histogram's first and last row".into());
        }
        if cpu.mean_ns.is_some_and(|mean| Some(mean) < cpu.min_ns || Some(mean) > cpu.max_ns) {
            return Err("mean_ns is not between min_ns and max_ns".into());
        }
        let mut quantiles = cpu.clone();
        quantiles.fill_quantiles();
        if quantiles != *cpu {
            return Err("a quantile does not match the histogram".into());
        }
        if cpu.worst.first().and_then(|worst| worst.latency_ns) != cpu.max_ns {
            return Err("the worst is not max_ns".into());
        }
        if cpu.worst.windows(2).any(|pair| pair[0].latency_ns < pair[1].latency_ns) {
            return Err("worst is not in descending order".into());
        }
        let periodic = cpu.scheduled.is_some() && self.plan.phase != SchedulePhase::Dither;
        if periodic && cpu.worst.iter().any(|worst| !cpu.is_in_time(worst)) {
            return Err("a worst wake-up is not at t0 + cycle * interval + latency".into());
        }
        Ok(())
    }
}

impl Run {
    /// Refuses a use of the histogram if a CPU has samples without one.
    ///
    /// # Errors
    /// Wrong usage.
    pub fn require_histogram(&self) -> error::Result<()> {
        let bare: Vec<_> = self.cpus.iter().filter(|cpu| cpu.is_summary()).collect();
        let what = match bare.as_slice() {
            [] => return Ok(()),
            [first, ..] if bare.len() < self.cpus.len() => format!("{} of this run", first.name()),
            _ => "this run".to_owned(),
        };
        Err(Failure::usage(format!("{what} has no histogram: use --rt-tests-json")))
    }
}

impl CpuRun {
    /// True for an import from a result without a histogram: no sample has a bucket, and none is
    /// beyond the last.
    pub fn is_summary(&self) -> bool {
        let bare = self.histogram.is_empty() && self.overflows.is_none();
        bare && self.cycles != Some(0) && self.scheduled.is_none()
    }

    /// Wake-ups that an import lists as beyond its histogram. Bundles from before `overflow_cycles`
    /// have them among the worst, without a latency.
    pub fn listed_overflows(&self) -> impl Iterator<Item = u64> + '_ {
        let formerly = self.worst.iter().filter(|worst| worst.latency_ns.is_none());
        self.overflow_cycles.iter().copied().chain(formerly.filter_map(|worst| worst.cycle))
    }

    /// Latency from which samples were beyond the histogram: as the import states, else the end of
    /// the last bucket, a lower bound for all of them. `None` without such samples, or without a
    /// statement and a bucket.
    pub fn beyond_from(&self) -> Option<Nanos> {
        let end = self.histogram.last().map(|bucket| bucket.upper);
        self.overflows.filter(|&n| n > 0).and(self.overflows_from_ns.or(end))
    }

    /// Checks one CPU like [`Run::check`].
    pub fn check(&self) -> Result<(), String> {
        check_buckets("histogram", &self.histogram)?;
        let counted = total_of(&self.histogram)
            .checked_add(self.overflows.unwrap_or(0))
            .ok_or("the histogram counts more than 2^64 samples")?;
        match self.cycles {
            Some(cycles) if counted != cycles && !self.is_summary() => {
                let counted = several(counted, "sample", "samples");
                return Err(format!("the histogram holds {counted}, but cycles is {cycles}"));
            }
            None if !self.is_summary() || self.scheduled.is_some() => {
                return Err("cycles is null although there is a histogram".into());
            }
            _ => {}
        }
        let end = self.histogram.last().map(|bucket| bucket.upper);
        // Below 0 it is not even known whether they were late.
        if self.overflows_from_ns.zip(end).is_some_and(|(from, end)| from.0 >= 0 && from < end) {
            return Err("overflows_from_ns is below the histogram's end".into());
        }
        if let (Some(scheduled), Some(missed)) = (self.scheduled, self.missed) {
            let cycles = self.cycles.unwrap_or(0);
            if cycles.checked_add(missed) != Some(scheduled) {
                return Err(format!("cycles {cycles} + missed {missed} is not scheduled {scheduled}"));
            }
            if let Some(rows) = &self.deadline_histogram {
                check_buckets("deadline_histogram", rows)?;
                if total_of(rows) != scheduled {
                    return Err(format!(
                        "deadline_histogram holds {} of {scheduled}",
                        several(total_of(rows), "sample", "samples")
                    ));
                }
            }
        }
        Ok(())
    }

    /// True if the latency of a wake-up agrees with its times.
    fn is_in_time(&self, worst: &Worst) -> bool {
        let slot = || {
            let (t0, interval) = (i128::from(self.t0_mono_ns?.0), i128::from(self.interval_ns?.0));
            Some(t0 + i128::from(worst.cycle?) * interval + i128::from(worst.latency_ns?.0))
        };
        slot().is_some_and(|time| worst.mono_ns.is_some_and(|mono| i128::from(mono.0) == time))
    }
}

fn check_buckets(name: &str, rows: &[Bucket]) -> Result<(), String> {
    let mut total = 0u64;
    let mut end = Nanos(i64::MIN);
    for &Bucket { lower, upper, count } in rows {
        if lower >= upper || lower < end || count == 0 {
            return Err(format!("{name} has a row [{}, {}, {count}] out of order", lower.0, upper.0));
        }
        end = upper;
        total = total.checked_add(count).ok_or_else(|| format!("{name} counts more than 2^64 samples"))?;
    }
    Ok(())
}
