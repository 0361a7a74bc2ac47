//! Record on the terminal: the answer, the worst, the CPUs, the losses.

use super::blamed::next_step;
use super::summary::{PlacedWorst, SeriesTotals, WatchSummary};
use super::words::{answer, culprit, losses, task, times, when};
use crate::aligned::write_rows;
use crate::last_lines::LastLines;
use crate::palette::{DIM, Palette, YELLOW};
use crate::words::{UNKNOWN, clean, or_dash, several, us_or_dash, wrapped};
use model::histogram::quantile;

/// Limit of listed wake-ups of the system's class; `OTHERS` is that of the other classes.
const WORST: usize = 10;
const OTHERS: usize = 3;

/// Columns of the worst. `LEFT_OUT` are dropped on a narrow terminal, in that order; S is dropped
/// if it is not known.
const HEAD: [&str; 10] = ["victim", "CPU", "culprit", "on", "T", "W", "S", "total", WHEN, "sleeps in"];
const LEFT_OUT: [&str; 3] = ["sleeps in", "on", WHEN];
const WHEN: &str = "when";

/// Record as text of up to this number of columns.
pub fn render(of: &WatchSummary, columns: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    for (at, line) in answer(of).iter().enumerate() {
        let line = if at == 0 { palette.paint(crate::palette::BOLD, line) } else { line.clone() };
        wrapped(&mut page, &line, columns);
    }
    wrapped(&mut page, &palette.paint(DIM, &span_of(of)), columns);
    let lists = [
        (&of.worst, WORST, "the worst, latencies in us"),
        (&of.worst_by_priority, OTHERS, "behind the same or a higher priority"),
        (&of.worst_of_kernel_threads, OTHERS, "kernel threads"),
    ];
    for (list, most, title) in lists {
        if !list.is_empty() {
            page.push_str(&format!("\n{}\n", palette.paint(DIM, title)));
            table(&mut page, of, &list[..list.len().min(most)], columns, palette);
        }
    }
    cpus(&mut page, of, palette);
    for line in losses(of).iter().chain(&of.remarks) {
        wrapped(&mut page, &palette.paint(YELLOW, &clean(line)), columns);
    }
    page += &LastLines::default().row("next", next_step(of).replace('`', "")).render(columns, palette);
    page
}

fn span_of(of: &WatchSummary) -> String {
    let kernels: Vec<String> =
        of.environments.iter().map(|environment| clean(&environment.release)).collect();
    let mut kernels: Vec<&str> = kernels.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    kernels.dedup();
    let times = Some(times(of)).filter(|times| !times.is_empty());
    let times = times.map_or_else(String::new, |times| format!(", {times}"));
    let kernels = if kernels.is_empty() { String::new() } else { format!("; kernel {}", kernels.join(", ")) };
    format!(
        "{} in {}{times}{kernels}",
        several(of.intervals, "interval", "intervals"),
        several(of.boots, "boot", "boots")
    )
}

fn cells(worst: &PlacedWorst, of: &WatchSummary) -> [String; 10] {
    let wakeup = &worst.wakeup;
    [
        task(&wakeup.victim),
        or_dash(wakeup.cpu),
        culprit(&wakeup.culprit),
        or_dash(wakeup.culprit.task.cpu),
        us_or_dash(wakeup.timer_ns),
        us_or_dash(wakeup.wakeup_ns),
        us_or_dash(wakeup.switch_ns),
        us_or_dash(Some(worst.total_ns)),
        when(worst, of),
        if wakeup.sleeps_in.is_empty() { UNKNOWN.into() } else { clean(&wakeup.sleeps_in) },
    ]
}

fn table(page: &mut String, of: &WatchSummary, list: &[PlacedWorst], columns: usize, palette: Palette) {
    let mut rows: Vec<Vec<String>> = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(list.iter().map(|worst| cells(worst, of).to_vec()));
    let width = |rows: &[Vec<String>]| {
        let widest = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0) + 2;
        (0..rows[0].len()).map(widest).sum::<usize>().saturating_sub(2)
    };
    let leave_out = |rows: &mut Vec<Vec<String>>, name: &str| {
        if let Some(at) = rows[0].iter().position(|head| head == name) {
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
    };
    if list.iter().all(|worst| worst.wakeup.switch_ns.is_none()) {
        leave_out(&mut rows, "S");
    }
    let zone = format!(" ({})", of.clock().zone());
    for left_out in LEFT_OUT {
        // Times are longer than their heading, even with the zone.
        if width(&rows) <= columns {
            break;
        }
        leave_out(&mut rows, left_out);
    }
    rows[0].iter_mut().filter(|head| *head == WHEN).for_each(|head| *head += &zone);
    write_rows(page, &rows, palette);
}

/// Totals of the main series, and those of the switch, a row per CPU.
fn cpus(page: &mut String, of: &WatchSummary, palette: Palette) {
    if let Some(main) = of.main() {
        let title = format!("{} of all wake-ups that waited for the system, in us", main.series);
        totals(page, &title, main, palette);
    }
    if let Some(switch) = of.switch() {
        totals(page, "S, the switch to the thread, in us", switch, palette);
    }
}

fn totals(page: &mut String, title: &str, main: &SeriesTotals, palette: Palette) {
    page.push_str(&format!("\n{}\n", palette.paint(DIM, title)));
    let mut rows = vec![["CPU", "wake-ups", "min", "mean", "p50", "p99", "p99.99", "max"].map(str::to_owned)];
    rows.extend(main.cpus.iter().map(|cpu| {
        let at = |per_million| us_or_dash(quantile(&cpu.histogram, cpu.max_ns, per_million));
        [
            or_dash(cpu.cpu),
            cpu.n.to_string(),
            us_or_dash(cpu.min_ns),
            us_or_dash(cpu.mean_ns),
            at(500_000),
            at(990_000),
            at(999_900),
            us_or_dash(cpu.max_ns),
        ]
    }));
    write_rows(page, &rows, palette);
}
