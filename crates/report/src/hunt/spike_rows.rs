//! One spike for the terminal: a headline, and a row for each owner of its time.

use std::fmt::Write;

use super::parts::{MergedParts, PARTS, SpikePart, merged, parts, share};
use super::{kinds, overrun, sentences, threads};
use crate::palette::{BOLD, DIM, PLAIN, Palette, RED, YELLOW};
use crate::words::{clean, filled, several, span, us};
use model::run::{Run, Spike};
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::Nanos;

/// Parts below this share of a spike are summed, unless all are asked for.
const LEAST: f64 = 0.01;
/// Least width with the culprit to the right of the bar, else it is below.
const BESIDE: usize = 120;
/// Least width with bar and start in a row.
const NARROW: usize = 60;
/// Columns of a row before its bar, and between bar and kind.
const AROUND_BAR: usize = 34;
/// Length of the shortest bar.
const LEAST_BAR: usize = 6;
/// Share of a spike below which an owner is named without evidence.
const SMALL: f64 = 0.05;
/// Limit of owners that are named for the summed parts.
const NAMED: usize = 3;

/// Renders the spike of that number, in order of time.
pub fn render(
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
    let mut rows = merged(&parts(spike));
    let large = rows.iter().filter(|row| all || share(row.ns, spike.latency_ns) >= LEAST).count();
    let others = rows.split_off(large.clamp(1, PARTS).min(rows.len()));
    let largest = rows.first().map_or(Nanos(0), |row| row.ns);
    rows.compact_sort_by_key(|row| row.parts.first().map(|part| part.start));
    let kinds = rows.iter().filter_map(|row| row.parts.first()).map(|part| part.kind().chars().count());
    let room = width.saturating_sub(AROUND_BAR + kinds.max().unwrap_or(0));
    let bar = Bar { width: (width / 5).clamp(10, 40).min(room).max(LEAST_BAR), latency: spike.latency_ns };
    for row in &rows {
        one(page, row, &bar, row.ns == largest, width, palette);
    }
    let shorter = shorter(&others);
    if !shorter.is_empty() {
        filled(page, "   ", &shorter, 5, width);
    }
    if let Some(words) = overrun::sentence(spike, run) {
        filled(page, "   overrun: ", &words, 12, width);
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

/// Summary of the parts without a row, with the largest owners; empty if all have one.
fn shorter(others: &[MergedParts]) -> String {
    let count: usize = others.iter().map(|row| row.parts.len()).sum();
    if count == 0 {
        return String::new();
    }
    let length = Nanos(others.iter().fold(0i64, |sum, row| sum.saturating_add(row.ns.0)));
    let what = several(count as u64, "shorter part", "shorter parts");
    let one = |row: &MergedParts| {
        let kind = clean(row.parts.first().map_or(kinds::UNEXPLAINED, SpikePart::kind));
        let whose = if row.whose.is_empty() { String::new() } else { format!(" {}", row.whose) };
        let times = if row.parts.len() > 1 { format!(" in {}", row.parts.len()) } else { String::new() };
        format!("{kind}{whose} {}{times}", span(row.ns))
    };
    let named: Vec<String> = others.iter().take(NAMED).map(one).collect();
    format!("and {what}, {} together: {}", span(length), named.join("; "))
}

/// Layout of a spike's parts in a row of cells.
struct Bar {
    width: usize,
    latency: Nanos,
}

impl Bar {
    /// Place of a part: its first cell and its number of cells, 0 if it is too short for one.
    fn place(&self, part: &SpikePart) -> (usize, usize) {
        let at =
            |ns: i64| (share(Nanos(ns), self.latency).clamp(0.0, 1.0) * self.width as f64).round() as usize;
        let length = at(part.ns.0);
        (at(part.start.0).min(self.width - length.max(1)), length)
    }

    /// Cells of a row, one for each step of time; blank if the owner did not have it.
    fn cells(&self, row: &MergedParts) -> String {
        let mut cells = vec![' '; self.width];
        for part in &row.parts {
            let (from, length) = self.place(part);
            let (full, sign) = match part.slice {
                _ if length == 0 => (1, '\u{258c}'),
                Some(_) => (length, '\u{2588}'),
                None => (length, '\u{2591}'),
            };
            let free = cells.iter_mut().skip(from).take(full);
            free.filter(|cell| length > 0 || **cell == ' ').for_each(|cell| *cell = sign);
        }
        cells.into_iter().collect()
    }
}

fn one(page: &mut String, row: &MergedParts, bar: &Bar, largest: bool, width: usize, palette: Palette) {
    let (Some(first), Some(longest)) = (row.parts.first(), row.longest()) else { return };
    let start = format!("+{}", us(first.start));
    let part_share = share(row.ns, bar.latency);
    let numbers = format!("{:>9} us {:>5}  ", us(row.ns), sentences::percent(part_share));
    let kind = clean(first.kind());
    let times = if row.parts.len() > 1 { format!("in {} parts", row.parts.len()) } else { String::new() };
    let words = match longest.slice {
        None => kinds::of(kinds::UNEXPLAINED).words.to_owned(),
        Some(slice) if part_share < SMALL && !row.whose.is_empty() => sentences::who(&slice.who),
        Some(slice) => sentences::slice(slice) + &sentences::stack(slice),
    };
    let words = [times, words].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ");
    let style = match first.slice {
        None => YELLOW,
        Some(slice) if slice.kind == SliceKind::Stopped => DIM,
        Some(_) if largest => RED,
        Some(_) => PLAIN,
    };
    let cells = bar.cells(row);
    let (plain, painted) = match width {
        0..NARROW => (format!("  {numbers}"), format!("  {numbers}")),
        _ => (
            format!("{start:>10}  {cells}  {numbers}"),
            format!("{start:>10}  {}  {numbers}", palette.paint(style, &cells)),
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
    if words.is_empty() || (first.slice.is_none() && row.parts.len() == 1) {
        let _ = writeln!(page, "{line}");
    } else if words.chars().count() <= room {
        let _ = writeln!(page, "{line}  {}", palette.paint(DIM, &words));
    } else {
        let mut text = String::new();
        filled(&mut text, &" ".repeat(12), &words, 12, width);
        let _ = writeln!(page, "{line}\n{}", palette.paint(DIM, text.trim_end_matches('\n')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{Slice, Who};

    fn spike() -> Spike {
        let slice = |at: i64, ns: i64, comm: &str| Slice {
            kind: "thread".into(),
            start_ns: Nanos(at),
            ns: Nanos(ns),
            who: Who { comm: comm.into(), pid: 9, prio: 9, ..Who::default() },
            ..Slice::default()
        };
        let mut slices: Vec<Slice> = (0..10).map(|n| slice(n * 100_000, 90_000, "hog")).collect();
        slices.extend((0..10).map(|n| slice(n * 100_000 + 90_000, 400, "small")));
        slices.extend((0..9).map(|n| slice(n * 100_000 + 91_000, 1_000 - n, "many")));
        Spike { latency_ns: Nanos(1_000_000), slices, ..Spike::default() }
    }

    #[test]
    fn an_owner_has_one_row_and_what_is_added_up_has_names() {
        let mut text = String::new();
        render(&mut text, 68, &spike(), &Run::default(), false, 160, Palette(false));
        assert!(text.starts_with("68. 1 ms late on CPU 0"), "{text}");
        assert_eq!(text.matches("hog:9").count(), 1, "{text}");
        assert!(text.contains("900.0 us  90 %") && text.contains("in 10 parts, hog:9"), "{text}");
        assert!(text.contains("and 19 shorter parts, 13.0 us together: thread many:9"), "{text}");
        let mut whole = String::new();
        render(&mut whole, 68, &spike(), &Run::default(), true, 160, Palette(false));
        assert!(!whole.contains("shorter") && whole.contains("unexplained"), "{whole}");
    }
}
