//! Exceedance curve: share of the wake-ups that were at least this late. Both axes are logarithmic,
//! so that the tail has as much space as the bulk.
//!
//! Within a row the curve stays at the row's upper count until its end: never below the truth.

use maud::{Markup, html};

use super::axis::{Scale, power_label, span_label};
use super::columns;
use super::line;
use super::line::PlotLine;
use super::svg;
use super::svg::{LegendEntry, PathData, Picture, Plot, Size, legend};
use super::theme::{LINES, Theme};
use crate::words::several;
use model::histogram::Bucket;
use model::units::Nanos;

/// Number of steps of the band of many lines.
const BAND_STEPS: usize = 200;

/// Share per latency: `(from, share)` holds from there to the next, and ends at `end`.
struct Curve {
    steps: Vec<(f64, f64)>,
    end: f64,
    /// True if its samples continue beyond its end.
    open: bool,
}

/// Curves of some lines; dashed, for lines with a deadline histogram, the view of a periodic task.
pub fn draw(lines: &[PlotLine], size: Size, theme: &Theme) -> Option<Picture> {
    let (lo, hi) = line::extent(lines)?;
    let curves: Vec<Curve> =
        lines.iter().map(|line| curve(&line.rows, line.overflows, line.beyond_from, line.max)).collect();
    let singles = line::alone(lines);
    let dashed: Vec<(usize, Curve)> = singles
        .iter()
        .enumerate()
        .filter_map(|(colour, &i)| Some((colour, curve(lines[i].deadline?, 0, None, None))))
        .collect();
    let least = curves.iter().chain(dashed.iter().map(|(_, curve)| curve)).filter_map(Curve::least);
    let least = least.fold(0.5, f64::min);
    let furthest = dashed.iter().map(|(_, curve)| curve.end).fold(hi as f64, f64::max);
    let plot = Plot::new(size, 30.0, if size == Size::Wide { 290.0 } else { 240.0 });
    let (from, to) = columns::decades(lo, furthest.min(9e18) as i64);
    let x = Scale::log(from as f64, to as f64, plot.left, plot.right);
    // Whole decades, and room below the last step.
    let y = Scale::log(10f64.powf((least / 1.3).log10().floor()), 1.0, plot.bottom, plot.top);
    let keys = keys(lines, &singles, !dashed.is_empty(), theme);
    let (legend, legend_height) = legend(&keys, &plot, plot.bottom + 58.0, theme);
    let body = html! {
        (plot.x_axis(&x, &x.ticks(size.x_ticks(), span_label), "latency, logarithmic", theme))
        (plot.y_axis(&y, &y.ticks(8, power_label), &format!("share of {} at least this late", line::counted(lines)), theme))
        @if singles.len() < lines.len() { (band(&curves, &x, &y, theme)) }
        @for (colour, curve) in &dashed {
            path d=(curve.path(&x, &y).0) fill="none" stroke=(theme.lines[colour % LINES])
                stroke-width="1.3" stroke-dasharray="5 4" {}
        }
        @for (colour, &i) in singles.iter().enumerate() {
            path d=(curves[i].path(&x, &y).0) fill="none" stroke=(theme.lines[colour % LINES])
                stroke-width="1.7" { title { (lines[i].words()) } }
        }
        (plot.frame(theme))
        (legend)
    };
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 58.0 + legend_height,
        body: svg::group(theme, body),
        label: format!(
            "Exceedance curve of {}: share of {} at or above each latency.",
            several(lines.len() as u64, "line", "lines"),
            line::counted(lines)
        ),
        notes: lines
            .iter()
            .any(|line| line.max.is_none() && line.overflows > 0)
            .then(|| {
                "A line that ends above the axis has samples beyond the histogram's end, with unknown values."
                    .into()
            })
            .into_iter()
            .collect(),
    })
}

fn keys(lines: &[PlotLine], singles: &[usize], dashed: bool, theme: &Theme) -> Vec<LegendEntry> {
    let line = |(colour, &i): (usize, &usize)| LegendEntry {
        colour: theme.lines[colour % LINES],
        area: false,
        words: lines[i].name.clone(),
    };
    let mut keys: Vec<LegendEntry> = singles.iter().enumerate().map(line).collect();
    if singles.len() < lines.len() {
        let words = format!("all {}", lines.len());
        keys.push(LegendEntry { colour: theme.band, area: true, words });
    }
    if dashed {
        keys.push(LegendEntry {
            colour: "none",
            area: false,
            words: "dashed: slots, including missed ones".into(),
        });
    }
    keys
}

fn curve(rows: &[Bucket], beyond: u64, level: Option<Nanos>, max: Option<Nanos>) -> Curve {
    let total = rows.iter().map(|row| row.count as f64).sum::<f64>() + beyond as f64;
    let mut left = total;
    let mut steps = Vec::with_capacity(rows.len());
    // A row's share holds up to its upper edge, where that of the next row begins.
    let mut from = rows.first().map_or(1.0, |row| row.lower.0 as f64);
    for row in rows {
        steps.push((from, left / total));
        left -= row.count as f64;
        from = row.upper.0 as f64;
    }
    if beyond > 0 {
        // All of them reach the level from which there are no rows.
        steps.push((from, beyond as f64 / total));
        from = level.map_or(from, |level| from.max(level.0 as f64));
    }
    let end = max.map_or(from, |max| max.0 as f64);
    Curve { steps, end, open: beyond > 0 && max.is_none() }
}

impl Curve {
    fn least(&self) -> Option<f64> {
        self.steps.last().map(|step| step.1).filter(|share| *share > 0.0)
    }

    /// Share at or above a latency.
    fn at(&self, latency: f64) -> f64 {
        if latency > self.end {
            return 0.0;
        }
        let after = self.steps.partition_point(|step| step.0 <= latency);
        if after == 0 { 1.0 } else { self.steps[after - 1].1 }
    }

    fn path(&self, x: &Scale, y: &Scale) -> PathData {
        let mut path = PathData::default();
        let Some(first) = self.steps.first() else { return path };
        path.go(x.at(first.0), y.at(first.1));
        let (mut drawn_x, mut drawn_y) = (x.at(first.0), y.at(first.1));
        for step in &self.steps[1..] {
            let (at_x, at_y) = (x.at(step.0), y.at(step.1));
            // Invisible steps would only enlarge the file.
            if at_x - drawn_x < 0.7 && at_y - drawn_y < 0.7 {
                continue;
            }
            path.across(at_x);
            path.down(at_y);
            (drawn_x, drawn_y) = (at_x, at_y);
        }
        path.across(x.at(self.end).max(drawn_x));
        if !self.open {
            path.down(y.at(f64::MIN_POSITIVE));
        }
        path
    }
}

/// Area between the lowest and the highest curve.
fn band(curves: &[Curve], x: &Scale, y: &Scale, theme: &Theme) -> Markup {
    let mut path = PathData::default();
    let at = |i: usize| x.lo() * (x.hi() / x.lo()).powf(i as f64 / BAND_STEPS as f64);
    for i in 0..BAND_STEPS {
        let shares = || curves.iter().filter(|curve| !curve.steps.is_empty()).map(|curve| curve.at(at(i)));
        let (low, high) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
        if high > 0.0 {
            let (top, bottom) = (y.at(high), y.at(low).max(y.at(high) + 1.0));
            path.rect(x.at(at(i)), top, x.at(at(i + 1)) - x.at(at(i)) + 0.1, bottom - top);
        }
    }
    html! { path d=(path.0) fill=(theme.band) {} }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plot::theme::PAPER;

    #[test]
    fn shares_fall_from_all_to_the_one_largest() {
        let rows = [
            Bucket::new(Nanos(10), Nanos(20), 90),
            Bucket::new(Nanos(20), Nanos(30), 9),
            Bucket::new(Nanos(50), Nanos(60), 1),
        ];
        let curve = curve(&rows, 0, None, Some(Nanos(55)));
        for (latency, share) in
            [(5.0, 1.0), (15.0, 1.0), (20.0, 0.1), (30.0, 0.01), (55.0, 0.01), (56.0, 0.0)]
        {
            assert!((curve.at(latency) - share).abs() < 1e-9, "{latency}");
        }
        assert_eq!(curve.least(), Some(0.01));
    }

    #[test]
    fn samples_without_a_value_stay_above_every_row() {
        let curve = curve(&[Bucket::new(Nanos(10), Nanos(20), 97)], 3, None, Some(Nanos(500)));
        assert_eq!((curve.at(400.0), curve.open), (0.03, false));
        // The end of the histogram is not the largest value if that is not known.
        let open = super::curve(&[Bucket::new(Nanos(10), Nanos(20), 97)], 3, Some(Nanos(60)), None);
        assert_eq!((open.open, open.end), (true, 60.0));
    }

    #[test]
    fn the_missed_slots_are_dashed() {
        let dashes = |sample: &fixture::MadeRun| {
            let lines = line::of_run(&sample.run);
            let picture = draw(&lines, Size::Wide, &PAPER).unwrap();
            picture.body.into_string().matches("stroke-dasharray").count()
        };
        assert_eq!(dashes(&fixture::quiet()), 0);
        assert_eq!(dashes(&fixture::noisy()), 2);
        assert!(draw(&[], Size::Wide, &PAPER).is_none());
    }
}
