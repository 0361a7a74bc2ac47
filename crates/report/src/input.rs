//! Run with all data to show it.

use crate::hunt::windows::Windows;
use crate::plot::history::History;
use facts::differences::Settings;
use model::run::Run;
use model::units::Nanos;
use stats::bounds::Bounds;
use stats::series::Series;

/// Run with the data that its report shows.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub run: &'a Run,
    /// Blocks of the run, folded into columns.
    pub history: &'a History,
    /// Block maxima of the run; empty if only a histogram was kept.
    pub series: &'a Series,
    /// Bounds that the run supports, if they were asked for and can be given.
    pub bounds: Option<&'a Bounds>,
    /// Windows around its spikes, for a hunt.
    pub windows: Option<&'a Windows>,
    /// Repairs and omissions of the reader of the bundle.
    pub remarks: &'a [String],
    /// Conditions in which it is compared with other runs, if several are shown.
    pub settings: Option<&'a Settings>,
    /// Title, usually the bundle's name.
    pub title: &'a str,
    /// Path of the bundle, quoted for a shell.
    pub place: &'a str,
}

impl Input<'_> {
    /// Requested limit, or else the run's own.
    pub fn limit(&self) -> Option<Nanos> {
        let asked = self.bounds.and_then(|bounds| bounds.claim).map(|claim| claim.limit_ns);
        asked.or(self.run.plan.limit_ns)
    }
}
