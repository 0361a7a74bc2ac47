//! Slots as CSV and histograms as JSON, for addresses and exports.

use model::rows::row_edges;
use model::text::clean;
use model::units::{Cpu, Nanos};
use model::wall_time::wall_time;
use serde::Serialize;

use crate::records::{CpuRows, FarmSlot, TierRow};

/// The names of a slot's cells.
pub fn csv_head() -> &'static str {
    "t,time,n,missed,max_ns,max_cpu,max_at,culprit,victim,run"
}

/// A slot's cells.
pub fn csv_row(slot: &FarmSlot) -> String {
    let time = |ns: i64| wall_time(Nanos(ns));
    let or_empty = |value: Option<String>| value.unwrap_or_default();
    format!(
        "{},{},{},{},{},{},{},{},{},{}",
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
    )
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

/// A histogram as `run.json` has them.
#[derive(Serialize)]
pub struct HistogramDocument {
    t: i64,
    n: u64,
    missed: u64,
    max_ns: Option<Nanos>,
    cpus: Vec<CpuDocument>,
}

#[derive(Serialize)]
struct CpuDocument {
    cpu: Cpu,
    /// Lower edge (null for what was early), upper edge, count.
    histogram: Vec<(Option<Nanos>, Nanos, u64)>,
}

impl HistogramDocument {
    /// Of all CPUs, or of one.
    pub fn of(row: TierRow, cpu: Option<u32>) -> HistogramDocument {
        let bucket = |(at, count): (usize, u64)| {
            let (lower, upper) = row_edges(at);
            (Some(lower).filter(|lower| lower.0 >= 0), upper, count)
        };
        let wanted = |one: &CpuRows| cpu.is_none_or(|cpu| one.cpu == Cpu(cpu));
        let cpus = row.cpus.iter().filter(|one| wanted(one));
        let cpus =
            cpus.map(|one| CpuDocument { cpu: one.cpu, histogram: one.rows.iter().map(bucket).collect() });
        HistogramDocument { t: row.t, n: row.n, missed: row.missed, max_ns: row.max_ns, cpus: cpus.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_of_a_table_is_a_formula() {
        let row =
            csv_row(&FarmSlot { victim: "=cmd()".into(), culprit: "a,\"b".into(), ..FarmSlot::default() });
        assert!(row.contains(",\"a,\"\"b\",'=cmd(),"), "{row}");
        assert_eq!(csv_head().split(',').count(), 10);
    }
}
