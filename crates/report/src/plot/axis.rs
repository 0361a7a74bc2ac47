//! Scales and their ticks. Total: for any values a scale has a positive length and at least one
//! tick, and no position is outside the plot.

use model::units::Nanos;

/// Tick; without a label it is only a thin grid line.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub value: f64,
    /// Label, `""` for a minor tick.
    pub label: String,
}

/// Map from values to a range of the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    log: bool,
    lo: f64,
    hi: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Linear scale from `lo` to `hi`, drawn between the positions `from` and `to`.
    pub fn linear(lo: f64, hi: f64, from: f64, to: f64) -> Scale {
        let hi = if hi > lo { hi } else { lo + lo.abs().max(1.0) };
        Scale { log: false, lo, hi, from, to }
    }

    /// Logarithmic scale; values not above zero are clamped to the least shown value.
    pub fn log(lo: f64, hi: f64, from: f64, to: f64) -> Scale {
        let lo = if lo > 0.0 { lo } else { 1.0 };
        let hi = if hi > lo { hi } else { lo * 10.0 };
        Scale { log: true, lo, hi, from, to }
    }

    /// Position of a value; values outside are clamped.
    pub fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(f64::MIN_POSITIVE) / self.lo).ln() / (self.hi / self.lo).ln()
        } else {
            (value - self.lo) / (self.hi - self.lo)
        };
        self.from + (self.to - self.from) * share.clamp(0.0, 1.0)
    }

    /// True if the value is within the scale.
    pub fn holds(&self, value: f64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }

    /// Value at the low end.
    pub fn lo(&self) -> f64 {
        self.lo
    }

    /// Value at the high end.
    pub fn hi(&self) -> f64 {
        self.hi
    }

    /// About this number of round values within the scale; `label` writes their labels.
    pub fn ticks(&self, about: usize, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let about = about.max(2);
        if self.log { self.log_ticks(about, label) } else { self.linear_ticks(about, label) }
    }

    fn linear_ticks(&self, about: usize, label: impl Fn(f64) -> String) -> Vec<Tick> {
        self.step_ticks(nice_at_or_above((self.hi - self.lo) / about as f64), label)
    }

    /// Ticks at the multiples of a step.
    pub fn step_ticks(&self, step: f64, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let first = (self.lo / step).ceil();
        let count = ((self.hi / step).floor() - first).clamp(0.0, 200.0) as usize;
        (0..=count)
            .map(|i| (first + i as f64) * step)
            .map(|value| Tick { value, label: label(value) })
            .collect()
    }

    fn log_ticks(&self, about: usize, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let (first, last) = (self.lo.log10().floor() as i32, self.hi.log10().ceil() as i32);
        let decades = (self.hi / self.lo).log10();
        // Few decades also have labels at 2 and 5, many only at each second, third, ...
        let named: &[u32] = match decades {
            d if d * 3.0 <= about as f64 => &[1, 2, 5],
            d if d <= 2.7 && d * 1.8 <= about as f64 => &[1, 3],
            _ => &[1],
        };
        let every = ((decades / about as f64).ceil() as i32).max(1);
        let mut ticks = Vec::new();
        for decade in first..=last {
            for digit in 1..10u32 {
                let value = f64::from(digit) * 10f64.powi(decade);
                let name = named.contains(&digit) && decade.rem_euclid(every) == 0;
                if self.holds(value) && (name || every == 1) {
                    ticks.push(Tick { value, label: if name { label(value) } else { String::new() } });
                }
            }
        }
        // Less than an octave may have no label, less than a decade too few to interpolate.
        let named = ticks.iter().filter(|tick| !tick.label.is_empty()).count();
        if named < 2 || (named < 3 && decades < 1.0) {
            return self.linear_ticks(about.min(5), label);
        }
        ticks
    }
}

/// Least of 1, 2, 5, 10, ... (times a power of ten) that is not below the value.
pub fn nice_at_or_above(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let digit = value / power;
    // The tolerance keeps the result of a division, such as 2.0000000001, from becoming 5.
    let nice = [1.0, 2.0, 5.0].into_iter().find(|&nice| digit <= nice * 1.000_001).unwrap_or(10.0);
    nice * power
}

/// Largest of 1, 2, 5, 10, ... (times a power of ten) that is not above the value.
pub fn nice_at_or_below(value: f64) -> f64 {
    let above = nice_at_or_above(value);
    if above <= value * 1.000_001 {
        return above;
    }
    // The value before 5 is 2; before 1 and 2 it is the half.
    let power = 10f64.powf(above.log10().floor());
    if (above / power - 5.0).abs() < 0.5 { above / 2.5 } else { above / 2.0 }
}

/// Unit for the labels of a linear axis up to `hi` nanoseconds, and its size.
///
/// Microseconds where they are readable, as usual in the field.
pub fn unit_of(hi: f64) -> (&'static str, f64) {
    match hi {
        h if h < 1e3 => ("ns", 1.0),
        h if h < 2e7 => ("us", 1e3),
        h if h < 2e10 => ("ms", 1e6),
        _ => ("s", 1e9),
    }
}

/// Latency with its unit, as at the ticks of a logarithmic axis.
pub fn span_label(ns: f64) -> String {
    let (unit, size) = match ns.abs() {
        a if a < 999.5 => ("ns", 1.0),
        a if a < 999.5e3 => ("us", 1e3),
        a if a < 999.5e6 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{} {unit}", number(ns / size))
}

/// Number without the noise of binary fractions, and without trailing zeros.
pub fn number(value: f64) -> String {
    if value.abs() >= 1e7 || (value != 0.0 && value.abs() < 1e-3) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Power of ten with its exponent raised; other values as numbers.
pub fn power_label(value: f64) -> String {
    let exponent = value.log10().round();
    if (0.0..=3.0).contains(&exponent) || (value.log10() - exponent).abs() > 1e-6 {
        return number(value);
    }
    let digits: String = format!("{exponent}")
        .chars()
        .map(|c| match c {
            '-' => '\u{207b}',
            '1' => '\u{b9}',
            '2' => '\u{b2}',
            '3' => '\u{b3}',
            c => char::from_u32(0x2070 + c.to_digit(10).unwrap_or(0)).unwrap_or(c),
        })
        .collect();
    format!("10{digits}")
}

/// Ticks of elapsed time: seconds, then minutes and seconds, hours and minutes, days. Returns the
/// unit of the labels, and the ticks in nanoseconds.
pub fn time_ticks(scale: &Scale, about: usize) -> (&'static str, Vec<Tick>) {
    const STEPS: [u32; 19] = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
        172_800,
    ];
    let second = Nanos::SECOND.0 as f64;
    let wanted = (scale.hi - scale.lo) / about.max(2) as f64 / second;
    let step = match STEPS.iter().find(|&&step| f64::from(step) >= wanted) {
        Some(&step) if wanted > 0.5 => f64::from(step),
        Some(_) => nice_at_or_above(wanted),
        None => nice_at_or_above(wanted / 86_400.0) * 86_400.0,
    };
    let longest = scale.hi / second;
    let written = match (longest, step) {
        (l, _) if l < 100.0 => "s",
        (l, _) if l < 3_600.0 * 1.5 => "min:s",
        (_, s) if s < 86_400.0 => "h:min",
        _ => "days",
    };
    let label = |ns: f64| {
        let s = ns / second;
        let whole = s.round() as i64;
        match written {
            "s" => number(s),
            "min:s" => format!("{}:{:02}", whole / 60, whole % 60),
            "h:min" => format!("{}:{:02}", whole / 3_600, whole / 60 % 60),
            _ => number(s / 86_400.0),
        }
    };
    (written, scale.step_ticks(step * second, label))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(ticks: Vec<Tick>) -> String {
        let named: Vec<String> = ticks.into_iter().map(|t| t.label).filter(|l| !l.is_empty()).collect();
        named.join("|")
    }

    #[test]
    fn ticks_are_round_numbers() {
        let us = |v: f64| number(v / 1e3);
        assert_eq!(labels(Scale::linear(0.0, 43_000.0, 0.0, 800.0).ticks(8, us)), "0|10|20|30|40");
        assert_eq!(
            labels(Scale::log(1e3, 1e7, 0.0, 800.0).ticks(8, span_label)),
            "1 us|10 us|100 us|1 ms|10 ms"
        );
        assert_eq!(labels(Scale::log(1.5e3, 1.2e4, 0.0, 800.0).ticks(8, span_label)), "2 us|5 us|10 us");
        assert_eq!(
            labels(Scale::log(3.9e3, 4.8e3, 0.0, 800.0).ticks(8, span_label)),
            "4 us|4.2 us|4.4 us|4.6 us|4.8 us"
        );
        assert_eq!((power_label(0.05), power_label(2e-5)), ("0.05".into(), "2e-5".into()));
        assert_eq!(power_label(1e-4), "10\u{207b}\u{2074}");
        assert_eq!(power_label(100.0), "100");
    }

    #[test]
    fn nice_values_are_on_either_side() {
        for (value, below, above) in
            [(45.0, 20.0, 50.0), (15.0, 10.0, 20.0), (70.0, 50.0, 100.0), (50.0, 50.0, 50.0), (1e5, 1e5, 1e5)]
        {
            assert_eq!((nice_at_or_below(value), nice_at_or_above(value)), (below, above), "{value}");
        }
    }

    #[test]
    fn time_is_written_in_readable_units() {
        let ticks = |seconds: f64| {
            let scale = Scale::linear(0.0, seconds * 1e9, 0.0, 800.0);
            let (written, ticks) = time_ticks(&scale, 6);
            format!("{written}: {}", labels(ticks))
        };
        assert_eq!(ticks(10.0), "s: 0|2|4|6|8|10");
        assert_eq!(ticks(0.5), "s: 0|0.1|0.2|0.3|0.4|0.5");
        assert_eq!(ticks(3_600.0), "min:s: 0:00|10:00|20:00|30:00|40:00|50:00|60:00");
        assert_eq!(ticks(86_400.0), "h:min: 0:00|6:00|12:00|18:00|24:00");
        assert_eq!(ticks(864_000.0), "days: 0|2|4|6|8|10");
    }

    proptest! {
        #[test]
        fn scales_are_total(a in any::<i64>(), b in any::<i64>(), v in any::<i64>(), log: bool) {
            let (a, b) = (a.min(b) as f64, a.max(b) as f64);
            let scale = if log { Scale::log(a, b, 10.0, 90.0) } else { Scale::linear(a, b, 10.0, 90.0) };
            prop_assert!((10.0..=90.0).contains(&scale.at(v as f64)));
            prop_assert!(scale.ticks(8, number).len() <= 400);
            prop_assert!(time_ticks(&scale, 8).1.len() <= 400);
        }
    }
}
