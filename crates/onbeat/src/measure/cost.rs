//! Cost of a cycle relative to the interval: a run that leaves no CPU to other threads is refused
//! before it starts.
//!
//! A real-time thread whose cycle takes as long as its interval never lets others run; if that
//! holds on every CPU that the housekeeping thread may use, no signal is handled any more, and no
//! shell can send one. Pure.

use super::integrity::entry;
use crate::plan::MeasurePlan;
use model::error::{Failure, Result};
use model::run::{CpuRun, Integrity};
use model::units::{CpuSet, Nanos};
use model::vocabulary::{IntegrityKind, Policy};

/// Maximum part of the interval for a cycle, in percent: switches to another thread and back take
/// part of the rest.
const MAX_CYCLE_PERCENT: i64 = 80;

/// Part of the suggested interval that a cycle takes, in percent; the margin allows for another
/// measurement of the cost.
const ADVISED_CYCLE_PERCENT: i64 = 65;

/// Share from which a CPU gets a remark, in percent.
pub const NOTABLE_PERCENT: i64 = 50;

/// Refuses a plan whose cycles, at these costs per measured CPU, take every CPU of the housekeeping
/// thread.
///
/// `what` names the source of the cost. SCHED_OTHER always shares the CPU with others.
pub fn refuse_lockup(plan: &MeasurePlan, policy: Policy, costs: &[Nanos], what: &str) -> Result<()> {
    let taken = |(own, cost): (&crate::plan::CpuPlan, &Nanos)| near(*cost, own.interval).then_some(own.cpu);
    let taken: CpuSet = plan.cpus.iter().zip(costs).filter_map(taken).collect();
    // The kernel throttles a thread of SCHED_DEADLINE.
    if matches!(policy, Policy::Other | Policy::Deadline) || !plan.housekeeping.without(&taken).is_empty() {
        return Ok(());
    }
    let dearest =
        plan.cpus.iter().zip(costs).filter(|(own, _)| taken.contains(own.cpu)).max_by_key(|(_, cost)| **cost);
    let Some((own, cost)) = dearest else { return Ok(()) };
    let interval = advised_interval(*cost);
    // With a single measured CPU, none can be omitted.
    let elsewhere = if plan.cpus.len() == 1 || plan.housekeeping.len() < plan.cpus.len() {
        "reserve a CPU for them with --housekeeping"
    } else {
        "exclude a CPU with -a"
    };
    Err(Failure::usage(format!(
        "{what} takes {cost} per cycle on CPU {}, of an interval of {}: nothing else could run, not even \
         onbeat's own thread and a shell to stop it; give -i {} or more, or {elsewhere}",
        own.cpu,
        own.interval,
        interval.0 / 1_000
    )))
}

/// True if a cycle at that cost takes nearly all of the interval.
fn near(cost: Nanos, interval: Nanos) -> bool {
    i128::from(cost.0) * 100 > i128::from(interval.0) * i128::from(MAX_CYCLE_PERCENT)
}

/// Shortest interval of two digits, in whole microseconds, that leaves time for such a cost.
fn advised_interval(cost: Nanos) -> Nanos {
    let us = (cost.0.max(1) as u64 * 100).div_ceil(ADVISED_CYCLE_PERCENT as u64 * 1_000);
    let unit = 10u64.pow(us.max(10).ilog10() - 1);
    Nanos((us.div_ceil(unit) * unit * 1_000) as i64)
}

/// Share of a span that a thread ran, to four decimal places as in `run.json`.
pub fn share(used: Nanos, span: Nanos) -> Option<f64> {
    (span.0 > 0).then(|| (used.0 as f64 / span.0 as f64 * 1e4).round() / 1e4)
}

/// CPU share between two reads of a thread's CPU clock; `None` if the clock cannot be read.
pub fn share_between(before: Option<Nanos>, now: Option<Nanos>, span: Nanos) -> Option<f64> {
    share(now? - before?, span)
}

/// Remarks on large shares of the threads.
pub fn remarks(cpus: &[CpuRun]) -> Vec<Integrity> {
    let notable = |cpu: &&CpuRun| cpu.cpu_share.is_some_and(|share| share * 100.0 >= NOTABLE_PERCENT as f64);
    let remark = |cpu: &CpuRun| {
        let percent = cpu.cpu_share.unwrap_or_default() * 100.0;
        let detail = format!(
            "the measuring thread used {percent:.0} % of this CPU, which delays other tasks there: a longer \
             interval (-i) would show other latencies"
        );
        entry(IntegrityKind::CpuShare, cpu.cpu, false, detail)
    };
    cpus.iter().filter(notable).map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{self, CpuChoice, MachineCpus, MeasureIntent};
    use model::error::Exit;
    use model::units::Cpu;
    use model::vocabulary::{IdleStates, SchedulePhase, WakeMechanism};

    fn plan(measured: &str, housekeeping: Option<&str>, interval: i64) -> MeasurePlan {
        let set = |text: &str| CpuSet::parse(text).expect("a list");
        let intent = MeasureIntent {
            cpus: CpuChoice::Only(set(measured)),
            interval: Nanos(interval),
            distance: Nanos(0),
            policy: None,
            priority: None,
            reservation: None,
            wake: WakeMechanism::Nanosleep,
            phase: SchedulePhase::Staggered,
            idle: Some(IdleStates::AsIs),
            duration: None,
            loops: None,
            limit: None,
            housekeeping: housekeeping.map(set),
            threads: None,
        };
        let machine = MachineCpus {
            online: set("0-1"),
            inherited: set("0-1"),
            permitted: set("0-1"),
            ..MachineCpus::default()
        };
        plan::plan(&intent, &machine, 1).expect("a plan")
    }

    fn refused(plan: &MeasurePlan, policy: Policy, costs: [i64; 2]) -> Option<Failure> {
        refuse_lockup(plan, policy, &costs.map(Nanos)[..plan.cpus.len()], "recording").err()
    }

    #[test]
    fn all_cpus_at_more_than_their_interval_are_refused_with_the_interval_that_works() {
        let all = plan("0-1", None, 10_000);
        let failure = refused(&all, Policy::Fifo, [21_000, 12_000]).expect("refused");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(
            failure.message.contains("21 us") && failure.message.contains("-i 33 "),
            "{}",
            failure.message
        );
        // The suggested interval is accepted.
        assert!(refused(&plan("0-1", None, 33_000), Policy::Fifo, [21_000, 21_000]).is_none());
        assert!(refused(&all, Policy::Rr, [8_001, 8_001]).is_some(), "nearly all");
        assert!(refused(&all, Policy::Fifo, [8_000, 8_000]).is_none());
        assert!(refused(&all, Policy::Other, [21_000, 21_000]).is_none(), "others get their share");
    }

    #[test]
    fn a_cpu_that_is_left_keeps_the_machine_usable() {
        assert!(refused(&plan("0-1", None, 10_000), Policy::Fifo, [21_000, 5_000]).is_none());
        assert!(refused(&plan("1", None, 10_000), Policy::Fifo, [21_000, 0]).is_none());
        let own = refused(&plan("1", Some("1"), 10_000), Policy::Fifo, [21_000, 0]).expect("refused");
        assert!(own.message.contains("-i 33"), "{}", own.message);
        assert!(own.message.contains("--housekeeping") && !own.message.contains("-a"), "{}", own.message);
        let narrow =
            refused(&plan("0-1", Some("1"), 10_000), Policy::Fifo, [5_000, 21_000]).expect("refused");
        assert!(narrow.message.contains("--housekeeping"), "{}", narrow.message);
    }

    #[test]
    fn the_interval_named_is_round_and_never_too_short() {
        for (cost, us) in [(1, 1), (6_500, 10), (6_501, 11), (64_000, 99), (65_100, 110), (1_000_000, 1_600)]
        {
            assert_eq!(advised_interval(Nanos(cost)), Nanos(us * 1_000), "{cost}");
        }
    }

    #[test]
    fn a_share_has_a_remark_from_half_on() {
        assert_eq!(share(Nanos(123_456), Nanos(1_000_000)), Some(0.1235));
        assert_eq!(share(Nanos(1), Nanos(0)), None);
        let cpu = |cpu, share| CpuRun { cpu: Some(Cpu(cpu)), cpu_share: share, ..CpuRun::default() };
        let said = remarks(&[cpu(0, None), cpu(1, Some(0.499)), cpu(2, Some(0.5))]);
        assert_eq!(said.iter().map(|entry| entry.cpu).collect::<Vec<_>>(), [Some(Cpu(2))]);
        assert!(said[0].detail.contains("50 %") && !said[0].invalidates, "{:?}", said[0]);
    }
}
