//! Activity of every CPU around a spike, drawn as one lane each below the spike's strip.

use maud::{Markup, html};

use super::kinds::{self, KindStyle};
use super::lanes::KeptLanes;
use super::swatches::Swatch;
use crate::plot::axis::{Scale, number};
use crate::plot::svg::{Plot, Px, text, text_width};
use crate::plot::theme::Theme;
use crate::words::{clean, span};
use model::run::Spike;
use model::slice::SliceKind;
use model::units::Nanos;
use trace::timeline::{CpuTrack, TrackContext, TrackSpan};
use trace::window::Window;

/// Height of a lane; `STEP` is the distance of two.
const HEIGHT: f64 = 18.0;
const STEP: f64 = HEIGHT + 5.0;
/// Least width of a stretch that can be seen.
const MIN_WIDTH: f64 = 1.2;

/// Owners of a stretch in a lane: the kind of slice with the same look, so that a colour has one
/// meaning in strip and lanes, and the name in the legend.
const LOOKS: [(SliceKind, &str); 6] = [
    (SliceKind::Own, "lanes: the late thread"),
    (SliceKind::Thread, "lanes: a real-time thread"),
    (SliceKind::FairServer, "lanes: another thread"),
    (SliceKind::Softirq, "lanes: a soft interrupt"),
    (SliceKind::Irq, "lanes: an interrupt"),
    (SliceKind::Nmi, "lanes: a non-maskable interrupt"),
];

/// Looks of lanes with their names, in the order of [`look_of`].
pub fn looks() -> impl Iterator<Item = (KindStyle, &'static str)> {
    LOOKS.iter().map(|&(kind, words)| (kinds::of(kind.name()), words))
}

/// Lanes of a window.
pub struct Tracks<'a> {
    lanes: Vec<CpuTrack>,
    spike: &'a Spike,
    time: &'a Scale,
    plot: Plot,
    theme: &'a Theme,
    /// Remarks on CPUs that have no lane.
    pub notes: Vec<String>,
}

impl<'a> Tracks<'a> {
    /// Lanes on a scale of nanoseconds since the expected time; none without a window.
    pub fn new(
        spike: &'a Spike,
        window: Option<&Window>,
        time: &'a Scale,
        plot: Plot,
        theme: &'a Theme,
    ) -> Tracks<'a> {
        let mut tracks = Tracks { lanes: Vec::new(), spike, time, plot, theme, notes: Vec::new() };
        let Some(window) = window else {
            tracks.notes.push("The activity of the other CPUs is not in this bundle.".into());
            return tracks;
        };
        let mut lanes = KeptLanes::of(window);
        (tracks.lanes, tracks.notes) = (std::mem::take(&mut lanes.lanes), lanes.notes);
        tracks
    }

    /// Height of the lanes.
    pub fn height(&self) -> f64 {
        self.lanes.len() as f64 * STEP + 3.0
    }

    /// Legend of the colours that occur.
    pub fn keys(&self) -> Vec<Swatch> {
        let mut looks: Vec<usize> = self
            .lanes
            .iter()
            .flat_map(|lane| lane.spans.iter().filter_map(|stretch| self.look(stretch)))
            .collect();
        looks.sort_unstable();
        looks.dedup();
        let key = |look: usize| {
            let (kind, words) = (style(look), LOOKS[look].1);
            let (colour, strength) = (kind.colour(self.theme), kind.strength);
            Swatch { colour, strength, hatch: kind.hatch(), words: words.into() }
        };
        looks.into_iter().map(key).collect()
    }

    /// Lanes from this height downwards.
    pub fn draw(&self, top: f64) -> Markup {
        html! { @for (at, lane) in self.lanes.iter().enumerate() { (self.lane(lane, top + at as f64 * STEP)) } }
    }

    fn since(&self, time: Nanos) -> f64 {
        time.0.saturating_sub(self.spike.expected_ns.0) as f64
    }

    fn end(&self, stretch: &TrackSpan) -> f64 {
        self.since(Nanos(stretch.start.0.saturating_add(stretch.ns.0)))
    }

    fn lane(&self, lane: &CpuTrack, top: f64) -> Markup {
        let is_within = |stretch: &&TrackSpan| {
            self.end(stretch) >= self.time.lo() && self.since(stretch.start) <= self.time.hi()
        };
        let middle = top + HEIGHT / 2.0;
        html! {
            (text(self.plot.left - 7.0, middle + 4.0, "end", self.theme.ink, &format!("CPU {}", lane.cpu)))
            path d=(format!("M{} {}H{}", Px(self.plot.left), Px(middle), Px(self.plot.right)))
                stroke=(self.theme.grid) stroke-width="2" fill="none" {}
            @for stretch in lane.spans.iter().filter(is_within) { (self.stretch(stretch, top)) }
        }
    }

    fn stretch(&self, stretch: &TrackSpan, top: f64) -> Markup {
        let from = self.time.at(self.since(stretch.start));
        let width = (self.time.at(self.end(stretch)) - from).max(MIN_WIDTH);
        let words = label_of(stretch);
        let rect = |fill: &str, opacity: f64| {
            html! {
                rect x=(Px(from)) y=(Px(top)) width=(Px(width)) height=(Px(HEIGHT)) fill=(fill)
                    fill-opacity=(number(opacity)) {}
            }
        };
        let look = self.look(stretch).map(style);
        html! {
            g {
                title { (words) ": " (span(stretch.ns)) " from +" (span(Nanos(self.since(stretch.start) as i64))) " on" }
                @match look {
                    // Invisible, but it has a tooltip.
                    None => { (rect(self.theme.background, 0.0)) }
                    Some(kind) => {
                        (rect(self.theme.background, 1.0)) (rect(kind.colour(self.theme), kind.strength))
                        @if let Some(hatch) = kind.hatch() { (rect(hatch, 1.0)) }
                        @if width > 6.0 {
                            path d=(format!("M{} {}v{}", Px(from), Px(top), Px(HEIGHT))) stroke=(self.theme.background) stroke-width="1.5" fill="none" {}
                        }
                        @if text_width(&words) + 6.0 <= width {
                            @let ink = if kind.strength > 0.75 { self.theme.background } else { self.theme.ink };
                            (text(from + width / 2.0, top + HEIGHT - 5.0, "middle", ink, &words))
                        }
                    }
                }
            }
        }
    }

    /// Place in [`LOOKS`] of a stretch; none for an idle CPU.
    fn look(&self, stretch: &TrackSpan) -> Option<usize> {
        look_of(stretch, self.spike.victim.pid)
    }
}

fn style(look: usize) -> KindStyle {
    kinds::of(LOOKS[look].0.name())
}

/// Place in [`looks`] of a stretch around the spike of this thread; none for an idle CPU.
pub fn look_of(stretch: &TrackSpan, victim: i32) -> Option<usize> {
    // Other threads may have the same name, even on its CPU: ids are compared.
    let late = victim != 0 && stretch.pid == Some(victim);
    Some(match stretch.context {
        TrackContext::Idle => return None,
        TrackContext::Thread if late => 0,
        TrackContext::Thread if stretch.prio.is_some_and(|prio| prio < 100) => 1,
        TrackContext::Thread => 2,
        TrackContext::Softirq => 3,
        TrackContext::Irq => 4,
        TrackContext::Nmi => 5,
    })
}

/// Name of a stretch.
pub fn label_of(stretch: &TrackSpan) -> String {
    match (stretch.label.as_str(), stretch.context) {
        ("", TrackContext::Idle) => "idle".to_owned(),
        ("", _) => "no name".to_owned(),
        (label, _) => clean(label),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::LANES;
    use super::*;
    use crate::hunt::fixture;
    use crate::plot::svg::Size;
    use crate::plot::theme::PAPER;
    use model::units::Cpu;
    use trace::event::Event;

    #[test]
    fn a_thread_of_the_same_name_is_not_the_late_one() {
        let time = Scale::linear(0.0, 4e5, 0.0, 1e3);
        let looks = |pid| {
            let mut case = fixture::fifo();
            case.spike.victim.pid = pid;
            let tracks =
                Tracks::new(&case.spike, Some(&case.window), &time, Plot::new(Size::Wide, 0.0, 0.0), &PAPER);
            tracks.keys().iter().any(|key| key.words.contains("the late thread"))
        };
        let known = fixture::fifo().spike.victim.pid;
        assert!(looks(known) && !looks(known + 1) && !looks(0));
    }

    #[test]
    fn many_cpus_have_few_lanes_and_the_victims_is_the_first() {
        let mut case = fixture::fifo();
        let some = case.window.events.clone();
        for cpu in 3..40 {
            let copies = some.iter().take(5).cloned().map(|event| Event { cpu: Cpu(cpu), ..event });
            case.window.events.extend(copies);
        }
        let time = Scale::linear(0.0, 4e5, 0.0, 1e3);
        let tracks =
            Tracks::new(&case.spike, Some(&case.window), &time, Plot::new(Size::Wide, 0.0, 0.0), &PAPER);
        assert_eq!((tracks.lanes.len(), tracks.lanes[0].cpu), (LANES, Cpu(1)));
        assert_eq!(tracks.notes, ["31 CPUs with fewer events not drawn."]);
        assert!(tracks.keys().iter().any(|key| key.words.contains("the late thread")));
    }
}
