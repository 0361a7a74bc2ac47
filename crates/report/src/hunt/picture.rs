//! Timeline of a spike across CPUs: the parts of the late thread's time, and below them the
//! activity of every CPU.

use maud::{Markup, html};

use super::parts::{SpikePart, longest, parts, share};
use super::stages::Landmarks;
use super::swatches::{Swatch, swatches};
use super::thread_lanes::ThreadLanes;
use super::tracks::Tracks;
use super::{kinds, pins, strip};
use crate::plot::axis::{Scale, number, unit_of};
use crate::plot::svg;
use crate::plot::svg::{Picture, Plot, Px, Size, text};
use crate::plot::theme::Theme;
use crate::words::{several, span};
use model::run::Spike;
use model::sort::CompactSort;
use model::units::Nanos;
use trace::window::Window;

/// Limit of parts of a strip; the page's table has the same.
const PARTS: usize = 40;
/// Least share of the latency of a part that needs no enlargement.
const LARGE: f64 = 0.1;
/// Largest share of the picture after the last large part that is enlarged.
const SMALL: f64 = 0.15;
/// Height between the strip and its enlarged part.
const WEDGE: f64 = 14.0;

/// Picture of a spike; without its window only the parts are drawn. For a cycle the followed
/// threads of the run have lanes as well.
pub fn draw(
    spike: &Spike,
    window: Option<&Window>,
    followed: &[i32],
    size: Size,
    theme: &Theme,
) -> Option<Picture> {
    let parts = longest(parts(spike), PARTS).0;
    if spike.latency_ns.0 <= 0 || parts.is_empty() {
        return None;
    }
    let canvas = Canvas::new(spike, window, size, theme);
    let rest = rest(&parts, spike.latency_ns);
    let until = rest.first().map_or(i64::MAX, |part| part.start.0);
    let top = pins::HEIGHT;
    let (strip, height) = strip::draw(&parts, &canvas.time, top, until, theme);
    let (enlarged, more) = canvas.enlarged(rest, top + height);
    let from = top + height + more + 8.0;
    let tracks = Tracks::new(spike, window, &canvas.time, canvas.plot, theme);
    let threads = ThreadLanes::new(spike, window, followed, &canvas.time, canvas.plot, theme);
    let plot = Plot { top, bottom: from + tracks.height() + threads.height(), ..canvas.plot };
    let (unit, unit_ns) = unit_of(canvas.time.hi());
    let ticks = canvas.time.ticks(size.x_ticks(), |ns| number(ns / unit_ns));
    let keys: Vec<Swatch> =
        keys(&parts, theme).into_iter().chain(tracks.keys()).chain(threads.keys()).collect();
    let (legend, legend_height) = swatches(&keys, &plot, plot.bottom + 56.0, theme);
    let body = html! {
        (plot.x_axis(&canvas.time, &ticks, &format!("{unit} since {}", since_what(spike)), theme))
        (canvas.pins(until as f64)) (strip) (enlarged)
        (tracks.draw(from)) (threads.draw(from + tracks.height()))
        (text(canvas.plot.left - 7.0, top + strip::HEIGHT / 2.0 - 3.0, "end", theme.ink, &format!("CPU {}", spike.cpu)))
        (text(canvas.plot.left - 7.0, top + strip::HEIGHT / 2.0 + 11.0, "end", theme.muted, "late"))
        (legend)
    };
    Some(Picture {
        width: size.width(),
        height: plot.bottom + 56.0 + legend_height,
        body: svg::group(theme, body),
        label: format!(
            "CPU {}: {} late, in {}.",
            spike.cpu,
            span(spike.latency_ns),
            several(parts.len() as u64, "part", "parts")
        ),
        notes: [tracks.notes, threads.notes].concat(),
    })
}

/// Parts after the last large one, if they are too small to be read.
fn rest<'a, 'b>(parts: &'b [SpikePart<'a>], latency: Nanos) -> &'b [SpikePart<'a>] {
    let large = |part: &SpikePart| part.ns.0 as f64 >= LARGE * latency.0 as f64;
    let rest = &parts[parts.iter().rposition(large).map_or(0, |at| at + 1)..];
    let small = rest
        .first()
        .is_some_and(|part| share(Nanos(latency.0.saturating_sub(part.start.0)), latency) < SMALL);
    if small && rest.len() > 1 { rest } else { &[] }
}

struct Canvas<'a> {
    spike: &'a Spike,
    window: Option<&'a Window>,
    plot: Plot,
    time: Scale,
    theme: &'a Theme,
}

impl<'a> Canvas<'a> {
    fn new(spike: &'a Spike, window: Option<&'a Window>, size: Size, theme: &'a Theme) -> Canvas<'a> {
        let plot = Plot::new(size, 0.0, 0.0);
        let latency = spike.latency_ns.0 as f64;
        let time = Scale::linear(-0.03 * latency, 1.03 * latency, plot.left, plot.right);
        Canvas { spike, window, plot, time, theme }
    }

    fn since(&self, time: Nanos) -> f64 {
        time.0.saturating_sub(self.spike.expected_ns.0) as f64
    }

    /// Landmarks: name, and nanoseconds since the expected time.
    fn landmarks(&self) -> Vec<(&'static str, f64)> {
        let bare = Landmarks {
            expected: self.spike.expected_ns,
            switch: self.spike.switched_ns,
            actual: self.spike.actual_ns,
            ..Landmarks::default()
        };
        // For a cycle the first run counts, which is in the spike.
        let window = self.window.filter(|_| self.spike.deadline_ns.is_none());
        let named = window.map_or(bare, Landmarks::of).named();
        named.into_iter().map(|(name, time)| (mark_name(name, self.spike), self.since(time))).collect()
    }

    /// Names of the landmarks before a time, and of the last one.
    fn pins(&self, until: f64) -> Markup {
        let marks = self
            .landmarks()
            .into_iter()
            .filter(|&(name, at)| at < until || name == "actual" || name == "finished");
        let points: Vec<(&str, f64)> = marks.map(|(name, at)| (name, self.time.at(at))).collect();
        pins::draw(&points, self.plot.left - 40.0, self.plot.right + 10.0, 0.0, self.theme)
    }

    /// Enlarged parts after the last large one, and their height.
    fn enlarged(&self, rest: &[SpikePart], top: f64) -> (Markup, f64) {
        let (Some(first), latency) = (rest.first(), self.spike.latency_ns) else { return (html! {}, 0.0) };
        let from = first.start;
        let (left, right) =
            (self.plot.left + 0.25 * (self.plot.right - self.plot.left), self.plot.right - 4.0);
        let scale = Scale::linear(from.0 as f64, latency.0 as f64, left, right);
        let points: Vec<(&str, f64)> = self
            .landmarks()
            .into_iter()
            .filter(|&(_, at)| at >= from.0 as f64)
            .map(|(name, at)| (name, scale.at(at)))
            .collect();
        let foot = top + WEDGE;
        let pins = pins::draw(&points, left - 4.0, self.plot.right + 10.0, foot, self.theme);
        let at = foot + pins::HEIGHT;
        let (strip, height) = strip::draw(rest, &scale, at, i64::MAX, self.theme);
        let (x1, x2) = (self.time.at(from.0 as f64), self.time.at(latency.0 as f64));
        let wedge = format!(
            "M{} {}L{} {}V{}H{}V{}L{} {}",
            Px(x1),
            Px(top),
            Px(left),
            Px(foot),
            Px(at - 1.0),
            Px(right),
            Px(foot),
            Px(x2),
            Px(top)
        );
        let words = [format!("last {}", span(Nanos(latency.0.saturating_sub(from.0)))), "enlarged".into()];
        let markup = html! {
            path d=(wedge) fill=(self.theme.grid) fill-opacity="0.55" stroke=(self.theme.muted) stroke-width="0.8" {}
            (pins) (strip)
            @for (row, words) in words.iter().enumerate() {
                (text(left - 7.0, at + 13.0 + row as f64 * 14.0, "end", self.theme.muted, words))
            }
        };
        (markup, height + pins::HEIGHT + WEDGE)
    }
}

/// Zero of a spike's times, in words.
pub fn since_what(spike: &Spike) -> &'static str {
    if spike.deadline_ns.is_some() { "its release" } else { "the thread should have run" }
}

/// Name of a landmark; cycles have different ones.
pub fn mark_name(name: &'static str, spike: &Spike) -> &'static str {
    match (name, spike.deadline_ns) {
        ("expected", Some(_)) => "released",
        ("switch", Some(_)) => "ran",
        ("actual", Some(_)) => "finished",
        _ => name,
    }
}

/// Legend of the colours of the parts.
pub fn keys(parts: &[SpikePart], theme: &Theme) -> Vec<Swatch> {
    let mut names: Vec<&str> = parts.iter().map(SpikePart::kind).collect();
    names.compact_sort_by_key(|name| kinds::order(name));
    names.dedup();
    let key = |name: &str| {
        let kind = kinds::of(name);
        let words = format!("{}: {}", kind.name, kind.words);
        Swatch { colour: kind.colour(theme), strength: kind.strength, hatch: kind.hatch(), words }
    };
    names.into_iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use crate::plot::theme::PAPER;

    #[test]
    fn every_spike_is_drawn_with_and_without_its_window() {
        for case in fixture::cases() {
            for size in [Size::Wide, Size::Narrow] {
                let whole = draw(&case.spike, Some(&case.window), &[], size, &PAPER).unwrap();
                let bare = draw(&case.spike, None, &[], size, &PAPER).unwrap();
                assert!(whole.height > bare.height && bare.notes.len() == 1);
                let text = whole.body.into_string();
                for word in ["expected", "interrupt", "waking", "switch", "actual", "CPU 0", "CPU 2"] {
                    assert!(text.contains(word), "{word}");
                }
            }
        }
    }

    #[test]
    fn a_spike_of_nothing_has_no_picture() {
        assert!(draw(&Spike::default(), None, &[], Size::Wide, &PAPER).is_none());
    }
}
