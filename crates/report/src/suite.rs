//! Table of a suite: the results of its phases, and the worst of each model under each load.

use std::fmt::Write;

mod next_step;
pub mod page;
mod stops;

use crate::aligned::write_rows;
use crate::last_lines::{LastLines, RunPlace};
use crate::palette::{BOLD, DIM, Palette, RED};
use crate::run::answer::NOT_RECORDED;
use crate::words::{clean, filled, several, us, us_or_dash, wrapped};
use model::suite::{SuitePhase, SuiteRun};
use model::units::Nanos;
use next_step::next_commands;

/// Suite as text.
pub fn render(suite: &SuiteRun, columns: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    wrapped(&mut page, &headline(suite), columns);
    for kernel in distinct(suite.phases.iter().map(|phase| phase.kernel.as_str())) {
        let of_kernel = suite.phases.iter().filter(|phase| phase.kernel == kernel);
        let (spun, woken): (Vec<&SuitePhase>, Vec<&SuitePhase>) = of_kernel.partition(|phase| is_spun(phase));
        if !woken.is_empty() {
            let title = format!("kernel {}; latencies in us", or_unknown(kernel));
            let _ = writeln!(page, "\n{}", palette.paint(DIM, &title));
            rows(&mut page, &woken, palette);
        }
        if !spun.is_empty() {
            let title = stops::title(&or_unknown(kernel), &spun);
            page.push('\n');
            wrapped(&mut page, &palette.paint(DIM, &title), columns);
            stops::rows(&mut page, &spun, palette);
        }
    }
    matrix(&mut page, suite, palette);
    page.push('\n');
    for phase in suite.phases.iter().filter(|phase| !phase.valid) {
        let line = format!("! {}: {}", clean(&phase.id), clean(&phase.why));
        wrapped(&mut page, &palette.paint(RED, &line), columns);
    }
    for left in &suite.left_out {
        wrapped(&mut page, &format!("- {}: {}", clean(&left.id), clean(&left.why)), columns);
    }
    for line in remarks(suite) {
        wrapped(&mut page, &line, columns);
    }
    page
}

fn headline(suite: &SuiteRun) -> String {
    let short = if suite.shortened { ", shortened" } else { "" };
    let cut = if suite.complete { "" } else { ", not complete" };
    format!("{}: {}{short}{cut}; seed {}", clean(&suite.name), clean(&suite.title), suite.seed)
}

fn or_unknown(text: &str) -> String {
    if text.is_empty() { "not known".into() } else { clean(text) }
}

/// Distinct words, in the order of their first occurrence.
fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for word in words {
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

fn rows(page: &mut String, phases: &[&SuitePhase], palette: Palette) {
    let mut cells = vec![HEAD.map(str::to_owned)];
    cells.extend(phases.iter().map(|phase| cells_of(phase)));
    write_rows(page, &cells, palette);
}

const HEAD: [&str; 6] = ["phase", "samples", "p50", "p99", "p99.99", "max"];

/// Row of wake-ups; holes if they may not be compared.
fn cells_of(phase: &SuitePhase) -> [String; 6] {
    if phase.valid {
        [
            clean(&phase.id),
            phase.samples.to_string(),
            us_or_dash(phase.p50_ns),
            us_or_dash(phase.p99_ns),
            us_or_dash(phase.p9999_ns),
            us_or_dash(phase.max_ns),
        ]
    } else {
        let [samples, a, b, c, d] = [None; 5].map(us_or_dash);
        [clean(&phase.id), samples, a, b, c, d]
    }
}

/// True if a thread that never sleeps was measured, or was to be.
fn is_spun(phase: &SuitePhase) -> bool {
    phase.measure == "spin"
}

/// Part of an id before the `/`: the model or the boot; and the phase, of which a mirrored order
/// has two (`cpu.2`).
fn names(phase: &SuitePhase) -> (&str, &str) {
    let (row, name) = phase.id.split_once('/').unwrap_or((&phase.model, &phase.id));
    (row, name.strip_suffix(".2").unwrap_or(name))
}

/// Worst of each model under each load, as in tables 3.2 and 3.3, followed by the quantile of 99.99
/// %; only for more than one model.
fn matrix(page: &mut String, suite: &SuiteRun, palette: Palette) {
    let cells = matrix_cells(suite);
    if !cells.is_empty() {
        page.push('\n');
        write_rows(page, &cells, palette);
    }
}

/// Head and rows of that table.
fn matrix_cells(suite: &SuiteRun) -> Vec<Vec<String>> {
    let woken: Vec<&SuitePhase> = suite.phases.iter().filter(|phase| !is_spun(phase)).collect();
    let loads = distinct(woken.iter().map(|phase| names(phase).1));
    let models = distinct(woken.iter().map(|phase| names(phase).0));
    let kernels = distinct(woken.iter().map(|phase| phase.kernel.as_str()));
    let missing = suite.left_out.iter().filter(|left| !left.id.contains('/'));
    let missing: Vec<&str> = missing.map(|left| left.id.as_str()).filter(|_| !woken.is_empty()).collect();
    if models.len() * kernels.len() + missing.len() < 2 {
        return Vec::new();
    }
    let mut cells: Vec<Vec<String>> = vec![vec!["worst (p99.99)".into()]];
    cells[0].extend(loads.iter().map(|load| clean(load)));
    for kernel in &kernels {
        for model in &models {
            let of = |load: &str| -> Vec<&SuitePhase> {
                let is_it = |phase: &&SuitePhase| phase.kernel == *kernel && names(phase) == (*model, load);
                woken.iter().copied().filter(is_it).collect()
            };
            if loads.iter().all(|load| of(load).is_empty()) {
                continue;
            }
            let title = if kernels.len() > 1 { format!("{model}, {kernel}") } else { (*model).to_owned() };
            let mut row = vec![clean(&title)];
            row.extend(loads.iter().map(|load| worst(&of(load))));
            cells.push(row);
        }
    }
    for row in missing {
        let holes = loads.iter().map(|_| us_or_dash(None));
        cells.push(std::iter::once(clean(row)).chain(holes).collect());
    }
    cells
}

/// Worst of the phases of one name: two in a mirrored order, both of which have to be valid.
fn worst(phases: &[&SuitePhase]) -> String {
    let max = phases.iter().filter_map(|phase| phase.max_ns).max();
    let tail = phases.iter().filter_map(|phase| phase.p9999_ns).max();
    match max.filter(|_| phases.iter().all(|phase| phase.valid && phase.max_ns.is_some())) {
        Some(max) => format!("{} ({})", us(max), us_or_dash(tail)),
        None => us_or_dash(None),
    }
}

fn remarks(suite: &SuiteRun) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(drift) = suite.drift {
        lines.push(format!(
            "drift, the last phase without a load against the first: p50 {}, max {} us",
            difference(drift.p50_ns),
            difference(drift.max_ns)
        ));
    }
    let woken = suite.phases.iter().filter(|phase| phase.valid && !is_spun(phase));
    let worst = woken.filter_map(|phase| phase.max_ns).max();
    if let (Some(limit), Some(worst)) = (suite.limit_ns, worst) {
        let result = if worst <= limit { "was not exceeded" } else { "was exceeded" };
        lines.push(format!("the recipe's limit of {} us {result}", us(limit)));
    }
    lines
}

fn difference(ns: Nanos) -> String {
    if ns.0 < 0 { format!("-{}", us(Nanos(ns.0.saturating_neg()))) } else { format!("+{}", us(ns)) }
}

/// Answer as the last lines on a terminal: the lateness, the next commands, the path of the suite.
pub fn last_lines(suite: &SuiteRun, folder: &str, fresh: bool, columns: usize, color: bool) -> String {
    let mut next: Vec<String> = next_commands(suite, folder)
        .iter()
        .map(|command| format!("{} ({})", command.line, command.brief))
        .collect();
    next.push(format!("onbeat report {folder} -o page.html (pictures)"));
    let mut answer = LastLines::default();
    let who = match stops::stopped_by(suite.phases.iter()) {
        none if none.is_empty() && suite.phases.iter().any(|phase| phase.valid) => NOT_RECORDED.to_owned(),
        stopper => stopper,
    };
    answer.styled("late", page::verdict(suite), BOLD).row("who", who);
    answer.row("fair", fair(suite)).row("next", next.join("; "));
    answer.location(Some(RunPlace { path: folder, newest: false, fresh, program: "onbeat" }));
    answer.render(columns, Palette(color))
}

/// Reliability of the suite, with the numbers of invalid and missing phases.
fn fair(suite: &SuiteRun) -> String {
    let all = suite.phases.len();
    let invalid = suite.phases.iter().filter(|phase| !phase.valid).count();
    let rest = if suite.complete { "" } else { "; the suite is not complete" };
    let left = match suite.left_out.len() as u64 {
        0 => String::new(),
        n => format!("; {} missing", several(n, "phase is", "phases are")),
    };
    match (all, invalid) {
        (0, _) => format!("not known: nothing was measured{rest}{left}"),
        (_, 0) => format!("yes: all phases are valid{rest}{left}"),
        (all, invalid) => {
            format!("in part: {invalid} of {all} phases invalid{rest}{left}")
        }
    }
}

/// Line for each recipe: its name, duration and purpose.
pub fn list(recipes: &[(String, String)], columns: usize) -> String {
    let width = recipes.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut page = String::new();
    for (name, title) in recipes {
        filled(&mut page, &format!("  {name:<width$}  "), title, width + 4, columns);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::suite::{SuiteDrift, SuiteLeftOut};

    fn phase(id: &str, kernel: &str, max: i64) -> SuitePhase {
        SuitePhase {
            id: id.into(),
            model: id.split('/').next().unwrap().into(),
            kernel: kernel.into(),
            valid: max > 0,
            why: if max > 0 { String::new() } else { "hdd did not\u{1b} load".into() },
            samples: 1000,
            p50_ns: Some(Nanos(3_000)),
            p9999_ns: Some(Nanos(max / 2)),
            max_ns: Some(Nanos(max)),
            ..SuitePhase::default()
        }
    }

    #[test]
    fn models_and_loads_are_the_table_of_the_guide() {
        let suite = SuiteRun {
            name: "enea".into(),
            title: "models".into(),
            complete: true,
            limit_ns: Some(Nanos(125_000)),
            drift: Some(SuiteDrift { p50_ns: Nanos(-1_000), max_ns: Nanos(2_000) }),
            phases: vec![
                phase("none/cpu", "6.12", 48_000),
                phase("none/hdd", "6.12", 0),
                phase("full/cpu", "6.12", 72_000),
                phase("full/hdd", "6.12", 396_000),
                phase("rt/cpu", "6.12-rt", 29_000),
            ],
            ..SuiteRun::default()
        };
        let page = render(&suite, 100, false);
        assert!(page.contains("worst (p99.99)          cpu            hdd\n"), "{page}");
        assert!(page.contains("none, 6.12      48.0 (24.0)              –\n"), "{page}");
        assert!(page.contains("rt, 6.12-rt     29.0 (14.5)              –\n"), "{page}");
        assert!(page.contains("! none/hdd: hdd did not") && !page.contains('\u{1b}'), "{page}");
        assert!(
            page.contains("p50 -1.0, max +2.0 us") && page.contains("limit of 125.0 us was exceeded"),
            "{page}"
        );
        assert_eq!(page.matches("kernel 6.12").count(), 2, "{page}");
    }
    #[test]
    fn a_mirrored_order_is_one_column_and_a_missing_boot_an_empty_row() {
        let left = SuiteLeftOut { id: "regular".into(), why: "it needs a boot without threadirqs".into() };
        let suite = SuiteRun {
            phases: vec![
                phase("threaded/cpu", "6.12", 48_000),
                phase("threaded/hdd", "6.12", 9_000),
                phase("threaded/hdd.2", "6.12", 0),
                phase("threaded/cpu.2", "6.12", 72_000),
            ],
            left_out: vec![left],
            ..SuiteRun::default()
        };
        let page = render(&suite, 100, false);
        let row = |name: &str| -> Vec<&str> {
            page.lines()
                .filter_map(|line| line.strip_prefix(name))
                .next_back()
                .unwrap()
                .split_whitespace()
                .collect()
        };
        assert_eq!(row("worst (p99.99)"), ["cpu", "hdd"], "{page}");
        assert_eq!(row("threaded "), ["72.0", "(36.0)", "–"], "the second hdd is a hole: {page}");
        assert_eq!(row("regular "), ["–", "–"], "{page}");
        assert!(page.contains("- regular: it needs a boot without threadirqs"), "{page}");
    }
}
