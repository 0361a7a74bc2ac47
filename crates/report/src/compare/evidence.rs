//! Evidence for the verdict, p and the e-value of a comparison, in words that name its unit.

use crate::words::span;
use model::units::Nanos;
use stats::bounds::numbers::p_value;
use stats::compare::{Compared, Counted, Unit};
use stats::pair::e_value::{MAX_OVERDISPERSION, STOP_AT};
use stats::pair::unit::ComparedUnit;
use stats::pair::verdict::{Design, UnitTest};

/// Factor with three digits.
pub fn factor(value: f64) -> String {
    if value == 0.0 || (0.01..1000.0).contains(&value) {
        format!("{value:.2}")
    } else {
        format!("{value:.1e}")
    }
}

/// Units of which more are needed, in words that follow their number.
pub fn units_of_each(compared: &Compared) -> String {
    match compared.design {
        Design::Paired => "pairs".to_owned(),
        Design::Unpaired => format!("{} of each", compared.unit.many()),
    }
}

/// Units that are counted at the limit: plural and singular.
pub const fn counted(compared: &Compared) -> [&'static str; 2] {
    match compared.counted {
        Counted::Blocks => ["blocks", "block"],
        Counted::WakeUps => ["wake-ups", "wake-up"],
    }
}

/// Whole number with commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let from_end = |at: usize| digits.len() - at;
    let comma = |at: usize| if at > 0 && from_end(at) % 3 == 0 { "," } else { "" };
    digits.char_indices().map(|(at, digit)| format!("{}{digit}", comma(at))).collect()
}

/// Range of the values of a side's units.
fn range<T: Ord + Copy>(values: impl Iterator<Item = T>, format: impl Fn(T) -> String) -> String {
    let values: Vec<T> = values.collect();
    match (values.iter().min(), values.iter().max()) {
        (Some(least), Some(most)) if least == most => format(*least),
        (Some(least), Some(most)) => format!("{} to {}", format(*least), format(*most)),
        _ => String::new(),
    }
}

/// Evidence that separates the sides if all wake-ups of each run are compared: the numbers of the
/// runs and their test.
pub fn separation(compared: &Compared) -> String {
    let latencies = |units: &[Unit]| spans(units.iter().filter_map(|unit| unit.value_ns));
    let counts = |units: &[Unit]| range(units.iter().filter_map(|unit| unit.exceedances), grouped);
    let (a, b) = (&compared.a, &compared.b);
    let numbers = match compared.limit_ns.filter(|_| compared.difference_ns.is_none()) {
        Some(limit) => {
            let all = [a.as_slice(), b].concat();
            let (of_b, of_a) = match length(&all) {
                Some(one) => (one, String::new()),
                None => (lengths(b), format!(" of {}", lengths(a))),
            };
            let (limit, late, before) = (span(limit), counts(b), counts(a));
            format!("at or above {limit} in {late} of {of_b} wake-ups a run, before {before}{of_a}")
        }
        None => format!("{} of {} a run, before {}", metric_of_runs(compared), latencies(b), latencies(a)),
    };
    format!("{numbers} ({})", tested(compared))
}

/// Number of wake-ups per unit, if it is about the same in all units.
fn length(units: &[Unit]) -> Option<String> {
    let many = || units.iter().filter_map(|unit| unit.wake_ups);
    let (least, most) = (many().min()?, many().max()?);
    let step = 10u64.pow(most.checked_ilog10()?.saturating_sub(2));
    match most - least {
        0 => Some(grouped(least)),
        by if by <= least / 20 => {
            Some(format!("about {}", grouped((least + by / 2 + step / 2) / step * step)))
        }
        _ => None,
    }
}

fn lengths(units: &[Unit]) -> String {
    length(units).unwrap_or_else(|| range(units.iter().filter_map(|unit| unit.wake_ups), grouped))
}

/// Range of latencies, with their unit once if both have the same.
fn spans(values: impl Iterator<Item = Nanos>) -> String {
    let text = range(values, span);
    match text.split_once(" to ") {
        Some((least, most)) if least.rsplit(' ').next() == most.rsplit(' ').next() => {
            let number = least.rsplit_once(' ').map_or(least, |found| found.0);
            format!("{number} to {most}")
        }
        _ => text,
    }
}

/// Compared latency of each run, in words.
pub fn metric_of_runs(compared: &Compared) -> String {
    if compared.metric == "max" { "a maximum".into() } else { format!("a {}", compared.metric) }
}

fn tested(compared: &Compared) -> String {
    let p = compared.p_value.map_or_else(String::new, |p| format!(" p = {}", plain(p)));
    let (a, b) = (compared.a.len(), compared.b.len());
    if let Some(baseline) = compared.baseline {
        let by = if baseline.method == "rank" { "rank" } else { "spread" };
        return format!("one new run against {} past ones,{p} by their {by}", baseline.runs);
    }
    match (compared.test, compared.exact) {
        (UnitTest::SignFlip, true) => format!("{} pairs, exact sign-flip test{p}", compared.units),
        (UnitTest::SignFlip, false) => format!("{} pairs, sign-flip test{p}", compared.units),
        (_, true) => format!("{b} runs against {a}, exact rank test{p}"),
        (_, false) => format!("{b} runs against {a}, rank test by the normal law{p}"),
    }
}

/// Probability with two digits, as a plain fraction.
fn plain(p: f64) -> String {
    match p {
        p if p >= 0.001 => p_value(p),
        p if p >= 1e-6 => {
            let decimals = (1.0 - p.log10().floor()) as usize;
            format!("{p:.decimals$}")
        }
        _ => p_value(p),
    }
}

/// Design of the test. For rates, p is the larger of two values with different assumptions:
/// permuted runs have equal lengths, counted events do not differ between runs.
pub fn design(compared: &Compared) -> String {
    let (a, b) = (compared.a.len(), compared.b.len());
    let (one, many) = (compared.unit.one(), compared.unit.many());
    if a + b == 2 {
        return format!("one {one} each, from their events only");
    }
    let how = if compared.exact { "all" } else { "drawn" };
    let (units, by) = if let Some(baseline) = compared.baseline {
        let units = match compared.unit {
            ComparedUnit::Run => format!("one new run against {} past ones", baseline.runs),
            _ => format!("one {one} against {} others", baseline.runs),
        };
        (units, "their spread".to_owned())
    } else if compared.design == Design::Paired {
        (format!("{} pairs", compared.units), format!("{how} sign flips"))
    } else {
        (format!("{a} and {b} {many}"), format!("{how} permutations"))
    };
    let judged = compared.p_value.is_some();
    if compared.test == UnitTest::RankSum && compared.baseline.is_none() {
        let law = if compared.exact {
            "the exact rank test"
        } else {
            "the rank test (normal law, corrected for ties and continuity)"
        };
        return format!("{a} and {b} {many}, by {law}");
    }
    match compared.difference_ns {
        None if judged => format!("{units}; p is the larger of that by {by} and that of the events only"),
        _ => format!("{units}, by {by}"),
    }
}

/// Sequential result from the counts (e-value), if it is valid.
pub fn counts(compared: &Compared) -> Option<String> {
    let e = compared.e_value.filter(|_| compared.a.len() + compared.b.len() > 2)?;
    let many = compared.unit.many();
    let value = format!("Evidence in the counts so far (e-value) {}", factor(e));
    if let Some(spread) = compared.overdispersion.filter(|spread| *spread > MAX_OVERDISPERSION) {
        return Some(format!(
            "{value}: no reason to stop, because the counts of {many} of one side spread {spread:.1} times as much as by chance, which makes it invalid."
        ));
    }
    if !compared.limit_given {
        return Some(format!("{value}: no reason to stop, because the limit was chosen from the {many}."));
    }
    let stop = if e >= STOP_AT {
        format!("{STOP_AT} is reached, you may stop")
    } else {
        format!("not enough to stop early, which needs {STOP_AT}")
    };
    Some(format!("{value}: {stop}, if order, lengths and limit were fixed without looking at the {many}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [0, 999, 1_000, 60_000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "60,000", "1,234,567"]
        );
        assert_eq!(
            [0.029, 2.0 / 12_870.0, 3.4e-6, 2e-9].map(plain),
            ["0.029", "0.00016", "0.0000034", "2.0e-9"]
        );
        assert_eq!(range([3, 1, 2].into_iter(), grouped), "1 to 3");
        let us = |us: &[i64]| spans(us.iter().map(|us| Nanos(us * 1_000)));
        assert_eq!(
            [us(&[13, 14]), us(&[21, 21]), us(&[900, 1_100])],
            ["13 to 14 us", "21 us", "900 us to 1.10 ms"]
        );
        let of = |many: [u64; 2]| lengths(&many.map(|n| Unit { wake_ups: Some(n), ..Unit::default() }));
        assert_eq!([[60_000; 2], [60_000, 60_249], [7, 9]].map(of), ["60,000", "about 60,100", "7 to 9"]);
    }
}
