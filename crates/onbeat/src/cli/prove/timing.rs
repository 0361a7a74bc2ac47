//! Durations of the parts of an experiment, and the check that they fit into `--for`.

use experiment::cure::{around, trial_length};
use experiment::length::LEAST;
use experiment::proof::fewest_pairs;
use model::error::{Failure, Result};
use model::experiment::{ExperimentArm, ExperimentPlan, ExperimentRun, ExperimentSegment};
use model::text::several;
use model::units::Nanos;

/// Duration of both runs of the trial, with their surroundings.
pub fn trial_of(plan: &ExperimentPlan) -> Nanos {
    trial_length(plan.settle_trial_ns, plan.counted())
}

/// Duration of both segments of a pair, with their surroundings but without switches.
pub fn pair_length(plan: &ExperimentPlan) -> Nanos {
    let around = around(plan.counted());
    let one = plan.segment_ns.0.saturating_add(plan.settle_ns.0).saturating_add(around.0);
    Nanos(one.saturating_mul(2))
}

/// Maximum duration of the next pair's switches, by earlier ones: the time of a script, or of waits
/// for interrupts. `seen` are the longest ones in this process, a and b; the record of a resumed
/// experiment has earlier ones.
pub fn switches(record: &ExperimentRun, seen: [Nanos; 2]) -> Nanos {
    let of = |arm: ExperimentArm, seen: Nanos| {
        // A pair may begin with the arm in force, but not two in sequence with the same arm.
        let segments = record.segments.iter().rev().filter(|segment| segment.arm == arm).take(2);
        let longest = segments.map(|segment| segment.settled_ns).max().unwrap_or_default();
        let kept = longest.0.saturating_sub(record.plan.settle_ns.0).max(0);
        seen.0.max(kept)
    };
    Nanos(of(ExperimentArm::A, seen[0]).saturating_add(of(ExperimentArm::B, seen[1])))
}

/// Refuses a time that is too short for the warm-up, the trial and the fewest pairs that decide,
/// each of minimum length.
///
/// # Errors
/// Usage, with the minimum time.
pub fn require_time(plan: &ExperimentPlan, warm_up: Nanos, at_most: Option<Nanos>) -> Result<()> {
    let Some(at_most) = at_most else { return Ok(()) };
    let segment_ns = if plan.segment_ns.0 > 0 { plan.segment_ns } else { LEAST };
    let pair = pair_length(&ExperimentPlan { segment_ns, ..plan.clone() });
    let pairs = fewest_pairs(plan);
    let before = warm_up.0.saturating_add(plan.settle_ns.0).saturating_add(around(plan.counted()).0);
    let parts = [before, trial_of(plan).0, pair.0.saturating_mul(i64::from(pairs))];
    let least = Nanos(parts.into_iter().fold(0, i64::saturating_add));
    if at_most >= least {
        return Ok(());
    }
    let trial = if plan.settle_trial_ns.0 > 0 { "the trial of the settling time, " } else { "" };
    Err(Failure::usage(format!(
        "invalid --for: {} is too short. The warm-up of {}, {trial}and the minimum of {} take at least {}; \
         increase --for, or choose shorter runs with --segment",
        at_most.spoken(),
        warm_up.spoken(),
        several(u64::from(pairs), "pair", "pairs"),
        least.spoken()
    )))
}

/// Line about a warm-up in which nothing reached the limit; none if anything did.
pub fn nothing_late(plan: &ExperimentPlan, pilot: &ExperimentSegment) -> Option<String> {
    let all = Nanos(pair_length(plan).0.saturating_mul(i64::from(plan.most_pairs)));
    let (one, limit) = (plan.counted().one(), plan.limit_ns.spaced());
    (pilot.late == 0).then(|| {
        format!(
            "onbeat: no {one} reached {limit} in the warm-up of {}. A pair without any decides nothing, and \
             {} pairs take {}: choose a lower limit or more load, unless it is meant to be rare",
            pilot.observed_ns.spoken(),
            plan.most_pairs,
            all.spoken()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::design::usual;

    const SECOND: i64 = Nanos::SECOND.0;

    fn seconds(count: i64) -> Nanos {
        Nanos(count * SECOND)
    }

    #[test]
    fn a_time_that_holds_no_verdict_is_refused_with_the_least_that_does() {
        let fits =
            |plan: &ExperimentPlan, at_most: i64| require_time(plan, seconds(20), Some(seconds(at_most)));
        // 20 s and 2 s + 2 s; 7 pairs of twice 10 s + 2 s + 2 s.
        let plan = usual();
        assert!(fits(&plan, 220).is_ok() && require_time(&plan, seconds(20), None).is_ok());
        let told = fits(&plan, 219).unwrap_err().message;
        assert!(told.contains("7 pairs") && told.contains(&seconds(220).spoken()), "{told}");
        let with_trial = ExperimentPlan { settle_trial_ns: seconds(20), ..usual() };
        assert!(fits(&with_trial, 264).is_ok() && fits(&with_trial, 263).is_err());
        let short = ExperimentPlan { segment_ns: seconds(2), ..usual() };
        assert!(fits(&short, 108).is_ok() && fits(&short, 107).is_err());
    }

    #[test]
    fn that_nothing_was_late_in_the_warm_up_is_told_with_what_it_costs() {
        let plan = ExperimentPlan { segment_ns: seconds(60), limit_ns: Nanos(100_000), ..usual() };
        let pilot = |late| ExperimentSegment { late, observed_ns: seconds(20), ..Default::default() };
        assert_eq!(nothing_late(&plan, &pilot(1)), None);
        let told = nothing_late(&plan, &pilot(0)).unwrap();
        for part in
            ["no wake-up reached 100 us in the warm-up of 20.0 s", "16 pairs take 34 min", "a lower limit"]
        {
            assert!(told.contains(part), "{told}");
        }
        let followed = ExperimentPlan { victim: "jackd".into(), ..plan };
        assert!(nothing_late(&followed, &pilot(0)).unwrap().contains("no cycle reached"));
    }

    #[test]
    fn the_next_switches_take_what_the_last_ones_took() {
        let segment = |arm, settled: i64| ExperimentSegment {
            arm,
            settled_ns: seconds(settled),
            ..ExperimentSegment::default()
        };
        let (a, b) = (ExperimentArm::A, ExperimentArm::B);
        // The second pair began with the arm in force: its first run has no switch.
        let segments = vec![segment(a, 2), segment(b, 32), segment(b, 2), segment(a, 52)];
        let record = ExperimentRun { plan: usual(), segments, ..ExperimentRun::default() };
        assert_eq!(switches(&record, [Nanos(0); 2]), seconds(30 + 50));
        assert_eq!(switches(&record, [seconds(51), seconds(1)]), seconds(30 + 51));
        let fresh = ExperimentRun { plan: usual(), ..ExperimentRun::default() };
        assert_eq!(switches(&fresh, [seconds(4), Nanos(0)]), seconds(4));
        // A time out of range in a damaged record is ignored.
        let damaged = vec![segment(a, i64::MIN / SECOND)];
        let record = ExperimentRun { segments: damaged, ..fresh };
        assert_eq!(switches(&record, [Nanos(0); 2]), Nanos(0));
    }
}
