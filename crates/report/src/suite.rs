//! The table of a suite: what its phases measured, and the worst of each model under each load.

use std::fmt::Write;

use crate::aligned::write_rows;
use crate::palette::{DIM, Palette, RED};
use crate::words::{clean, filled, us, us_or_dash, wrapped};
use model::suite::{SuitePhase, SuiteRun};
use model::units::Nanos;

/// The suite as text.
pub fn render(suite: &SuiteRun, columns: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    wrapped(&mut page, &headline(suite), columns);
    for kernel in distinct(suite.phases.iter().map(|phase| phase.kernel.as_str())) {
        let phases: Vec<&SuitePhase> = suite.phases.iter().filter(|phase| phase.kernel == kernel).collect();
        let _ = writeln!(
            page,
            "\n{}",
            palette.paint(DIM, &format!("kernel {}; latencies in us", or_unknown(kernel)))
        );
        rows(&mut page, &phases, palette);
    }
    matrix(&mut page, suite, palette);
    page.push('\n');
    for phase in suite.phases.iter().filter(|phase| !phase.valid) {
        let line = format!("! {}: {}", clean(&phase.id), clean(&phase.why));
        wrapped(&mut page, &palette.paint(RED, &line), columns);
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

/// In the order in which they come first.
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
    let head = ["phase", "samples", "p50", "p99", "p99.99", "max"].map(str::to_owned);
    let mut cells = vec![head];
    cells.extend(phases.iter().map(|phase| match phase.valid {
        true => [
            clean(&phase.id),
            phase.samples.to_string(),
            us_or_dash(phase.p50_ns),
            us_or_dash(phase.p99_ns),
            us_or_dash(phase.p9999_ns),
            us_or_dash(phase.max_ns),
        ],
        false => {
            let [samples, a, b, c, d] = [None; 5].map(us_or_dash);
            [clean(&phase.id), samples, a, b, c, d]
        }
    }));
    write_rows(page, &cells, palette);
}

/// The worst of each model under each load, as tables 3.2 and 3.3 have it, with the quantile of
/// 99.99 % behind; only where there is more than one model.
fn matrix(page: &mut String, suite: &SuiteRun, palette: Palette) {
    let name = |phase: &SuitePhase| match phase.id.split_once('/') {
        Some((_, load)) => load.to_owned(),
        None => phase.id.clone(),
    };
    let row_of = |phase: &SuitePhase| match phase.id.split_once('/') {
        Some((model, _)) => model.to_owned(),
        None => phase.model.clone(),
    };
    let loads: Vec<String> = suite.phases.iter().map(name).collect();
    let models: Vec<String> = suite.phases.iter().map(row_of).collect();
    let (loads, models) =
        (distinct(loads.iter().map(String::as_str)), distinct(models.iter().map(String::as_str)));
    let kernels = distinct(suite.phases.iter().map(|phase| phase.kernel.as_str()));
    if models.len() * kernels.len() < 2 {
        return;
    }
    let mut cells: Vec<Vec<String>> = vec![vec!["worst (p99.99)".into()]];
    cells[0].extend(loads.iter().map(|load| clean(load)));
    for kernel in &kernels {
        for model in &models {
            let of = |load: &&str| {
                suite
                    .phases
                    .iter()
                    .find(|phase| phase.kernel == *kernel && row_of(phase) == *model && name(phase) == **load)
            };
            if loads.iter().all(|load| of(load).is_none()) {
                continue;
            }
            let title = if kernels.len() > 1 { format!("{model}, {kernel}") } else { (*model).to_owned() };
            let mut row = vec![clean(&title)];
            row.extend(loads.iter().map(|load| of(load).map_or_else(|| us_or_dash(None), worst)));
            cells.push(row);
        }
    }
    page.push('\n');
    write_rows(page, &cells, palette);
}

fn worst(phase: &SuitePhase) -> String {
    match (phase.valid, phase.max_ns) {
        (true, Some(max)) => format!("{} ({})", us(max), us_or_dash(phase.p9999_ns)),
        _ => us_or_dash(None),
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
    let worst = suite.phases.iter().filter(|phase| phase.valid).filter_map(|phase| phase.max_ns).max();
    if let (Some(limit), Some(worst)) = (suite.limit_ns, worst) {
        let said = if worst <= limit { "was not exceeded" } else { "was exceeded" };
        lines.push(format!("the recipe's limit of {} us {said}", us(limit)));
    }
    if suite.phases.iter().any(|phase| phase.valid) {
        lines.push("a maximum of few samples says little: onbeat bounds says what each run supports".into());
    }
    lines
}

fn difference(ns: Nanos) -> String {
    if ns.0 < 0 { format!("-{}", us(Nanos(ns.0.saturating_neg()))) } else { format!("+{}", us(ns)) }
}

/// A line for each recipe: its name, how long it takes, what it is for.
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
    use model::suite::SuiteDrift;

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
}
