//! One whole spike for the terminal: its lateness, every part of it, and the cures for the largest
//! culprits.

use super::parts::by_latency;
use super::spike_page::{lead, named};
use super::{next_step, spike_rows};
use crate::last_lines::{LastLines, RunPlace};
use crate::palette::{BOLD, Palette};
use crate::words::{clean, filled, span};
use model::run::{Run, Spike};

/// Renders the spike of a number, 1 for the worst, as text of up to this number of columns; none if
/// the run has no such spike.
///
/// A run outside a bundle has no place: no command draws it.
pub fn render(
    run: &Run,
    number: usize,
    place: Option<RunPlace>,
    columns: usize,
    color: bool,
) -> Option<String> {
    let at = number.checked_sub(1).and_then(|at| by_latency(run).get(at).copied())?;
    let spike = run.spikes.get(at)?;
    let (palette, width) = (Palette(color), columns.clamp(40, 200));
    let mut page = String::new();
    spike_rows::render(&mut page, number, spike, run, true, width, palette);
    let stack = longest_stack(spike);
    if !stack.is_empty() {
        filled(&mut page, "   ", &stack, 5, width);
    }
    let mut answer = LastLines::default();
    answer.styled("late", lead(spike), BOLD);
    for (rank, (at, ns)) in named(run, spike).into_iter().enumerate() {
        let name = if rank == 0 { "who" } else { " " };
        let culprit = &run.culprits[at];
        answer.styled(name, format!("{}: {} of it", clean(&culprit.name), span(ns)), BOLD);
        let step = next_step::first_step(&run.culprits, at);
        // The reader is looking at it already.
        answer.below(if next_step::looks_at_a_spike(&step) { String::new() } else { step }, 2);
    }
    if let Some(place) = place {
        let draw = if place.newest { "--open" } else { "-o page.html" };
        answer.row("next", format!("{} (activity of each CPU)", place.command("report", draw)));
    }
    Some(page + &answer.render(width, palette))
}

/// Whole stack of the longest part that has one; its row has the innermost frames only.
fn longest_stack(spike: &Spike) -> String {
    let found = spike.slices.iter().filter(|slice| !slice.stack.is_empty()).max_by_key(|slice| slice.ns);
    found.map_or_else(String::new, |slice| {
        let frames: Vec<String> = slice.stack.iter().map(|frame| clean(frame)).collect();
        format!("stack of the {} of {}: {}", clean(slice.kind.as_str()), span(slice.ns), frames.join(" < "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    const PLACE: RunPlace = RunPlace { path: "/runs/x", newest: true, fresh: false, program: "onbeat" };

    #[test]
    fn each_spike_can_be_asked_for_and_no_other_number() {
        let run = fixture::run();
        for number in 1..=run.spikes.len() {
            for width in [60, 80, 120] {
                let text = render(&run, number, Some(PLACE), width, false).unwrap();
                assert!(text.starts_with(&format!("{number}. ")), "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
                assert!(text.contains("\nwho     ") && text.contains("\nlate    "), "{text}");
            }
        }
        assert_eq!(render(&run, 0, Some(PLACE), 80, false), None);
        assert_eq!(render(&run, run.spikes.len() + 1, Some(PLACE), 80, false), None);
    }

    #[test]
    fn what_others_named_cannot_control_the_terminal() {
        let mut run = fixture::run();
        run.culprits.iter_mut().for_each(|culprit| culprit.name = "\u{1b}[2J\n".into());
        run.spikes.iter_mut().for_each(|spike| spike.notes = vec!["\u{1b}]0;x\u{7}".into()]);
        let text = render(&run, 1, Some(PLACE), 80, false).unwrap();
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    }
}
