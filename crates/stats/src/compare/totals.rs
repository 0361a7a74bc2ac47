//! Numbers of all runs together.

use crate::bounds::events;
use crate::pair::conditional_binomial::{Exposure, total};
use crate::pair::{e_value, overdispersion};
use crate::series::Series;
use model::units::Nanos;

/// Events at the limit, and the observed hours.
pub fn exposure(series: &Series, level: Option<Nanos>) -> Exposure {
    let time = series.observed.as_secs() / 3600.0;
    let Some(level) = level else { return Exposure { events: 0, time } };
    Exposure { events: events::of_series(series, level), time }
}

/// Evidence against equal rates, valid at any time; `None` without an event.
pub fn e_value(a: &[Exposure], b: &[Exposure]) -> Option<f64> {
    let (a, b) = (total(a), total(b));
    let share = a.time / (a.time + b.time);
    (a.events + b.events > 0 && share > 0.0 && share < 1.0)
        .then(|| e_value::ln_e_value(a.events, b.events, share).exp().min(f64::MAX))
}

/// Overdispersion of both sides, each by its rate; the larger.
pub fn overdispersion(a: &[Exposure], b: &[Exposure]) -> Option<f64> {
    let (a, b) = (overdispersion::phi(a), overdispersion::phi(b));
    a.into_iter().chain(b).reduce(f64::max)
}
