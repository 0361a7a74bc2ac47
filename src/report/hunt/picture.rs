//! A spike drawn as a timeline across CPUs: the late thread's time in parts, and below what every CPU did meanwhile.

use maud::{Markup, html};

use super::lanes::{Lane, Stretch, lanes};
use super::nest::Context;
use super::stages::Landmarks;
use super::swatches::{Swatch, swatches};
use super::{Part, kinds, parts, strip};
use crate::bundle::run::Spike;
use crate::report::axis::{Scale, number, unit_of};
use crate::report::svg::{self, Picture, Plot, Px, Size, text, text_width};
use crate::report::theme::Theme;
use crate::report::words::{clean, several, span};
use crate::trace::window::Window;
use crate::units::Nanos;

/// CPUs that have a lane; of more, those that did most.
const LANES: usize = 9;
/// Height of a lane, and the distance of two.
const LANE: (f64, f64) = (18.0, 5.0);
/// Parts of a strip; the page's table has the same.
const PARTS: usize = 40;
/// A part with at least this share of the latency needs no enlarging.
const LARGE: f64 = 0.1;
/// What comes after the last large part is enlarged where it is less than this of the picture.
const SMALL: f64 = 0.15;

/// The picture of a spike; without its window only the parts are drawn.
pub fn draw(spike: &Spike, window: Option<&Window>, size: Size, theme: &Theme) -> Option<Picture> {
    let parts = super::longest(parts(spike), PARTS).0;
    if spike.latency_ns.0 <= 0 || parts.is_empty() {
        return None;
    }
    let canvas = Canvas::new(spike, window, size, theme);
    let (marks, marks_height) = canvas.marks();
    let top = marks_height + 8.0;
    let (strip, height) = strip::draw(&parts, &canvas.time, top, theme);
    let (enlarged, more) = canvas.enlarged(&parts, top + height);
    let from = top + height + more + 8.0;
    let (lanes, lanes_height, notes) = canvas.lanes(from);
    let plot = Plot { top: marks_height, bottom: from + lanes_height, ..canvas.plot };
    let (unit, unit_ns) = unit_of(canvas.time.hi());
    let ticks = canvas.time.ticks(size.x_ticks(), |ns| number(ns / unit_ns));
    let (legend, legend_height) =
        swatches(&keys(&parts, window.is_some(), theme), &plot, plot.bottom + 56.0, theme);
    let body = html! {
        (plot.x_axis(&canvas.time, &ticks, &format!("{unit} since the thread should have run"), theme))
        (marks) (strip) (enlarged) (lanes)
        (canvas.name(&format!("CPU {}", spike.cpu), top + strip::HEIGHT / 2.0 - 3.0))
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
        notes,
    })
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

    fn name(&self, words: &str, y: f64) -> Markup {
        text(self.plot.left - 7.0, y, "end", self.theme.ink, words)
    }

    /// The landmarks: dashed lines through everything, their names above, in as many rows as they need.
    fn marks(&self) -> (Markup, f64) {
        let bare = Landmarks {
            expected: self.spike.expected_ns,
            switch: self.spike.switched_ns,
            actual: self.spike.actual_ns,
            ..Landmarks::default()
        };
        let named = self.window.map_or(bare, Landmarks::of).named();
        let mut placed: Vec<(f64, f64, usize, &str)> = Vec::new();
        let mut ends: Vec<f64> = Vec::new();
        for (name, time) in named {
            let x = self.time.at(self.since(time));
            let wide = text_width(name);
            let from = (x - wide / 2.0).clamp(self.plot.left - 40.0, self.plot.right - wide + 12.0);
            let row = ends.iter().position(|end| end + 6.0 <= from).unwrap_or(ends.len());
            if row == ends.len() {
                ends.push(from + wide);
            }
            ends[row] = from + wide;
            placed.push((x, from, row, name));
        }
        let height = 4.0 + ends.len() as f64 * 15.0;
        // The first name stands lowest: a line does not cross those above it.
        let y = |row: usize| height - 6.0 - row as f64 * 15.0;
        let markup = html! {
            @for &(x, from, row, name) in &placed {
                path d=(format!("M{} {}V{}", Px(x), Px(y(row) + 3.0), Px(height + 8.0))) stroke=(self.theme.ink) stroke-width="1" fill="none" {}
                (text(from, y(row), "start", self.theme.ink, name))
            }
        };
        (markup, height)
    }

    /// What comes after the last large part, drawn larger, where it is too small to be read.
    fn enlarged(&self, parts: &[Part], top: f64) -> (Markup, f64) {
        let latency = self.spike.latency_ns.0;
        let large = |part: &&Part| part.ns.0 as f64 >= LARGE * latency as f64;
        let from =
            parts.iter().filter(large).map(|part| part.start.0.saturating_add(part.ns.0)).max().unwrap_or(0);
        let rest: Vec<Part> = parts.iter().copied().filter(|part| part.start.0 >= from).collect();
        let share = latency.saturating_sub(from) as f64 / latency as f64;
        if rest.len() < 2 || share > SMALL {
            return (html! {}, 0.0);
        }
        let (left, right) =
            (self.plot.left + 0.25 * (self.plot.right - self.plot.left), self.plot.right - 4.0);
        let scale = Scale::linear(from as f64, latency as f64, left, right);
        let at = top + 18.0;
        let (strip, height) = strip::draw(&rest, &scale, at, self.theme);
        let (x1, x2) = (self.time.at(from as f64), self.time.at(latency as f64));
        let wedge = format!(
            "M{} {}L{} {}H{}L{} {}",
            Px(x1),
            Px(top),
            Px(left),
            Px(at - 1.0),
            Px(right),
            Px(x2),
            Px(top)
        );
        let words = [format!("the last {}", span(Nanos(latency - from))), "enlarged".into()];
        let markup = html! {
            path d=(wedge) fill=(self.theme.grid) fill-opacity="0.6" stroke=(self.theme.muted) stroke-width="0.8" {}
            (strip)
            @for (row, words) in words.iter().enumerate() {
                (text(left - 7.0, at + 13.0 + row as f64 * 14.0, "end", self.theme.muted, words))
            }
        };
        (markup, height + 18.0)
    }

    /// The lanes of all CPUs from the window, and what is to be said of those that have none.
    fn lanes(&self, top: f64) -> (Markup, f64, Vec<String>) {
        let Some(window) = self.window else {
            return (html! {}, 0.0, vec!["What the CPUs did meanwhile is not in this bundle.".into()]);
        };
        let mut all = lanes(window);
        let mut notes = Vec::new();
        if all.len() > LANES {
            let quiet = all.len() - LANES;
            // The victim's stays first, and the order of the others.
            let mut busy: Vec<usize> = (1..all.len()).collect();
            busy.sort_by_key(|&at| std::cmp::Reverse(all[at].stretches.len()));
            let mut kept: Vec<usize> = busy.into_iter().take(LANES - 1).chain([0]).collect();
            kept.sort_unstable();
            all = kept.into_iter().map(|at| all[at].clone()).collect();
            notes.push(format!("{} with fewer events are not drawn.", several(quiet as u64, "CPU", "CPUs")));
        }
        if window.left_out > 0 {
            notes.push(format!(
                "{} of other CPUs were left out.",
                several(window.left_out, "event", "events")
            ));
        }
        let step = LANE.0 + LANE.1;
        let markup = html! {
            @for (at, lane) in all.iter().enumerate() { (self.lane(lane, top + at as f64 * step)) }
        };
        (markup, all.len() as f64 * step + 3.0, notes)
    }

    fn lane(&self, lane: &Lane, top: f64) -> Markup {
        let shown = |stretch: &&Stretch| {
            let end = self.since(Nanos(stretch.start.0.saturating_add(stretch.ns.0)));
            end >= self.time.lo() && self.since(stretch.start) <= self.time.hi()
        };
        let middle = top + LANE.0 / 2.0;
        html! {
            (self.name(&format!("CPU {}", lane.cpu), middle + 4.0))
            path d=(format!("M{} {}H{}", Px(self.plot.left), Px(middle), Px(self.plot.right))) stroke=(self.theme.grid) stroke-width="2" fill="none" {}
            @for stretch in lane.stretches.iter().filter(shown) { (self.stretch(stretch, top)) }
        }
    }

    fn stretch(&self, stretch: &Stretch, top: f64) -> Markup {
        let end = Nanos(stretch.start.0.saturating_add(stretch.ns.0));
        let (from, to) = (self.time.at(self.since(stretch.start)), self.time.at(self.since(end)));
        let width = (to - from).max(1.2);
        let words = clean(&stretch.label);
        let hover = format!("{words}: {}", span(stretch.ns));
        let Some((colour, strength)) = look(stretch, self.spike, self.theme) else {
            return html! {
                rect x=(Px(from)) y=(Px(top)) width=(Px(width)) height=(Px(LANE.0)) fill="transparent" { title { (hover) } }
            };
        };
        let ink = if strength >= 0.75 { self.theme.ground } else { self.theme.ink };
        html! {
            g {
                title { (hover) }
                rect x=(Px(from)) y=(Px(top)) width=(Px(width)) height=(Px(LANE.0)) fill=(self.theme.ground) {}
                rect x=(Px(from)) y=(Px(top)) width=(Px(width)) height=(Px(LANE.0)) fill=(colour) fill-opacity=(number(strength)) {}
                @if text_width(&words) + 6.0 <= width {
                    (text(from + width / 2.0, top + LANE.0 - 5.0, "middle", ink, &words))
                }
            }
        }
    }
}

/// Colour and strength of a stretch; nothing for an idle CPU.
fn look(stretch: &Stretch, spike: &Spike, theme: &Theme) -> Option<(&'static str, f64)> {
    let victim = format!("{}:{}", spike.victim.comm, spike.victim.pid);
    Some(match stretch.context {
        Context::Idle => return None,
        Context::Thread if stretch.label == victim => (theme.lines[2], 1.0),
        Context::Thread if stretch.prio.is_some_and(|prio| prio < 100) => (theme.lines[0], 0.5),
        Context::Thread => (theme.lines[0], 0.2),
        Context::Softirq => (theme.lines[5], 1.0),
        Context::Irq | Context::Function => (theme.lines[1], 1.0),
        Context::Nmi => (theme.lines[6], 1.0),
    })
}

/// The kinds of the parts that are there, then what the lanes' colours stand for.
fn keys(parts: &[Part], with_lanes: bool, theme: &Theme) -> Vec<Swatch> {
    let mut names: Vec<&str> = parts.iter().map(Part::kind).collect();
    names.sort_by_key(|name| kinds::order(name));
    names.dedup();
    let mut keys: Vec<Swatch> = Vec::new();
    for name in names {
        let kind = kinds::of(name);
        let words = format!("{}: {}", kind.name, kind.words);
        keys.push(Swatch { colour: kind.colour(theme), strength: kind.strength, words });
    }
    let lane = |colour, strength, words: &str| Swatch { colour, strength, words: words.into() };
    if with_lanes {
        keys.extend([
            lane(theme.lines[2], 1.0, "lanes: the late thread"),
            lane(theme.lines[0], 0.5, "lanes: a real-time thread"),
            lane(theme.lines[0], 0.2, "lanes: another thread"),
            lane(theme.lines[1], 1.0, "lanes: an interrupt"),
            lane(theme.lines[5], 1.0, "lanes: a soft interrupt"),
        ]);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::hunt::fixture;
    use crate::report::theme::PAPER;

    #[test]
    fn every_spike_is_drawn_with_and_without_its_window() {
        for case in fixture::cases() {
            for size in [Size::Wide, Size::Narrow] {
                let whole = draw(&case.spike, Some(&case.window), size, &PAPER).unwrap();
                let bare = draw(&case.spike, None, size, &PAPER).unwrap();
                assert!(whole.height > bare.height && bare.notes.len() == 1);
                let text = whole.body.into_string();
                for word in ["expected", "interrupt", "waking", "switch", "actual", "CPU 0", "CPU 2"] {
                    assert!(text.contains(&format!(">{word}<")), "{word}");
                }
            }
        }
    }

    #[test]
    fn a_spike_of_nothing_has_no_picture() {
        assert!(draw(&Spike::default(), None, Size::Wide, &PAPER).is_none());
    }

    #[test]
    fn many_cpus_have_few_lanes() {
        let mut case = fixture::fifo();
        let some = case.window.events.clone();
        for cpu in 3..40 {
            case.window.events.extend(
                some.iter()
                    .take(5)
                    .cloned()
                    .map(|event| crate::trace::event::Event { cpu: crate::units::Cpu(cpu), ..event }),
            );
        }
        let picture = draw(&case.spike, Some(&case.window), Size::Wide, &PAPER).unwrap();
        assert!(picture.height < 600.0 && picture.notes[0].starts_with("31 CPUs"), "{:?}", picture.notes);
    }
}
