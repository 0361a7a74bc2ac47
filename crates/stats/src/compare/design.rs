//! Design of a comparison of runs of A and B: by their times, not by their results.

use crate::pair::verdict::Design;

/// Error level of the verdict.
pub const ALPHA: f64 = 0.05;

/// Pairs where the runs were taken alternately: in the order of time, each two hold one of A and
/// one of B.
///
/// Starts are any text that sorts by time (RFC 3339 in UTC); an unknown one, `""`, makes no pairs.
pub fn of_starts(a: &[String], b: &[String]) -> Design {
    let of = |starts: &[String], in_a: bool| starts.iter().map(|at| (at.clone(), in_a)).collect::<Vec<_>>();
    let mut order = [of(a, true), of(b, false)].concat();
    order.sort_unstable();
    let known = order.iter().all(|run| !run.0.is_empty()) && order.windows(2).all(|two| two[0].0 != two[1].0);
    let alternate = order.chunks(2).all(|two| two.len() == 2 && two[0].1 != two[1].1);
    if known && alternate && a.len() > 1 { Design::Paired } else { Design::Unpaired }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(a: &[&str], b: &[&str]) -> Design {
        let own = |starts: &[&str]| starts.iter().map(|at| at.to_string()).collect::<Vec<_>>();
        of_starts(&own(a), &own(b))
    }

    #[test]
    fn alternating_runs_are_pairs() {
        assert_eq!(design(&["1", "4", "5"], &["2", "3", "6"]), Design::Paired);
        assert_eq!(design(&["1", "2", "3"], &["4", "5", "6"]), Design::Unpaired);
        assert_eq!(design(&["", ""], &["", ""]), Design::Unpaired);
        assert_eq!(design(&["1", "1"], &["1", "2"]), Design::Unpaired);
        assert_eq!(design(&["1"], &["2"]), Design::Unpaired, "one pair is no series of pairs");
        assert_eq!(design(&["1", "3", "5"], &["2", "4"]), Design::Unpaired);
    }
}
