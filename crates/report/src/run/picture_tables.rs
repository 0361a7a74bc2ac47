//! Pictures of a run as tables, below them.

use maud::{Markup, html};

use super::probes;
use crate::html::scroll;
use crate::input::Input;
use crate::totals::sum_rows;
use crate::words::{duration, or_dash, us, us_or_dash};
use model::histogram::Bucket;
use model::run::Run;
use model::units::{Cpu, Nanos};

/// Number of samples in rows that begin at or above a level.
fn at_or_above(rows: &[Bucket], level: i64) -> u64 {
    rows.iter().filter(|row| row.lower.0 >= level).fold(0, |sum, row| sum.saturating_add(row.count))
}

/// Exceedance curve as a table, for all CPUs together.
pub fn levels(run: &Run) -> Markup {
    let rows = sum_rows(run.cpus.iter().map(|cpu| cpu.histogram.as_slice()));
    let beyond = run.cpus.iter().fold(0u64, |sum, cpu| sum.saturating_add(cpu.overflows.unwrap_or(0)));
    let total = at_or_above(&rows, i64::MIN).saturating_add(beyond);
    let digits = (0..16).flat_map(|power| [1, 2, 5].map(|digit: i64| digit * 10i64.pow(power)));
    let top = rows.last().map_or(0, |row| row.lower.0);
    // Counts are exact at the edges of rows only: a level within a row moves to the next edge.
    let edge = |level: i64| rows.iter().map(|row| row.lower.0).find(|&lower| lower >= level);
    let levels: Vec<(i64, u64)> = digits
        .filter(|&level| level <= top && rows.first().is_some_and(|row| level > row.lower.0))
        .filter_map(|level| Some((edge(level)?, at_or_above(&rows, level).saturating_add(beyond))))
        .collect();
    html! {
        details {
            summary { "The same as a table" }
            (scroll("Samples at or above a latency", html! {
                table {
                    thead { tr { th { "at least, in us" } th { (probes::sample(run).1) } th { "share" } } }
                    tbody { @for (level, n) in levels {
                        tr { td { (us(Nanos(level))) } td { (n) } td { (format!("{:.2e}", n as f64 / total.max(1) as f64)) } }
                    } }
                }
            }))
        }
    }
}

/// Largest latency over time as a table, over all CPUs.
pub fn times(input: &Input) -> Markup {
    let history = input.history;
    let per_row = history.columns().div_ceil(TIMES).max(1);
    let row = |first: usize| {
        let columns = || {
            history.cpus().flat_map(move |(cpu, slots)| {
                slots.iter().skip(first).take(per_row).map(move |slot| (cpu, slot))
            })
        };
        let worst: Option<(Nanos, Cpu)> = columns().filter_map(|(cpu, slot)| Some((slot.max?.0, cpu))).max();
        let missed = columns().filter_map(|(_, slot)| slot.missed).reduce(u64::saturating_add);
        (Nanos(history.since_start(first).max(0.0) as i64), worst, missed)
    };
    html! {
        details {
            summary { "The same as a table" }
            (scroll("Largest latency over time", html! {
                table {
                    thead { tr { th { "from" } th { "largest, in us" } th { "CPU" } th { "missed" } } }
                    tbody { @for (from, worst, missed) in (0..history.columns()).step_by(per_row).map(row) {
                        tr {
                            td { (duration(from)) } td { (us_or_dash(worst.map(|worst| worst.0))) }
                            td { (or_dash(worst.map(|worst| worst.1))) } td { (or_dash(missed)) }
                        }
                    } }
                }
            }))
        }
    }
}

/// Limit of rows of the table below the maximum over time.
const TIMES: usize = 24;
