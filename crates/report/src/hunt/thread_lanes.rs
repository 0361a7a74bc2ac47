//! Lanes of the threads of a followed program in a late cycle, with an arc from the thread that
//! ended a futex wait to the thread that waited.

use maud::{Markup, html};

use super::kinds::{self, KindStyle};
use super::swatches::Swatch;
use crate::plot::axis::{Scale, number};
use crate::plot::svg::{Plot, Px, fit, text, text_width};
use crate::plot::theme::Theme;
use crate::words::{clean, several, span};
use model::run::{Slice, Spike};
use model::slice::SliceKind;
use model::sort::CompactSort;
use trace::timeline::{ThreadDoing, ThreadStretch, ThreadTrack, thread_tracks};
use trace::window::Window;

/// Limit of lanes of a picture; the late thread and those that woke it come first.
const LANES: usize = 8;
/// Limit of arcs of a picture: the longest waits.
const ARCS: usize = 12;
/// Height of a lane; `STEP` is the distance of two.
const HEIGHT: f64 = 14.0;
const STEP: f64 = HEIGHT + 15.0;
/// Height of the title above the first lane.
const HEAD: f64 = 22.0;
/// Least width of a stretch that can be seen.
const MIN_WIDTH: f64 = 1.2;
/// Width of a thread's name, left of its lane.
const NAME: f64 = 64.0;

/// Lanes of a cycle.
pub struct ThreadLanes<'a> {
    tracks: Vec<ThreadTrack>,
    spike: &'a Spike,
    time: &'a Scale,
    plot: Plot,
    theme: &'a Theme,
    pub notes: Vec<String>,
}

/// Wait for a futex: the lanes of waker and waiter, start and end.
struct Arc {
    waker: usize,
    waiter: usize,
    from: f64,
    to: f64,
    words: String,
}

impl<'a> ThreadLanes<'a> {
    /// Lanes of the late thread, of those that woke it, and of the run's followed threads; none for
    /// a wake-up, which has no cycle, and none if only the late thread would have one.
    pub fn new(
        spike: &'a Spike,
        window: Option<&Window>,
        followed: &[i32],
        time: &'a Scale,
        plot: Plot,
        theme: &'a Theme,
    ) -> ThreadLanes<'a> {
        let mut lanes = ThreadLanes { tracks: Vec::new(), spike, time, plot, theme, notes: Vec::new() };
        let Some(window) = window.filter(|_| spike.deadline_ns.is_some()) else { return lanes };
        let mut threads = vec![spike.victim.pid];
        let releasers = spike.slices.iter().filter(|slice| is_futex_wait(slice)).map(|slice| slice.who.pid);
        for thread in releasers.chain(followed.iter().copied()) {
            if thread != 0 && !threads.contains(&thread) {
                threads.push(thread);
            }
        }
        lanes.tracks = thread_tracks(window, &threads);
        for track in &mut lanes.tracks {
            track.stretches.retain(|stretch| {
                lanes.spike.expected_ns.0 <= stretch.start.0.saturating_add(stretch.ns.0)
                    && stretch.start < spike.actual_ns
            });
        }
        lanes.tracks.retain(|track| {
            // A thread that slept all the time had no part in it.
            track.stretches.iter().any(|stretch| stretch.state != ThreadDoing::Sleeping)
        });
        let more = lanes.tracks.len().saturating_sub(LANES);
        lanes.tracks.truncate(LANES);
        if more > 0 {
            lanes
                .notes
                .push(format!("{} not drawn.", several(more as u64, "further thread", "further threads")));
        }
        if lanes.tracks.len() < 2 {
            lanes.tracks.clear();
        }
        lanes
    }

    /// Height of the lanes.
    pub fn height(&self) -> f64 {
        if self.tracks.is_empty() { 0.0 } else { HEAD + self.tracks.len() as f64 * STEP }
    }

    /// Legend of the states that occur.
    pub fn keys(&self) -> Vec<Swatch> {
        if self.tracks.is_empty() {
            return Vec::new();
        }
        let key = |kind: KindStyle, words: &str| Swatch {
            colour: kind.colour(self.theme),
            strength: kind.strength,
            hatch: kind.hatch(),
            words: words.into(),
        };
        let mut keys =
            vec![key(ran(), "threads: ran"), key(could_run(), "threads: runnable but waiting, half as high")];
        if !self.arcs().is_empty() {
            let words = "arc: a futex wait, from the waking to the waiting thread".into();
            keys.push(Swatch { colour: self.theme.lines[3], strength: 1.0, hatch: None, words });
        }
        keys
    }

    /// Lanes from this height downwards.
    pub fn draw(&self, top: f64) -> Markup {
        let first = top + HEAD;
        html! {
            @if !self.tracks.is_empty() {
                @let title = "threads, on whichever CPU";
                (text(self.plot.left, top + HEAD - 8.0, "start", self.theme.muted, title))
                @for (at, track) in self.tracks.iter().enumerate() {
                    (self.lane(track, first + at as f64 * STEP))
                }
                @for arc in self.arcs() { (self.arc(&arc, first)) }
            }
        }
    }

    fn since(&self, time: i64) -> f64 {
        time.saturating_sub(self.spike.expected_ns.0) as f64
    }

    /// Time on the scale, clamped to the picture.
    fn x(&self, since: f64) -> f64 {
        self.time.at(since.clamp(self.time.lo(), self.time.hi()))
    }

    fn lane(&self, track: &ThreadTrack, top: f64) -> Markup {
        let name = clean(&track.task.comm.text());
        let middle = top + HEIGHT / 2.0;
        html! {
            (text(self.plot.left - 7.0, middle + 4.0, "end", self.theme.ink, &fit(&name, NAME)))
            path d=(format!("M{} {}H{}", Px(self.plot.left), Px(middle), Px(self.plot.right)))
                stroke=(self.theme.grid) stroke-width="2" fill="none" {}
            @for stretch in &track.stretches { (self.stretch(stretch, &name, top)) }
        }
    }

    fn stretch(&self, stretch: &ThreadStretch, name: &str, top: f64) -> Markup {
        let from = self.x(self.since(stretch.start.0));
        let to = self.x(self.since(stretch.start.0.saturating_add(stretch.ns.0)));
        let width = (to - from).max(MIN_WIDTH);
        let (words, colour, strength, high) = match stretch.state {
            ThreadDoing::Running => ("ran on CPU", ran().colour(self.theme), ran().strength, HEIGHT),
            ThreadDoing::Waiting => {
                ("could run, on CPU", could_run().colour(self.theme), could_run().strength, HEIGHT / 2.0)
            }
            ThreadDoing::Sleeping => ("slept, last on CPU", self.theme.background, 0.0, HEIGHT),
        };
        let inside = format!("CPU {}", stretch.cpu);
        let shows = stretch.state == ThreadDoing::Running && text_width(&inside) + 8.0 <= width;
        html! {
            g {
                title { (name) ": " (words) " " (stretch.cpu) " for " (span(stretch.ns)) }
                rect x=(Px(from)) y=(Px(top + (HEIGHT - high) / 2.0)) width=(Px(width)) height=(Px(high))
                    fill=(colour) fill-opacity=(number(strength)) {}
                @if shows {
                    (text(from + width / 2.0, top + HEIGHT - 3.0, "middle", self.theme.background, &inside))
                }
            }
        }
    }

    /// Waits for futexes whose waker has a lane, longest first.
    fn arcs(&self) -> Vec<Arc> {
        let lane = |pid: i32| self.tracks.iter().position(|track| track.task.pid == pid);
        let mut slices: Vec<&Slice> = self.spike.slices.iter().filter(|slice| is_futex_wait(slice)).collect();
        slices.compact_sort_by_key(|slice| std::cmp::Reverse(slice.ns));
        let arc = |slice: &Slice| {
            let (from, to) = (slice.start_ns.0, slice.start_ns.0.saturating_add(slice.ns.0));
            let (waker, waiter) = (lane(slice.who.pid)?, lane(self.spike.victim.pid)?);
            let words = format!("{}, after {}", clean(&slice.evidence), span(slice.ns));
            Some(Arc { waker, waiter, from: self.since(from), to: self.since(to), words })
        };
        slices.into_iter().filter_map(arc).filter(|arc| arc.waker != arc.waiter).take(ARCS).collect()
    }

    /// Arc from the waker, at the start of the wait, to the waiter, at its end.
    fn arc(&self, arc: &Arc, first: f64) -> Markup {
        let y = |lane: usize, edge: f64| first + lane as f64 * STEP + edge;
        // Starts at the edge of the lane that faces the other lane.
        let below = arc.waker > arc.waiter;
        let (from, to) = if below { (0.0, HEIGHT) } else { (HEIGHT, 0.0) };
        let (x1, y1) = (self.x(arc.from), y(arc.waker, from));
        let (x2, y2) = (self.x(arc.to), y(arc.waiter, to));
        let head = if below { 5.0 } else { -5.0 };
        let curve = format!(
            "M{} {}C{} {} {} {} {} {}",
            Px(x1),
            Px(y1),
            Px(x1),
            Px(y2),
            Px(x2),
            Px(y1),
            Px(x2),
            Px(y2)
        );
        let arrow = format!(
            "M{} {}L{} {}L{} {}",
            Px(x2 - 4.0),
            Px(y2 + head),
            Px(x2),
            Px(y2),
            Px(x2 + 4.0),
            Px(y2 + head)
        );
        html! {
            g {
                title { (arc.words) }
                @for path in [curve, arrow] {
                    path d=(path) stroke=(self.theme.lines[3]) stroke-width="2" fill="none" {}
                }
            }
        }
    }
}

/// Look of a thread that runs, as of the late thread in the strip.
fn ran() -> KindStyle {
    kinds::of(SliceKind::Own.name())
}

/// Look of a thread that could run while another one had the CPU.
fn could_run() -> KindStyle {
    kinds::of(SliceKind::Preempted.name())
}

/// True for a wait for a futex of either sort that another thread ended.
fn is_futex_wait(slice: &Slice) -> bool {
    let function = slice.who.function.trim_start_matches('_');
    slice.kind == SliceKind::Blocked && function.starts_with("futex_") && slice.who.pid != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use crate::plot::svg::Size;
    use crate::plot::theme::PAPER;
    use model::units::Cpu;

    fn lanes<'a>(case: &'a fixture::MadeSpike, followed: &[i32], time: &'a Scale) -> ThreadLanes<'a> {
        let plot = Plot::new(Size::Wide, 0.0, 0.0);
        ThreadLanes::new(&case.spike, Some(&case.window), followed, time, plot, &PAPER)
    }

    #[test]
    fn a_lock_is_an_arc_from_its_waker_s_lane() {
        let case = fixture::locked_cycle();
        let time = Scale::linear(0.0, case.spike.latency_ns.0 as f64, 80.0, 900.0);
        let drawn = lanes(&case, &[], &time);
        let names: Vec<_> = drawn.tracks.iter().map(|track| track.task.comm.text().into_owned()).collect();
        assert_eq!(names, ["control", "logger"]);
        assert_eq!(drawn.arcs().len(), 1);
        let text = drawn.draw(0.0).into_string();
        for words in ["woken by logger", "ran on CPU 1", "ran on CPU 0"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(drawn.keys().iter().any(|key| key.words.starts_with("arc")));
    }

    #[test]
    fn a_wake_up_and_a_lone_thread_have_none() {
        let mut case = fixture::locked_cycle();
        let time = Scale::linear(0.0, 1e6, 80.0, 900.0);
        case.spike.slices.retain(|slice| !is_futex_wait(slice));
        assert_eq!(lanes(&case, &[], &time).height(), 0.0);
        assert!(lanes(&case, &[812], &time).height() > 0.0);
        case.spike.deadline_ns = None;
        assert_eq!(lanes(&case, &[812], &time).height(), 0.0);
        assert_eq!(case.window.cpu, Cpu(1));
    }
}
