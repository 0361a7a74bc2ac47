//! Secondary results next to the verdict: quantiles of the block maxima, and the exceedances by
//! CPU.

use serde::Serialize;

use super::design::ALPHA;
use crate::bounds::events;
use crate::pair::adjusted_p;
use crate::pair::conditional_binomial::Exposure;
use crate::pair::shift::{self, GRID};
use crate::pair::verdict::{self, Design};
use crate::series::Series;
use model::units::{Cpu, Nanos};

/// A quantile of the block maxima on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuantileShift {
    pub q: f64,
    /// Mean over A's units.
    pub a_ns: f64,
    /// Mean over B's units.
    pub b_ns: f64,
    /// B minus A.
    pub difference_ns: f64,
    /// The 95 % interval over the units; null if they are too few.
    pub ci: Option<[f64; 2]>,
    /// Two-sided p over the units.
    pub p_value: f64,
    /// The p adjusted for all the quantiles shown.
    pub p_holm: f64,
}

/// Exceedances of a CPU: blocks in which its latency was the machine's largest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuRate {
    pub cpu: Cpu,
    pub a: u64,
    pub b: u64,
    /// Two-sided p over the units.
    pub p_value: f64,
    /// The p adjusted for all the CPUs shown.
    pub p_adjusted: f64,
}

/// The shift function on the usual grid.
pub fn quantiles(a: &[&Series], b: &[&Series], design: Design) -> Vec<QuantileShift> {
    let [of_a, of_b] = [a, b].map(|side| side.iter().map(|series| series.values().to_vec()));
    let shifts = shift::function(of_a, of_b, design, &GRID, 1.0 - ALPHA);
    let shifts: Vec<_> =
        shifts.into_iter().filter(|shift| !shift.a.is_empty() && !shift.b.is_empty()).collect();
    let adjusted = adjusted_p::holm(&shifts.iter().map(|shift| shift.p).collect::<Vec<_>>());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let row = |(shift, p_holm): (shift::Shift, f64)| QuantileShift {
        q: shift.q,
        a_ns: mean(&shift.a),
        b_ns: mean(&shift.b),
        difference_ns: shift.difference,
        ci: shift.interval.map(|interval| [interval.lower, interval.upper]),
        p_value: shift.p,
        p_holm,
    };
    shifts.into_iter().zip(adjusted).map(row).collect()
}

/// Exceedances by CPU, if both sides measured the same CPUs.
pub fn cpus(a: &[&Series], b: &[&Series], level: Option<Nanos>, design: Design) -> Vec<CpuRate> {
    let (Some(level), Some(first)) = (level, a.first()) else { return Vec::new() };
    if first.cpus.len() < 2 || a.iter().chain(b).any(|series| series.cpus != first.cpus) {
        return Vec::new();
    }
    let counts = |side: &[&Series], cpu: Cpu| -> Vec<Exposure> {
        let of = |series: &&Series| Exposure {
            events: events::of_series_on(series, level, cpu),
            time: series.observed.as_secs() / 3600.0,
        };
        side.iter().map(of).collect()
    };
    let sum = |units: &[Exposure]| units.iter().map(|unit| unit.events).sum::<u64>();
    let mut rows: Vec<CpuRate> = Vec::new();
    for &cpu in &first.cpus {
        let (in_a, in_b) = (counts(a, cpu), counts(b, cpu));
        let p_value = verdict::compare_rates(&in_a, &in_b, design, verdict::RATE_MARGIN, ALPHA).p;
        rows.push(CpuRate { cpu, a: sum(&in_a), b: sum(&in_b), p_value, p_adjusted: 1.0 });
    }
    let adjusted = adjusted_p::benjamini_hochberg(&rows.iter().map(|row| row.p_value).collect::<Vec<_>>());
    rows.iter_mut().zip(adjusted).for_each(|(row, p)| row.p_adjusted = p);
    rows
}
