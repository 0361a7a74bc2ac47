//! Runs of `probe ipc` as one table: a row per kind and pair of CPUs.

use super::answer::{fair, late, who};
use super::{conditions, probes, sentences};
use crate::last_lines::LastLines;
use crate::palette::{BOLD, DIM, PLAIN, Palette, RED};
use crate::totals::largest;
use crate::words::{clean, or_dash, us_or_dash, wrapped};
use model::run::{CpuRun, Integrity, Run};

const HEADS: [&str; 11] =
    ["kind", "from", "to", "samples", "min", "mean", "p50", "p99", "p99.9", "p99.99", "max"];

/// Common conditions once, then a row per kind and pair, then the remarks.
pub fn render(runs: &[&Run], quiet: bool, width: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut text = String::new();
    let Some(first) = runs.first() else { return text };
    let line = |text: &mut String, style, words: &str| {
        let mut lines = String::new();
        wrapped(&mut lines, words, width.max(20));
        text.push_str(&palette.paint(style, lines.trim_end()));
        text.push('\n');
    };
    let known = conditions::known_conditions(first).0;
    let wanted =
        if quiet { &["policy"][..] } else { &["kernel", "preemption", "policy", "interval", "idle"][..] };
    let shared = known.iter().filter(|(name, _)| wanted.contains(name)).map(|(name, value)| match *name {
        "interval" => format!("every {value}"),
        "idle" => format!("idle: {value}"),
        _ => value.clone(),
    });
    line(&mut text, DIM, &shared.collect::<Vec<_>>().join("; "));
    if let Some(load) = crate::load::condition_of_all(runs) {
        line(&mut text, DIM, &load);
    }
    line(&mut text, DIM, "from before the release to after the acquire; latencies in us");
    text.push('\n');
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(runs.iter().flat_map(|run| run.cpus.iter()).map(cells));
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    for (at, row) in rows.iter().enumerate() {
        let cell = |(at, (cell, width)): (usize, (&String, &usize))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        };
        let cells: Vec<String> = row.iter().zip(&widths).enumerate().map(cell).collect();
        text.push_str(&palette.paint(if at == 0 { BOLD } else { PLAIN }, cells.join("  ").trim_end()));
        text.push('\n');
    }
    for (entry, of) in remarks(runs).iter().filter(|(entry, _)| !quiet || entry.invalidates) {
        let (mark, style) = if entry.invalidates { ("!", RED) } else { ("-", PLAIN) };
        let of = if of.len() < runs.len() { format!("{}: ", of.join("; ")) } else { String::new() };
        line(&mut text, style, &format!("{mark} {of}{}", sentences::integrity(entry)));
    }
    text
}

/// Remarks on all runs, each once, with the hand-overs concerned.
fn remarks<'a>(runs: &[&'a Run]) -> Vec<(&'a Integrity, Vec<String>)> {
    let mut remarks: Vec<(&Integrity, Vec<String>)> = Vec::new();
    for (run, entry) in runs.iter().flat_map(|run| run.integrity.iter().map(move |entry| (run, entry))) {
        match remarks.iter_mut().find(|(known, _)| *known == entry) {
            Some((_, of)) => of.push(probes::named(run)),
            None => remarks.push((entry, vec![probes::named(run)])),
        }
    }
    remarks
}

/// Answer as the last lines: the longest of all, the reliability of the runs, their paths. `places`
/// are quoted for a shell.
pub fn answer(runs: &[&Run], places: &[String], width: usize, color: bool) -> String {
    let Some(worst) = runs.iter().max_by_key(|run| largest(run)) else { return String::new() };
    let mut answer = LastLines::default();
    let late = match runs {
        [_] => late(worst),
        _ => format!("{}: {}", probes::named(worst), late(worst)),
    };
    let spoiled = runs.iter().find(|run| run.integrity.iter().any(|entry| entry.invalidates));
    // Remarks on all hand-overs count.
    let mut all = Run::clone(spoiled.unwrap_or(worst));
    if spoiled.is_none() {
        all.integrity = remarks(runs).into_iter().map(|(entry, _)| entry.clone()).collect();
    }
    let (fair, style) = fair(&all);
    answer.styled("late", late, BOLD).row("who", who(worst)).styled("fair", fair, style);
    let all = places.join(" ");
    if !all.is_empty() {
        answer.row("next", format!("onbeat report {all} -o ipc.html (pictures)"));
    }
    let locations = places.iter().map(|path| format!("kept in {path}\n"));
    answer.render(width, Palette(color)) + &locations.collect::<String>()
}

fn cells(cpu: &CpuRun) -> [String; HEADS.len()] {
    [
        clean(&cpu.kind),
        cpu.from_cpu.map_or_else(String::new, |from| from.to_string()),
        cpu.label(),
        or_dash(cpu.cycles),
        us_or_dash(cpu.min_ns),
        us_or_dash(cpu.mean_ns),
        us_or_dash(cpu.p50_ns),
        us_or_dash(cpu.p99_ns),
        us_or_dash(cpu.p999_ns),
        us_or_dash(cpu.p9999_ns),
        us_or_dash(cpu.max_ns),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::{Cpu, Nanos};

    #[test]
    fn the_answer_is_that_of_the_longest_hand_over() {
        let run = |kind: &str, max| {
            let mut run = Run { command: "probe".into(), complete: true, ..Run::default() };
            (run.plan.probe, run.plan.kind) = ("ipc".into(), kind.into());
            let (cpu, cycles) = (Some(Cpu(1)), Some(1));
            let cpu = CpuRun { cpu, cycles, max_ns: Some(Nanos(max)), ..CpuRun::default() };
            run.cpus = vec![cpu];
            run
        };
        let (pipe, futex) = (run("pipe", 9_000), run("futex", 7_000));
        let text = answer(&[&pipe, &futex], &["/a".into(), "/b".into()], 80, false);
        assert!(text.contains("late    pipe, both on one CPU: 9 us at worst, on CPU 1"), "{text}");
        assert!(text.contains("\nwho     not recorded: a probe traces nothing\n"), "{text}");
        for row in ["\nfair    ", "\nnext    onbeat report /a /b -o ipc.html", "\nkept in /a\nkept in /b\n"] {
            assert!(text.contains(row), "{text}");
        }
    }
}
