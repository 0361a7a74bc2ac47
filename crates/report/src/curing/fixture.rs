//! Sample cures for tests.

use model::cure::{
    CURE_SCHEMA, CureCandidate, CureCleanRun, CureCulprit, CureHunt, CurePlan, CureRemaining, CureRun,
    CureStep,
};
use model::units::Nanos;

const MS: i64 = 1_000_000;
const THREAD: &str = "a thread of higher priority";

fn run(late: u64, seconds: i64, changes: usize) -> CureCleanRun {
    CureCleanRun {
        changes,
        late,
        valid: true,
        samples: 1_000 * seconds as u64,
        observed_ns: Nanos(seconds * Nanos::SECOND.0),
        max_ns: Some(Nanos(if late > 0 { 81 * MS } else { 2 * MS })),
        ..CureCleanRun::default()
    }
}

fn culprit(name: &str, ms: i64, spikes: u64) -> CureCulprit {
    CureCulprit { name: name.into(), lost_ns: Nanos(ms * MS), spikes, ..CureCulprit::default() }
}

fn helpful_step() -> CureStep {
    CureStep {
        culprit: "an interrupt's thread".into(),
        change: "irq-affinity".into(),
        verdict: "better".into(),
        kept: true,
        why: "fewer late wake-ups with it in 8 of 8 pairs".into(),
        candidate: CureCandidate {
            rules: vec!["irq-affinity".into()],
            changes: vec!["irq:24: 0-3 -> 0-1".into()],
            ..CureCandidate::default()
        },
        level: 40.0,
        e_value: 50.27,
        rate_ratio: Some(0.0),
        ci: Some([0.0, 0.03]),
        pairs: 8,
        wins: 8,
        late: [160, 0],
        ..CureStep::default()
    }
}

fn in_vain() -> CureStep {
    CureStep {
        culprit: THREAD.into(),
        change: "swap".into(),
        verdict: "inconclusive".into(),
        why: "the difference is neither significant nor certainly small".into(),
        level: 120.0,
        e_value: 0.4,
        rate_ratio: Some(1.1),
        ci: Some([0.6, 1.9]),
        pairs: 11,
        wins: 5,
        late: [100, 110],
        ..CureStep::default()
    }
}

/// Cure with one cause removed, another change without effect, and the limit held.
pub fn cured() -> CureRun {
    let plan = CurePlan {
        limit_ns: Nanos(30 * MS),
        horizon_ns: Nanos(30 * Nanos::SECOND.0),
        at_most_ns: Nanos(600 * Nanos::SECOND.0),
        cpus: "2".into(),
        seed: 7,
        ..CurePlan::default()
    };
    let left = CureRemaining {
        culprit: THREAD.into(),
        needs: "reboot".into(),
        what: "isolation-lists: boot with isolcpus".into(),
    };
    let hunt = CureHunt {
        culprits: vec![culprit(THREAD, 3_000, 38), culprit("an interrupt's thread", 900, 12)],
        latency_ns: Nanos(4_000 * MS),
        spikes: 40,
        ..CureHunt::default()
    };
    let after = CureHunt {
        culprits: vec![culprit(THREAD, 500, 4)],
        latency_ns: Nanos(600 * MS),
        spikes: 4,
        changes: 1,
        ..CureHunt::default()
    };
    let last = CureCleanRun {
        long: true,
        verdict: "supported".into(),
        said: "Supported with 95 % confidence.".into(),
        ..run(0, 90, 1)
    };
    CureRun {
        schema: CURE_SCHEMA.into(),
        limit_ns: plan.limit_ns,
        held: true,
        ended: "held".into(),
        why: "the last run supports the limit".into(),
        plan,
        steps: vec![helpful_step(), in_vain()],
        remaining: vec![left],
        runs: vec![run(40, 20, 0), run(3, 20, 1), last],
        hunts: vec![hunt, after],
        ..CureRun::default()
    }
}

/// Cure without a change that helped.
pub fn untouched() -> CureRun {
    let mut record = cured();
    record.steps.remove(0);
    record.runs.truncate(1);
    record.hunts.truncate(1);
    (record.held, record.ended) = (false, "no-candidate".into());
    record.why = "nothing is left to try".into();
    record
}
