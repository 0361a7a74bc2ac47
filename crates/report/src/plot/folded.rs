//! Spikes folded on a period: the largest blocks by their distance from a due time. Those of the
//! period are in one column, the others anywhere.

use maud::html;

use super::axis::{Scale, number, span_label, unit_of};
use super::svg;
use super::svg::stroke;
use super::svg::{LegendEntry, PathData, Picture, Plot, Size, legend, text_over};
use super::theme::Theme;
use crate::words::{several, span};
use model::sort::CompactSort;
use model::units::Nanos;
use stats::bounds::periods::Period;
use stats::series::{BlockMaximum, Series};
use stats::time::fold::fold;

/// Limit of other blocks that are drawn: the largest.
const OTHERS: usize = 1_000;
/// Limit of periods with a picture.
pub const MAX_PERIODS: usize = 3;

/// Heading: the period and its possible cause.
pub fn heading(period: &Period) -> String {
    let hint = match period.compatible_with.first() {
        Some(first) => format!(", compatible with {first}"),
        None => String::new(),
    };
    format!("Spikes every {}{hint}", period.every())
}

/// Picture; `None` without spikes.
pub fn draw(period: &Period, series: &Series, size: Size, theme: &Theme) -> Option<Picture> {
    let blocks = chosen(period, series);
    let highest = blocks.iter().map(|block| block.max.0).max()?.max(2) as f64;
    let lowest = blocks.iter().map(|block| block.max.0).min()?.max(1) as f64;
    let times: Vec<i64> = blocks.iter().map(|block| block.at.0).collect();
    let members: Vec<usize> =
        (0..blocks.len()).filter(|&i| period.at_ns.binary_search(&blocks[i].at).is_ok()).collect();
    let length = period.period_s * 1e9;
    let folded = fold(&times, length, period.phase_ns.0, &members);
    let plot = Plot::new(size, 30.0, if size == Size::Wide { 230.0 } else { 210.0 });
    let x = Scale::linear(-length / 2.0, length / 2.0, plot.left, plot.right);
    let y = Scale::log(lowest / 1.05, highest * 1.15, plot.bottom, plot.top);
    let (mut others, mut comb) = (PathData::default(), PathData::default());
    for (event, block) in folded.iter().zip(&blocks) {
        let (path, side) = if event.member { (&mut comb, 5.0) } else { (&mut others, 2.6) };
        let at = (x.at((event.phase - 0.5) * length), y.at(block.max.0.max(1) as f64));
        path.rect(at.0 - side / 2.0, at.1 - side / 2.0, side, side);
    }
    let (unit, unit_ns) = unit_of(length / 2.0);
    let ticks = x.ticks(size.x_ticks(), |ns| number(ns / unit_ns));
    let key = |colour, words| LegendEntry { colour, area: true, words };
    let keys = [
        key(theme.lines[1], format!("{} of the period", several(members.len() as u64, "spike", "spikes"))),
        key(theme.muted, format!("the {} largest others", blocks.len() - members.len())),
    ];
    let (legend, legend_height) = legend(&keys, &plot, plot.bottom + 58.0, theme);
    let (from, to) = period.range()?;
    let range = format!("{from} to {to}");
    let body = html! {
        (plot.x_axis(&x, &ticks, &format!("{unit} before and after a spike was due"), theme))
        (plot.y_axis(&y, &y.ticks(6, span_label), "latency, logarithmic", theme))
        path d=(stroke(x.at(0.0), plot.top, plot.bottom)) fill="none" stroke=(theme.lines[1]) stroke-width="1" stroke-dasharray="2 3" {}
        path d=(others.0) fill=(theme.muted) fill-opacity="0.75" {}
        path d=(comb.0) fill=(theme.lines[1]) {}
        (text_over(x.at(0.0) + 9.0, plot.top + 15.0, "start", theme.lines[1], theme, &range))
        (plot.frame(theme))
        (legend)
    };
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 58.0 + legend_height,
        body: svg::group(theme, body),
        label: format!("{}: latency over the time before and after the due times, {range}.", heading(period)),
        notes: notes(period),
    })
}

/// Spikes of the period, and the largest of the others.
fn chosen(period: &Period, series: &Series) -> Vec<BlockMaximum> {
    let (members, mut others): (Vec<BlockMaximum>, Vec<BlockMaximum>) =
        series.every().partition(|block| period.at_ns.binary_search(&block.at).is_ok());
    others.compact_sort_by_key(|block| (std::cmp::Reverse(block.max), block.at));
    others.truncate(OTHERS);
    others.into_iter().chain(members).collect()
}

fn notes(period: &Period) -> Vec<String> {
    let spread = Nanos((period.jitter_s * 1e9).clamp(0.0, 9e18) as i64);
    let mut notes = vec![format!(
        "{} of the {} largest blocks, at their due times with a standard deviation of {}.",
        period.members,
        period.among,
        span(spread)
    )];
    if period.compatible_with.len() > 1 {
        notes.push(format!("Compatible with {}.", period.compatible_with.join(", or ")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plot::theme::PAPER;

    #[test]
    fn members_are_marked_and_named() {
        let mut sample = fixture::comb();
        sample.ask(None);
        let bounds = sample.bounds.unwrap();
        let period = &bounds.structure.periods[0];
        assert!(heading(period).starts_with("Spikes every 17.000 s"), "{}", heading(period));
        let picture = draw(period, &sample.series, Size::Wide, &PAPER).unwrap();
        assert!(picture.body.into_string().contains(&format!("{} spikes of the period", period.members)));
        assert!(draw(period, &Series::default(), Size::Wide, &PAPER).is_none());
    }

    #[test]
    fn the_number_of_others_drawn_is_limited() {
        let list: Vec<Option<Nanos>> = (0..5_000).map(|i| Some(Nanos(1_000 + i))).collect();
        let series = Series::of_list(&list, Nanos::SECOND, Nanos(1));
        let period = Period { at_ns: vec![Nanos(0), Nanos::SECOND], ..Period::default() };
        let blocks = chosen(&period, &series);
        assert_eq!((blocks.len(), blocks[0].max), (OTHERS + 2, Nanos(5_999)));
    }
}
