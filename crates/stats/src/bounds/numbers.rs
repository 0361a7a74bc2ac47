//! Numbers in the form that gates and reports print.

/// A probability in the form that the tests print.
pub fn p_value(p: f64) -> String {
    if p < 0.001 { format!("{p:.1e}") } else { format!("{p:.3}") }
}

/// A number without trailing zeros: `99`, `99.5`.
pub fn digits(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_probabilities_are_not_zero() {
        assert_eq!([p_value(0.0004), p_value(0.05), p_value(1.0)], ["4.0e-4", "0.050", "1.000"]);
        assert_eq!([digits(99.0), digits(99.5), digits(50.0)], ["99", "99.5", "50"]);
    }
}
