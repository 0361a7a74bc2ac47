//! What each CPU did around a spike, as lanes to be drawn: stretches beside each other, each of the innermost context.

use super::nest::{Context, Span, nested};
use crate::trace::window::Window;
use crate::units::{Cpu, Nanos};

/// A CPU and what it did, in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The CPU.
    pub cpu: Cpu,
    /// Without overlap.
    pub stretches: Vec<Stretch>,
}

/// A stretch of one context.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// Its begin.
    pub start: Nanos,
    /// Its length.
    pub ns: Nanos,
    /// The innermost context.
    pub context: Context,
    /// Its name.
    pub label: String,
    /// The priority of the thread that was current, as the kernel counts, where it is known.
    pub prio: Option<i32>,
}

/// The lanes of a window: the victim's CPU first, then the others in order.
pub fn lanes(window: &Window) -> Vec<Lane> {
    let mut lanes: Vec<Lane> =
        nested(window).into_iter().map(|(cpu, spans)| Lane { cpu, stretches: flat(&spans) }).collect();
    lanes.sort_by_key(|lane| (lane.cpu != window.cpu, lane.cpu));
    lanes
}

/// What lies innermost at each time; functions count as what calls them.
fn flat(spans: &[Span]) -> Vec<Stretch> {
    let (mut out, mut stack): (Vec<Stretch>, Vec<&Span>) = (Vec::new(), Vec::new());
    let mut now = Nanos(i64::MIN);
    for span in spans.iter().filter(|span| span.context != Context::Function) {
        unwind(&mut out, &mut stack, &mut now, span.start);
        stack.push(span);
        now = span.start;
    }
    unwind(&mut out, &mut stack, &mut now, Nanos(i64::MAX));
    out
}

/// Closes what ends until a time, each up to where the next one begins.
fn unwind(out: &mut Vec<Stretch>, stack: &mut Vec<&Span>, now: &mut Nanos, until: Nanos) {
    while let Some(top) = stack.last() {
        let end = top.end.min(until);
        if end > *now {
            let ns = Nanos(end.0.saturating_sub(now.0));
            out.push(Stretch {
                start: *now,
                ns,
                context: top.context,
                label: top.label.clone(),
                prio: top.prio,
            });
            *now = end;
        }
        if top.end > until {
            return;
        }
        stack.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::hunt::fixture;
    use crate::report::hunt::nest::reach;

    #[test]
    fn lanes_have_no_gap_and_begin_with_the_victims_cpu() {
        for case in fixture::cases() {
            let (from, to) = reach(&case.window);
            let lanes = lanes(&case.window);
            assert_eq!(lanes[0].cpu, case.window.cpu);
            for lane in &lanes {
                let end = lane.stretches.iter().fold(from, |end, stretch| {
                    assert_eq!(stretch.start, end, "{lane:#?}");
                    stretch.start + stretch.ns
                });
                assert_eq!(end, to);
            }
        }
    }

    #[test]
    fn an_interrupt_cuts_its_thread_in_two() {
        let lanes = lanes(&fixture::fifo().window);
        let labels: Vec<&str> = lanes[0].stretches.iter().map(|stretch| stretch.label.as_str()).collect();
        assert_eq!(labels, ["busy-loop:812", "local_timer", "busy-loop:812", "onbeat:4100"]);
    }
}
