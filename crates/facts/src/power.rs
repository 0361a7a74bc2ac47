//! Frequency scaling and idle states: names, and the limits on the latter.
//!
//! Source: Documentation/admin-guide/pm/cpufreq.rst and cpuidle.rst: `policyN/scaling_governor`,
//! `policyN/scaling_driver`, `cpuidle/current_driver` and `cpuN/cpuidle/stateN/name`;
//! Documentation/ABI/testing/sysfs-devices-power: `power/pm_qos_resume_latency_us`.

use super::line::parse_i64;
use super::topology::numbered;
use model::sort::CompactSort;

/// Names of a directory that consist of a prefix and a number, by number: `state10` after `state2`.
pub fn in_order(names: &[String], prefix: &str) -> Vec<String> {
    let mut numbers: Vec<(u32, &String)> =
        names.iter().filter_map(|name| Some((numbered(name, prefix)?, name))).collect();
    numbers.compact_sort();
    numbers.into_iter().map(|(_, name)| name.clone()).collect()
}

/// Each value once, in alphabetical order.
pub fn distinct(mut values: Vec<String>) -> Vec<String> {
    values.compact_sort();
    values.dedup();
    values
}

/// Longest permitted exit latency of a CPU's idle states, in us; none if unlimited.
///
/// The kernel prints no limit as `0`, and a limit of no latency as `n/a`.
pub fn parse_resume_latency(text: &str) -> Result<Option<u64>, String> {
    if text.trim() == "n/a" {
        return Ok(Some(0));
    }
    match u64::try_from(parse_i64(text)?) {
        Ok(0) => Ok(None),
        Ok(limit) => Ok(Some(limit)),
        Err(_) => Err("expected 0, n/a or a number of us, found a negative one".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_limit_and_no_latency_are_distinguished() {
        let parse = |text| parse_resume_latency(text).ok();
        assert_eq!(parse("0\n"), Some(None));
        assert_eq!(parse("n/a\n"), Some(Some(0)));
        assert_eq!(parse("10\n"), Some(Some(10)));
        for bad in ["", "-1", "n/a 0", "10 us"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "(n/a|-?[0-9]{0,25})?\\PC{0,9}") {
            let _ = parse_resume_latency(&text);
        }
    }

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
