//! Rate at which a latency is reached: blocks per hour whose maximum is at least this late, the
//! upper bound by counting, and the law fitted to the maxima; a law that a check refused is not
//! drawn, since a line would be read as a promise.
//!
//! Both axes are logarithmic. A block counts once, however many of its wake-ups are late.

use maud::{Markup, html};
use stats::bounds::ExtrapolationStatus;

use super::axis::{Scale, power_label, span_label};
use super::columns;
use super::curve::Curve;
use super::svg;
use super::svg::stroke;
use super::svg::{LegendEntry, PathData, Picture, Plot, Px, Size, legend, text_over};
use super::theme::Theme;
use crate::words::{duration, rounded_up, several, span};
use model::units::Nanos;
use stats::bounds::Bounds;
use stats::series::Series;
use stats::tail::gev::Gev;

/// Number of steps in which a law is drawn.
const LAW_STEPS: usize = 160;
const HOUR: f64 = 3600.0;

/// Picture; `None` without blocks.
pub fn draw(series: &Series, bounds: &Bounds, size: Size, theme: &Theme) -> Option<Picture> {
    let curve = Curve::of(&[series])?;
    let beyond = &bounds.extrapolation;
    let limit = bounds.claim.map(|claim| claim.limit_ns);
    let (low, worst) = curve.extent();
    let levels = [beyond.upper_nonneg_shape_ns, beyond.upper_ns].into_iter().flatten();
    let seen = levels.filter(|_| beyond.status == ExtrapolationStatus::Ok).fold(worst, f64::max);
    // The limit is shown as long as the curve keeps most of the picture.
    let limit_mark = limit.filter(|limit| limit.0 as f64 / 4.0 <= seen && limit.0 as f64 * 4.0 >= low);
    let lowest = limit_mark.map_or(low, |limit| low.min(limit.0 as f64));
    let furthest = limit_mark.map_or(seen, |limit| seen.max(limit.0 as f64));
    let horizon = beyond.horizon_ns.unwrap_or(bounds.counting.horizon_ns);
    let once = HOUR / horizon.as_secs().max(1e-9);
    let plot = Plot::new(size, 30.0, if size == Size::Wide { 290.0 } else { 250.0 });
    let (from, to) = columns::decades(lowest as i64, furthest.min(9e18) as i64);
    let x = Scale::log(from as f64, to as f64, plot.left, plot.right);
    let y = Scale::log(once.min(curve.one()) / 6.0, curve.most() * 1.5, plot.bottom, plot.top);
    let sketch = Sketch { plot, x, y, once, theme };
    let (legend, legend_height) = legend(&keys(series, bounds, theme), &plot, plot.bottom + 58.0, theme);
    let title = format!("blocks of {} per hour that reach it", duration(series.block).replace(".0 s", " s"));
    let body = html! {
        (plot.x_axis(&sketch.x, &sketch.x.ticks(size.x_ticks(), span_label), "latency, logarithmic", theme))
        (sketch.allowed(&curve))
        (plot.y_axis(&sketch.y, &sketch.y.ticks(8, power_label), &title, theme))
        (sketch.law(series, bounds))
        path d=(curve.path(&sketch.x, &sketch.y, curve.observed()).0) fill="none" stroke=(theme.lines[0]) stroke-width="1.7" {}
        (sketch.horizon(horizon))
        (sketch.levels(bounds))
        @if let Some(limit_mark) = limit_mark { (self::limit(limit_mark, &plot, &sketch.x, theme)) }
        (plot.frame(theme))
        (legend)
    };
    let far = limit.filter(|_| limit_mark.is_none());
    let refused = (beyond.status != ExtrapolationStatus::Ok)
        .then(|| "No extrapolation: see the checks below.".to_owned());
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 58.0 + legend_height,
        body: svg::group(theme, body),
        label: format!(
            "Rate at which a latency is reached, over {}. The largest is {}.",
            several(series.blocks.len() as u64, "block", "blocks"),
            span(Nanos(worst as i64))
        ),
        notes: far.map(|limit| lies_far(limit, limit.0 as f64 > seen)).into_iter().chain(refused).collect(),
    })
}

fn keys(series: &Series, bounds: &Bounds, theme: &Theme) -> Vec<LegendEntry> {
    let beyond = &bounds.extrapolation;
    let mut keys = vec![
        LegendEntry {
            colour: theme.lines[0],
            area: false,
            words: format!("seen in {}", duration(series.observed)),
        },
        LegendEntry { colour: theme.band, area: true, words: "upper bound from counting (95 %)".into() },
    ];
    if beyond.gev.is_some() && beyond.status == ExtrapolationStatus::Ok {
        let words = format!("distribution fitted to {} maxima", beyond.blocks);
        keys.push(LegendEntry { colour: theme.lines[1], area: false, words });
    }
    keys
}

struct Sketch<'a> {
    plot: Plot,
    x: Scale,
    y: Scale,
    once: f64,
    theme: &'a Theme,
}

impl Sketch<'_> {
    /// Area between the observed rate and the bound by counting.
    fn allowed(&self, curve: &Curve) -> Markup {
        let mut area = curve.path(&self.x, &self.y, curve.allowed());
        let edge = area.0.clone() + &format!("H{}", Px(self.plot.right));
        area.across(self.plot.right);
        area.down(self.plot.bottom);
        // Back along the observed curve, step by step.
        let observed = curve.observed();
        for pair in curve.steps.windows(2).rev() {
            area.across(self.x.at(pair[1].0));
            area.down(self.y.at(observed(pair[0].1)));
        }
        area.across(self.plot.left);
        area.0.push('z');
        html! {
            path d=(area.0) fill=(self.theme.band) fill-opacity="0.4" {}
            path d=(edge) fill="none" stroke=(self.theme.band) stroke-width="1.4" {}
        }
    }

    fn law(&self, series: &Series, bounds: &Bounds) -> Markup {
        let beyond = &bounds.extrapolation;
        let (Some(law), Some(block)) = (&beyond.gev, beyond.block_ns) else { return html! {} };
        if beyond.status != ExtrapolationStatus::Ok {
            return html! {};
        }
        let law = Gev { mu: law.mu, sigma: law.sigma, xi: law.xi };
        // The law of the recorded blocks is a root of that of the longer blocks.
        let shorter = series.block.0.max(1) as f64 / block.0.max(1) as f64;
        let per_hour = HOUR / series.block.as_secs().max(1e-9);
        let mut path = PathData::default();
        for i in 0..=LAW_STEPS {
            let latency = self.x.lo() * (self.x.hi() / self.x.lo()).powf(i as f64 / LAW_STEPS as f64);
            let rate = -(-law.rate_above(latency) * shorter).exp_m1() * per_hour;
            let (x, y) = (self.x.at(latency), self.y.at(rate));
            if i == 0 {
                path.go(x, y)
            } else {
                path.to(x, y)
            }
            if rate.is_nan() || rate <= self.y.lo() {
                break;
            }
        }
        html! { path d=(path.0) fill="none" stroke-width="1.5" stroke=(self.theme.lines[1]) {} }
    }

    fn horizon(&self, horizon: Nanos) -> Markup {
        let y = self.y.at(self.once);
        let mut path = PathData::default();
        path.go(self.plot.left, y);
        path.across(self.plot.right);
        html! {
            path d=(path.0) fill="none" stroke=(self.theme.ink) stroke-width="0.8" stroke-dasharray="2 3" {}
            (text_over(self.plot.left + 6.0, y - 5.0, "start", self.theme.muted, self.theme, &format!("once in {}", duration(horizon))))
        }
    }

    /// Levels for the horizon, on its line: each has a separate height for its name.
    fn levels(&self, bounds: &Bounds) -> Markup {
        let beyond = &bounds.extrapolation;
        if beyond.status != ExtrapolationStatus::Ok {
            return html! {};
        }
        let guarded = beyond.upper_nonneg_shape_ns.filter(|guarded| {
            beyond.upper_ns.is_none_or(|upper| self.x.at(*guarded) - self.x.at(upper) > 4.0)
        });
        let marks = [
            (beyond.typical_ns.map(|level| (level, Nanos(level.min(9e18) as i64))), "typical", 17.0),
            (beyond.upper_ns.map(|level| (level, rounded_up(level))), "bound", -7.0),
            (guarded.map(|level| (level, rounded_up(level))), "bound without an upper limit", -24.0),
        ];
        let y = self.y.at(self.once);
        let colour = self.theme.lines[1];
        html! {
            @for (level, name, down) in marks {
                @if let Some((level, bound)) = level {
                    @let words = format!("{name} {}", span(bound));
                    @let x = self.x.at(level);
                    circle cx=(Px(x)) cy=(Px(y)) r="4" fill=(colour) stroke=(self.theme.background) stroke-width="1.2" { title { (words) } }
                    (text_over((x + 5.0).min(self.plot.right - 4.0), y + down, "end", colour, self.theme, &words))
                }
            }
        }
    }
}

/// Vertical line at the limit, with its name to the right if there is room: curves fall, and are
/// above it on the left.
pub fn limit(limit: Nanos, plot: &Plot, x: &Scale, theme: &Theme) -> Markup {
    let x = x.at(limit.0 as f64);
    let words = format!("limit {}", span(limit));
    // The text is in bold.
    let right = x + svg::text_width(&words) * 1.1 + 8.0 < plot.right;
    let (at, anchor) = if right { (x + 5.0, "start") } else { (x - 5.0, "end") };
    html! {
        path d=(stroke(x, plot.top, plot.bottom)) fill="none" stroke=(theme.alarm) stroke-width="1.4" stroke-dasharray="7 4" {}
        (text_over(at, plot.top + 15.0, anchor, theme.alarm, theme, &words))
    }
}

/// Sentence on a limit that would leave the curves too little of the picture.
pub fn lies_far(limit: Nanos, right: bool) -> String {
    format!("The limit, {}, lies far to the {}.", span(limit), if right { "right" } else { "left" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plot::theme::PAPER;

    #[test]
    fn a_refused_fit_is_not_drawn() {
        let mut sample = fixture::eight();
        sample.ask(Some(Nanos(30_000)));
        let mut bounds = sample.bounds.unwrap();
        let text =
            |bounds: &Bounds| draw(&sample.series, bounds, Size::Narrow, &PAPER).unwrap().body.into_string();
        bounds.extrapolation.status = ExtrapolationStatus::Refused;
        let refused = text(&bounds);
        assert!(!refused.contains("distribution fitted") && refused.contains("limit 30 us"));
        bounds.extrapolation.typical_ns = Some(25_000.0);
        assert!(!text(&bounds).contains("typical"), "a level of a refused law");
        bounds.extrapolation.status = ExtrapolationStatus::Ok;
        bounds.extrapolation.typical_ns = Some(25_000.0);
        assert!(text(&bounds).contains("typical 25 us") && text(&bounds).contains("distribution fitted"));
    }

    #[test]
    fn a_limit_stands_where_it_is_or_is_told() {
        let mut sample = fixture::eight();
        let (low, worst) = Curve::of(&[&sample.series]).unwrap().extent();
        let mut drawn = |limit: f64| {
            sample.ask(Some(Nanos(limit as i64)));
            draw(&sample.series, sample.bounds.as_ref().unwrap(), Size::Wide, &PAPER).unwrap()
        };
        for near in [low / 3.0, worst * 2.0] {
            assert!(drawn(near).body.into_string().contains(">limit"));
        }
        for (far, side) in [(low / 20.0, "left"), (worst * 1e4, "right")] {
            let picture = drawn(far);
            let has_note = picture.notes.iter().any(|note| note.contains(&format!("far to the {side}")));
            assert!(has_note && !picture.body.into_string().contains(">limit"), "{:?}", picture.notes);
        }
    }

    #[test]
    fn without_blocks_there_is_no_picture() {
        let mut sample = fixture::quiet();
        sample.ask(None);
        let bounds = sample.bounds.unwrap();
        assert!(draw(&Series::default(), &bounds, Size::Wide, &PAPER).is_none());
    }
}
