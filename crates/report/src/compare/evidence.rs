//! What p and the e-value of a comparison rest on, in words that name its unit.

use stats::compare::Compared;
use stats::pair::e_value::{MAX_OVERDISPERSION, STOP_AT};
use stats::pair::unit::ComparedUnit;
use stats::pair::verdict::Design;

/// A factor with three digits.
pub fn factor(value: f64) -> String {
    if value == 0.0 || (0.01..1000.0).contains(&value) {
        format!("{value:.2}")
    } else {
        format!("{value:.1e}")
    }
}

/// What it takes more of, for so many of them.
pub fn units_of_each(compared: &Compared) -> String {
    match compared.design {
        Design::Paired => "pairs".to_owned(),
        Design::Unpaired => format!("{} of each", compared.unit.many()),
    }
}

/// How p came about. Of rates it is the larger of two, each of which assumes something else:
/// exchanged runs that they are of equal length, counted events that runs do not differ.
pub fn design(compared: &Compared) -> String {
    let (a, b) = (compared.a.len(), compared.b.len());
    let (one, many) = (compared.unit.one(), compared.unit.many());
    if a + b == 2 {
        return format!("one {one} each, from their events alone");
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
    match compared.difference_ns {
        None if judged => format!("{units}; p is the larger of that by {by} and that of the events alone"),
        _ => format!("{units}, by {by}"),
    }
}

/// The sequential result from the counts (e-value), if it is valid.
pub fn counts(compared: &Compared) -> Option<String> {
    let e = compared.e_value.filter(|_| compared.a.len() + compared.b.len() > 2)?;
    let many = compared.unit.many();
    let value = format!("Evidence in the counts so far (e-value) {}", factor(e));
    if let Some(spread) = compared.overdispersion.filter(|spread| *spread > MAX_OVERDISPERSION) {
        return Some(format!(
            "{value}: no reason to stop, for it does not hold here: the counts of {many} of one side spread {spread:.1} times as much as chance alone."
        ));
    }
    if !compared.limit_given {
        return Some(format!("{value}: no reason to stop, for the limit was chosen from the {many}."));
    }
    let stop = if e >= STOP_AT {
        format!("{STOP_AT} is reached, one may stop")
    } else {
        format!("not enough to stop early, which takes {STOP_AT}")
    };
    Some(format!("{value}: {stop}, if order, lengths and limit were fixed without looking at the {many}."))
}
