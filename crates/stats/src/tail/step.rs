//! A step in which values were recorded.

/// Values of one step, `[low, high)`; a density if both are equal, open above if high is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Lower edge, in the unit of the values.
    pub low: f64,
    /// Upper edge, in the unit of the values.
    pub high: f64,
    pub count: f64,
}
