//! A step in which values were recorded.

/// All values of one step, `[low, high)`; a density where both are the same, open to above where
/// high is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Lower edge, in the unit of the values.
    pub low: f64,
    /// Upper edge, in the unit of the values.
    pub high: f64,
    pub count: f64,
}
