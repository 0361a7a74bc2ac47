//! What `hunt` found, for the terminal: what was measured, the recorder's account, the worst spikes
//! as timelines, and the culprits by the time they took.

use std::fmt::Write;

use super::parts::{PARTS, SpikePart, longest, parts, share, sums, total, unexplained, worst};
use super::{kinds, outside, program, sentences, threads};
use crate::palette::{BOLD, DIM, PLAIN, Palette, RED, YELLOW};
use crate::run::table;
use crate::words::{clean, filled, several, span, us, wrapped};
use model::run::{Culprit, Run, Spike};
use model::slice::SliceKind;
use model::units::Nanos;

/// How many sums of a spike are listed.
const SUMS: usize = 6;

/// Spikes that are drawn, in short and in full; the others are counted.
const SPIKES: [usize; 2] = [3, 5];
/// Culprits that are listed, in short and in full; the others are counted.
const CULPRITS: [usize; 2] = [5, 10];
/// Parts of less than this share of a spike are added up, unless all is asked for.
const LEAST: f64 = 0.01;
/// From this width on, the culprit is next to the bar, else below it.
const BESIDE: usize = 120;
/// Below this width a part has neither bar nor start.
const NARROW: usize = 60;
/// Parts below this share of a spike are named without their evidence.
const SMALL: f64 = 0.05;

/// The hunt as text of up to this number of columns, as far as possible; with ANSI colours if asked
/// for. Every condition is there, and the recorder's account of itself.
pub fn render(run: &Run, columns: usize, color: bool) -> String {
    written(run, true, columns, color)
}

/// The same without these, and without parts of spikes below one per cent.
pub fn summary(run: &Run, columns: usize, color: bool) -> String {
    written(run, false, columns, color)
}

fn written(run: &Run, all: bool, columns: usize, color: bool) -> String {
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
    disagreement(&mut page, run, width, palette);
    let _ = writeln!(page);
    let most = SPIKES[usize::from(all)];
    heading(&mut page, &spikes_line(run, most), width, palette);
    for (at, spike) in worst(run, most).into_iter().enumerate() {
        let _ = writeln!(page);
        timeline(&mut page, at + 1, spike, run, all, width, palette);
    }
    if !run.spikes.is_empty() {
        culprits(&mut page, run, CULPRITS[usize::from(all)], width, palette);
    }
    page
}

/// The same without the recorder's account and the single spikes: the numbers, and who took the
/// time.
pub fn brief(run: &Run, columns: usize, color: bool) -> String {
    let (palette, width) = (Palette(color), columns.clamp(40, 200));
    let mut page = String::new();
    threads::render(&mut page, run, width, palette);
    page.push_str(&table::brief(run, width, color));
    wrapped(&mut page, &sentences::armed(run), width);
    let _ = writeln!(page);
    heading(&mut page, &sentences::found(run), width, palette);
    if !run.spikes.is_empty() {
        culprits(&mut page, run, CULPRITS[0], width, palette);
    }
    page
}

fn heading(page: &mut String, line: &str, width: usize, palette: Palette) {
    let mut text = String::new();
    wrapped(&mut text, line, width);
    page.push_str(&palette.paint(BOLD, text.trim_end()));
    page.push('\n');
}

fn spikes_line(run: &Run, most: usize) -> String {
    let found = sentences::found(run);
    if run.spikes.len() > most {
        format!("{found} The worst {most}, each from the time it should have run:")
    } else {
        found
    }
}

fn account(page: &mut String, run: &Run, width: usize, palette: Palette) {
    let Some(recorder) = &run.recorder else { return };
    let _ = writeln!(page, "\n{}", palette.paint(BOLD, "Flight recorder"));
    for (name, words) in sentences::account(recorder) {
        filled(page, &format!("  {name:<10} "), &words, 13, width);
    }
}

fn disagreement(page: &mut String, run: &Run, width: usize, palette: Palette) {
    let disagreeing = run.recorder.as_ref().map_or(0, |recorder| recorder.disagreeing);
    if disagreeing > 0 {
        let many = several(disagreeing, "spike", "spikes");
        let line = format!(
            "! In {many} the trace and the thread's clock do not agree: what is said of those is not to be relied on."
        );
        let mut text = String::new();
        wrapped(&mut text, &line, width);
        page.push_str(&palette.paint(RED, text.trim_end()));
        page.push('\n');
    }
}

/// One spike: a headline, and a bar for every part in order of time.
fn timeline(
    page: &mut String,
    number: usize,
    spike: &Spike,
    run: &Run,
    all: bool,
    width: usize,
    palette: Palette,
) {
    let when = sentences::when(spike, run);
    let mut rest = format!(" on CPU {}", spike.cpu);
    if !when.is_empty() {
        let _ = write!(rest, ", {when}");
    }
    if let Some(victim) = sentences::victim(spike) {
        let _ = write!(rest, ", {victim}");
    }
    let _ = write!(rest, ": {}", sentences::classes(spike));
    let first = format!("{number}. {}", threads::late(spike));
    filled(page, &(palette.paint(BOLD, &first) + " "), &rest, 3, width);
    let parts = parts(spike);
    let sums = sums(&parts);
    let large = parts.iter().filter(|part| all || share(part.ns, spike.latency_ns) >= LEAST).count();
    let (shown, others, length) = longest(parts, large.clamp(1, PARTS));
    let largest = shown.iter().map(|part| part.ns).max().unwrap_or_default();
    let bar = Bar { width: (width / 5).clamp(10, 40), latency: spike.latency_ns };
    for part in &shown {
        row(page, part, &bar, part.ns == largest, width, palette);
    }
    if others > 0 {
        let what = several(others as u64, "shorter part", "shorter parts");
        let _ = writeln!(page, "   and {what}, {} together", span(length));
        if all || large > PARTS {
            filled(page, "   in all: ", &in_all(&sums), 11, width);
        }
    }
    if !spike.unexplained_why.is_empty() {
        filled(page, "   unexplained: ", &clean(&spike.unexplained_why), 16, width);
    }
    if spike.events_lost > 0 {
        let lost = several(spike.events_lost, "event", "events");
        filled(page, "   ! ", &format!("{lost} of this CPU lost: slices may be missing"), 5, width);
    }
    for note in &spike.notes {
        filled(page, "   - ", &clean(note), 5, width);
    }
}

/// Of a spike in too many parts to look at: whose time it was, added up.
fn in_all(sums: &[(&str, String, Nanos, usize)]) -> String {
    let one = |(kind, whose, ns, count): &(&str, String, Nanos, usize)| {
        let whose = if whose.is_empty() { String::new() } else { format!(" {whose}") };
        format!("{}{whose} {} in {}", clean(kind), span(*ns), several(*count as u64, "part", "parts"))
    };
    sums.iter().take(SUMS).map(one).collect::<Vec<_>>().join("; ")
}

/// How a spike's parts are laid out in a row of cells.
struct Bar {
    width: usize,
    latency: Nanos,
}

impl Bar {
    /// The cells of a part: those before it, itself, those after it.
    fn cells(&self, part: &SpikePart) -> [String; 3] {
        let at =
            |ns: i64| (share(Nanos(ns), self.latency).clamp(0.0, 1.0) * self.width as f64).round() as usize;
        let length = at(part.ns.0);
        let from = at(part.start.0).min(self.width - length.max(1));
        let itself = match (length, part.slice) {
            (0, _) => "\u{258c}".to_owned(),
            (n, Some(_)) => "\u{2588}".repeat(n),
            (n, None) => "\u{2591}".repeat(n),
        };
        let after = self.width - from - itself.chars().count();
        [" ".repeat(from), itself, " ".repeat(after)]
    }
}

fn row(page: &mut String, part: &SpikePart, bar: &Bar, largest: bool, width: usize, palette: Palette) {
    let [before, itself, after] = bar.cells(part);
    let start = format!("+{}", us(part.start));
    let numbers = format!("{:>9} us {:>5}  ", us(part.ns), sentences::percent(share(part.ns, bar.latency)));
    let kind = clean(part.kind());
    let small = share(part.ns, bar.latency) < SMALL;
    let words = match part.slice {
        None => kinds::of(kinds::UNEXPLAINED).words.to_owned(),
        Some(slice) if small && !sentences::who(&slice.who).is_empty() => sentences::who(&slice.who),
        Some(slice) => sentences::slice(slice) + &sentences::stack(slice),
    };
    let style = match part.slice {
        None => YELLOW,
        Some(_) if largest => RED,
        Some(_) => PLAIN,
    };
    let (plain, painted) = match width {
        0..NARROW => (format!("  {numbers}"), format!("  {numbers}")),
        _ => (
            format!("{start:>10}  {before}{itself}{after}  {numbers}"),
            format!("{start:>10}  {before}{}{after}  {numbers}", palette.paint(style, &itself)),
        ),
    };
    if width >= BESIDE {
        let named = format!("{kind:<15}");
        let hang = plain.chars().count() + named.chars().count() + 1;
        filled(page, &format!("{painted}{} ", palette.paint(style, &named)), &words, hang, width);
        return;
    }
    let line = format!("{painted}{}", palette.paint(style, &kind));
    let room = width.saturating_sub(plain.chars().count() + kind.chars().count() + 2);
    if words.is_empty() || part.slice.is_none() {
        let _ = writeln!(page, "{line}");
    } else if words.chars().count() <= room {
        let _ = writeln!(page, "{line}  {}", palette.paint(DIM, &words));
    } else {
        let mut text = String::new();
        filled(&mut text, &" ".repeat(12), &words, 12, width);
        let _ = writeln!(page, "{line}\n{}", palette.paint(DIM, text.trim_end_matches('\n')));
    }
}

fn culprits(page: &mut String, run: &Run, most: usize, width: usize, palette: Palette) {
    let whole = span(total(run));
    let line = format!("Who took the time: {} late by {whole} in all", sentences::summed(run));
    let _ = writeln!(page);
    heading(page, &line, width, palette);
    if let Some(line) = sentences::left_out(run) {
        wrapped(page, &line, width);
    }
    for at in 0..run.culprits.len().min(most) {
        one_culprit(page, &run.culprits, at, width, palette);
    }
    if run.culprits.len() > most {
        let _ = writeln!(page, "and {} more", run.culprits.len() - most);
    }
    let rest = unexplained(run);
    if rest.0 > 0 {
        let of = sentences::percent(share(rest, total(run)));
        let line = format!(
            "For {} of it ({of}) the kernel shows no event; a culprit that is marked (unexplained) is \
             part of that.",
            span(rest)
        );
        wrapped(page, &line, width);
    }
}

fn one_culprit(page: &mut String, culprits: &[Culprit], at: usize, width: usize, palette: Palette) {
    let (number, culprit) = (at + 1, &culprits[at]);
    let cells = (width / 8).clamp(8, 20);
    let full = (culprit.share.clamp(0.0, 1.0) * cells as f64).round() as usize;
    let bar = if full > 0 { "\u{2588}".repeat(full) } else { "\u{258c}".into() };
    let empty = " ".repeat(cells.saturating_sub(bar.chars().count()));
    let unexplained = culprit.kind == SliceKind::Unexplained;
    let painted = palette.paint(if unexplained { YELLOW } else { RED }, &bar);
    let (share, length) = (sentences::percent(culprit.share), span(culprit.total_ns));
    let first = format!("{number:>2}. {share:>5} {painted}{empty} {length:>8} ");
    let (name, kind) = (clean(&culprit.name), clean(culprit.kind.as_str()));
    let kind = if kind == name { String::new() } else { format!(" ({kind})") };
    let rest = format!("{name}{kind}, in {}", several(culprit.spikes, "spike", "spikes"));
    filled(page, &first, &rest, 11, width);
    let mut say = |what: &str, words: String| {
        if !words.is_empty() {
            filled(page, &format!("           {what}"), &words, 13, width);
        }
    };
    say("seen: ", culprit.evidence.iter().map(|words| clean(words)).collect::<Vec<_>>().join("; "));
    // A culprit that is called by its one function needs no list of it.
    if !matches!(culprit.functions.as_slice(), [one] if culprit.name.contains(one.as_str())) {
        say("in: ", sentences::functions(culprit));
    }
    match sentences::cure(culprits, at) {
        sentences::Cure::As(above) => say("cure: ", format!("as for {}.", above + 1)),
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
