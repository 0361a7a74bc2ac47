//! Maxima that are fitted, and the levels that the fit predicts.

use std::borrow::Cow;

use crate::levels;
use crate::series::Series;
use crate::tail::gev::{self, GevFit, Shape};
use crate::tail::grouped_sample::GroupedSample;
use crate::tail::profile::{self, Level};
use crate::values::SeriesValues;
use model::column::Column;
use model::units::Nanos;

/// Probability with which the horizon stays below the bound.
pub const BOUND: f64 = 0.95;

/// Maxima that are fitted.
pub struct Sample<'a> {
    /// The maxima in order of time.
    maxima: Cow<'a, Column>,
    /// Length of a block.
    pub block: Nanos,
    /// The maxima as data of a fit.
    pub steps: Option<GroupedSample>,
    pub fit: Option<GevFit>,
    /// Step of the values.
    pub step: Nanos,
}

impl<'a> Sample<'a> {
    /// The maxima of a series in blocks of a multiple of its block length.
    pub fn of(series: &'a Series, times: u32) -> Sample<'a> {
        // Millions of values are not copied.
        let maxima = match times {
            1 => Cow::Borrowed(series.blocks.values()),
            _ => Cow::Owned(series.coarser(times)),
        };
        let steps = GroupedSample::new(&*maxima, series.step.0 as f64);
        let fit = steps.as_ref().and_then(|steps| gev::fit(steps, Shape::WIDE));
        let block = Nanos(series.block.0.saturating_mul(i64::from(times)));
        Sample { maxima, block, steps, fit, step: series.step }
    }

    /// The maxima in order of time.
    pub fn values(&self) -> SeriesValues<'_> {
        SeriesValues::from(&*self.maxima)
    }

    /// Fit of the usual shapes alone, for the tests of the fit.
    pub fn usual_fit(&self) -> Option<GevFit> {
        let fit = self.fit?;
        // A maximum of the likelihood within the usual shapes is also theirs.
        if Shape::USUAL.holds(fit.law.xi) {
            Some(GevFit { shape: Shape::USUAL, ..fit })
        } else {
            gev::fit(self.steps.as_ref()?, Shape::USUAL)
        }
    }

    /// Number of different steps in which the values lie.
    pub fn distinct(&self) -> usize {
        let values = self.values();
        let steps = values.iter().map(|value| (value / self.step.0.max(1) as f64).floor());
        levels::Levels::of(steps, values.len()).all().len()
    }
}

/// Levels of the largest of the blocks ahead, in ns.
pub struct PredictedLevels {
    /// Level below which it stays with probability one half.
    pub typical: f64,
    /// Upper bound, if the data have one.
    pub upper: Option<f64>,
    /// Upper bound for a tail without end.
    pub guarded: Option<f64>,
}

impl PredictedLevels {
    pub fn of(sample: &Sample, blocks: f64) -> Option<PredictedLevels> {
        let (steps, fit) = (sample.steps.as_ref()?, sample.fit?);
        if blocks <= 0.0 {
            return None;
        }
        let drop = profile::printed_drop(steps);
        let upper =
            |fit: &GevFit| profile::level_upper(steps, fit, Level { blocks, probability: BOUND }, drop);
        let guarded = gev::fit(steps, Shape::NON_NEGATIVE).and_then(|fit| upper(&fit));
        let upper = upper(&fit);
        Some(PredictedLevels {
            typical: Level { blocks, probability: 0.5 }.of(&fit.law),
            upper,
            // Both are searches of one likelihood: the bound with the smaller allowed risk is never
            // smaller.
            guarded: guarded.map(|guarded| upper.map_or(guarded, |upper| guarded.max(upper))),
        })
    }
}
