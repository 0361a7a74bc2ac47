//! Isolated CPUs: their partition, their threads, allowed interrupts, and those that arrived.

use std::fmt::Write;

use crate::palette::{BOLD, GREEN, Palette, RED, YELLOW};
use crate::words::{clean, duration, filled, several, undone_in, wrapped};
use model::isolation::{
    Arrivals, IMMOVABLE, IsolatedInterrupt, IsolatedThread, IsolationDocument, PartitionState,
};
use model::units::{Nanos, named_cpus};

/// Limit of names; the others are counted.
const NAMES: usize = 8;

/// Result of an isolation, in a line or two.
pub fn summary(document: &IsolationDocument, columns: usize, color: bool) -> String {
    let mut page = String::new();
    let free = document.threads.iter().filter(|thread| thread.movable).count() as u64;
    let stuck = document.threads.len() as u64 - free;
    let pending = document.interrupts.iter().filter(|irq| irq.pending).count() as u64;
    let until = match pending {
        0 => String::new(),
        some => format!(" ({some} until their next occurrence)"),
    };
    let line = format!(
        "{} {} and {}{until} may still use them: `onbeat isolate list` names them.",
        headline(document, Palette(color)),
        several(stuck + free, "thread", "threads"),
        several(document.interrupts.len() as u64, "interrupt", "interrupts")
    );
    filled(&mut page, "", &line, 2, columns);
    page
}

/// Document as text; `verbose` gives each thread a line.
pub fn render(document: &IsolationDocument, columns: usize, color: bool, verbose: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    wrapped(&mut page, &headline(document, palette), columns);
    let (stuck, free): (Vec<_>, Vec<_>) = document.threads.iter().partition(|thread| !thread.movable);
    threads(&mut page, "threads that may run there", &free, palette, columns, verbose);
    threads(&mut page, "threads that cannot be moved", &stuck, palette, columns, verbose);
    let (leaving, coming): (Vec<_>, Vec<_>) = document.interrupts.iter().partition(|irq| irq.pending);
    let (stuck, free): (Vec<_>, Vec<_>) = coming.into_iter().partition(|irq| !irq.movable);
    interrupts(&mut page, "interrupts that may arrive there and can be moved", &free, palette, columns);
    interrupts(&mut page, "interrupts that the kernel cannot move", &stuck, palette, columns);
    interrupts(&mut page, "interrupts that stay until their next occurrence", &leaving, palette, columns);
    if let Some(ns) = document.counted_ns {
        arrivals(&mut page, &document.arrivals, Nanos(ns), palette, columns);
    }
    page
}

fn headline(document: &IsolationDocument, palette: Palette) -> String {
    let cpus = match document.cpus.as_str() {
        "" => return "No CPU is isolated: use `onbeat isolate create CPUS`.".to_owned(),
        cpus => named_cpus(clean(cpus)),
    };
    let reason = match document.reason.as_str() {
        "" => String::new(),
        why => format!(": {}", clean(why)),
    };
    let entry = match document.entry.as_str() {
        "" => String::new(),
        id => format!(" (entry {}{})", clean(id), undone_in(document.undone_in_ns, document.confirmable)),
    };
    let state = match document.partition {
        PartitionState::Isolated => palette.paint(GREEN, "isolated"),
        PartitionState::Invalid => palette.paint(RED, "invalid"),
        PartitionState::None => palette.paint(YELLOW, "no partition by onbeat"),
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
    let named = |thread: &IsolatedThread| {
        if thread.movable || verbose {
            format!("{} {}", thread.tid, clean(&thread.comm))
        } else {
            clean(&thread.comm)
        }
    };
    let mut reasons: Vec<&str> = Vec::new();
    for thread in threads {
        if reasons.contains(&thread.why.as_str()) && !verbose {
            continue;
        }
        reasons.push(&thread.why);
        let alike: Vec<String> = if verbose {
            vec![named(thread)]
        } else {
            threads.iter().filter(|other| other.why == thread.why).map(|other| named(other)).collect()
        };
        let cpus =
            if verbose { format!(" on {}", named_cpus(clean(&thread.allowed))) } else { String::new() };
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
        let may = if irq.pending { "may go to " } else { "" };
        let line = format!("{} ({may}{}): {}", name.trim(), named_cpus(clean(&irq.allowed)), clean(&irq.why));
        filled(page, "  ", &line, 4, columns);
    }
}

fn arrivals(page: &mut String, rows: &[Arrivals], span: Nanos, palette: Palette, columns: usize) {
    let _ = writeln!(page, "\n{}", palette.paint(BOLD, &format!("arrivals in {}", duration(span))));
    if rows.is_empty() {
        page.push_str("  nothing\n");
    }
    let width = rows.iter().map(|row| row.count.to_string().len()).max().unwrap_or(0);
    for row in rows {
        let first = format!("  CPU {:<3} {:>width$}  {:<9}  ", row.cpu, row.count, clean(&row.kind));
        filled(page, &first, &clean(&row.name), first.len(), columns);
    }
    let sum = |wanted: &str| rows.iter().filter(|row| row.kind == wanted).map(|row| row.count).sum::<u64>();
    let line = format!(
        "Total {}, plus {} of the CPUs' own timers.",
        several(sum("interrupt"), "interrupt", "interrupts"),
        sum("timer")
    );
    filled(page, "  ", &line, 2, columns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::isolation::ISOLATION_SCHEMA;

    fn thread(tid: u32, comm: &str, movable: bool, why: &str) -> IsolatedThread {
        IsolatedThread { tid, comm: comm.into(), movable, why: why.into(), allowed: "2".into() }
    }

    fn document() -> IsolationDocument {
        let bound = |duty: &str| format!("{duty}: {IMMOVABLE}");
        let arrival =
            |kind: &str, name: &str, count| Arrivals { cpu: 2, kind: kind.into(), name: name.into(), count };
        IsolationDocument {
            schema: ISOLATION_SCHEMA.into(),
            cpus: "2-3".into(),
            partition: PartitionState::Isolated,
            reason: String::new(),
            effective: "2-3".into(),
            entry: "4".into(),
            undone_in_ns: None,
            confirmable: false,
            threads: vec![
                thread(25, "cpuhp/2", false, &bound("it switches this CPU on and off")),
                thread(31, "cpuhp/3", false, &bound("it switches this CPU on and off")),
                thread(900, "control", true, "it is in onbeat/rt"),
            ],
            interrupts: vec![IsolatedInterrupt {
                irq: "27".into(),
                name: "nvme0q3".into(),
                movable: false,
                why: "the kernel refused it: EPERM".into(),
                allowed: "2".into(),
                pending: false,
            }],
            counted_ns: Some(10_000_000_000),
            arrivals: vec![
                arrival("timer", "LOC: Local timer interrupts", 12),
                arrival("interrupt", "27: nvme0q3", 1),
            ],
        }
    }

    #[test]
    fn who_is_there_is_said_once_for_all_of_a_kind() {
        let expected = "CPUs 2-3: isolated (entry 4).

threads that may run there (1)
  900 control: it is \
                        in onbeat/rt

threads that cannot be moved (2)
  the kernel refuses another affinity \
                        (PF_NO_SETAFFINITY)
  cpuhp/2, cpuhp/3: it switches this CPU on and off

interrupts \
                        that the kernel cannot move (1)
  27 nvme0q3 (CPU 2): the kernel refused it: \
                        EPERM

arrivals in 10.0 s
  CPU 2   12  timer      LOC: Local timer interrupts
  CPU \
                        2    1  interrupt  27: nvme0q3
  Total 1 interrupt, plus 12 of the CPUs' own timers.
";
        assert_eq!(render(&document(), 80, false, false), expected);
        let verbose = render(&document(), 80, false, true);
        assert!(verbose.contains("  25 cpuhp/2 on CPU 2: it switches this CPU on and off\n"), "{verbose}");
    }

    #[test]
    fn a_partition_that_is_not_in_force_says_why() {
        let invalid = IsolationDocument {
            partition: PartitionState::Invalid,
            reason: "another program has taken it away".into(),
            ..document()
        };
        let text = render(&invalid, 80, false, false);
        assert!(
            text.starts_with("CPUs 2-3: invalid (entry 4): another program has taken it away.\n"),
            "{text}"
        );
        let none = IsolationDocument { cpus: String::new(), partition: PartitionState::None, ..document() };
        assert!(render(&none, 80, false, false).starts_with("No CPU is isolated"));
        let summed = summary(&document(), 80, false);
        assert!(summed.contains("3 threads and 1 interrupt may still use them"), "{summed}");
    }

    #[test]
    fn what_leaves_later_is_told_from_what_stays() {
        let mut pending = document();
        pending.undone_in_ns = Some(42_000_000_000);
        pending.confirmable = true;
        pending.interrupts.push(IsolatedInterrupt {
            irq: "24".into(),
            name: "eth0".into(),
            movable: true,
            why: "on CPU 2 until its next interrupt".into(),
            allowed: "0-1".into(),
            pending: true,
        });
        let text = render(&pending, 100, false, false);
        assert!(
            text.starts_with("CPUs 2-3: isolated (entry 4, undone in 42.0 s unless confirmed).\n"),
            "{text}"
        );
        let until = "\ninterrupts that stay until their next occurrence (1)\n  \
                     24 eth0 (may go to CPUs 0-1): on CPU 2 until its next interrupt\n";
        assert!(text.contains(until), "{text}");
        assert!(text.contains("cannot move (1)\n") && !text.contains("can be moved"), "{text}");
        let summed = summary(&pending, 200, false);
        assert!(summed.contains("2 interrupts (1 until their next occurrence) may still"), "{summed}");
    }

    #[test]
    fn names_of_others_do_no_harm() {
        let mut hostile = document();
        hostile.threads.push(thread(1, "a\u{1b}[31m\nb", true, "x"));
        assert!(!render(&hostile, 80, false, true).contains('\u{1b}'));
    }
}
