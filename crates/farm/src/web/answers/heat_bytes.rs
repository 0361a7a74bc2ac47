//! Data of a heat map as bytes, for clients that draw it: `Accept: application/octet-stream`.
//!
//! All numbers are little-endian: `onbheat1`; four `u32`, number of columns, first row, number of
//! rows, seconds of a column; an `i64` per column, its first second; an `i64` per column, its exact
//! largest latency in ns; a byte per row of each column, see [`shade`]. Rows are those of
//! `rows.jsonl`. `docs/farm/api.md` describes them, too.

use axum::http::{HeaderMap, HeaderName, header};
use model::rows::RowSums;

use crate::records::{CpuRows, Tier, TierRow};

/// Content type of these bytes.
pub const KIND: &str = "application/octet-stream";
/// First bytes.
pub const MAGIC: &[u8; 8] = b"onbheat1";
/// Value for an unknown largest latency.
const UNKNOWN: i64 = -1;

/// True if the client accepts these bytes.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let name: HeaderName = header::ACCEPT;
    let accepted = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let is_kind = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(KIND));
        // A weight of nothing: not this one (RFC 9110, section 12.4.2).
        is_kind && !parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
    })
}

/// Heat map during the reading of its histograms; of each it keeps a byte per row.
#[derive(Debug, Default)]
pub struct HeatBytes {
    columns: Vec<HeatColumn>,
}

#[derive(Debug)]
struct HeatColumn {
    t: i64,
    max: i64,
    shades: Vec<(u32, u8)>,
}

impl HeatBytes {
    /// Adds the next histogram, of all CPUs or of one. The largest latency is that of all CPUs.
    pub fn add(&mut self, row: &TierRow, cpu: Option<u32>) {
        let wanted = |one: &&CpuRows| cpu.is_none_or(|cpu| one.cpu.0 == cpu);
        let mut sums = RowSums::default();
        row.cpus.iter().filter(wanted).for_each(|one| sums.add_all(&one.rows));
        let shades = sums.iter().map(|(at, count)| (u32::try_from(at).unwrap_or(u32::MAX), shade(count)));
        let max = row.max_ns.map_or(UNKNOWN, |max| max.0);
        self.columns.push(HeatColumn { t: row.t, max, shades: shades.collect() });
    }

    /// Its bytes.
    pub fn bytes(&self, tier: Tier) -> Vec<u8> {
        let rows = || self.columns.iter().flat_map(|column| &column.shades).map(|(row, _)| *row);
        let first = rows().min().unwrap_or_default();
        let height = rows().max().map_or(0, |last| last - first + 1);
        let count = u32::try_from(self.columns.len()).unwrap_or(u32::MAX);
        let seconds = u32::try_from(tier.seconds()).unwrap_or(u32::MAX);
        let mut bytes = MAGIC.to_vec();
        for number in [count, first, height, seconds] {
            bytes.extend(number.to_le_bytes());
        }
        self.columns.iter().for_each(|column| bytes.extend(column.t.to_le_bytes()));
        self.columns.iter().for_each(|column| bytes.extend(column.max.to_le_bytes()));
        for column in &self.columns {
            let begin = bytes.len();
            bytes.resize(begin + height as usize, 0);
            column.shades.iter().for_each(|&(row, shade)| bytes[begin + (row - first) as usize] = shade);
        }
        bytes
    }
}

/// Count as a byte: 0 for none, else 1 plus 4 per doubling.
fn shade(count: u64) -> u8 {
    if count == 0 { 0 } else { 1 + ((count as f64).log2() * 4.0).floor().min(254.0) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::rows::{ROWS, RowCounts};
    use model::units::{Cpu, Nanos};

    fn bytes(tier: Tier, all: &[TierRow], cpu: Option<u32>) -> Vec<u8> {
        let mut map = HeatBytes::default();
        all.iter().for_each(|row| map.add(row, cpu));
        map.bytes(tier)
    }

    fn row(t: i64, counts: &[(u32, usize, u64)]) -> TierRow {
        let one = |&(cpu, row, count): &(u32, usize, u64)| CpuRows {
            cpu: Cpu(cpu),
            rows: RowCounts::of_rows([(row, count)]),
        };
        TierRow {
            t,
            max_ns: Some(Nanos(t + 7)),
            cpus: counts.iter().map(one).collect(),
            ..TierRow::default()
        }
    }

    #[test]
    fn a_known_heat_map_is_these_bytes() {
        let all = [row(86_400, &[(0, 300, 1), (1, 300, 3), (1, 302, 1)]), row(172_800, &[(0, 301, 1_000)])];
        let mut wanted = b"onbheat1".to_vec();
        for number in [2u32, 300, 3, 86_400] {
            wanted.extend(number.to_le_bytes());
        }
        for number in [86_400i64, 172_800, 86_407, 172_807] {
            wanted.extend(number.to_le_bytes());
        }
        // Four wake-ups have doubled twice, a thousand not quite ten times.
        wanted.extend([9, 0, 1, 0, 40, 0]);
        assert_eq!(bytes(Tier::Day, &all, None), wanted);
        // Of one CPU there are other rows, and as many columns.
        let one = bytes(Tier::Day, &all, Some(1));
        assert_eq!((one.len(), &one[one.len() - 6..]), (24 + 32 + 6, &[7, 0, 1, 0, 0, 0][..]));
        assert_eq!(bytes(Tier::Hour, &[], None)[8..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 14, 0, 0]);
    }

    #[test]
    fn one_sample_differs_from_none_and_no_count_is_too_large() {
        assert_eq!([0, 1, 2, 3, 4, u64::MAX].map(shade), [0, 1, 5, 7, 9, 255]);
        let all = [row(0, &[(0, 0, 1), (0, ROWS - 1, u64::MAX)])];
        assert_eq!(bytes(Tier::Slot, &all, None).len(), 24 + 16 + ROWS);
    }

    #[test]
    fn bytes_are_for_who_asks_for_them() {
        for (accept, wanted) in [
            ("application/octet-stream", true),
            ("text/html, Application/Octet-Stream;q=0.5", true),
            ("application/octet-stream; q=0", false),
            ("application/json", false),
            ("*/*", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
            assert_eq!(is_wanted(&headers), wanted, "{accept}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }
}
