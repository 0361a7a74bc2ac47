//! Landmarks of a wake-up in its window, and the mean of the stages between them over many windows.

use super::nest::{NestContext, Span, nested};
use model::units::Nanos;
use trace::event::What;
use trace::window::Window;

/// Number of stages of a wake-up.
pub const STAGES: usize = 5;

/// Stages in order: their two ends, and the usual causes of delay there.
pub const NAMES: [(&str, &str); STAGES] = [
    ("expected \u{2192} timer interrupt", "the hardware's delay, and interrupts off"),
    ("interrupt \u{2192} the timer's expiry", "the interrupt, or the timer's thread"),
    ("expiry \u{2192} waking", "the timer's function"),
    ("waking \u{2192} switch", "higher-priority threads, and the scheduler"),
    ("switch \u{2192} user space", "the return from the kernel"),
];

/// Times of the landmarks; `None` if no event shows one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Landmarks {
    /// Time at which the thread should have run.
    pub expected: Nanos,
    /// Entry of the interrupt that the timer caused.
    pub interrupt: Option<Nanos>,
    /// Call of the timer's function.
    pub expiry: Option<Nanos>,
    /// Waking of the thread.
    pub waking: Option<Nanos>,
    /// Switch to the thread.
    pub switch: Option<Nanos>,
    pub actual: Nanos,
}

impl Landmarks {
    /// Finds the landmarks from the end backwards: the last switch to the thread, the waking before
    /// it, the expiry around that.
    pub fn of(window: &Window) -> Landmarks {
        let mut marks =
            Landmarks { expected: window.expected_ns, actual: window.actual_ns, ..Landmarks::default() };
        let victim = window.victim.pid;
        let last = |until: Nanos, is: &dyn Fn(&What<String>) -> bool| {
            let mut before = window.events.iter().rev();
            before.find(|event| event.time <= until && is(&event.what)).map(|event| (event.time, event.cpu))
        };
        let switch =
            last(window.actual_ns, &|what| matches!(what, What::Switch { next, .. } if next.pid == victim));
        let waking = switch.and_then(|(switch, _)| {
            last(switch, &|what| matches!(what, What::Waking { task, .. } if task.pid == victim))
        });
        (marks.switch, marks.waking) = (switch.map(|at| at.0), waking.map(|at| at.0));
        let Some((waking, cpu)) = waking else { return marks };
        let spans = nested(window).remove(&cpu).unwrap_or_default();
        let holds = |span: &&Span| span.start <= waking && waking <= span.end;
        let expiry = window.events.iter().rev().find(|event| {
            event.cpu == cpu && event.time <= waking && matches!(event.what, What::TimerEntry { .. })
        });
        // Only a function that the waking happened in: another timer's is unrelated.
        marks.expiry = expiry.map(|event| event.time).filter(|&time| {
            spans.iter().filter(holds).any(|span| span.context == NestContext::Function && span.start == time)
        });
        marks.interrupt = marks.expiry.and_then(|expiry| interrupt(&spans, window.expected_ns, expiry));
        marks
    }

    /// Known landmarks, in order, each with its name.
    pub fn named(&self) -> Vec<(&'static str, Nanos)> {
        let all = [
            ("expected", Some(self.expected)),
            ("interrupt", self.interrupt),
            ("waking", self.waking),
            ("switch", self.switch),
            ("actual", Some(self.actual)),
        ];
        all.into_iter().filter_map(|(name, time)| Some((name, time?))).collect()
    }

    /// Length of each stage, if every landmark is known and they are in order.
    pub fn stages(&self) -> Option<[Nanos; STAGES]> {
        // An interrupt for another timer may have been active already.
        let interrupt = self.interrupt?.max(self.expected);
        let times = [self.expected, interrupt, self.expiry?, self.waking?, self.switch?, self.actual];
        let mut stages = [Nanos(0); STAGES];
        for (stage, pair) in stages.iter_mut().zip(times.windows(2)) {
            *stage = Nanos(pair[1].0.checked_sub(pair[0].0).filter(|ns| *ns >= 0)?);
        }
        Some(stages)
    }
}

/// Start of the timer's interrupt: the first one due, or the one being served at that time.
fn interrupt(spans: &[Span], expected: Nanos, expiry: Nanos) -> Option<Nanos> {
    let timer = |span: &&Span| {
        span.context == NestContext::Irq && span.start <= expiry && span.label.contains("timer")
    };
    let due = spans.iter().filter(timer).find(|span| span.start >= expected);
    due.or_else(|| spans.iter().filter(timer).find(|span| span.end >= expiry)).map(|span| span.start)
}

/// Mean of each stage over the windows in which all stages are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    sum: [i128; STAGES],
    /// Number of windows in the mean.
    pub windows: u64,
    /// Number of windows in which a landmark is missing.
    pub without: u64,
}

impl Mean {
    /// Adds a window.
    pub fn add(&mut self, window: &Window) {
        let Some(stages) = Landmarks::of(window).stages() else {
            self.without += 1;
            return;
        };
        self.windows += 1;
        self.sum.iter_mut().zip(stages).for_each(|(sum, stage)| *sum += i128::from(stage.0));
    }

    /// Mean of each stage; none without a window.
    pub fn stages(&self) -> Option<[Nanos; STAGES]> {
        let n = i128::from(self.windows);
        (n > 0).then(|| self.sum.map(|sum| Nanos((sum / n) as i64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    fn after(window: &Window) -> [Option<i64>; 4] {
        let marks = Landmarks::of(window);
        let since = |time: Option<Nanos>| time.map(|time| (time - window.expected_ns).0);
        [since(marks.interrupt), since(marks.expiry), since(marks.waking), since(marks.switch)]
    }

    #[test]
    fn landmarks_are_found_on_both_paths() {
        assert_eq!(after(&fixture::fifo().window), [Some(700), Some(1_120), Some(1_300), Some(335_500)]);
        assert_eq!(
            after(&fixture::timer_softirq().window),
            [Some(800), Some(176_000), Some(176_300), Some(183_500)]
        );
    }

    #[test]
    fn the_stages_add_up_to_the_latency() {
        let mut mean = Mean::default();
        for case in fixture::cases() {
            let stages = Landmarks::of(&case.window).stages().unwrap();
            assert_eq!(stages.iter().map(|ns| ns.0).sum::<i64>(), case.window.latency().0);
            mean.add(&case.window);
        }
        assert_eq!((mean.windows, mean.without), (8, 0));
        assert_eq!(mean.stages().unwrap()[2], Nanos((7 * 180 + 300) / 8));
    }

    #[test]
    fn without_events_nothing_is_claimed() {
        let bare = Window { events: Vec::new(), ..fixture::fifo().window };
        let mut mean = Mean::default();
        mean.add(&bare);
        assert_eq!((mean.stages(), mean.without, after(&bare)), (None, 1, [None; 4]));
    }
}
