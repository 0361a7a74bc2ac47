//! Story of a cure as Markdown, for a ticket.

use std::fmt::Write;

use super::changes::together;
use super::sentences::{
    NEEDS, circumstances, first_run, heading, last_run, left_of, next_step, of_hunt, of_last, of_run,
    step_head, step_numbers, step_why, verdict,
};
use model::cure::CureRun;

/// Story, one sentence a line.
pub fn render(record: &CureRun) -> String {
    let mut page = format!("# {}\n\n**{}**\n\n", safe(&heading(record)), safe(&verdict(record)));
    let _ = writeln!(page, "{}\n", safe(&circumstances(record)));
    if let Some(first) = first_run(record) {
        let _ = writeln!(page, "Before: {}\n", safe(&of_run(first, &record.plan)));
    }
    if let Some(hunt) = record.hunts.first() {
        page += "## Culprits\n\n";
        of_hunt(hunt, record.plan.counted()).iter().for_each(|line| item(&mut page, line));
        page.push('\n');
    }
    if !record.steps.is_empty() {
        page += "## What was tried\n\n";
        for (at, step) in record.steps.iter().enumerate() {
            let _ = writeln!(page, "### {}\n", safe(&step_head(at + 1, step)));
            together(&step.candidate.changes).iter().for_each(|change| item(&mut page, change));
            item(&mut page, &step_numbers(step, record.plan.counted()));
            item(&mut page, &step_why(step));
            page.push('\n');
        }
    }
    if !record.remaining.is_empty() {
        page += "## What remains\n\n";
        for (needs, words) in NEEDS {
            for (culprits, what) in left_of(record, needs) {
                item(&mut page, &format!("{culprits}: {what}; this {words}"));
            }
        }
        page.push('\n');
    }
    if let Some(last) = last_run(record).filter(|_| record.runs.len() > 1) {
        let _ = writeln!(page, "At the end: {}", safe(&of_last(last, &record.plan)));
        if !last.said.is_empty() {
            let _ = writeln!(page, "{}", safe(&last.said));
        }
    }
    if let Some(next) = next_step(record) {
        let _ = writeln!(page, "\n{next}");
    }
    page
}

fn item(page: &mut String, line: &str) {
    let _ = writeln!(page, "- {}", safe(line));
}

/// Text on one line, with Markdown's special characters escaped.
fn safe(text: &str) -> String {
    let mut safe = String::new();
    for letter in crate::words::clean(text).chars() {
        if matches!(letter, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!') {
            safe.push('\\');
        }
        safe.push(letter);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::super::fixture::cured;
    use super::*;

    #[test]
    fn the_same_story_is_told_and_nothing_in_it_is_markup() {
        let mut record = cured();
        record.steps[1].culprit = "<img src=x>\n# *evil*".into();
        let text = render(&record);
        assert!(text.starts_with("# Wake-ups of CPU 2 within 30 ms\n\n**Held: 1 change is kept."), "{text}");
        assert!(text.contains("### 1. irq-affinity, against an interrupt's thread: kept\n"), "{text}");
        assert!(!text.contains("<img") || text.contains("\\<img"), "{text}");
        assert!(text.contains("\\# \\*evil\\*") && text.contains("needs a reboot"), "{text}");
    }
}
