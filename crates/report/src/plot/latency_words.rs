//! Words of the plots of latencies and of cycles.

use super::line::{self, PlotLine};
use crate::words::{several, span};
use model::units::Nanos;

/// Words for the value and the limit.
pub struct PlotWords {
    pub value: &'static str,
    pub limit: &'static str,
}

pub const OF_WAKEUPS: PlotWords = PlotWords { value: "latency", limit: "limit" };
pub const OF_CYCLES: PlotWords = PlotWords { value: "time", limit: "deadline" };

/// Plot in a sentence or two.
pub fn in_words(lines: &[PlotLine], words: &PlotWords, hi: i64) -> String {
    let (value, counted) = (words.value, line::counted(lines));
    let plot = format!(
        "Plot of {}: number of {counted} over {value}.",
        several(lines.len() as u64, "line", "lines")
    );
    // The end of a histogram is not the largest value if that is not known.
    if lines.iter().any(|line| line.max.is_none() && line.overflows > 0) {
        return format!("{plot} The largest {value} is not known.");
    }
    let worst = lines.iter().max_by_key(|line| line.max);
    let worst = worst.map_or_else(String::new, |line| format!(", on {}", line.name));
    format!("{plot} The largest {value} is {}{worst}.", span(Nanos(hi)))
}
