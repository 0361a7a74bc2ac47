//! Table of a run for the terminal: conditions, a row per CPU, integrity entries, the cost.
//!
//! Latencies are always in microseconds, the usual unit of the field.

use std::fmt::Write;

use super::{conditions, probes, sentences, verdicts};
use crate::palette::{BOLD, DIM, PLAIN, Palette, RED, Style};
use crate::totals::{largest, sum_rows};
use crate::words;
use crate::words::{MachineClock, or_dash, us, us_or_dash};
use model::histogram::quantile;
use model::run::{CpuRun, Run};
use model::sort::CompactSort;
use model::units::Nanos;
use model::vocabulary::Probe;

/// Columns, each with its priority: on a narrow terminal those of the lowest priority are dropped
/// first.
const COLUMNS: [(&str, u8); 11] = [
    ("CPU", 99),
    ("cycles", 98),
    ("missed", 97),
    ("min", 5),
    ("mean", 2),
    ("p50", 1),
    ("p99", 3),
    ("p99.9", 4),
    ("p99.99", 7),
    ("max", 99),
    ("when", 6),
];

/// Limit of CPUs with a row each, unless all are asked for.
const MANY: usize = 32;
/// Number of CPUs with a row beyond that limit.
const LATEST: usize = 16;

/// Content below the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    Invalid,
    Remarks,
    RemarksAndCost,
}

/// Run as text of up to this number of columns, as far as possible, with ANSI colours if `color` is
/// set; with every condition and the cost of measuring.
pub fn render(run: &Run, width: usize, color: bool) -> String {
    written(run, headline(run), Below::RemarksAndCost, width, color)
}

/// Text with the conditions in a sentence, and without the cost.
pub fn summary(run: &Run, width: usize, color: bool) -> String {
    written(run, vec![conditions::in_short(run), unit(run)], Below::Remarks, width, color)
}

/// Numbers only: their conditions in one line, and the reasons that invalidate the run.
pub fn brief(run: &Run, width: usize, color: bool) -> String {
    let mut lines = headline(run);
    lines.drain(1..lines.len() - 1);
    written(run, lines, Below::Invalid, width, color)
}

fn written(run: &Run, headline: Vec<String>, remarks: Below, width: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut text = String::new();
    if let Some(sentence) = sentences::incomplete(run) {
        wrap(&mut text, &format!("! {sentence}"), width, palette, RED);
    }
    if let Some(sentence) = probes::seen_under(run) {
        wrap(&mut text, &sentence, width, palette, BOLD);
    }
    for line in headline {
        wrap(&mut text, &line, width, palette, DIM);
    }
    if !run.cpus.is_empty() {
        text.push('\n');
        let listed = if remarks == Below::Remarks { listed(run) } else { run.cpus.iter().collect() };
        rows(run, &listed, width, palette, &mut text);
        if listed.len() < run.cpus.len() {
            let line =
                format!("the {} CPUs with the largest maxima; -v lists all {}", listed.len(), run.cpus.len());
            wrap(&mut text, &line, width, palette, DIM);
        }
    }
    let below = match remarks {
        Below::Invalid => invalid(run, width, palette),
        Below::Remarks => below(run, false, width, palette),
        Below::RemarksAndCost => below(run, true, width, palette),
    };
    if !below.is_empty() {
        text.push('\n');
        text.push_str(&below);
    }
    text
}

/// Reasons that invalidate the run, and nothing else.
fn invalid(run: &Run, width: usize, palette: Palette) -> String {
    let mut below = String::new();
    for entry in run.integrity.iter().filter(|entry| entry.invalidates) {
        wrap(&mut below, &format!("! {}", sentences::integrity(entry)), width, palette, RED);
    }
    below
}

/// Integrity entries, and the cost of measuring.
fn below(run: &Run, cost: bool, width: usize, palette: Palette) -> String {
    let mut below = String::new();
    for line in probes::gaps(run).into_iter().chain(verdicts::lines(run)) {
        wrap(&mut below, &line, width, palette, PLAIN);
    }
    for entry in &run.integrity {
        let (mark, style) = if entry.invalidates { ("!", RED) } else { ("-", PLAIN) };
        wrap(&mut below, &format!("{mark} {}", sentences::integrity(entry)), width, palette, style);
    }
    for note in sentences::oddities(run) {
        wrap(&mut below, &format!("- {note}"), width, palette, PLAIN);
    }
    let rows = if cost { conditions::overhead(run) } else { Vec::new() };
    let cost: Vec<String> = rows.into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    if !cost.is_empty() {
        wrap(&mut below, &format!("overhead: {}", cost.join("; ")), width, palette, DIM);
    }
    below
}

/// Conditions in few lines; the names of unknown ones at the end.
fn headline(run: &Run) -> Vec<String> {
    const LINES: [&[&str]; 7] = [
        &["probe", "measured by"],
        &["kernel", "preemption", "policy", "interval"],
        &["timer expires in"],
        &["woken by", "phase"],
        &["idle", "clocksource"],
        &["virtual machine", "housekeeping", "length"],
        &["load"],
    ];
    let (known, unknown) = conditions::known_conditions(run);
    let part = |name: &&str| {
        let (_, value) = known.iter().find(|(known, _)| known == name)?;
        // These values are self-explanatory.
        let plain = matches!(*name, "probe" | "kernel" | "preemption" | "policy");
        Some(if plain { value.clone() } else { format!("{name}: {value}") })
    };
    let line = |names: &&[&str]| names.iter().filter_map(part).collect::<Vec<_>>().join("; ");
    let mut lines: Vec<String> = LINES.iter().map(line).filter(|line| !line.is_empty()).collect();
    if !unknown.is_empty() {
        lines.push(format!("not known: {}", unknown.join(", ")));
    }
    lines.push(unit(run));
    lines
}

/// Unit of the rows.
fn unit(run: &Run) -> String {
    if matches!(run.probe(), Some(Probe::Spin | Probe::Hw)) { "gaps in us" } else { "latencies in us" }.into()
}

/// CPUs with a row by default: all, or the latest of very many.
fn listed(run: &Run) -> Vec<&CpuRun> {
    let mut cpus: Vec<&CpuRun> = run.cpus.iter().collect();
    if cpus.len() > MANY {
        cpus.compact_sort_by_key(|cpu| (std::cmp::Reverse(cpu.max_ns), cpu.cpu));
        cpus.truncate(LATEST);
        cpus.compact_sort_by_key(|cpu| cpu.cpu);
    }
    cpus
}

fn rows(run: &Run, listed: &[&CpuRun], width: usize, palette: Palette, text: &mut String) {
    let mut types: Vec<&str> = Vec::new();
    for cpu in listed {
        if !types.contains(&cpu.core_type.as_str()) {
            types.push(&cpu.core_type);
        }
    }
    // The head, then for each core type its name and its CPUs, then the sum.
    let mut lines: Vec<Line> = vec![Line::Cells(Box::new(heads(run)))];
    for core_type in &types {
        if types.len() > 1 {
            let name = if core_type.is_empty() { "other" } else { core_type };
            lines.push(Line::Heading(format!("{} cores", words::clean(name))));
        }
        let cpus = listed.iter().filter(|cpu| cpu.core_type == **core_type);
        lines.extend(cpus.map(|cpu| Line::Cells(Box::new(cells(cpu, &MachineClock::of(run))))));
    }
    if run.cpus.len() > 1 {
        lines.push(Line::Cells(Box::new(sum(run))));
    }
    let (columns, widths) = fitting(&lines, width);
    for (i, line) in lines.iter().enumerate() {
        let style = if i == 0 { BOLD } else { PLAIN };
        let _ = match line {
            Line::Heading(name) => writeln!(text, "{}", palette.paint(BOLD, name)),
            Line::Cells(cells) => {
                let cells: Vec<String> =
                    columns.iter().map(|&c| format!("{:>width$}", cells[c], width = widths[c])).collect();
                writeln!(text, "{}", palette.paint(style, cells.join("  ").trim_end()))
            }
        };
    }
}

/// Heads of the columns of the run.
pub fn heads(run: &Run) -> [String; COLUMNS.len()] {
    let mut heads = COLUMNS.map(|column| column.0.to_string());
    let (samples, beside) = probes::heads(run);
    // For a followed thread a cycle differs: not every wake-up begins or ends one.
    let samples = if run.follows() { "wake-ups" } else { samples };
    (heads[1], heads[2]) = (samples.to_owned(), beside.to_owned());
    heads[COLUMNS.len() - 1] = format!("when ({})", MachineClock::of(run).zone());
    heads
}

enum Line {
    Heading(String),
    Cells(Box<[String; COLUMNS.len()]>),
}

/// Columns that fit, without those of the lowest priority if not all do, and the width of each.
fn fitting(lines: &[Line], available: usize) -> (Vec<usize>, [usize; COLUMNS.len()]) {
    let mut widths = [0; COLUMNS.len()];
    for line in lines {
        if let Line::Cells(cells) = line {
            for (width, cell) in widths.iter_mut().zip(cells.iter()) {
                *width = (*width).max(cell.chars().count());
            }
        }
    }
    let mut columns: Vec<usize> = (0..COLUMNS.len()).collect();
    let needed = |columns: &[usize]| columns.iter().map(|&c| widths[c] + 2).sum::<usize>().saturating_sub(2);
    while needed(&columns) > available && columns.len() > 4 {
        let lowest = columns.iter().enumerate().min_by_key(|&(_, &c)| COLUMNS[c].1).map_or(0, |(at, _)| at);
        columns.remove(lowest);
    }
    (columns, widths)
}

fn cells(cpu: &CpuRun, clock: &MachineClock) -> [String; COLUMNS.len()] {
    let worst = cpu.worst.first().filter(|worst| worst.latency_ns == cpu.max_ns);
    [
        cpu.label(),
        or_dash(cpu.cycles),
        or_dash(probes::beside(cpu)),
        us_or_dash(cpu.min_ns),
        us_or_dash(cpu.mean_ns),
        us_or_dash(cpu.p50_ns),
        us_or_dash(cpu.p99_ns),
        us_or_dash(cpu.p999_ns),
        us_or_dash(cpu.p9999_ns),
        us_or_dash(cpu.max_ns),
        worst.map_or_else(String::new, |worst| clock.time_of_day(&worst.time)),
    ]
}

/// Row of all CPUs; the quantiles are of all samples together.
pub fn sum(run: &Run) -> [String; COLUMNS.len()] {
    let rows = sum_rows(run.primary().map(|cpu| cpu.histogram.as_slice()));
    // The counts of a damaged file may overflow.
    let total = rows.iter().try_fold(0u64, |sum, row| sum.checked_add(row.count));
    let whole = total.is_some_and(|n| n > 0) && run.primary().all(|cpu| cpu.overflows.unwrap_or(0) == 0);
    let worst = run.primary().max_by_key(|cpu| cpu.max_ns);
    let max = largest(run);
    let at = |per_million| us_or_dash(if whole { quantile(&rows, max, per_million) } else { None });
    let missed = run.primary().try_fold(0u64, |sum, cpu| Some(sum.saturating_add(cpu.missed?)));
    [
        "all".into(),
        or_dash(run.samples()),
        or_dash(missed),
        us_or_dash(run.primary().filter_map(|cpu| cpu.min_ns).min()),
        mean(run).map_or_else(|| words::UNKNOWN.into(), us),
        at(500_000),
        at(990_000),
        at(999_000),
        at(999_900),
        us_or_dash(max),
        worst
            .filter(|_| max.is_some())
            .map_or_else(String::new, |cpu| cells(cpu, &MachineClock::of(run))[COLUMNS.len() - 1].clone()),
    ]
}

/// Mean of all samples, if every CPU's is known.
fn mean(run: &Run) -> Option<Nanos> {
    let (mut sum, mut n) = (0i128, 0i128);
    for cpu in run.primary().filter(|cpu| cpu.cycles != Some(0)) {
        let cycles = i128::from(cpu.cycles?);
        sum += i128::from(cpu.mean_ns?.0) * cycles;
        n += cycles;
    }
    (n > 0).then(|| Nanos((sum / n) as i64))
}

/// Breaks a line at blanks; further lines are indented.
fn wrap(text: &mut String, line: &str, width: usize, palette: Palette, style: Style) {
    let mut lines = String::new();
    words::wrapped(&mut lines, line, width.max(20));
    text.push_str(&palette.paint(style, lines.trim_end()));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use model::units::Cpu;

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn eighty_columns_hold_every_cpu_and_the_worst() {
        for sample in fixture::all() {
            let text = render(&sample.run, 80, false);
            if sample.title != "huge" && sample.title != fixture::hostile().title {
                assert!(widest(&text) <= 80, "{}:\n{text}", sample.title);
            }
            for cpu in &sample.run.cpus {
                assert!(text.contains(&us_or_dash(cpu.max_ns)), "{}:\n{text}", sample.title);
            }
        }
    }

    #[test]
    fn of_very_many_cpus_the_latest_are_listed_unless_all_is_asked_for() {
        let mut run = fixture::quiet().run;
        let one = run.cpus[0].clone();
        let many = |cpu: u32| CpuRun {
            cpu: Some(Cpu(cpu)),
            max_ns: Some(Nanos(1_000 + i64::from(cpu))),
            ..one.clone()
        };
        run.cpus = (0..MANY as u32).map(many).collect();
        let all = summary(&run, 120, false);
        assert!(all.contains("\n  0 ") && !all.contains("-v lists all"), "{all}");
        run.cpus.push(many(MANY as u32));
        let few = summary(&run, 120, false);
        assert!(!few.contains("\n  0 ") && few.contains("\n 32 ") && few.contains("\nall "), "{few}");
        assert!(few.contains("the 16 CPUs with the largest maxima; -v lists all 33"), "{few}");
        assert!(render(&run, 120, false).contains("\n  0 ") && brief(&run, 120, false).contains("\n  0 "));
    }

    #[test]
    fn a_wide_terminal_has_every_column() {
        let text = render(&fixture::quiet().run, 200, false);
        for (name, _) in COLUMNS {
            assert!(text.contains(name), "{name}\n{text}");
        }
        assert!(text.contains("timer expires in: hard interrupt"), "{text}");
    }

    #[test]
    fn a_sum_of_several_cpus_and_none_of_one() {
        assert!(render(&fixture::quiet().run, 100, false).contains("all  120000"));
        assert!(!render(&fixture::one().run, 100, false).contains("\nall"));
    }

    #[test]
    fn what_invalidates_is_marked_and_the_expiry_is_in_words() {
        let text = render(&fixture::noisy().run, 300, false);
        assert!(text.contains("! steal on CPU 1: the hypervisor took 1.21 s in 120 s"), "{text}");
        assert!(text.contains("- privilege: "), "{text}");
        assert!(text.starts_with("! INCOMPLETE"), "{text}");
        assert!(text.contains("a busy thread of higher priority delays it"), "{text}");
    }

    #[test]
    fn core_types_are_groups() {
        let text = render(&fixture::eight().run, 80, false);
        let at = |what: &str| text.find(what).unwrap();
        assert!(at("performance cores") < at("efficiency cores"));
    }

    #[test]
    fn external_text_cannot_control_the_terminal() {
        let run = fixture::hostile().run;
        assert!(render(&run, 80, false).chars().all(|c| c == '\n' || !c.is_control()));
        let colours = render(&run, 80, true);
        assert!(!colours.contains("\u{1b}[2J"));
    }
}
