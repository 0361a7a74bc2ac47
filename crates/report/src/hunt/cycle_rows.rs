//! Latest cycles of a followed thread, a row each on one time scale: released, ran, preempted,
//! blocked, finished, and the deadline.

use maud::{Markup, html};

use super::parts::{SpikePart, longest, parts};
use super::picture::keys;
use super::strip;
use super::swatches::swatches;
use crate::plot::axis::{Scale, number, unit_of};
use crate::plot::svg::{self, Picture, Plot, Px, Size, text};
use crate::plot::theme::Theme;
use crate::words::{several, span};
use model::run::Spike;
use model::units::Nanos;

/// Limit of rows of a thread.
pub const ROWS: usize = 8;

/// Limit of parts of a row.
const PARTS: usize = 40;

/// Distance of two rows.
const STEP: f64 = strip::HEIGHT + 10.0;

/// Length of a mark above and below its row.
const BEYOND: f64 = 4.0;

/// Late cycle, and the anchor of its details on the page, if any.
pub struct CycleRow<'a> {
    pub spike: &'a Spike,
    pub link: Option<String>,
}

/// Picture of these cycles; none without a cycle.
pub fn draw(rows: &[CycleRow], size: Size, theme: &Theme) -> Option<Picture> {
    let rows = &rows[..rows.len().min(ROWS)];
    let ends = rows.iter().flat_map(|row| [Some(row.spike.latency_ns), row.spike.deadline_ns]);
    let end = ends.flatten().max().filter(|end| end.0 > 0)?;
    let plot = Plot::new(size, 8.0, rows.len() as f64 * STEP + 4.0);
    let scale = Scale::linear(0.0, end.0 as f64 * 1.02, plot.left, plot.right);
    let (unit, unit_ns) = unit_of(scale.hi());
    let ticks = scale.ticks(size.x_ticks(), |ns| number(ns / unit_ns));
    let drawn: Vec<Vec<SpikePart>> = rows.iter().map(|row| longest(parts(row.spike), PARTS).0).collect();
    let all: Vec<SpikePart> = drawn.iter().flatten().copied().collect();
    let (legend, height) = swatches(&keys(&all, theme), &plot, plot.bottom + 56.0, theme);
    let body = html! {
        (plot.x_axis(&scale, &ticks, &format!("{unit} since its release"), theme))
        @for (at, (row, parts)) in rows.iter().zip(&drawn).enumerate() {
            @let top = plot.top + 8.0 + at as f64 * STEP;
            @let drawn = one(row.spike, parts, &scale, top, plot.left, theme);
            @match &row.link {
                Some(link) => { a href={ "#" (link) } { (drawn) } }
                None => { (drawn) }
            }
        }
        (legend)
    };
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 56.0 + height,
        body: svg::group(theme, body),
        label: format!(
            "{}; the longest took {}.",
            several(rows.len() as u64, "late cycle", "late cycles"),
            span(longest_of(rows))
        ),
        notes: Vec::new(),
    })
}

fn longest_of(rows: &[CycleRow]) -> Nanos {
    rows.iter().map(|row| row.spike.latency_ns).max().unwrap_or_default()
}

fn one(spike: &Spike, parts: &[SpikePart], scale: &Scale, top: f64, left: f64, theme: &Theme) -> Markup {
    let mark = |time: Option<Nanos>, name: &str, colour: &'static str, dashes: Option<&str>| {
        let time = time.filter(|time| scale.holds(time.0 as f64));
        html! {
            @if let Some(time) = time {
                @let x = scale.at(time.0 as f64);
                path d=(format!("M{} {}V{}", Px(x), Px(top - BEYOND), Px(top + strip::HEIGHT + BEYOND)))
                    stroke=(colour) stroke-width="2" stroke-dasharray=[dashes] fill="none" {
                    title { (name) " " (span(time)) }
                }
            }
        }
    };
    let ran = spike.switched_ns.map(|ran| Nanos(ran.0.saturating_sub(spike.expected_ns.0)));
    html! {
        (strip::bars(parts, scale, top, theme))
        (mark(ran, "ran from", theme.ink, None))
        (mark(Some(spike.latency_ns), "finished after", theme.ink, None))
        (mark(spike.deadline_ns, "deadline", theme.alarm, Some("5 3")))
        (text(left - 7.0, top + strip::HEIGHT / 2.0 + 4.0, "end", theme.ink, &span(spike.latency_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use crate::plot::theme::PAPER;

    #[test]
    fn a_row_has_its_parts_its_deadline_and_a_way_to_its_table() {
        let spikes: Vec<Spike> = fixture::cases().into_iter().map(|case| case.spike).collect();
        let late =
            |spike: &Spike| Spike { deadline_ns: Some(Nanos(spike.latency_ns.0 / 2)), ..spike.clone() };
        let spikes: Vec<Spike> = spikes.iter().map(late).collect();
        let row = |spike| CycleRow { spike, link: Some("spike-1".to_owned()) };
        let rows: Vec<CycleRow> = spikes.iter().map(row).collect();
        for size in [Size::Wide, Size::Narrow] {
            let picture = draw(&rows, size, &PAPER).unwrap();
            let text = picture.body.into_string();
            assert_eq!(text.matches("<a href=\"#spike-1\"").count(), rows.len().min(ROWS));
            assert!(text.contains("deadline") && text.contains("since its release"));
        }
        assert!(draw(&[], Size::Wide, &PAPER).is_none());
    }
}
