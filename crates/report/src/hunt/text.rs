//! Results of `hunt` for the terminal: the measurement, the recorder's account, the worst spikes as
//! timelines, and the culprits by the lateness they caused.

use std::fmt::Write;

use super::next_step::{next_step, with_spike};
use super::parts::{by_latency, total};
use super::typical::{self, InvolvedRun};
use super::{
    cpu_time, culprit_thread, disagreement, outside, program, sentences, shares, spike_rows, threads,
    unlisted,
};
use crate::palette::{BOLD, DIM, Palette, RED, YELLOW};
use crate::run::table;
use crate::words::{clean, filled, several, span, wrapped};
use model::run::{Run, Spike};
use model::slice::SliceKind;

/// Limit of spikes that are drawn, in short and in full; the others are counted.
const SPIKES: [usize; 2] = [3, 5];
/// Limit of culprits that are listed, in short and in full; the others are counted.
const CULPRITS: [usize; 2] = [5, 10];

/// Renders the hunt as text of up to this number of columns, as far as possible, with ANSI colours
/// if `color` is set; with every condition and the recorder's account of itself.
pub fn render<'a>(run: impl Into<InvolvedRun<'a>>, columns: usize, color: bool) -> String {
    written(&run.into(), true, columns, color)
}

/// Like `render`, without these, and without parts of spikes below one per cent.
pub fn summary<'a>(run: impl Into<InvolvedRun<'a>>, columns: usize, color: bool) -> String {
    written(&run.into(), false, columns, color)
}

fn written(known: &InvolvedRun, all: bool, columns: usize, color: bool) -> String {
    let run = known.run;
    let (palette, width) = (Palette(color), columns.clamp(40, 200));
    let mut page = String::new();
    if let Some(sentence) = outside::sentence(run) {
        heading(&mut page, &sentence, width, palette);
        page.push('\n');
    }
    if let Some(end) = program::ended(run) {
        wrapped(&mut page, &end, width);
    }
    threads::render(&mut page, run, width, palette);
    let table = if all { table::render } else { table::summary };
    page.push_str(&table(run, width, color));
    if let Some(who) = sentences::followed(run) {
        wrapped(&mut page, &who, width);
    }
    if all {
        let mut line = String::new();
        wrapped(&mut line, &sentences::armed(run), width);
        page.push_str(&palette.paint(YELLOW, line.trim_end()));
        page.push('\n');
        account(&mut page, run, width, palette);
    }
    suspects(&mut page, run, width, palette);
    let _ = writeln!(page);
    let most = SPIKES[usize::from(all)];
    let example = typical::example(run, &known.involved);
    heading(&mut page, &spikes_line(run, most, example), width, palette);
    for (number, spike) in numbered_spikes(run, most, example) {
        let _ = writeln!(page);
        spike_rows::render(&mut page, number, spike, run, all, width, palette);
    }
    if run.spikes.len() > most {
        let count = run.spikes.len();
        let any = format!("Each of the {count}: `onbeat explain --spike N`, where 1 is the worst.");
        let _ = writeln!(page);
        wrapped(&mut page, &any, width);
    }
    if !run.spikes.is_empty() {
        let drawn: Vec<usize> =
            numbered_spikes(run, most, example).iter().map(|(number, _)| *number).collect();
        culprits(&mut page, known, CULPRITS[usize::from(all)], &drawn, width, palette);
    }
    page
}

/// Numbers only: of followed threads, and of each CPU.
pub fn brief<'a>(run: impl Into<InvolvedRun<'a>>, columns: usize, color: bool) -> String {
    let run = run.into().run;
    let (palette, width) = (Palette(color), columns.clamp(40, 200));
    let mut page = String::new();
    threads::render(&mut page, run, width, palette);
    page + &table::brief(run, width, color)
}

fn heading(page: &mut String, line: &str, width: usize, palette: Palette) {
    let mut text = String::new();
    wrapped(&mut text, line, width);
    page.push_str(&palette.paint(BOLD, text.trim_end()));
    page.push('\n');
}

fn spikes_line(run: &Run, most: usize, example: Option<usize>) -> String {
    let found = sentences::found(run);
    let worst = if run.spikes.len() > most { format!(" the worst {most}") } else { String::new() };
    match (example, run.culprits.first()) {
        (Some(_), Some(first)) => {
            let rest = if worst.is_empty() { " the worst".to_owned() } else { worst };
            let first = clean(&first.name);
            format!(
                "{found} First a typical spike of {first}, then{rest}, each from the time it should have run:"
            )
        }
        _ if !worst.is_empty() => format!("{found} The worst {most}, each from the time it should have run:"),
        _ => found,
    }
}

/// An example, if there is one, then the worst spikes; each with its place among the latest.
fn numbered_spikes(run: &Run, most: usize, example: Option<usize>) -> Vec<(usize, &Spike)> {
    let order = by_latency(run);
    let numbered = order.iter().enumerate().map(|(rank, &at)| (at, rank + 1, &run.spikes[at]));
    let first = numbered.clone().filter(|(at, ..)| Some(*at) == example);
    let rest = numbered.take(most).filter(|(at, ..)| Some(*at) != example);
    first.chain(rest).map(|(_, number, spike)| (number, spike)).collect()
}

fn account(page: &mut String, run: &Run, width: usize, palette: Palette) {
    let Some(recorder) = &run.recorder else { return };
    let _ = writeln!(page, "\n{}", palette.paint(BOLD, "Flight recorder"));
    for (name, words) in sentences::account(recorder) {
        filled(page, &format!("  {name:<10} "), &words, 13, width);
    }
}

/// Remark on spikes whose trace and clock differ.
fn suspects(page: &mut String, run: &Run, width: usize, palette: Palette) {
    let Some(found) = disagreement::of(run) else { return };
    let which = if found.which.is_empty() { String::new() } else { format!(" ({})", found.which) };
    let mut text = String::new();
    wrapped(&mut text, &format!("! I{}{which}.", found.sentence.trim_start_matches('i')), width);
    page.push_str(&palette.paint(if found.holds || found.few { YELLOW } else { RED }, text.trim_end()));
    page.push('\n');
}

fn culprits(
    page: &mut String,
    known: &InvolvedRun,
    most: usize,
    drawn: &[usize],
    width: usize,
    palette: Palette,
) {
    let run = known.run;
    let whole = span(total(run));
    let line = format!("Culprits: {} late by {whole} in total", unlisted::summed(run));
    let _ = writeln!(page);
    heading(page, &line, width, palette);
    if let Some(line) = unlisted::left_out(run) {
        wrapped(page, &line, width);
    }
    for at in 0..run.culprits.len().min(most) {
        let number = typical::number(run, &known.involved, at);
        let drawn = number.is_some_and(|number| drawn.contains(&number));
        one_culprit(page, run, at, number, drawn, width, palette);
    }
    let more = shares::more(run, most);
    if !more.is_empty() {
        let _ = writeln!(page, "{more}");
    }
    let sum = shares::sentence(run);
    if !sum.is_empty() {
        wrapped(page, &sum, width);
    }
}

/// Renders a culprit with the number of its typical spike, and whether that is drawn above.
fn one_culprit(
    page: &mut String,
    run: &Run,
    at: usize,
    number: Option<usize>,
    drawn: bool,
    width: usize,
    palette: Palette,
) {
    let (rank, culprits, culprit) = (at + 1, &run.culprits, &run.culprits[at]);
    let cells = (width / 8).clamp(8, 20);
    let full = (culprit.share.clamp(0.0, 1.0) * cells as f64).round() as usize;
    let bar = if full > 0 { "\u{2588}".repeat(full) } else { "\u{258c}".into() };
    let empty = " ".repeat(cells.saturating_sub(bar.chars().count()));
    let stopped = culprit.kind == SliceKind::Stopped;
    let painted = palette.paint(if stopped { DIM } else { RED }, &bar);
    let (share, length) = (sentences::percent(culprit.share), span(culprit.total_ns));
    let first = format!("{rank:>2}. {share:>6} {painted}{empty} {length:>8} ");
    let (name, kind) = (clean(&culprit.name), clean(culprit.kind.as_str()));
    // The name is the word of the kind.
    let kind = if kind == name || stopped { String::new() } else { format!(" ({kind})") };
    let rest = format!("{name}{kind}, in {}", several(culprit.spikes, "spike", "spikes"));
    filled(page, &first, &rest, 11, width);
    let mut say = |what: &str, words: String| {
        if !words.is_empty() {
            filled(page, &format!("           {what}"), &words, 13, width);
        }
    };
    say("took: ", cpu_time::sentence(culprit));
    say("is: ", culprit_thread::sentence_at(run, at));
    let typical = number.filter(|_| !drawn).map(|number| format!("spike {number}"));
    say("typical: ", typical.unwrap_or_default());
    say("seen: ", culprit.evidence.iter().map(|words| clean(words)).collect::<Vec<_>>().join("; "));
    // A culprit that is named after its one function needs no list of functions.
    if !matches!(culprit.functions.as_slice(), [one] if culprit.name.contains(one.as_str())) {
        say("in: ", sentences::functions(culprit));
    }
    match sentences::cure(culprits, at) {
        sentences::Cure::As(above) => say("cure: ", format!("as for {}.", above + 1)),
        sentences::Cure::Remedy(remedy, knobs) if remedy.is_empty() && knobs.is_empty() => {
            say("next: ", with_spike(&next_step(culprits, at), number, None));
        }
        sentences::Cure::Remedy(remedy, knobs) => {
            say("cure: ", remedy);
            say("knobs: ", knobs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    #[test]
    fn every_width_holds_it() {
        for width in [60, 80, 100, 132, 160, 200] {
            let text = render(&fixture::run(), width, false);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(!text.contains('\u{1b}'));
        }
    }

    #[test]
    fn colour_changes_no_letter() {
        let run = fixture::run();
        for width in [60, 120] {
            let mut plain = render(&run, width, true);
            for style in [RED, YELLOW, BOLD, DIM] {
                plain = plain.replace(&style.to_string(), "").replace(&format!("{style:#}"), "");
            }
            assert_eq!(plain, render(&run, width, false));
        }
    }

    #[test]
    fn every_part_of_the_worst_is_there_and_the_rest_is_counted() {
        let text = render(&fixture::run(), 120, false);
        assert!(text.contains("1. 1.21 ms late on CPU 1, at "), "{text}");
        assert!(text.contains("unexplained"), "{text}");
        assert!(text.contains("hold_irqs_off [inject]"), "{text}");
        assert!(text.contains("8 wake-ups later than 100 us on 2 CPUs in 60.0 s. The worst 5"), "{text}");
        assert!(!text.contains("\n6. "), "{text}");
    }

    #[test]
    fn a_hunt_that_found_nothing_is_short_and_ten_thousand_spikes_too() {
        let mut run = fixture::run();
        let one = run.spikes[0].clone();
        run.spikes.clear();
        assert!(render(&run, 80, false).contains("No wake-up was later than 100 us"));
        run.spikes = vec![one; 10_000];
        run.spikes_dropped = 12;
        let text = render(&run, 80, false);
        assert!(text.contains("10012 wake-ups later than"), "{text}");
        assert!(text.lines().count() < 150);
    }

    #[test]
    fn a_quiet_hunt_is_its_table() {
        let text = brief(&fixture::run(), 80, false);
        assert!(text.contains("\n  0 ") && text.lines().count() < 12, "{text}");
        assert!(!text.contains("Culprits: "), "{text}");
    }

    #[test]
    fn external_text_cannot_control_the_terminal() {
        let mut run = fixture::run();
        for spike in &mut run.spikes {
            spike.notes = vec!["\u{1b}[2J".into()];
            spike.slices.iter_mut().for_each(|slice| slice.who.comm = "a\u{1b}[31m\n".into());
        }
        run.culprits[0].name = "\u{1b}]0;x\u{7}".into();
        assert!(render(&run, 80, false).chars().all(|c| c == '\n' || !c.is_control()));
    }
}
