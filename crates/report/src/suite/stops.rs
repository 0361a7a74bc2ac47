//! Table of the times for which real-time tasks were stopped.

use crate::aligned::write_rows;
use crate::palette::Palette;
use crate::words::{clean, several, span};
use model::suite::{SuitePhase, SuiteRun};
use model::units::{Cpu, Nanos};

/// Cause that stopped the threads of all these phases; `""` if it is not the same.
pub fn stopped_by<'a>(phases: impl Iterator<Item = &'a SuitePhase>) -> String {
    let mut by: Vec<&str> = phases.map(|phase| phase.stopped_by.as_str()).collect();
    by.retain(|by| !by.is_empty());
    by.dedup();
    match by.as_slice() {
        [one] => format!("the {}", clean(one).replace("throttling", "real-time throttling")),
        _ => String::new(),
    }
}

/// Longest stop, with its CPU and its phase.
pub fn longest(suite: &SuiteRun) -> Option<String> {
    let valid: Vec<&SuitePhase> = suite.phases.iter().filter(|phase| phase.valid).collect();
    let stops = valid.iter().flat_map(|phase| phase.stops.iter().map(move |stop| (stop, phase)));
    let (stop, phase) = stops.max_by_key(|(stop, _)| stop.max_ns)?;
    Some(format!(
        "{} off CPU {} at worst, in the phase {} ({}).",
        span(stop.max_ns),
        stop.cpu,
        clean(&phase.id),
        several(valid.len() as u64, "phase", "phases")
    ))
}

/// Title of the table: the kernel, the quantity, and the cause of the stops.
pub fn title(kernel: &str, phases: &[&SuitePhase]) -> String {
    let by = match stopped_by(phases.iter().copied()) {
        by if by.is_empty() => by,
        by => format!(", stopped by {by}"),
    };
    format!(
        "kernel {kernel}; how long a real-time thread that never sleeps was off its CPU{by}, in ms: \
         the median of the longest of each period / the longest of all"
    )
}

/// Writes a row per phase, with a column per CPU.
pub fn rows(page: &mut String, phases: &[&SuitePhase], palette: Palette) {
    write_rows(page, &cells(phases), palette);
}

/// Head and rows of the table.
pub fn cells(phases: &[&SuitePhase]) -> Vec<Vec<String>> {
    let mut cpus: Vec<Cpu> =
        phases.iter().flat_map(|phase| phase.stops.iter().map(|stop| stop.cpu)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let mut head = vec!["phase".to_owned(), "settings".to_owned(), "expected".to_owned()];
    head.extend(cpus.iter().map(|cpu| format!("CPU {cpu}")));
    let mut cells = vec![head];
    for phase in phases {
        let of = |cpu: &Cpu| {
            let stop = phase.stops.iter().find(|stop| stop.cpu == *cpu).filter(|_| phase.valid);
            stop.map_or_else(hole, |stop| format!("{} / {}", ms(stop.median_ns), ms(stop.max_ns)))
        };
        let expected = phase.expected_ns.map_or_else(hole, ms);
        let mut row = vec![clean(&phase.id), clean(&phase.settings.join(" ")), expected];
        row.extend(cpus.iter().map(of));
        cells.push(row);
    }
    cells
}

fn hole() -> String {
    crate::words::us_or_dash(None)
}

/// Time in ms, to a microsecond if it is below one.
fn ms(span: Nanos) -> String {
    let digits = if span.0 < Nanos::MILLI.0 { 3 } else { 1 };
    format!("{:.digits$}", span.0 as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::suite::SuiteStop;

    #[test]
    fn a_row_has_what_is_expected_and_what_each_cpu_saw() {
        let stop = |cpu, median, max| SuiteStop {
            cpu: Cpu(cpu),
            periods: 5,
            median_ns: Nanos(median),
            max_ns: Nanos(max),
        };
        let phase = |id: &str, expected, stops| SuitePhase {
            id: id.into(),
            settings: vec![format!("rt-limit=x{id}")],
            valid: true,
            expected_ns: Some(Nanos(expected)),
            stopped_by: "fair server".into(),
            stops,
            ..SuitePhase::default()
        };
        let first = phase("1", 100_000_000, vec![stop(1, 99_960_000, 104_000_000), stop(3, 98_000_000, 1)]);
        let third = phase("3", 0, vec![stop(1, 44_000, 118_400)]);
        let broken = SuitePhase { valid: false, ..first.clone() };
        let mut page = String::new();
        rows(&mut page, &[&first, &third, &broken], Palette(false));
        let lines: Vec<Vec<&str>> = page.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["phase", "settings", "expected", "CPU", "1", "CPU", "3"], "{page}");
        assert_eq!(lines[1], ["1", "rt-limit=x1", "100.0", "100.0", "/", "104.0", "98.0", "/", "0.000"]);
        assert_eq!(lines[2], ["3", "rt-limit=x3", "0.000", "0.044", "/", "0.118", "–"], "{page}");
        assert_eq!(lines[3], ["1", "rt-limit=x1", "100.0", "–", "–"], "{page}");
        assert!(title("6.12", &[&first, &third]).contains("stopped by the fair server, in ms"));
        let suite = SuiteRun { phases: vec![first, third, broken], ..SuiteRun::default() };
        let text = super::super::last_lines(&suite, "/s", false, 80, false);
        assert!(
            text.starts_with("\nlate    104 ms off CPU 1 at worst, in the phase 1 (2 phases).\n"),
            "{text}"
        );
        assert!(text.contains("\nwho     the fair server\n"), "{text}");
        let woken = SuitePhase { valid: true, ..SuitePhase::default() };
        let suite = SuiteRun { phases: vec![woken], ..SuiteRun::default() };
        let text = super::super::last_lines(&suite, "/s", false, 80, false);
        assert!(text.contains("\nwho     not recorded: `onbeat hunt` names"), "{text}");
    }
}
