//! Decimal numbers of a text in nanoseconds, without the error of floats.

use model::units::Nanos;

/// Number of digits after the point that are read: more than any unit resolves.
const FRACTION: usize = 12;

/// Parses a plain decimal number in this unit, rounded to a nanosecond.
pub(super) fn in_ns(text: &str, unit: Nanos) -> Option<Nanos> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_plain(whole) || !is_plain(fraction) {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(FRACTION)];
    let scale = 10i128.pow(fraction.len() as u32);
    let parts = if fraction.is_empty() { 0 } else { fraction.parse::<i128>().ok()? };
    let scaled = whole.parse::<i128>().ok()?.checked_mul(scale)?.checked_add(parts)?;
    let ns = i64::try_from(scaled.checked_mul(unit.0.into())?.checked_add(scale / 2)? / scale).ok()?;
    Some(Nanos(if digits.len() < text.len() { -ns } else { ns }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        for (text, ns) in [
            ("1.104", Some(1_104)),
            ("-4.250", Some(-4_250)),
            ("-0.5", Some(-500)),
            ("38", Some(38_000)),
            ("123.04428478118876", Some(123_044)),
            ("0.0005", Some(1)),
            ("707.622", Some(707_622)),
            ("", None),
            ("-", None),
            (".5", None),
            ("-nan", None),
            ("1e3", None),
            ("1.2.3", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(in_ns(text, Nanos::MICRO), ns.map(Nanos), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "-?[0-9.e]{0,60}") {
            in_ns(&text, Nanos::SECOND);
        }
    }
}
