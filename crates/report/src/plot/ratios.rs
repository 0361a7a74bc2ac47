//! Changes below each other: the factor by which each made late wake-ups rarer or more frequent,
//! with its interval.

use maud::{Markup, html};

use super::axis::{Scale, number};
use super::svg::{self, PathData, Picture, Plot, Px, Size, fit, stroke, text};
use super::theme::Theme;

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioRow {
    pub name: String,
    /// Outcome in words.
    pub words: String,
    pub good: bool,
    /// Rate with the change over that without it; 0 if nothing was late with it.
    pub ratio: Option<f64>,
    pub interval: Option<[f64; 2]>,
}

/// Height of a row: the name above, the interval below.
const ROW: f64 = 46.0;

/// Half the height of the ends of an interval.
const SERIF: f64 = 5.0;

/// Picture; none without an interval or a ratio.
pub fn draw(rows: &[RatioRow], size: Size, theme: &Theme) -> Option<Picture> {
    let values = || rows.iter().flat_map(|row| row.interval.into_iter().flatten().chain(row.ratio));
    let known = || values().filter(|value| value.is_finite() && *value > 0.0);
    values().next()?;
    let low = known().fold(0.5, f64::min) / 2.0;
    let high = known().fold(1.0, f64::max) * 2.0;
    let plot = Plot { left: 16.0, ..Plot::new(size, 18.0, ROW * rows.len() as f64 + 8.0) };
    let x = Scale::log(low, high, plot.left, plot.right);
    let body = html! {
        (plot.x_axis(&x, &x.ticks(size.x_ticks(), number), "late wake-ups with it, as a factor", theme))
        path d=(stroke(x.at(1.0), plot.top, plot.bottom)) fill="none" stroke=(theme.ink) stroke-width="1.2" {}
        @for (i, row) in rows.iter().enumerate() {
            (one(row, plot.top + ROW * i as f64, &plot, &x, theme))
        }
        (plot.frame(theme))
    };
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 44.0,
        body: svg::group(theme, body),
        label: "Factor by which each change reduced or increased late wake-ups.".into(),
        notes: Vec::new(),
    })
}

fn one(row: &RatioRow, top: f64, plot: &Plot, x: &Scale, theme: &Theme) -> Markup {
    let colour = if row.good { theme.lines[2] } else { theme.muted };
    let (name, y) = (format!("{}: {}", row.name, row.words), top + 34.0);
    let bar = row.interval.map(|[low, high]| {
        let mut path = PathData::default();
        path.go(x.at(low), y);
        path.across(x.at(high));
        for end in [low, high] {
            path.go(x.at(end), y - SERIF);
            path.down(y + SERIF);
        }
        path.0
    });
    html! {
        (text(plot.left + 8.0, top + 20.0, "start", theme.ink, &fit(&name, plot.right - plot.left - 16.0)))
        @if let Some(bar) = bar { path d=(bar) fill="none" stroke=(colour) stroke-width="2" {} }
        @if let Some(ratio) = row.ratio {
            circle cx=(Px(x.at(ratio))) cy=(Px(y)) r="4.5" fill=(colour) { title { (number(ratio)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::theme::PAPER;

    #[test]
    fn each_change_has_a_row_and_nothing_late_lies_at_the_edge() {
        let row = |ratio, interval| RatioRow {
            name: "irq-affinity".into(),
            words: "kept".into(),
            good: true,
            ratio,
            interval,
        };
        let rows = [row(Some(0.0), Some([0.0, 0.03])), row(Some(1.1), None), row(None, None)];
        let picture = draw(&rows, Size::Wide, &PAPER).unwrap();
        let text = picture.body.into_string();
        assert_eq!((text.matches("<circle").count(), text.matches("irq-affinity: kept").count()), (2, 3));
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(draw(&rows[2..], Size::Narrow, &PAPER).is_none() && draw(&[], Size::Wide, &PAPER).is_none());
    }
}
