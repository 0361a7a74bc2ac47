//! Sizes and rates in texts: `128`, `64K`, `15M`, `1G`, in powers of 1024.

/// Parses a number with its unit letter; the error states the expected form.
pub fn parse(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.trim_end_matches("ib").trim_end_matches('b');
    let digits = lower.trim_end_matches(['k', 'm', 'g', 't']);
    let shift = match &lower[digits.len()..] {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(format!("'{text}' has two units")),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("'{text}' is not a size: expected one like 128, 64K, 15M or 1G"))
}

/// Formats a size in the largest unit that leaves a whole number.
pub fn text(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let fits = |shift: u32| bytes > 0 && bytes.trailing_zeros() >= shift;
    match units.into_iter().find(|(shift, _)| fits(*shift)) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        for (given, bytes) in [
            ("128", 128),
            ("64K", 65_536),
            ("15M", 15 << 20),
            ("1G", 1 << 30),
            ("2gib", 2 << 30),
            ("3kB", 3072),
        ] {
            assert_eq!(parse(given).unwrap(), bytes, "{given}");
            assert_eq!(parse(&text(bytes)).unwrap(), bytes, "{given}");
        }
        for given in ["", "0", "K", "-1", "1.5G", "1KM", "99999999999999999999", "99999999T", "x"] {
            assert!(parse(given).is_err(), "{given}");
        }
    }
}
