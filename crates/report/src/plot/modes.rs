//! Modes of a histogram, marked above the plot and named.

use maud::{Markup, html};
use model::sort::CompactSort;

use super::axis::Scale;
use super::line::PlotLine;
use super::svg::{FONT, LINE, PathData, Plot, Size, text_over, text_width};
use super::theme::Theme;
use crate::totals::sum_rows;
use crate::words::{percent, several, span};
use stats::modes::{Mode, modes};

/// Limit of modes with a name; `LEVELS` is the number of heights for the names.
const MAX_NAMED: usize = 8;
const LEVELS: usize = 3;

/// Modes of all lines together; none if there is only one, which needs no name.
pub fn of(lines: &[PlotLine]) -> Vec<Mode> {
    let found = modes(&sum_rows(lines.iter().map(|line| &*line.rows)));
    if found.len() < 2 { Vec::new() } else { found }
}

/// Fullest modes, ascending.
fn named(modes: &[Mode]) -> Vec<Mode> {
    let mut most = modes.to_vec();
    most.compact_sort_by_key(|mode| std::cmp::Reverse(mode.n));
    most.truncate(MAX_NAMED);
    most.compact_sort_by_key(|mode| mode.at);
    most
}

/// Stroke down from the upper edge at each mode, with its latency and, if there is room, its share.
pub fn draw(modes: &[Mode], plot: &Plot, x: &Scale, size: Size, theme: &Theme) -> Markup {
    let low = plot.top + room(modes);
    let mut ends = [f64::NEG_INFINITY; LEVELS];
    let mut marks = Vec::new();
    for mode in named(modes).into_iter().filter(|mode| x.holds(mode.at.0 as f64)) {
        let words = match size {
            Size::Wide => format!("{} ({})", span(mode.at), percent(mode.share)),
            Size::Narrow => span(mode.at),
        };
        let (at, half) = (x.at(mode.at.0 as f64), text_width(&words) * 0.55 + 2.0);
        let middle = at.min(plot.right - half - 2.0).max(plot.left + half + 2.0);
        let level = ends.iter().position(|&end| end < middle - half).unwrap_or(LEVELS - 1);
        ends[level] = middle + half + 6.0;
        let y = plot.top + FONT + 5.0 + level as f64 * LINE;
        let mut stroke = PathData::default();
        stroke.go(at, y + 4.0);
        stroke.down(low - 4.0);
        let mut tip = PathData::default();
        tip.go(at, low);
        tip.to(at - 3.5, low - 7.0);
        tip.to(at + 3.5, low - 7.0);
        marks.push((middle, y, words, stroke.0, tip.0 + "z"));
    }
    html! {
        @for (_, _, _, stroke, tip) in &marks {
            path d=(stroke) fill="none" stroke=(theme.ink) stroke-width="1" {}
            path d=(tip) fill=(theme.ink) {}
        }
        @for (x, y, words, _, _) in marks {
            (text_over(x, y, "middle", theme.ink, theme, &words))
        }
    }
}

/// Room above the data that the names need.
pub fn room(modes: &[Mode]) -> f64 {
    if modes.is_empty() { 0.0 } else { modes.len().min(LEVELS) as f64 * LINE + 18.0 }
}

/// Explanation of the marks.
pub fn note(modes: &[Mode], counted: &str) -> Option<String> {
    modes.first()?;
    let more = if modes.len() > MAX_NAMED {
        format!(", of which the {MAX_NAMED} fullest are named")
    } else {
        String::new()
    };
    Some(format!(
        "Arrows from above: {}, distinct peaks, with their share of all {counted} where there is room{more}.",
        several(modes.len() as u64, "separate mode", "separate modes")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::theme::PAPER;
    use model::units::Nanos;

    #[test]
    fn names_do_not_overlap_and_stay_within() {
        let modes: Vec<Mode> =
            (0..12).map(|i| Mode { at: Nanos(1_000 + 50 * i), n: 1 + i as u64, share: 0.01 }).collect();
        let plot = Plot::new(Size::Narrow, 30.0, 200.0);
        let x = Scale::linear(0.0, 10_000.0, plot.left, plot.right);
        let text = draw(&modes, &plot, &x, Size::Narrow, &PAPER).into_string();
        assert_eq!(text.matches("<text").count(), MAX_NAMED);
        assert!(text.contains("1.55 us") && !text.contains(">1 us"), "the fullest: {text}");
        assert!(note(&modes, "gaps").unwrap().contains("12 separate modes"));
        assert!(note(&[], "gaps").is_none() && room(&[]) == 0.0);
    }
}
