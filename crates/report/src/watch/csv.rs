//! Histograms of a record as a table: a row per range of latency, a column per series, class and
//! CPU.

use crate::boundary::for_viewer;
use std::collections::BTreeMap;
use std::fmt::Write;

use super::summary::WatchSummary;
use super::words::{answer, losses};
use crate::run::csv::no_formula;
use crate::words::or_dash;
use model::units::Nanos;

/// Table, with the answer as comments.
pub fn csv(of: &WatchSummary) -> String {
    let mut text = String::new();
    for line in answer(of).iter().chain(&losses(of)).chain(&of.remarks) {
        let _ = writeln!(text, "# {}", no_formula(&crate::words::clean(line)));
    }
    text.push_str("lower_ns,upper_ns");
    let mut rows: BTreeMap<(Nanos, Nanos), BTreeMap<usize, u64>> = BTreeMap::new();
    let mut columns = 0;
    for totals in &of.series {
        for cpu in &totals.cpus {
            let _ = write!(text, ",{}/{}/cpu{}", totals.series, totals.class, or_dash(cpu.cpu));
            for bucket in &cpu.histogram {
                rows.entry((bucket.lower, bucket.upper)).or_default().insert(columns, bucket.count);
            }
            columns += 1;
        }
    }
    text.push('\n');
    for ((lower, upper), counts) in rows {
        let _ = write!(text, "{},{}", lower.0, upper.0);
        for column in 0..columns {
            let _ = write!(text, ",{}", counts.get(&column).copied().unwrap_or(0));
        }
        text.push('\n');
    }
    for_viewer(text)
}
