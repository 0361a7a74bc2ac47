//! Pages of real kernels, decoded and compared with those kernels' text of them.
//!
//! Each folder of `tests/pages` holds the raw pages of both CPUs and the kernel's own rendering of
//! the same buffer (the file `trace`, read before the pages were). Every line must have its event
//! and every event its line, in the same order.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use model::units::Cpu;
use trace::catalog;
use trace::decode::{Decoder, PageNotes};
use trace::event::{Raw, Task, What};
use trace::page::Lost;

/// Line of the kernel's text, or the first line of a stack with those below it.
#[derive(Debug, Default)]
struct Line {
    cpu: u32,
    pid: i32,
    flags: String,
    micros: i64,
    event: String,
    body: String,
    frames: Vec<u64>,
}

fn folders() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pages");
    let mut found: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    found
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `          usleep-384     [001] dNh2.    10.064610: sys_exit: NR 230 = 0`
fn line_of(line: &str) -> Option<Line> {
    let (task, rest) = line.split_once(" [")?;
    let (cpu, rest) = rest.split_once("] ")?;
    let (flags, rest) = rest.trim_start().split_once(' ')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (secs, micros) = time.split_once('.')?;
    let (event, body) = rest.split_once(": ").or(rest.split_once(':')).unwrap_or((rest, ""));
    Some(Line {
        cpu: cpu.parse().ok()?,
        pid: task.trim_end().rsplit_once('-')?.1.parse().ok()?,
        flags: flags.to_owned(),
        micros: secs.parse::<i64>().ok()? * 1_000_000 + micros.parse::<i64>().ok()?,
        event: event.to_owned(),
        body: body.to_owned(),
        frames: Vec::new(),
    })
}

fn lines_of(trace: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for line in trace.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.strip_prefix(" => ") {
            Some(frame) => {
                let address = frame.rsplit_once('<').unwrap().1.trim_end_matches('>');
                lines.last_mut().unwrap().frames.push(u64::from_str_radix(address, 16).unwrap());
            }
            None => lines.push(line_of(line).unwrap_or_else(|| panic!("not a line: {line}"))),
        }
    }
    lines
}

/// Decoder of a folder, with all of its formats.
fn decoder(dir: &Path) -> Decoder {
    let all = text(dir.join("formats"));
    let wanted = catalog::formats(&all);
    let there = all.lines().filter(|line| line.starts_with("name: ")).count();
    assert_eq!(wanted.len(), there, "{}", dir.display());
    assert!(wanted.len() > 30, "{}: {} formats", dir.display(), wanted.len());
    let decoder = Decoder::new(&text(dir.join("header_page")), false, &wanted).unwrap();
    assert!(decoder.refused().is_empty(), "{:?}", decoder.refused());
    decoder
}

fn decode(dir: &Path, cpu: u32) -> (Vec<Raw>, Vec<PageNotes>) {
    let decoder = decoder(dir);
    let bytes = std::fs::read(dir.join(format!("cpu{cpu}.raw"))).unwrap();
    let mut events = Vec::new();
    let notes = bytes
        .chunks(decoder.layout().page_size())
        .map(|page| decoder.page(Cpu(cpu), page, &mut |event| events.push(event)))
        .collect();
    (events, notes)
}

fn state(state: i64) -> String {
    const LETTERS: [(i64, char); 8] =
        [(1, 'S'), (2, 'D'), (4, 'T'), (8, 't'), (16, 'X'), (32, 'Z'), (64, 'P'), (128, 'I')];
    let letter = LETTERS.iter().find(|letter| state & 0xff == letter.0).map_or('R', |letter| letter.1);
    format!("prev_state={letter}{}", if state & 0x100 != 0 { "+" } else { "" })
}

/// Text that a line must contain for an event: whole words, and names of functions that belong to
/// an address.
#[derive(Default)]
struct Said {
    event: Vec<&'static str>,
    words: Vec<String>,
    functions: Vec<(&'static str, u64)>,
    names: Vec<(&'static str, String)>,
}

fn sentence(event: &[&'static str], words: &[(&str, &dyn std::fmt::Display)]) -> Said {
    let words = words.iter().map(|(key, value)| format!("{key}{value}")).collect();
    Said { event: event.to_vec(), words, ..Said::default() }
}

fn woken(event: &[&'static str], task: &Task, target: &Cpu) -> Said {
    let target = format!("{:03}", target.0);
    Said {
        names: vec![("comm=", task.comm.to_string())],
        ..sentence(event, &[("pid=", &task.pid), ("prio=", &task.prio), ("target_cpu=", &target)])
    }
}

fn with(functions: &[(&'static str, u64)], said: Said) -> Said {
    Said { functions: functions.to_vec(), ..said }
}

fn hex(n: &u64) -> String {
    format!("{n:016x}")
}

fn of_threads(what: &What<u64>) -> Option<Said> {
    use What::*;
    Some(match what {
        Switch { prev, state: left, next } => Said {
            names: vec![("prev_comm=", prev.comm.to_string()), ("next_comm=", next.comm.to_string())],
            ..sentence(
                &["sched_switch"],
                &[
                    ("prev_pid=", &prev.pid),
                    ("prev_prio=", &prev.prio),
                    ("", &state(*left)),
                    ("next_pid=", &next.pid),
                    ("next_prio=", &next.prio),
                ],
            )
        },
        Waking { task, target } => woken(&["sched_waking"], task, target),
        Wakeup { task, target } => woken(&["sched_wakeup", "sched_wakeup_new"], task, target),
        Migrate { pid, from, to } => {
            sentence(&["sched_migrate_task"], &[("pid=", pid), ("orig_cpu=", from), ("dest_cpu=", to)])
        }
        Inherit { pid, old, new } => {
            sentence(&["sched_pi_setprio"], &[("pid=", pid), ("oldprio=", old), ("newprio=", new)])
        }
        Fork { child } => sentence(&["sched_process_fork"], &[("child_pid=", child)]),
        Exec { old } => sentence(&["sched_process_exec"], &[("old_pid=", old)]),
        Exit => sentence(&["sched_process_exit"], &[]),
        Idle { state } => sentence(&["cpu_idle"], &[("state=", &state.unwrap_or(u32::MAX))]),
        SyscallEntry { id, .. } => sentence(&["sys_enter"], &[("NR ", id)]),
        SyscallExit { id } => sentence(&["sys_exit"], &[("NR ", id)]),
        Fault { user: true } => sentence(&["page_fault_user"], &[]),
        Fault { user: false } => sentence(&["page_fault_kernel"], &[]),
        Console => sentence(&["console"], &[]),
        ContentionBegin { lock, .. } => sentence(&["contention_begin"], &[("", &hex(lock))]),
        ContentionEnd { lock } => sentence(&["contention_end"], &[("", &hex(lock))]),
        ContendedRelease { lock } => sentence(&["contended_release"], &[("", &hex(lock))]),
        Stack { .. } => sentence(&["<stack trace>"], &[]),
        _ => return None,
    })
}

fn of_interrupts(what: &What<u64>) -> Option<Said> {
    use What::*;
    Some(match what {
        IrqEntry { irq, name } => sentence(&["irq_handler_entry"], &[("irq=", irq), ("name=", name)]),
        IrqExit { irq } => sentence(&["irq_handler_exit"], &[("irq=", irq)]),
        SoftirqRaise { vec } => sentence(&["softirq_raise"], &[("vec=", vec)]),
        SoftirqEntry { vec } => sentence(&["softirq_entry"], &[("vec=", vec)]),
        SoftirqExit { vec } => sentence(&["softirq_exit"], &[("vec=", vec)]),
        VectorEntry { .. } | VectorExit { .. } => sentence(&[], &[]),
        IpiEntry { reason } => with(&[("", *reason)], sentence(&["ipi_entry"], &[])),
        IpiExit { reason } => with(&[("", *reason)], sentence(&["ipi_exit"], &[])),
        IpiSend { targets, callsite: 0, .. } => {
            let mask: u32 = targets.iter().map(|cpu| 1 << cpu.0).sum();
            sentence(&["ipi_raise"], &[("target_mask=00000000,", &format!("{mask:08x}"))])
        }
        IpiSend { targets, callsite, callback } => with(
            &[("callsite=", *callsite), ("callback=", *callback)],
            sentence(&["ipi_send_cpu", "ipi_send_cpumask"], &[("cpu=", targets)]),
        ),
        CallQueue { target, callsite, function } => with(
            &[("callsite=", *callsite), ("func=", *function)],
            sentence(&["csd_queue_cpu"], &[("cpu=", target)]),
        ),
        CallEntry { function } => with(&[("func=", *function)], sentence(&["csd_function_entry"], &[])),
        CallExit { function } => with(&[("func=", *function)], sentence(&["csd_function_exit"], &[])),
        _ => return None,
    })
}

fn of_timers(what: &What<u64>) -> Option<Said> {
    use What::*;
    Some(match what {
        TimerStart { timer, function, expires } => with(
            &[("function=", *function)],
            sentence(&["hrtimer_start"], &[("hrtimer=", &hex(timer)), ("softexpires=", &expires.0)]),
        ),
        TimerEntry { timer, function, now } => with(
            &[("function=", *function)],
            sentence(&["hrtimer_expire_entry"], &[("hrtimer=", &hex(timer)), ("now=", &now.0)]),
        ),
        TimerStartExpired { timer } => sentence(&["hrtimer_start_expired"], &[("hrtimer=", &hex(timer))]),
        TimerRearm { next, deferred } => {
            let words: [(&str, &dyn Display); 2] =
                [("next_event=", &next.0), ("deferred=", &u8::from(*deferred))];
            sentence(&["hrtimer_rearm"], &words)
        }
        TimerExit { timer } => sentence(&["hrtimer_expire_exit"], &[("hrtimer=", &hex(timer))]),
        WheelEntry { function } => with(&[("function=", *function)], sentence(&["timer_expire_entry"], &[])),
        WheelExit => sentence(&["timer_expire_exit"], &[]),
        TaskletEntry { function } => with(&[("function=", *function)], sentence(&["tasklet_entry"], &[])),
        TaskletExit => sentence(&["tasklet_exit"], &[]),
        WorkEntry { function } => {
            with(&[("function ", *function)], sentence(&["workqueue_execute_start"], &[]))
        }
        WorkExit { function } => with(&[("function ", *function)], sentence(&["workqueue_execute_end"], &[])),
        _ => return None,
    })
}

/// Word of the kernel for an event named after a vector.
fn vector(what: &What<u64>) -> Option<String> {
    match what {
        What::VectorEntry { vector } => Some(format!("{}_entry", vector.name())),
        What::VectorExit { vector } => Some(format!("{}_exit", vector.name())),
        _ => None,
    }
}

/// Text after a key, up to the next blank or bracket.
fn after<'a>(body: &'a str, key: &str) -> Option<&'a str> {
    let at = if key.is_empty() { Some(0) } else { body.find(key).map(|at| at + key.len()) };
    body[at?..].split([' ', ')']).next()
}

/// Compares one event with its line; names for addresses go into the book, which must stay one to
/// one.
fn compare(event: &Raw, line: &Line, book: &mut BTreeMap<u64, String>) {
    let what = &event.what;
    let said = of_threads(what).or_else(|| of_interrupts(what)).or_else(|| of_timers(what)).unwrap();
    let told = format!("{event:?}\n{line:?}");
    assert_eq!(
        ((event.time.0 + 500) / 1000, event.cpu.0, event.pid),
        (line.micros, line.cpu, line.pid),
        "{told}"
    );
    let name = vector(what);
    assert!(said.event.contains(&line.event.as_str()) || name.as_ref() == Some(&line.event), "{told}");
    let body = format!(" {} ", line.body);
    let is_in = |word: &String| {
        body.match_indices(word.as_str()).any(|(at, _)| {
            body[..at].ends_with([' ', '(']) && body[at + word.len()..].starts_with([' ', ')', ','])
        })
    };
    let ended = said.words.iter().all(|word| is_in(word) || body.contains(&format!(" {word} ")));
    assert!(ended, "{:?}\n{told}", said.words);
    for (key, name) in &said.names {
        // 6.1.0-56 leaves the first text of a line empty.
        let after = &body[body.find(key).unwrap() + key.len()..];
        assert!(after.starts_with(&format!("{name} ")) || after.starts_with(' '), "{told}");
    }
    for (key, address) in &said.functions {
        let shown = after(&line.body, key).unwrap_or_default();
        let known = book.entry(*address).or_insert_with(|| shown.to_owned());
        assert_eq!(known.split('+').next(), shown.split('+').next(), "{told}");
    }
    let hard = line.flags.as_bytes()[if line.flags.len() > 5 { 3 } else { 2 }];
    assert_eq!(event.context.hard_irq(), matches!(hard, b'h' | b'H' | b'z' | b'Z'), "{told}");
    assert_eq!(event.context.soft_irq(), matches!(hard, b's' | b'H'), "{told}");
    let depth = line.flags.as_bytes()[if line.flags.len() > 5 { 4 } else { 3 }];
    let depth = if depth == b'.' { 0 } else { depth - b'0' };
    assert_eq!(event.preempt, depth, "{told}");
    if let What::Stack { frames, .. } = what {
        assert_eq!(frames, &line.frames, "{told}");
    }
}

#[test]
fn the_kernels_own_text_says_the_same() {
    let folders = folders();
    assert!(folders.len() >= 4, "{folders:?}");
    for dir in folders {
        let lines = lines_of(&text(dir.join("trace")));
        let (mut book, mut kinds) = (BTreeMap::new(), std::collections::BTreeSet::new());
        for cpu in [0, 1] {
            let (events, notes) = decode(&dir, cpu);
            let lines: Vec<_> = lines.iter().filter(|line| line.cpu == cpu).collect();
            assert_eq!(events.len(), lines.len(), "{} CPU {cpu}", dir.display());
            assert!(events.len() > 100, "{} CPU {cpu}", dir.display());
            for (event, line) in events.iter().zip(&lines) {
                compare(event, line, &mut book);
                kinds.insert(line.event.clone());
            }
            assert!(notes.iter().all(|page| page.unknown + page.malformed == 0 && !page.cut), "{notes:?}");
        }
        // Different functions have different names; a name with an offset may occur for each of its
        // places.
        let mut names: Vec<_> = book.values().filter(|name| !name.contains(['+', '('])).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{}: {book:?}", dir.display());
        assert!(kinds.len() > 20, "{}: {kinds:?}", dir.display());
        println!("{}: {} lines, {} kinds", dir.display(), lines.len(), kinds.len());
    }
}

#[test]
fn what_was_overwritten_is_counted_as_the_kernel_counts_it() {
    let (mut counted, mut full) = (0, 0);
    for dir in folders() {
        for cpu in [0, 1] {
            let stats = text(dir.join(format!("cpu{cpu}.stats")));
            let overrun = stats.lines().find_map(|line| line.strip_prefix("overrun: ")).unwrap();
            let (_, notes) = decode(&dir, cpu);
            // The number is after the data, unless the page was full.
            if notes[0].lost == Lost::Some {
                full += 1;
            } else {
                assert_eq!(notes[0].lost, Lost::Records(overrun.parse().unwrap()), "{dir:?} CPU {cpu}");
                counted += 1;
            }
            assert!(notes[1..].iter().all(|page| page.lost == Lost::Nothing));
            assert!(notes.windows(2).all(|pages| pages[0].end <= pages[1].start), "{notes:?}");
        }
    }
    assert!(counted > 0, "{full} full pages and no other");
}
