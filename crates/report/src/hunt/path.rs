//! Mean path from the expected time to user space, stage by stage, one bar after the other.

use maud::html;

use super::parts::share;
use super::stages::{Mean, NAMES};
use super::{kinds, sentences};
use crate::plot::axis::{Scale, number, unit_of};
use crate::plot::svg;
use crate::plot::svg::{LINE, Picture, Plot, Px, Size, text, text_width};
use crate::plot::theme::Theme;
use crate::words::{several, span};
use model::units::Nanos;

/// Height of a bar.
const BAR: f64 = 20.0;
/// Kinds that give the stages their colours; the first stage has many causes and the colour of a
/// rare one.
const COLOURS: [&str; 5] = ["idle-exit", "timer-irq", "timer-softirq", "thread", "return-to-user"];

/// Figure; `None` if no window has every landmark. `what` names the wake-ups: `spikes`.
pub fn draw(mean: &Mean, what: &str, size: Size, theme: &Theme) -> Option<Picture> {
    let stages = mean.stages()?;
    let whole: i64 = stages.iter().map(|stage| stage.0).sum();
    let wide = size == Size::Wide;
    // Side by side if there is space, else the name above its bar.
    let left = if wide { 250.0 } else { 12.0 };
    let step = if wide { 36.0 } else { BAR + 2.0 * LINE + 4.0 };
    let right = size.width() - size.right();
    let plot = Plot { left, right, top: 8.0, bottom: 8.0 + step * stages.len() as f64 };
    let time = Scale::linear(0.0, whole.max(1) as f64, left, right);
    let (unit, unit_ns) = unit_of(time.hi());
    let ticks = time.ticks(if wide { 8 } else { 4 }, |ns| number(ns / unit_ns));
    let from = |at: usize| stages[..at].iter().map(|stage| stage.0).sum::<i64>();
    let body = html! {
        (plot.x_axis(&time, &ticks, &format!("{unit} since the thread should have run, mean"), theme))
        @for (at, (stage, (name, why))) in stages.iter().zip(NAMES).enumerate() {
            @let top = plot.top + at as f64 * step;
            @let bar = if wide { top + 8.0 } else { top + 2.0 * LINE - 4.0 };
            @let (x1, x2) = (time.at(from(at) as f64), time.at(from(at + 1) as f64));
            @let kind = kinds::of(COLOURS[at]);
            @let words = format!("{} ({})", span(*stage), sentences::percent(share(*stage, Nanos(whole))));
            @let after = x2 + 6.0 + text_width(&words) < right;
            @if wide {
                (text(12.0, top + 15.0, "start", theme.ink, name))
                g font-size="10" { (text(12.0, top + 29.0, "start", theme.muted, &svg::fit(why, 280.0))) }
            } @else {
                (text(left + 4.0, top + 13.0, "start", theme.ink, name))
                g font-size="10.5" { (text(left + 4.0, top + 26.0, "start", theme.muted, &svg::fit(why, 395.0))) }
            }
            g {
                title { (name) ": " (words) ", " (why) }
                rect x=(Px(x1)) y=(Px(bar)) width=(Px((x2 - x1).max(1.6))) height=(Px(BAR)) fill=(kind.colour(theme))
                    fill-opacity=(number(kind.strength.max(0.5))) {}
            }
            @if after {
                (svg::text_over(x2 + 6.0, bar + 14.0, "start", theme.ink, theme, &words))
            } @else if text_width(&words) + 6.0 < x1 - left {
                (svg::text_over(x1 - 6.0, bar + 14.0, "end", theme.ink, theme, &words))
            } @else {
                (svg::text_over((x1 + x2) / 2.0, bar + 14.0, "middle", theme.ink, theme, &words))
            }
        }
        (plot.frame(theme))
    };
    let notes = (mean.without > 0).then(|| {
        format!("{} without complete timestamps omitted.", several(mean.without, "window", "windows"))
    });
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 44.0,
        body: svg::group(theme, body),
        label: format!(
            "Mean path of {} {what}: {} from the expected time to user space.",
            mean.windows,
            span(Nanos(whole))
        ),
        notes: notes.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use crate::plot::theme::PAPER;

    #[test]
    fn every_stage_has_its_bar_and_its_length() {
        let mut mean = Mean::default();
        assert!(draw(&mean, "spikes", Size::Wide, &PAPER).is_none());
        fixture::cases().iter().for_each(|case| mean.add(&case.window));
        for size in [Size::Wide, Size::Narrow] {
            let text = draw(&mean, "spikes", size, &PAPER).unwrap().body.into_string();
            for stage in mean.stages().unwrap() {
                assert!(text.contains(&span(stage)), "{text}");
            }
        }
    }
}
