//! Times of several items, before and after, as bars below each other.

use maud::{Markup, html};

use super::axis::Scale;
use super::svg::{self, LegendEntry, PathData, Picture, Plot, Size, fit, legend, text};
use super::theme::Theme;

/// Item with its two values; 0 if it was not seen.
#[derive(Clone, Debug, PartialEq)]
pub struct BeforeAfterRow {
    pub name: String,
    pub before: f64,
    /// Value after; none if it was not measured again.
    pub after: Option<f64>,
}

/// Height of a row: the name, and two bars below it.
const ROW: f64 = 52.0;
const BAR: f64 = 11.0;

/// Picture; `label` writes a value. None without a value above 0.
pub fn draw(
    rows: &[BeforeAfterRow],
    axis: &str,
    label: impl Fn(f64) -> String + Copy,
    size: Size,
    theme: &Theme,
) -> Option<Picture> {
    let most = rows.iter().flat_map(|row| [row.before, row.after.unwrap_or(0.0)]).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let plot = Plot { left: 16.0, ..Plot::new(size, 18.0, ROW * rows.len() as f64 + 8.0) };
    let x = Scale::linear(0.0, most * 1.12, plot.left, plot.right);
    let keys = [("before", 0), ("after", 1)].map(|(words, line)| LegendEntry {
        colour: theme.lines[line],
        area: true,
        words: words.to_owned(),
    });
    let (legend, legend_height) = legend(&keys, &plot, plot.bottom + 58.0, theme);
    let body = html! {
        (plot.x_axis(&x, &x.ticks(size.x_ticks(), label), axis, theme))
        @for (i, row) in rows.iter().enumerate() {
            (one(row, plot.top + ROW * i as f64, &plot, &x, label, theme))
        }
        (plot.frame(theme))
        (legend)
    };
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 58.0 + legend_height,
        body: svg::group(theme, body),
        label: "Time that each took before and after.".into(),
        notes: Vec::new(),
    })
}

fn one(
    row: &BeforeAfterRow,
    top: f64,
    plot: &Plot,
    x: &Scale,
    label: impl Fn(f64) -> String,
    theme: &Theme,
) -> Markup {
    let bar = |value: f64, y: f64| {
        let mut path = PathData::default();
        path.rect(plot.left, y, (x.at(value) - plot.left).max(0.5), BAR);
        path.0
    };
    let value =
        |value: f64, y: f64| text(x.at(value) + 5.0, y + BAR - 1.5, "start", theme.muted, &label(value));
    html! {
        (text(plot.left + 8.0, top + 18.0, "start", theme.ink, &fit(&row.name, plot.right - plot.left)))
        path d=(bar(row.before, top + 24.0)) fill=(theme.lines[0]) {}
        (value(row.before, top + 24.0))
        @if let Some(after) = row.after {
            path d=(bar(after, top + 24.0 + BAR + 2.0)) fill=(theme.lines[1]) {}
            (value(after, top + 24.0 + BAR + 2.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::theme::PAPER;

    #[test]
    fn who_was_not_looked_for_again_has_one_bar() {
        let row = |before, after| BeforeAfterRow { name: "a thread".into(), before, after };
        let bars = |rows: &[BeforeAfterRow]| {
            let picture = draw(rows, "per second", |value| format!("{value:.1}"), Size::Wide, &PAPER);
            picture.map(|picture| picture.body.into_string().matches("z\" fill=").count())
        };
        assert_eq!(bars(&[row(3.0, Some(0.0)), row(1.0, None)]), Some(3));
        assert_eq!((bars(&[row(0.0, None)]), bars(&[])), (None, None));
    }
}
