//! Frequency scaling and idle states, as far as their names go.
//!
//! Source: Documentation/admin-guide/pm/cpufreq.rst and cpuidle.rst: `policyN/scaling_governor`,
//! `policyN/scaling_driver`, `cpuidle/current_driver` and `cpuN/cpuidle/stateN/name`.

use super::topology::numbered;

/// The names of a directory that end in a number, in the order of the numbers: `state10` after `state2`.
pub fn in_order(names: &[String], prefix: &str) -> Vec<String> {
    let mut numbers: Vec<(u32, &String)> =
        names.iter().filter_map(|name| Some((numbered(name, prefix)?, name))).collect();
    numbers.sort();
    numbers.into_iter().map(|(_, name)| name.clone()).collect()
}

/// Each value once, in the order of the alphabet.
pub fn distinct(mut values: Vec<String>) -> Vec<String> {
    values.sort();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_from_shallow_to_deep() {
        let names = ["state10", "state2", "state0", "driver", "state"].map(str::to_owned);
        assert_eq!(in_order(&names, "state"), ["state0", "state2", "state10"]);
    }

    #[test]
    fn governors_once_each() {
        let names = ["schedutil", "performance", "schedutil"].map(str::to_owned);
        assert_eq!(distinct(names.to_vec()), ["performance", "schedutil"]);
    }
}
