//! Quantities of the field as types: integer nanoseconds, CPU numbers, lists of CPUs.
//!
//! Microseconds exist only in flags and in texts for users, so every conversion is here.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A signed instant or span in nanoseconds; an instant is of CLOCK_MONOTONIC unless named
/// otherwise.
///
/// Signed, because a wake-up can come early; 64 bits hold 292 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    pub const SECOND: Nanos = Nanos(1_000_000_000);
    pub const MILLI: Nanos = Nanos(1_000_000);
    pub const MICRO: Nanos = Nanos(1_000);

    /// Microseconds of the span, for texts and for formats in that unit.
    pub fn as_micros(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Seconds of the span.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// A latency in readable units, as [`fmt::Display`] writes it: `41.3 us`.
    pub fn spaced(self) -> String {
        self.to_string()
    }

    /// A length of time in readable units: `1 h 2 min`, `2 min 5 s`, `10.0 s`, `350 ms`.
    pub fn spoken(self) -> String {
        let s = self.0.max(0) / Nanos::SECOND.0;
        match s {
            0 => self.spaced(),
            1..100 => format!("{:.1} s", self.as_secs()),
            100..3_600 => two_units(s, "min", 60, "s", 1),
            3_600..172_800 => two_units(s, "h", 3_600, "min", 60),
            172_800..63_072_000 => two_units(s, "d", 86_400, "h", 3_600),
            _ => two_units(s, "y", 31_536_000, "d", 86_400),
        }
    }
}

fn two_units(s: i64, large: &str, size: i64, small: &str, part: i64) -> String {
    match s % size / part {
        0 => format!("{} {large}", s / size),
        rest => format!("{} {large} {rest} {small}", s / size),
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

/// A span in readable units: `999 ns`, `12.3 us`, `4.56 ms`, `7.89 s`, three significant digits,
/// except that whole numbers of a unit stay whole (`10 s`, `1 ms`).
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.unsigned_abs();
        let (unit, name) = match size {
            0..1_000 => return f.pad(&format!("{} ns", self.0)),
            1_000..1_000_000 => (1e3, "us"),
            1_000_000..1_000_000_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let value = self.0 as f64 / unit;
        let text = match value.abs() {
            v if v.fract() == 0.0 => format!("{value:.0} {name}"),
            v if v < 10.0 => format!("{value:.2} {name}"),
            v if v < 100.0 => format!("{value:.1} {name}"),
            _ => format!("{value:.0} {name}"),
        };
        f.pad(&text)
    }
}

/// Unit of a bare number in a flag: cyclictest's `-D` counts seconds, its `-i` and `-b`
/// microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare {
    /// A number without a unit is seconds.
    Seconds,
    /// A number without a unit is microseconds.
    Micros,
}

/// Parses `10`, `1.5s`, `250us`, `2d` into nanoseconds; digits, at most one point, one unit, with a
/// blank before it or without.
///
/// Errors state the expected form; negative spans and those over 292 years are refused.
pub fn parse_span(text: &str, bare: Bare) -> Result<Nanos, String> {
    const EXPECTED: &str = "expected a number with one of the units ns us ms s m h d, like 30s or 250us";
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ns: i128 = match (unit.trim_start(), bare) {
        ("", Bare::Seconds) | ("s", _) => 1_000_000_000,
        ("", Bare::Micros) | ("us" | "µs", _) => 1_000,
        ("ns", _) => 1,
        ("ms", _) => 1_000_000,
        ("m", _) => 60_000_000_000,
        ("h", _) => 3_600_000_000_000,
        ("d", _) => 86_400_000_000_000,
        _ => return Err(format!("'{text}' is not a span: {EXPECTED}")),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let malformed = || format!("'{text}' is not a span: {EXPECTED}");
    let too_long = || format!("'{text}' is longer than 292 years: expected less");
    if whole.trim_start_matches('0').len() > 18 {
        return Err(too_long());
    }
    if whole.is_empty() || fraction.len() > 9 || fraction.contains('.') {
        return Err(malformed());
    }
    let whole: i128 = whole.parse().map_err(|_| malformed())?;
    let scale = 10i128.pow(fraction.len() as u32);
    let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| malformed())? };
    let ns = whole * unit_ns + fraction * unit_ns / scale;
    i64::try_from(ns).map(Nanos).map_err(|_| too_long())
}

/// The number of a logical CPU, as the kernel counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Cpu(pub u32);

impl TryFrom<u32> for Cpu {
    type Error = String;

    fn try_from(number: u32) -> Result<Cpu, String> {
        if number < CPU_LIMIT { Ok(Cpu(number)) } else { Err(format!("invalid CPU number {number}")) }
    }
}

impl From<Cpu> for u32 {
    fn from(cpu: Cpu) -> u32 {
        cpu.0
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// CPU numbers from here on are refused: the kernel's NR_CPUS ends at 8192.
pub const CPU_LIMIT: u32 = 8192;

/// A set of CPUs in the kernel's list notation: `0-3,8`, with strides `0-10:2` and groups
/// `0-31:4/8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(pub BTreeSet<Cpu>);

impl CpuSet {
    /// Parses the kernel's list notation; the empty text is the empty set.
    ///
    /// Source: "bitmap list" in the kernel's Documentation/admin-guide/kernel-parameters.rst.
    pub fn parse(text: &str) -> Result<CpuSet, String> {
        let mut set = BTreeSet::new();
        // A list may repeat a CPU; the bound keeps endless repetitions from taking time.
        let mut left = 16 * CPU_LIMIT;
        let text = text.trim();
        if text.is_empty() {
            return Ok(CpuSet(set));
        }
        for part in text.split(',') {
            // Malformed lists are reported in one line, not echoed in full.
            if part.len() > 64 {
                return Err("a part of the list is longer than any range of CPUs".to_owned());
            }
            let (range, stride) = part.split_once(':').map_or((part, None), |(r, s)| (r, Some(s)));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (parse_cpu(first, part)?, parse_cpu(last, part)?);
            if first > last {
                return Err(format!("'{part}' runs backwards: write it as {last}-{first}"));
            }
            let (used, group) = match stride {
                None => (1, 1),
                Some(text) => {
                    let (used, group) = text.split_once('/').unwrap_or(("1", text));
                    (parse_cpu(used, part)?, parse_cpu(group, part)?)
                }
            };
            if used == 0 || group < used {
                return Err(format!(
                    "'{part}' takes {used} of each {group} CPUs: expected FIRST-LAST:USED/GROUP"
                ));
            }
            left = left.checked_sub(last - first + 1).ok_or("the list repeats its CPUs too often")?;
            set.extend((first..=last).filter(|n| (n - first) % group < used).map(Cpu));
        }
        Ok(CpuSet(set))
    }

    /// Parses a list or mask from a user: the list notation, or a mask in hexadecimal after `0x`,
    /// with or without commas between its groups of eight digits (`0xc`, `0x1,00000000`).
    ///
    /// Unlike in lists of the kernel, an empty mask is refused.
    pub fn parse_list_or_mask(text: &str) -> Result<CpuSet, String> {
        let text = text.trim();
        match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(mask) => parse_mask(mask),
            None => CpuSet::parse(text),
        }
    }

    /// The set as the kernel writes a mask: groups of 32 bits in hexadecimal, the highest first.
    pub fn mask(&self) -> String {
        let groups = self.0.last().map_or(1, |last| last.0 / 32 + 1);
        let bits = |group: u32| {
            let own = self.iter().filter(|cpu| cpu.0 / 32 == group);
            own.fold(0u32, |bits, cpu| bits | 1 << (cpu.0 % 32))
        };
        let group = |group| format!("{:08x}", bits(group));
        (0..groups).rev().map(group).collect::<Vec<_>>().join(",")
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.0.iter().copied()
    }

    /// True if the CPU is in the set.
    pub fn contains(&self, cpu: Cpu) -> bool {
        self.0.contains(&cpu)
    }

    /// Number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The CPUs of this set that are not in the other.
    pub fn without(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.difference(&other.0).copied().collect())
    }

    /// The CPUs in both sets.
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.intersection(&other.0).copied().collect())
    }

    /// The CPUs in either set.
    pub fn or(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.union(&other.0).copied().collect())
    }
}

/// Serializes the set as a list, `0-3,8`.
impl Serialize for CpuSet {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<CpuSet, D::Error> {
        CpuSet::parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

impl FromIterator<Cpu> for CpuSet {
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> CpuSet {
        CpuSet(cpus.into_iter().collect())
    }
}

/// The kernel's list notation again, shortest form, without strides.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for Cpu(n) in self.iter() {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == n => *last = n,
                _ => runs.push((n, n)),
            }
        }
        let parts: Vec<String> =
            runs.iter().map(|&(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
        f.pad(&parts.join(","))
    }
}

/// CPUs in words, from a list in the kernel's notation: `CPU 2`, `CPUs 2-3`.
pub fn named_cpus(list: impl fmt::Display) -> String {
    let list = list.to_string();
    let is_one = list.bytes().all(|byte| byte.is_ascii_digit());
    format!("{} {list}", if is_one { "CPU" } else { "CPUs" })
}

fn parse_mask(mask: &str) -> Result<CpuSet, String> {
    const EXPECTED: &str = "expected hexadecimal digits after 0x, like 0xc for CPUs 2-3";
    // Length of a mask of all CPUs, with its commas.
    if mask.len() > CPU_LIMIT as usize / 4 + CPU_LIMIT as usize / 32 {
        return Err(format!("the mask is longer than one of {CPU_LIMIT} CPUs"));
    }
    let mut digits = String::new();
    for (at, group) in mask.split(',').enumerate() {
        let whole = if at == 0 { !group.is_empty() } else { group.len() == 8 };
        let fits = group.len() <= 8 || !mask.contains(',');
        if !whole || !fits || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(format!("'0x{mask}' is not a mask of CPUs: {EXPECTED}"));
        }
        digits.push_str(group);
    }
    let nibbles = digits.bytes().rev().zip((0..CPU_LIMIT).step_by(4));
    let cpus = nibbles.flat_map(|(digit, first)| {
        let bits = (digit as char).to_digit(16).unwrap_or_default();
        (0..4).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| Cpu(first + bit))
    });
    match cpus.collect::<CpuSet>() {
        none if none.is_empty() => Err(format!("'0x{mask}' is a mask of no CPU: {EXPECTED}")),
        set if digits.trim_start_matches('0').len() > CPU_LIMIT as usize / 4 => {
            Err(format!("the mask of {} CPUs goes beyond {CPU_LIMIT}", set.len()))
        }
        set => Ok(set),
    }
}

fn parse_cpu(text: &str, part: &str) -> Result<u32, String> {
    let expected = || format!("'{part}' is not a CPU or a range of CPUs: expected a list like 0-3,8");
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(expected());
    }
    match text.parse::<u32>() {
        Ok(n) if n < CPU_LIMIT => Ok(n),
        _ => Err(format!("'{part}' has a number above {}, the last CPU that Linux can have", CPU_LIMIT - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_take_units_and_points() {
        for (text, bare, ns) in [
            ("10", Bare::Seconds, 10_000_000_000),
            ("10", Bare::Micros, 10_000),
            ("1.5s", Bare::Micros, 1_500_000_000),
            ("250us", Bare::Seconds, 250_000),
            ("7ns", Bare::Seconds, 7),
            ("2d", Bare::Seconds, 172_800_000_000_000),
            ("0", Bare::Seconds, 0),
        ] {
            assert_eq!(parse_span(text, bare), Ok(Nanos(ns)), "{text}");
        }
        for text in ["", "s", "-1", "1.2.3", "1w", "1 000", "9999999999999999999d", "..", "1e3", "400d0"] {
            assert!(parse_span(text, Bare::Seconds).is_err(), "{text}");
        }
        for text in ["99999999999999999999", "200000d"] {
            assert!(
                parse_span(text, Bare::Seconds).is_err_and(|reason| reason.contains("longer than 292 years"))
            );
        }
        assert_eq!(parse_span("00000000000000000000007", Bare::Micros), Ok(Nanos(7_000)));
    }

    #[test]
    fn spans_print_three_digits_that_count() {
        for (ns, text) in [
            (0, "0 ns"),
            (-40, "-40 ns"),
            (1_000, "1 us"),
            (12_345, "12.3 us"),
            (4_560_000, "4.56 ms"),
            (10_000_000_000, "10 s"),
            (123_456_789, "123 ms"),
        ] {
            assert_eq!(Nanos(ns).to_string(), text);
        }
    }

    #[test]
    fn cpu_lists_follow_the_kernel() {
        let list = |text: &str| CpuSet::parse(text).map(|set| set.to_string());
        assert_eq!(list("0-3,8"), Ok("0-3,8".into()));
        assert_eq!(list("3,1,2"), Ok("1-3".into()));
        assert_eq!(list("0-10:1/4"), Ok("0,4,8".into()));
        assert_eq!(list("0-6:2"), Ok("0,2,4,6".into()));
        assert_eq!(list("\n"), Ok("".into()));
        let again = vec!["0-8191"; 17].join(",");
        assert!(list(&again).is_err() && list(&again[7..]).is_ok());
        for bad in [
            "3-1",
            "a",
            "1-",
            "-1",
            "0,,1",
            "99999",
            "0-4:0",
            "0-4:3/2",
            "1x",
            "0-99999999",
            "0-8192",
            "8192",
            "0-4:8192",
        ] {
            assert!(CpuSet::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn masks_are_what_a_user_may_write() {
        let list = |text: &str| CpuSet::parse_list_or_mask(text).map(|set| set.to_string());
        for (text, cpus) in [
            ("0xc", "2-3"),
            ("0X0C", "2-3"),
            ("0x1,00000000", "32"),
            ("0x100000000", "32"),
            (" 0x80000001 ", "0,31"),
            ("2-3", "2-3"),
            ("12", "12"),
        ] {
            assert_eq!(list(text), Ok(cpus.into()), "{text}");
        }
        let (most, over) = ("f".repeat(2048), format!("1{}", "0".repeat(2048)));
        assert_eq!(list(&format!("0x{most}")), Ok("0-8191".into()));
        for bad in [
            "0x",
            "0x0",
            "0xg",
            "0x,1",
            "0x1,",
            "0x1,0",
            "0x1,000000000",
            "c",
            "0xc-3",
            "0x-1",
            "0x 1",
            "0x+1",
        ] {
            assert!(list(bad).is_err(), "{bad}");
        }
        assert!(list(&format!("0x{over}")).is_err());
    }

    proptest! {
        #[test]
        fn masks_are_total(text in "0x[0-9a-fg,]{0,40}") {
            let _ = CpuSet::parse_list_or_mask(&text);
        }

        #[test]
        fn cpu_lists_round_trip(cpus in proptest::collection::btree_set(0u32..300, 0..40)) {
            let set: CpuSet = cpus.into_iter().map(Cpu).collect();
            prop_assert_eq!(CpuSet::parse(&set.to_string()), Ok(set));
        }

        #[test]
        fn parsers_are_total(text in "\\PC{0,40}") {
            let _ = CpuSet::parse(&text);
            let _ = parse_span(&text, Bare::Micros);
        }
    }
}
