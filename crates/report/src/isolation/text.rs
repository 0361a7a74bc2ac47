//! The isolated CPUs: their partition, who may run there, what may come and what came.

use std::fmt::Write;

use crate::palette::{BOLD, GREEN, Palette, RED, YELLOW};
use crate::words::{clean, duration, filled, several, wrapped};
use model::isolation::{
    Arrivals, IMMOVABLE, IsolatedInterrupt, IsolatedThread, IsolationDocument, PartitionState,
};
use model::units::Nanos;

/// Names beyond this many are counted.
const NAMES: usize = 8;

/// What an isolation has come to, in a line or two.
pub fn summary(document: &IsolationDocument, columns: usize, color: bool) -> String {
    let mut page = String::new();
    let free = document.threads.iter().filter(|thread| thread.movable).count() as u64;
    let stuck = document.threads.len() as u64 - free;
    let line = format!(
        "{} {} and {} may still be there: `onbeat isolate list` names them.",
        headline(document, Palette(color)),
        several(stuck + free, "thread", "threads"),
        several(document.interrupts.len() as u64, "interrupt", "interrupts")
    );
    filled(&mut page, "", &line, 2, columns);
    page
}

/// The document as text; `verbose` has each thread on a line of its own.
pub fn render(document: &IsolationDocument, columns: usize, color: bool, verbose: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    wrapped(&mut page, &headline(document, palette), columns);
    let (stuck, free): (Vec<_>, Vec<_>) = document.threads.iter().partition(|thread| !thread.movable);
    threads(&mut page, "threads that may run there", &free, palette, columns, verbose);
    threads(&mut page, "threads that cannot leave", &stuck, palette, columns, verbose);
    let (stuck, free): (Vec<_>, Vec<_>) = document.interrupts.iter().partition(|irq| !irq.movable);
    interrupts(&mut page, "interrupts that may go there and could be moved", &free, palette, columns);
    interrupts(&mut page, "interrupts that the kernel does not move", &stuck, palette, columns);
    if let Some(ns) = document.counted_ns {
        arrivals(&mut page, &document.arrivals, Nanos(ns), palette, columns);
    }
    page
}

fn headline(document: &IsolationDocument, palette: Palette) -> String {
    let cpus = match document.cpus.as_str() {
        "" => return "No CPU is isolated: `onbeat isolate create CPUS` isolates some.".to_owned(),
        cpus => format!("CPU {}", clean(cpus)),
    };
    let reason = match document.reason.as_str() {
        "" => String::new(),
        why => format!(": {}", clean(why)),
    };
    let entry = match document.entry.as_str() {
        "" => String::new(),
        id => format!(" (entry {})", clean(id)),
    };
    let state = match document.partition {
        PartitionState::Isolated => palette.paint(GREEN, "isolated"),
        PartitionState::Invalid => palette.paint(RED, "invalid"),
        PartitionState::None => palette.paint(YELLOW, "no partition of onbeat's"),
    };
    format!("{cpus}: {state}{entry}{reason}.")
}

fn heading(page: &mut String, words: &str, number: u64, palette: Palette) {
    let _ = writeln!(page, "\n{}", palette.paint(BOLD, &format!("{words} ({number})")));
}

fn threads(
    page: &mut String,
    words: &str,
    threads: &[&IsolatedThread],
    palette: Palette,
    columns: usize,
    verbose: bool,
) {
    if threads.is_empty() {
        return;
    }
    heading(page, words, threads.len() as u64, palette);
    if threads.iter().all(|thread| thread.why.ends_with(IMMOVABLE)) {
        let _ = writeln!(page, "  {IMMOVABLE}");
    }
    let named = |thread: &IsolatedThread| match thread.movable || verbose {
        true => format!("{} {}", thread.tid, clean(&thread.comm)),
        false => clean(&thread.comm),
    };
    let mut said: Vec<&str> = Vec::new();
    for thread in threads {
        if said.contains(&thread.why.as_str()) && !verbose {
            continue;
        }
        said.push(&thread.why);
        let alike: Vec<String> = match verbose {
            true => vec![named(thread)],
            false => {
                threads.iter().filter(|other| other.why == thread.why).map(|other| named(other)).collect()
            }
        };
        let cpus = if verbose { format!(" on CPU {}", clean(&thread.allowed)) } else { String::new() };
        let why = thread.why.strip_suffix(IMMOVABLE).unwrap_or(&thread.why).trim_end_matches(": ");
        let why = if why.is_empty() { String::new() } else { format!(": {}", clean(why)) };
        filled(page, "  ", &format!("{}{cpus}{why}", listed(&alike)), 4, columns);
    }
}

fn listed(names: &[String]) -> String {
    match names.len().checked_sub(NAMES) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {}", names[..NAMES].join(", "), several(more as u64, "more", "more")),
    }
}

fn interrupts(
    page: &mut String,
    words: &str,
    interrupts: &[&IsolatedInterrupt],
    palette: Palette,
    columns: usize,
) {
    if interrupts.is_empty() {
        return;
    }
    heading(page, words, interrupts.len() as u64, palette);
    for irq in interrupts {
        let name = format!("{} {}", clean(&irq.irq), clean(&irq.name));
        let line = format!("{} (CPU {}): {}", name.trim(), clean(&irq.allowed), clean(&irq.why));
        filled(page, "  ", &line, 4, columns);
    }
}

fn arrivals(page: &mut String, rows: &[Arrivals], span: Nanos, palette: Palette, columns: usize) {
    let _ = writeln!(page, "\n{}", palette.paint(BOLD, &format!("what came in {}", duration(span))));
    if rows.is_empty() {
        page.push_str("  nothing\n");
    }
    let width = rows.iter().map(|row| row.count.to_string().len()).max().unwrap_or(0);
    for row in rows {
        let line = format!(
            "CPU {:<3} {:>width$}  {:<9}  {}",
            row.cpu,
            row.count,
            clean(&row.kind),
            clean(&row.name)
        );
        filled(page, "  ", &line, 4, columns);
    }
    let sum = |wanted: &str| rows.iter().filter(|row| row.kind == wanted).map(|row| row.count).sum::<u64>();
    let line = format!(
        "In all {} besides {} of the CPUs' own timers.",
        several(sum("interrupt"), "interrupt", "interrupts"),
        sum("timer")
    );
    filled(page, "  ", &line, 2, columns);
}
