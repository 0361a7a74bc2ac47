//! Lines of the kernel's hwlat tracer: sampling windows with gaps.
//!
//! Source: trace_hwlat_print in kernel/trace/trace_output.c,
//! Documentation/trace/hwlat_detector.rst.

use model::units::Nanos;

/// Sampling window in which the tracer found gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HwlatWindow {
    /// Wall time of the first gap; on kernels before 5.8, of the window's end.
    pub wall: Nanos,
    /// Longest gap within two reads of the clock.
    pub inner: Nanos,
    /// Longest gap between two such pairs.
    pub outer: Nanos,
    /// Number of gaps; none on kernels before 5.8.
    pub count: Option<u64>,
}

impl HwlatWindow {
    /// Length of the window's longest gap.
    pub fn longest(self) -> Nanos {
        self.inner.max(self.outer)
    }
}

/// Windows in the text of a trace buffer; other lines are skipped.
pub fn windows(text: &str) -> impl Iterator<Item = HwlatWindow> + '_ {
    text.lines().filter_map(window)
}

fn window(line: &str) -> Option<HwlatWindow> {
    let (_, rest) = line.split_once(" inner/outer(us): ")?;
    let (gaps, rest) = rest.split_once(" ts:")?;
    let (inner, outer) = gaps.trim().split_once('/')?;
    let mut fields = rest.split_ascii_whitespace();
    let wall = seconds(fields.next()?)?;
    let count = fields.find_map(|field| field.strip_prefix("count:")?.parse().ok());
    Some(HwlatWindow { wall, inner: micros(inner)?, outer: micros(outer)?, count })
}

fn micros(text: &str) -> Option<Nanos> {
    text.trim().parse::<i64>().ok().filter(|&us| us >= 0)?.checked_mul(Nanos::MICRO.0).map(Nanos)
}

/// Seconds with nine decimals.
fn seconds(text: &str) -> Option<Nanos> {
    let (whole, fraction) = text.split_once('.')?;
    let fraction: u32 = fraction.parse().ok().filter(|_| fraction.len() == 9)?;
    let whole = whole.parse::<i64>().ok().filter(|&whole| whole >= 0)?;
    whole.checked_mul(Nanos::SECOND.0)?.checked_add(fraction.into()).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_a_window() {
        let text = "CPU:1 [LOST 3 EVENTS]\n           <...>-1638  [001] d..1.  1714.123456: #1     \
                    inner/outer(us):   12/31000 ts:1499801089.066141940 count:2 nmi-total:5 nmi-count:1\n  \
                    hwlatd/1-77 [001] .....  9.5: #22 inner/outer(us): 15/14 ts:1.000000001\n";
        let found: Vec<HwlatWindow> = windows(text).collect();
        let first = HwlatWindow {
            wall: Nanos(1_499_801_089_066_141_940),
            inner: Nanos(12_000),
            outer: Nanos(31_000_000),
            count: Some(2),
        };
        let second = HwlatWindow {
            wall: Nanos(1_000_000_001),
            inner: Nanos(15_000),
            outer: Nanos(14_000),
            count: None,
        };
        assert_eq!(found, [first, second]);
        assert_eq!((first.longest(), second.longest()), (Nanos(31_000_000), Nanos(15_000)));
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "#1 inner/outer(us): 1/2",
            "x inner/outer(us): 1/ ts:1.000000001",
            "x inner/outer(us): -1/2 ts:1.000000001",
            "x inner/outer(us): 1/2 ts:1.5",
            "x inner/outer(us): 1/2 ts:9223372036854775807.000000001",
            "x inner/outer(us): 9223372036854775807/2 ts:1.000000001",
        ] {
            assert_eq!(windows(line).count(), 0, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[#a-z0-9:./() \n-]{0,80}", tail in "[0-9/ ts:.]{0,40}") {
            windows(&text).count();
            windows(&format!("x inner/outer(us): {tail}")).count();
        }
    }
}
