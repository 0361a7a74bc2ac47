//! A run with all data to show it.

use crate::hunt::windows::Windows;
use crate::plot::history::History;
use facts::differences::Settings;
use model::run::Run;
use model::units::Nanos;
use stats::bounds::Bounds;
use stats::series::Series;

/// One run as it is to be shown.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub run: &'a Run,
    /// Its blocks, folded into columns.
    pub history: &'a History,
    /// Its block maxima; empty where only a histogram was kept.
    pub series: &'a Series,
    /// What it supports, where that was asked and there is something to answer with.
    pub bounds: Option<&'a Bounds>,
    /// What was traced around its spikes, for a hunt.
    pub windows: Option<&'a Windows>,
    /// What reading the bundle had to repair or leave out.
    pub remarks: &'a [String],
    /// The conditions that it is compared in with others, where several are shown.
    pub settings: Option<&'a Settings>,
    /// What to call it, usually the bundle's name.
    pub title: &'a str,
    /// Where it is, as a shell reads it.
    pub place: &'a str,
}

impl Input<'_> {
    /// The requested limit, or else the run's own.
    pub fn limit(&self) -> Option<Nanos> {
        let asked = self.bounds.and_then(|bounds| bounds.claim).map(|claim| claim.limit_ns);
        asked.or(self.run.plan.limit_ns)
    }
}
