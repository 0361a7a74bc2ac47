//! Numbers of all runs together, and which of them are not there where a run kept no block records.

use super::Compared;
use crate::pair::conditional_binomial::{Exposure, total};
use crate::pair::verdict::Verdict;
use crate::pair::{e_value, overdispersion};

/// The evidence against equal rates, which may be looked at any time; none without an event.
pub fn e_value(a: &[Exposure], b: &[Exposure]) -> Option<f64> {
    let (a, b) = (total(a), total(b));
    let share = a.time / (a.time + b.time);
    (a.events + b.events > 0 && share > 0.0 && share < 1.0)
        .then(|| e_value::ln_e_value(a.events, b.events, share).exp().min(f64::MAX))
}

/// Of both sides, each by its own rate; the larger.
pub fn overdispersion(a: &[Exposure], b: &[Exposure]) -> Option<f64> {
    let (a, b) = (overdispersion::phi(a), overdispersion::phi(b));
    a.into_iter().chain(b).reduce(f64::max)
}

impl Compared {
    /// How often a run without block records reached the limit is not known, and neither is what follows from it: 0 events
    /// would be a statement.
    pub(super) fn say_only_what_is_known(&mut self) {
        if self.a.iter().chain(&self.b).all(|unit| unit.exceedances.is_some()) {
            return;
        }
        self.verdict = Verdict::Inconclusive.name();
        self.reason = "a run kept no block records: how often it reached the limit is not known".into();
        (self.rate_ratio, self.ci, self.difference_ns) = (None, None, None);
        (self.p_value, self.event_p_value, self.e_value) = (None, None, None);
        (self.overdispersion, self.baseline, self.smallest_detectable) = (None, None, None);
        self.units_needed = None;
        self.quantiles.clear();
        self.cpus.clear();
    }
}
