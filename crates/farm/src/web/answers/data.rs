//! Slots as CSV and histograms as JSON, for addresses and exports.

use model::rows::row_edges;
use model::text::clean;
use model::units::{Cpu, Nanos};
use model::wall_time::wall_time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::records::{CpuRows, FarmSlot, SlotPeak, TierRow};

/// The names of a slot's cells.
pub fn csv_head() -> &'static str {
    "t,time,n,missed,max_ns,max_cpu,max_at,culprit,victim,run,invalid"
}

/// A slot's cells.
pub fn csv_row(slot: &FarmSlot) -> String {
    let time = |ns: i64| wall_time(Nanos(ns));
    let or_empty = |value: Option<String>| value.unwrap_or_default();
    format!(
        "{},{},{},{},{},{},{},{},{},{},{}",
        slot.t,
        time(slot.t.saturating_mul(Nanos::SECOND.0)),
        slot.n,
        slot.missed,
        or_empty(slot.max_ns.map(|max| max.0.to_string())),
        or_empty(slot.max_cpu.map(|cpu| cpu.to_string())),
        or_empty(slot.max_at.map(time)),
        cell(&slot.culprit),
        cell(&slot.victim),
        cell(&slot.run),
        slot.invalid,
    )
}

/// Slots of single CPUs, ordered by CPU. Only the largest latency has a victim and a culprit.
pub fn by_cpu(all: &[FarmSlot]) -> Vec<FarmSlot> {
    let one = |slot: &FarmSlot, peak: &SlotPeak| {
        let name = |of: &String| if slot.max_cpu == Some(peak.cpu) { of.clone() } else { String::new() };
        FarmSlot {
            t: slot.t,
            n: peak.n,
            missed: peak.missed,
            max_ns: peak.max_ns,
            max_cpu: Some(peak.cpu),
            max_at: peak.max_at,
            culprit: name(&slot.culprit),
            victim: name(&slot.victim),
            run: slot.run.clone(),
            invalid: slot.invalid,
            cpus: Vec::new(),
        }
    };
    all.iter().flat_map(|slot| slot.cpus.iter().map(move |peak| one(slot, peak))).collect()
}

/// A text as a cell: quoted (RFC 4180), and with an apostrophe where a spreadsheet would take it
/// for a formula.
pub fn cell(text: &str) -> String {
    let text = clean(text);
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    match text.contains([',', '"']) {
        true => format!("\"{guard}{}\"", text.replace('"', "\"\"")),
        false => format!("{guard}{text}"),
    }
}

/// Histograms of a board.
#[derive(Serialize, JsonSchema)]
pub struct HistogramsDocument<'a> {
    pub schema: &'static str,
    pub series: &'a str,
    pub plan: &'a str,
    pub tier: &'a str,
    pub histograms: Vec<HistogramDocument>,
}

/// A histogram as `run.json` has them.
#[derive(Serialize, JsonSchema)]
pub struct HistogramDocument {
    t: i64,
    n: u64,
    /// `None` for one of several CPUs, whose missed wake-ups are not stored.
    missed: Option<u64>,
    #[schemars(with = "Option<i64>")]
    max_ns: Option<Nanos>,
    /// True if it includes samples of an invalid run.
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid: Option<bool>,
    cpus: Vec<CpuDocument>,
}

/// The names of the cells of histograms, a line with its end.
pub fn histograms_head() -> &'static str {
    "t,cpu,lower_ns,upper_ns,count\n"
}

/// The same as lines, one for each row with samples; what was early has no lower edge.
pub fn histogram_lines(text: &mut String, row: &TierRow, cpu: Option<u32>) {
    for one in row.cpus.iter().filter(|one| cpu.is_none_or(|cpu| one.cpu == Cpu(cpu))) {
        for (at, count) in one.rows.iter() {
            let (lower, upper) = row_edges(at);
            let lower = if lower.0 >= 0 { lower.0.to_string() } else { String::new() };
            *text += &format!("{},{},{lower},{},{count}\n", row.t, one.cpu, upper.0);
        }
    }
}

/// The same as a table.
#[cfg(test)]
pub fn histograms_csv(all: &[TierRow], cpu: Option<u32>) -> String {
    let mut text = histograms_head().to_owned();
    all.iter().for_each(|row| histogram_lines(&mut text, row, cpu));
    text
}

#[derive(Serialize, JsonSchema)]
struct CpuDocument {
    #[schemars(with = "u32")]
    cpu: Cpu,
    /// Lower edge (null for what was early), upper edge, count.
    #[schemars(with = "Vec<(Option<i64>, i64, u64)>")]
    histogram: Vec<(Option<Nanos>, Nanos, u64)>,
}

impl HistogramDocument {
    /// Of all CPUs, or of one: then all of it is of that one.
    pub fn of(row: TierRow, cpu: Option<u32>) -> HistogramDocument {
        let bucket = |(at, count): (usize, u64)| {
            let (lower, upper) = row_edges(at);
            (Some(lower).filter(|lower| lower.0 >= 0), upper, count)
        };
        let wanted = |one: &CpuRows| cpu.is_none_or(|cpu| one.cpu == Cpu(cpu));
        let is_whole = row.cpus.iter().all(wanted) && (cpu.is_none() || !row.cpus.is_empty());
        let cpus = row.cpus.iter().filter(|one| wanted(one));
        let n = if is_whole { row.n } else { cpus.clone().map(|one| one.rows.total()).sum() };
        let cpus =
            cpus.map(|one| CpuDocument { cpu: one.cpu, histogram: one.rows.iter().map(bucket).collect() });
        HistogramDocument {
            t: row.t,
            n,
            missed: is_whole.then_some(row.missed),
            max_ns: row.max_ns.filter(|_| is_whole),
            invalid: None,
            cpus: cpus.collect(),
        }
    }

    /// With whether a run was on then that does not count.
    pub fn marked(mut self, invalid: bool) -> HistogramDocument {
        self.invalid = Some(invalid);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::SlotPeak;
    use model::rows::{EARLY_ROW, RowCounts, row_of};

    #[test]
    fn no_cell_of_a_table_is_a_formula() {
        let row =
            csv_row(&FarmSlot { victim: "=cmd()".into(), culprit: "a,\"b".into(), ..FarmSlot::default() });
        assert!(row.contains(",\"a,\"\"b\",'=cmd(),"), "{row}");
        assert_eq!((csv_head().split(',').count(), row.ends_with(",false")), (11, true));
    }

    #[test]
    fn a_slot_has_a_line_for_each_cpu_and_the_largest_has_its_names() {
        let peak =
            |cpu: u32, max| SlotPeak { cpu: Cpu(cpu), n: 5, max_ns: Some(Nanos(max)), ..SlotPeak::default() };
        let slot = FarmSlot {
            t: 300,
            n: 10,
            max_ns: Some(Nanos(9)),
            max_cpu: Some(Cpu(2)),
            culprit: "hog".into(),
            victim: "plc".into(),
            run: "r".into(),
            cpus: vec![peak(0, 7), peak(2, 9)],
            ..FarmSlot::default()
        };
        let rows: Vec<String> = by_cpu(&[slot]).iter().map(csv_row).collect();
        assert_eq!(rows.len(), 2);
        assert!(
            rows[0].ends_with(",5,0,7,0,,,,r,false") && rows[1].ends_with(",5,0,9,2,,hog,plc,r,false"),
            "{rows:?}"
        );
    }

    #[test]
    fn a_histogram_has_a_line_for_each_of_its_rows() {
        let rows = RowCounts::of_rows([(EARLY_ROW, 3), (row_of(Nanos(20_000)), 7)]);
        let cpus = vec![
            CpuRows { cpu: Cpu(0), rows: rows.clone() },
            CpuRows { cpu: Cpu(2), rows: RowCounts::of_rows([(1, 1)]) },
        ];
        let all = [TierRow { t: 300, n: 11, cpus, ..TierRow::default() }];
        let text = histograms_csv(&all, None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines.len()), ("t,cpu,lower_ns,upper_ns,count", 4));
        assert!(lines[1].starts_with("300,0,,") && lines[1].ends_with(",3"), "{text}");
        let (lower, upper) = row_edges(row_of(Nanos(20_000)));
        assert_eq!(lines[2], format!("300,0,{},{},7", lower.0, upper.0));
        assert_eq!(histograms_csv(&all, Some(2)).lines().count(), 2);
    }

    #[test]
    fn a_histogram_of_one_cpu_has_nothing_of_the_others() {
        let of = |cpu: u32, n: u64| CpuRows { cpu: Cpu(cpu), rows: RowCounts::of_rows([(9, n)]) };
        let row = |cpus: Vec<CpuRows>| {
            let n = cpus.iter().map(|one| one.rows.total()).sum();
            TierRow { t: 300, n, missed: 5, max_ns: Some(Nanos(7)), cpus }
        };
        let told = |row: TierRow, cpu: Option<u32>| {
            let HistogramDocument { n, missed, max_ns, cpus, .. } = HistogramDocument::of(row, cpu);
            (n, missed, max_ns.map(|max| max.0), cpus.len())
        };
        let two = || row(vec![of(0, 10), of(1, 21)]);
        assert_eq!(told(two(), None), (31, Some(5), Some(7), 2));
        assert_eq!(told(two(), Some(0)), (10, None, None, 1));
        assert_eq!(told(two(), Some(3)), (0, None, None, 0));
        // All that is of the only CPU is its own.
        assert_eq!(told(row(vec![of(1, 3)]), Some(1)), (3, Some(5), Some(7), 1));
        assert_eq!(told(row(vec![]), Some(1)), (0, None, None, 0));
    }
}
