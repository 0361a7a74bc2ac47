//! Culprits with a negligible share of late wake-ups, against which no change is tried.

use model::cure::{CureCulprit, CureHunt};

/// Share of the time lost below which a culprit that decided no late wake-up is ignored: without
/// its time every wake-up would still be late, while proving a change against it takes as long as
/// any other and raises the level for the next change.
pub const NEGLIGIBLE: f64 = 0.01;

/// Share of a culprit in the total time of late wake-ups; none if unknown.
pub fn share(culprit: &CureCulprit, hunt: &CureHunt) -> Option<f64> {
    let share = culprit.lost_ns.0 as f64 / hunt.latency_ns.0 as f64;
    (hunt.latency_ns.0 > 0).then(|| share.clamp(0.0, 1.0))
}

/// True if no change is tried against it. Without the data, as in an older record, it is tried.
pub fn is_negligible(culprit: &CureCulprit, hunt: &CureHunt) -> bool {
    culprit.decisive == Some(0) && share(culprit, hunt).is_some_and(|share| share < NEGLIGIBLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

    #[test]
    fn only_what_took_next_to_nothing_and_decided_nothing_is_left_alone() {
        let hunt = CureHunt { latency_ns: Nanos(100_000), ..CureHunt::default() };
        let left = |lost: i64, decisive: Option<u64>| {
            is_negligible(&CureCulprit { lost_ns: Nanos(lost), decisive, ..CureCulprit::default() }, &hunt)
        };
        assert!(left(999, Some(0)) && left(0, Some(0)) && !left(1_000, Some(0)));
        assert!(!left(1, Some(1)) && !left(1, None), "it decided one, or that is not known");
        let unknown = CureHunt::default();
        let culprit = CureCulprit { decisive: Some(0), ..CureCulprit::default() };
        assert!(!is_negligible(&culprit, &unknown) && share(&culprit, &unknown).is_none());
    }
}
