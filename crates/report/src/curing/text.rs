//! Story of a cure for the terminal.

use std::fmt::Write;

use super::changes::together;
use super::sentences::{
    NEEDS, circumstances, first_run, heading, in_the_way, last_run, left_of, next_commands, of_hunt, of_last,
    of_run, step_head, step_numbers, step_why, verdict,
};
use crate::last_lines::LastLines;
use crate::palette::{BOLD, DIM, GREEN, Palette, RED};
use crate::words::{clean, filled, wrapped};
use model::cure::CureRun;

/// Story as text of up to this number of columns, with ANSI colours if `color` is set.
pub fn render(record: &CureRun, width: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    wrapped(&mut page, &palette.paint(BOLD, &heading(record)), width);
    wrapped(&mut page, &palette.paint(DIM, &circumstances(record)), width);
    page.push('\n');
    if let Some(first) = first_run(record) {
        let line = format!("Before: {}", of_run(first, &record.plan));
        wrapped(&mut page, &line, width);
    }
    if let Some(hunt) = record.hunts.first() {
        page.push_str("Culprits:\n");
        of_hunt(hunt, record.plan.counted()).iter().for_each(|line| filled(&mut page, "  ", line, 4, width));
    }
    steps(&mut page, record, width, palette);
    remaining(&mut page, record, width);
    page + &last_lines(record).render(width, palette)
}

/// Last lines: the result, the late units of the last run and the claim they support, the obstacle,
/// the commands to type next.
fn last_lines(record: &CureRun) -> LastLines {
    let style = match (record.held, record.ended.as_str()) {
        (true, _) => GREEN,
        (_, "time" | "signal" | "") => BOLD,
        _ => RED,
    };
    let last = last_run(record);
    let mut answer = LastLines::default();
    answer.styled("answer", verdict(record), style);
    answer.row("late", last.map_or_else(String::new, |last| of_last(last, &record.plan)));
    answer.row("who", in_the_way(record).unwrap_or_default());
    answer.row("fair", last.map_or_else(String::new, |last| clean(&last.said)));
    answer.row("next", next_commands(record));
    answer
}

fn steps(page: &mut String, record: &CureRun, width: usize, palette: Palette) {
    if record.steps.is_empty() {
        return;
    }
    page.push_str("\nWhat was tried:\n");
    for (at, step) in record.steps.iter().enumerate() {
        let head = step_head(at + 1, step);
        filled(page, "  ", &palette.paint(BOLD, &head), 4, width);
        let changes = together(&step.candidate.changes);
        changes.iter().for_each(|change| filled(page, "     ", change, 7, width));
        filled(page, "     ", &step_numbers(step, record.plan.counted()), 7, width);
        filled(page, "     ", &step_why(step), 7, width);
    }
}

fn remaining(page: &mut String, record: &CureRun, width: usize) {
    if record.remaining.is_empty() {
        return;
    }
    page.push_str("\nWhat remains:\n");
    for (needs, words) in NEEDS {
        let of_kind = left_of(record, needs);
        if !of_kind.is_empty() {
            let _ = writeln!(page, "  what {words}");
        }
        for (culprits, what) in of_kind {
            let line = format!("{culprits}: {}", clean(what));
            filled(page, "    ", &line, 6, width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cured, untouched};
    use super::*;

    #[test]
    fn the_story_has_what_it_was_each_step_and_how_it_ended() {
        let page = render(&cured(), 10_000, false);
        for part in [
            "Wake-ups of CPU 2 within 30 ms\n",
            "Before: 40 of 20000 wake-ups in 20 s reached 30 ms; the worst took 81 ms.\n",
            "  a thread of higher priority: 75 % of the late time, 3 s in 38 late wake-ups\n",
            "  1. irq-affinity, against an interrupt's thread: kept\n",
            "160 without it, 0 with it, 0 times as often [in the typical pair 0 to 0.0300, with 95 %]; \
             fewer in 8 of 8 pairs: \
             e-value 50.3 of 40",
            "  2. swap, against a thread of higher priority: undone\n",
            "     inconclusive: the difference is neither significant nor certainly small\n",
            "  what needs a reboot\n    a thread of higher priority: isolation-lists: boot with",
            "\nanswer  Held: 1 change is kept.",
            "\nlate    none of 90000 wake-ups in 90 s reached 30 ms",
            "\nfair    Supported with 95 % confidence.\n",
            "\nnext    onbeat tune export tuning --cpus 2 irq-affinity (permanent); onbeat tune undo \
             (reverts all)\n",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(page.lines().count() < 40);
    }

    #[test]
    fn of_a_program_its_cycles_are_told() {
        let mut record = cured();
        record.plan.program = vec!["./robot".into(), "--arg".into()];
        let page = render(&record, 10_000, false);
        for part in [
            "Cycles of ./robot within 30 ms\n",
            "30 ms or more; cycles of ./robot --arg on CPU 2, no load;",
            "Before: 40 of 20000 cycles in",
            " in 38 late cycles\n",
            "late cycles: 160 without it",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        record.plan.program.clear();
        record.plan.victim = "jackd".into();
        assert!(render(&record, 10_000, false).starts_with("Cycles of jackd within 30 ms\n"));
    }

    #[test]
    fn a_last_run_that_was_late_and_spoiled_is_the_answer() {
        let mut record = cured();
        (record.held, record.ended) = (false, "no-gain".into());
        let last = record.runs.last_mut().unwrap();
        (last.long, last.late, last.valid) = (true, 1, false);
        last.why = "the load stood still".into();
        let page = render(&record, 10_000, false);
        for part in [
            "\nlate    1 of 90000 wake-ups in 90 s reached 30 ms",
            "This ended the run. It is also invalid (the load stood still), but its late ones still count.",
            "\nanswer  Not held: 1 change is kept.",
            "\nwho     a thread of higher priority: isolation-lists: boot with isolcpus\n",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }

    #[test]
    fn what_was_not_touched_says_so_and_hostile_words_are_harmless() {
        let mut record = untouched();
        record.steps[0].culprit = "\u{1b}[2Jevil".into();
        let page = render(&record, 80, false);
        assert!(page.contains("Not held: nothing was changed.") && !page.contains('\u{1b}'), "{page}");
        assert!(!page.contains("tune export"));
        assert!(render(&CureRun::default(), 80, false).contains("Interrupted: nothing was changed."));
    }
}
