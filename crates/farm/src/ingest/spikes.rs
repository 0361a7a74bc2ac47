//! The spikes of a hunt that lie within a stretch of time, each with the number of its page.

use std::ops::Range;
use std::path::Path;

use model::error::Result;
use model::run::Run;
use model::text::excerpt;
use model::units::{Cpu, Nanos};
use report::hunt::parts::by_latency;
use serde::Serialize;

use super::slots::{culprit_of, offset};
use crate::records::SeriesKey;

/// A late wake-up that has a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FarmSpike {
    pub run: String,
    /// The run's, as the store has it.
    #[serde(flatten)]
    pub key: SeriesKey,
    /// Number in its address, 1 for the latest of its run.
    pub number: usize,
    pub cpu: Cpu,
    /// Time when it finally ran, in ns since 1970.
    pub at: i64,
    pub latency_ns: Nanos,
    /// Culprit of the largest part; `""` if unknown.
    pub culprit: String,
    pub victim: String,
}

/// Spikes of the bundle in a folder within seconds since 1970, latest first, without their series.
pub fn spikes_within(folder: &Path, within: Range<i64>) -> Result<Vec<FarmSpike>> {
    Ok(of_run(&study::page::spiked_run(folder)?, within))
}

fn of_run(run: &Run, within: Range<i64>) -> Vec<FarmSpike> {
    // Without it no spike of the run has a time.
    let Some(offset) = offset(run) else { return Vec::new() };
    let numbered = by_latency(run).into_iter().zip(1..);
    let one = |(place, number): (usize, usize)| {
        let spike = &run.spikes[place];
        let at = spike.actual_ns.0.checked_add(offset)?;
        within.contains(&at.div_euclid(Nanos::SECOND.0)).then(|| FarmSpike {
            run: run.id.clone(),
            number,
            cpu: spike.cpu,
            at,
            latency_ns: spike.latency_ns,
            culprit: culprit_of(run, spike),
            victim: excerpt(&spike.victim.comm),
            ..FarmSpike::default()
        })
    };
    numbered.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::run_folder;
    use model::run::{CpuRun, Spike, Worst};

    fn run(spikes: &[(i64, i64)]) -> Run {
        let worst =
            Worst { mono_ns: Some(Nanos(0)), time: "2026-01-01T00:00:00.000000Z".into(), ..Worst::default() };
        let spike = |&(second, latency): &(i64, i64)| Spike {
            cpu: Cpu(2),
            actual_ns: Nanos(second * Nanos::SECOND.0),
            latency_ns: Nanos(latency),
            ..Spike::default()
        };
        let cpu = CpuRun { worst: vec![worst], ..CpuRun::default() };
        Run { id: "r".into(), cpus: vec![cpu], spikes: spikes.iter().map(spike).collect(), ..Run::default() }
    }

    #[test]
    fn a_spike_keeps_the_number_that_it_has_in_its_run() {
        const YEAR: i64 = 1_767_225_600;
        let run = run(&[(10, 5_000), (299, 9_000), (300, 99_000), (301, 1)]);
        let found = of_run(&run, YEAR..YEAR + 300);
        assert_eq!(
            found.iter().map(|one| (one.number, one.latency_ns.0)).collect::<Vec<_>>(),
            [(2, 9_000), (3, 5_000)]
        );
        assert_eq!((found[0].at, found[0].cpu), ((YEAR + 299) * Nanos::SECOND.0, Cpu(2)));
        // The end is another five minutes'.
        assert_eq!(of_run(&run, YEAR + 300..YEAR + 600).len(), 2);
        assert!(of_run(&Run { cpus: Vec::new(), ..run }, YEAR..YEAR + 300).is_empty());
    }

    #[test]
    fn the_spikes_of_a_recorded_hunt_are_those_of_its_page() {
        let hunt = run_folder("hunt");
        let all = spikes_within(&hunt, 0..i64::MAX).unwrap();
        let run = bundle::read::Bundle::open(&hunt).unwrap().run;
        assert_eq!(all.len(), run.spikes.len());
        assert!(!all.is_empty() && all.windows(2).all(|two| two[0].latency_ns >= two[1].latency_ns));
        let page = study::page::spike(&hunt, all[0].number).unwrap().unwrap();
        assert!(page.run.spikes.iter().any(|spike| spike.latency_ns == all[0].latency_ns));
    }
}
