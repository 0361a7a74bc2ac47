//! Results of the tools: the median latency of each, in interleaved pairs whose order alternates,
//! so that a drift of the machine affects both.

use serde_json::Value;

use super::program::{Onbeat, cyclictest, histogram_of};
use super::ratio::{self, quantile};
use super::{Row, Rows};
use crate::live::judge;
use crate::tools::Result;

const LIMIT: f64 = 1.15;
/// With nanosecond rows up to 1 ms cyclictest's median is as fine as onbeat's.
const HISTOGRAM: &str = "-N -h 1000000";

pub fn measure(onbeat: &Onbeat, quick: bool) -> Rows {
    let (pairs, seconds) = if quick { (6, 1) } else { (24, 5) };
    let mut measured = Vec::new();
    for pair in 0..pairs {
        let ours = || onbeat.run(&format!("-i 1000 -D {seconds}")).and_then(|run| pooled(&run));
        let peer =
            || cyclictest(&format!("-i 1000 -D {seconds} {HISTOGRAM}")).and_then(|text| histogram_of(&text));
        let (ours, peer) = if pair % 2 == 0 {
            let ours = ours()?;
            (ours, peer()?)
        } else {
            let peer = peer()?;
            (ours()?, peer)
        };
        println!("  pair {}: p50 {:?} and {:?} ns", pair + 1, quantile(&ours, 0.5), quantile(&peer, 0.5));
        measured.push((ours, peer));
    }
    let pairs_of = |share: f64| -> Result<Vec<(f64, f64)>> {
        let value = |rows: &[(i64, u64)]| quantile(rows, share).map(|ns| ns as f64);
        measured
            .iter()
            .map(|(ours, peer)| {
                value(ours).zip(value(peer)).ok_or_else(|| "a run without samples".to_string())
            })
            .collect()
    };
    let half = pairs_of(0.5)?;
    let ratio = ratio::of_pairs(&half).ok_or("the medians give no ratio")?;
    let mut rows = vec![medians("p50", &half), medians("p99, without verdict", &pairs_of(0.99)?)];
    let (low, high) = ratio.interval.ok_or("too few pairs for an interval")?;
    rows.push(Row {
        what: format!("ratio of p50, 95 % interval, {pairs} pairs of {seconds} s"),
        ours: format!("{:.3} [{low:.3}, {high:.3}]", ratio.median),
        peer: "1".to_string(),
        limit: format!("{LIMIT}"),
        holds: (!quick).then_some(high <= LIMIT),
    });
    Ok(rows)
}

/// The histograms of both CPUs as one; a row counts as its upper edge, as in onbeat's quantiles.
fn pooled(run: &Value) -> Result<Vec<(i64, u64)>> {
    let mut rows = Vec::new();
    for cpu in judge::cpus(run, &[0, 1])? {
        rows.extend(judge::rows(cpu, "histogram")?.into_iter().map(|(_, upper, count)| (upper, count)));
    }
    rows.sort_unstable();
    Ok(rows)
}

fn medians(name: &str, pairs: &[(f64, f64)]) -> Row {
    let text =
        |values: Vec<f64>| ratio::median(values).map_or("unknown".to_string(), |ns| format!("{ns:.0}"));
    Row {
        what: format!("median of {name}, ns"),
        ours: text(pairs.iter().map(|pair| pair.0).collect()),
        peer: text(pairs.iter().map(|pair| pair.1).collect()),
        limit: String::new(),
        holds: None,
    }
}
