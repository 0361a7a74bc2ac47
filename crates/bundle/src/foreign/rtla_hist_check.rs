//! Checks facts that rtla's histogram states twice.

use super::error::ImportError;
use super::rtla_hist_find::{LABELS, RtlaTable};
use super::rtla_hist_table::{RtlaHist, RtlaSummary};
use super::rtla_shared::refuse;
use super::rtla_width::HistShape;
use model::vocabulary::Quantity;

/// Parses a number with up to three digits after the point into thousandths; `Some(None)` for `-`,
/// `None` if it is not a number.
pub(super) fn thousandths(word: &str) -> Option<RtlaSummary> {
    if word == "-" {
        return Some(None);
    }
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.len() > 3 || !digits(whole) || !digits(fraction) || word.ends_with('.') {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction: u128 = format!("{fraction:0<3}").parse().ok()?;
    Some(Some(u128::from(whole) * 1000 + fraction))
}

/// A value of thousandths as printed, without the fraction.
fn printed_value(value: u128) -> u128 {
    value / 1000
}

/// Refuses a block that was cut off.
pub(super) fn complete(hist: &RtlaHist, table: RtlaTable) -> Result<(), ImportError> {
    let end = hist.end;
    let lacks = |name: &str| {
        refuse(format!("line {end}: the histogram ends without '{name}:': give the whole output"))
    };
    if hist.over.is_none() {
        return lacks("over");
    }
    let missing = |lines: &[Option<_>; 4]| {
        LABELS.iter().zip(lines).find(|(_, line)| line.is_none()).map(|(name, _)| *name)
    };
    let has_summary = hist.summary.iter().any(Option::is_some) || hist.kinds.is_some();
    if let Some(name) = missing(&hist.summary).filter(|_| has_summary) {
        return lacks(name);
    }
    if let Some(name) = missing(&hist.all).filter(|_| hist.kinds.is_some() && table == RtlaTable::Timerlat) {
        return lacks(name);
    }
    Ok(())
}

/// Refuses columns whose rows and summary contradict each other.
pub(super) fn columns(hist: &RtlaHist, shape: &HistShape) -> Result<(), ImportError> {
    let line = |label: usize| hist.summary[label].as_ref().map_or(hist.end, |line| line.0);
    for (index, buckets) in hist.buckets.iter().enumerate() {
        let rows = buckets.iter().map(|bucket| u128::from(bucket.1)).sum::<u128>();
        let total = rows + u128::from(hist.overflows(index));
        let name = hist.name(index);
        if hist.summary[0].is_none() {
            continue;
        }
        if let Some(count) = hist.value(0, index).filter(|count| *count != total * 1000) {
            return refuse(format!(
                "line {}: count: says {} for {name}, its rows and over: hold {total}: give the output \
                 as it was",
                line(0),
                printed_value(count)
            ));
        }
        if total == 0 && table_is_osnoise(hist) {
            return refuse(format!(
                "line {}: rtla prints zeros for {name} where all noise is beyond the histogram: \
                 repeat with a larger -E",
                line(0)
            ));
        }
        if total == 0 {
            continue;
        }
        let (Some(min), Some(avg), Some(max)) =
            (hist.value(1, index), hist.value(2, index), hist.value(3, index))
        else {
            return refuse(format!(
                "line {}: no summary of {name}, which has samples: give the output as it was",
                line(3)
            ));
        };
        // An early wake-up, printed as a number near 2^64, spoils the largest and the average.
        let is_early = i64::try_from(printed_value(max)).is_err();
        if (min > avg || avg > max) && !is_early {
            return refuse(format!(
                "line {}: avg: of {name} is not between min: and max:: give the output as it was",
                line(2)
            ));
        }
        let Some(width) = shape.width.map(u128::from) else { continue };
        let within = |value: u128, bucket: &(u64, u64)| {
            (u128::from(bucket.0)..u128::from(bucket.0) + width).contains(&printed_value(value))
        };
        if buckets.first().map_or(printed_value(min) < hist.last.into(), |first| !within(min, first)) {
            return refuse(format!(
                "line {}: min: of {name} is not in its first row: give the output as it was",
                line(1)
            ));
        }
        let fits = match buckets.last() {
            Some(last) if hist.overflows(index) == 0 => within(max, last),
            _ => is_early || printed_value(max) >= shape.end.into(),
        };
        if !fits {
            return refuse(format!(
                "line {}: max: of {name} contradicts its rows: give the output as it was",
                line(3)
            ));
        }
    }
    Ok(())
}

fn table_is_osnoise(hist: &RtlaHist) -> bool {
    hist.columns.iter().any(|column| column.quantity == Quantity::Gap)
}

/// Refuses a summary of all CPUs that differs from that of the columns.
pub(super) fn all(hist: &RtlaHist) -> Result<(), ImportError> {
    let Some((line, names)) = &hist.kinds else { return Ok(()) };
    let kinds = [("IRQ", Quantity::Irq), ("Thr", Quantity::Wakeup), ("Usr", Quantity::User)];
    let kinds = kinds.into_iter().filter(|kind| hist.columns.iter().any(|column| column.quantity == kind.1));
    if !kinds.clone().map(|kind| kind.0).eq(names.iter().map(String::as_str)) {
        return refuse(format!(
            "line {line}: ALL: has other columns than the histogram: give the output as it was"
        ));
    }
    for (place, (name, quantity)) in kinds.enumerate() {
        let own = || (0..hist.columns.len()).filter(|&index| hist.columns[index].quantity == quantity);
        let stated =
            |label: usize| hist.all[label].as_ref().and_then(|line| line.1.get(place).copied()).flatten();
        let values = |label: usize| own().filter_map(move |index| hist.value(label, index));
        let contradicts = |label: usize| {
            let line = hist.all[label].as_ref().map_or(*line, |line| line.0);
            refuse(format!(
                "line {line}: {}: of ALL {name} does not match its CPUs: give the output as it was",
                LABELS[label]
            ))
        };
        if stated(0) != Some(values(0).sum()) {
            return contradicts(0);
        }
        // The minimum of a column without a sample is undefined, and may be that of ALL; an early
        // wake-up, printed as a number near 2^64, spoils the largest and the average.
        let is_early = |max: u128| i64::try_from(printed_value(max)).is_err();
        if own().any(|index| hist.value(0, index) == Some(0)) || values(3).any(is_early) {
            continue;
        }
        if stated(1) != values(1).min() {
            return contradicts(1);
        }
        if stated(3) != values(3).max() {
            return contradicts(3);
        }
        if !average_fits(stated(2), || own().map(|index| (hist.value(0, index), hist.value(2, index)))) {
            return contradicts(2);
        }
    }
    Ok(())
}

/// True if the average may be that of these counts and averages, whose fractions were cut off.
fn average_fits<I: Iterator<Item = (RtlaSummary, RtlaSummary)>>(
    all: RtlaSummary,
    parts: impl Fn() -> I,
) -> bool {
    let sum = |more: u128| {
        parts().try_fold((0u128, 0u128), |(total, sum), (count, avg)| {
            let count = count? / 1000;
            Some((total.checked_add(count)?, sum.checked_add(count.checked_mul(avg? / 1000 + more)?)?))
        })
    };
    let (Some(all), Some((total, least)), Some((_, most))) = (all, sum(0), sum(1)) else { return true };
    total == 0 || (least / total..=most / total).contains(&printed_value(all))
}

impl RtlaHist {
    /// Name of a column, as in the heading.
    fn name(&self, index: usize) -> String {
        let Some(column) = self.columns.get(index) else { return String::new() };
        let kind = match column.quantity {
            Quantity::Irq => "IRQ",
            Quantity::User => "Usr",
            Quantity::Gap => "CPU",
            _ => "Thr",
        };
        format!("{kind}-{:03}", column.cpu.0)
    }
}
