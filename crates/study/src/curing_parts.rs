//! The deciding part of a late wake-up: the gain from curing that one culprit alone.

use model::run::Run;
use model::units::Nanos;
use rules::culprits::belonging::time_by_culprit;

/// For each culprit of a hunt, in the order of the run, the number of late wake-ups of which it is
/// the largest part, or which would have been in time without it; `None` unless every late wake-up
/// was kept, because a culprit's part in the others is not known.
pub fn decisive(run: &Run, limit: Nanos) -> Vec<Option<u64>> {
    let lost = run.recorder.as_ref().map_or(0, |recorder| recorder.windows_lost);
    let is_whole = run.spikes_dropped == 0 && lost == 0;
    counted(run, limit).into_iter().map(|decided| is_whole.then_some(decided)).collect()
}

fn counted(run: &Run, limit: Nanos) -> Vec<u64> {
    let mut all = vec![0u64; run.culprits.len()];
    for spike in &run.spikes {
        let parts = time_by_culprit(&run.culprits, spike);
        let most = parts.iter().copied().max().unwrap_or_default().max(spike.unexplained_ns.0);
        for (decided, part) in all.iter_mut().zip(parts) {
            let is_largest = part == most;
            let would_be_in_time = spike.latency_ns.0.saturating_sub(part) < limit.0;
            *decided += u64::from(part > 0 && (is_largest || would_be_in_time));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{Slice, Who};
    use model::spike::{Culprit, Recorder, Spike};

    fn slice(comm: &str, us: i64) -> Slice {
        Slice {
            kind: "thread".into(),
            ns: Nanos(us * 1_000),
            who: Who { comm: comm.into(), pid: 9, ..Who::default() },
            ..Slice::default()
        }
    }

    fn spike(slices: &[(&str, i64)], unexplained: i64) -> Spike {
        let slices: Vec<Slice> = slices.iter().map(|(comm, us)| slice(comm, *us)).collect();
        let sum: i64 = slices.iter().map(|slice| slice.ns.0).sum();
        let unexplained_ns = Nanos(unexplained * 1_000);
        Spike { latency_ns: Nanos(sum + unexplained_ns.0), unexplained_ns, slices, ..Spike::default() }
    }

    fn run(spikes: Vec<Spike>) -> Run {
        let host = model::run::Host::default();
        let mut run = Run { spikes, ..Run::default() };
        let context = rules::culprits::context::RunContext::of_machine(&host);
        run.culprits = rules::culprits::tally::rank_all(&mut run.spikes, &context).culprits;
        run
    }

    #[test]
    fn the_largest_part_decides_and_so_does_one_without_which_it_were_in_time() {
        let run = run(vec![
            spike(&[("large", 90), ("small", 20)], 0),
            spike(&[("large", 500), ("small", 20), ("tiny", 1)], 0),
            spike(&[("small", 10)], 600),
        ]);
        let decided = decisive(&run, Nanos(100_000));
        let of = |name: &str| {
            let is_it = |culprit: &Culprit| culprit.name.contains(name);
            decided[run.culprits.iter().position(is_it).expect("it is listed")]
        };
        assert_eq!([of("large"), of("small"), of("tiny")], [Some(2), Some(1), Some(0)]);
    }

    #[test]
    fn what_decided_late_wake_ups_that_are_not_kept_is_not_known() {
        let whole = run(vec![spike(&[("large", 90), ("small", 20)], 0)]);
        assert!(decisive(&whole, Nanos(100_000)).iter().all(Option::is_some));
        let recorder = Some(Recorder { windows_lost: 1, ..Recorder::default() });
        for part in [Run { spikes_dropped: 1, ..whole.clone() }, Run { recorder, ..whole }] {
            assert_eq!(decisive(&part, Nanos(100_000)), [None, None]);
        }
    }

    #[test]
    fn a_hunt_without_spikes_has_no_deciding_part() {
        assert!(decisive(&Run::default(), Nanos(1)).is_empty());
    }
}
