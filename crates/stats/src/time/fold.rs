//! Events folded on a period, for a picture: members of a comb line up at one phase.

/// An event on the circle of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Folded {
    /// Part of its cycle before the event, from 0 to below 1.
    pub phase: f64,
    /// True if it belongs to the comb.
    pub member: bool,
}

/// Folds events in ns on a period; events at `origin_ns` plus whole periods get phase one half, so
/// that the picture's edge does not cut a comb. `members` are indices into the events; others are
/// ignored.
pub fn fold(times: &[i64], period_ns: f64, origin_ns: i64, members: &[usize]) -> Vec<Folded> {
    if !(period_ns > 0.0 && period_ns.is_finite()) {
        return Vec::new();
    }
    let phase = |&time: &i64| {
        let after = (i128::from(time) - i128::from(origin_ns)) as f64;
        let phase = (after / period_ns + 0.5).rem_euclid(1.0);
        // Just below a whole number the remainder rounds up to one.
        Folded { phase: if phase < 1.0 { phase } else { 0.0 }, member: false }
    };
    let mut folded: Vec<Folded> = times.iter().map(phase).collect();
    for &member in members {
        if let Some(event) = folded.get_mut(member) {
            event.member = true;
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_comb_lines_up_in_the_middle() {
        let folded = fold(&[1_005, 2_000, 2_750, 3_000], 1_000.0, 1_000, &[0, 1, 3, 9]);
        let phases: Vec<f64> = folded.iter().map(|event| (event.phase * 1e6).round() / 1e6).collect();
        assert_eq!(phases, [0.505, 0.5, 0.25, 0.5]);
        assert_eq!(folded.iter().map(|event| event.member).collect::<Vec<_>>(), [true, true, false, true]);
        assert_eq!(fold(&[1], 0.0, 0, &[]), []);
        assert_eq!(fold(&[1], f64::NAN, 0, &[]), []);
    }

    proptest! {
        #[test]
        fn phases_are_below_one(times in proptest::collection::vec(any::<i64>(), 0..20), period in 1e-9f64..1e18, origin in any::<i64>()) {
            prop_assert!(fold(&times, period, origin, &[]).iter().all(|event| (0.0..1.0).contains(&event.phase)));
        }
    }
}
