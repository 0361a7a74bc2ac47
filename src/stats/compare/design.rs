//! How the runs of A and B belong together: by when they were made, not by what they show.

use crate::stats::pair::verdict::Design;

/// Pairs where the runs were taken alternately: in the order of time, each two hold one of A and one of B.
///
/// Starts are any text that sorts by time (RFC 3339 in UTC); an unknown one, `""`, makes no pairs.
pub fn of_starts(a: &[&str], b: &[&str]) -> Design {
    let mut order: Vec<(&str, bool)> = a.iter().map(|at| (*at, true)).chain(b.iter().map(|at| (*at, false))).collect();
    order.sort_unstable();
    let known = order.iter().all(|run| !run.0.is_empty()) && order.windows(2).all(|two| two[0].0 != two[1].0);
    let alternate = order.chunks(2).all(|two| two.len() == 2 && two[0].1 != two[1].1);
    if known && alternate && a.len() > 1 { Design::Paired } else { Design::Unpaired }
}

/// The order in which a side's runs were made, as indices.
pub fn in_time(starts: &[&str]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..starts.len()).collect();
    order.sort_by_key(|&run| starts[run]);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_runs_are_pairs() {
        assert_eq!(of_starts(&["1", "4", "5"], &["2", "3", "6"]), Design::Paired);
        assert_eq!(of_starts(&["1", "2", "3"], &["4", "5", "6"]), Design::Unpaired);
        assert_eq!(of_starts(&["", ""], &["", ""]), Design::Unpaired);
        assert_eq!(of_starts(&["1", "1"], &["1", "2"]), Design::Unpaired);
        assert_eq!(of_starts(&["1"], &["2"]), Design::Unpaired, "one pair is no series of pairs");
        assert_eq!(of_starts(&["1", "3", "5"], &["2", "4"]), Design::Unpaired);
        assert_eq!(in_time(&["3", "1", "2"]), [1, 2, 0]);
    }
}
