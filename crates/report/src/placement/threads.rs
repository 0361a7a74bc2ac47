//! Threads by priority, with their CPUs.

use super::{Heads, List, ListLayout, ListRow, cpus, grouped, policy, rank, render as listed};
use crate::map::{collapsed, kind_of};
use crate::words::{UNKNOWN, clean, several};
use model::isolation::IMMOVABLE;
use model::placement::{PlacedThread, ThreadOrigin, ThreadPolicy, ThreadsDocument};
use model::units::named_cpus;

/// Limit of names in the answer.
const NAMES: usize = 3;

/// Threads that have a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRows {
    /// Real-time ones, as many as fit; the others are counted.
    Screen,
    /// All of the document.
    All,
}

const HEADS: &Heads =
    &[("TID", 0), ("thread", 9), ("policy", 0), ("CPUs", 4), ("last", 0), ("kind", 0), ("movable", 8)];

/// Document as text.
pub fn render(document: &ThreadsDocument, rows: ThreadRows, layout: ListLayout) -> String {
    let (realtime, others): (Vec<_>, Vec<_>) =
        document.threads.iter().partition(|thread| thread.policy != ThreadPolicy::Other);
    let entries =
        if rows == ThreadRows::All { [realtime.clone(), others.clone()].concat() } else { realtime.clone() };
    let alike = |thread: &PlacedThread| {
        // `onbeat irqs` lists the threads of interrupts one by one.
        let is_handler = thread.kind == ThreadOrigin::Interrupt;
        let name = if is_handler { String::new() } else { kind_of(&thread.comm) };
        (rank(thread), thread.policy, thread.kind, thread.movable, thread.why.clone(), name)
    };
    let list = List {
        answer: answer(document, &realtime),
        heads: HEADS,
        rows: entries.iter().map(|&thread| row(&[thread])).collect(),
        joined: &|| grouped(&entries, alike).iter().map(|group| row(group)).collect(),
        remarks: &document.remarks,
    };
    let counted: &[&PlacedThread] = if rows == ThreadRows::All { &[] } else { &others };
    let layout = if rows == ThreadRows::All { ListLayout { rows: None, ..layout } } else { layout };
    listed(list, |left, joined| foot(left, joined, counted), layout)
}

fn row(group: &[&PlacedThread]) -> ListRow {
    let first = group[0];
    let tid = if group.len() > 1 { String::new() } else { first.tid.to_string() };
    let last = match first.last_cpu {
        None => String::new(),
        Some(cpu) if group.iter().all(|thread| thread.last_cpu == Some(cpu)) => cpu.to_string(),
        Some(_) => UNKNOWN.to_owned(),
    };
    let kind = match first.kind {
        ThreadOrigin::User => "user",
        ThreadOrigin::Interrupt => "interrupt",
        ThreadOrigin::Kernel => "kernel",
    };
    let names = collapsed(group.iter().map(|thread| thread.comm.as_str()));
    let cells = vec![
        tid,
        if let [name] = &names[..] { name.clone() } else { format!("irq/N-NAME ({})", group.len()) },
        policy(first.policy, first.priority),
        cpus(group.iter().map(|thread| &thread.allowed)),
        last,
        kind.to_owned(),
        movable(first, group.len() > 1),
    ];
    ListRow { cells, entries: group.len() }
}

fn movable(thread: &PlacedThread, joined: bool) -> String {
    match (thread.movable, thread.kind) {
        (true, ThreadOrigin::Interrupt) => "with its interrupt".to_owned(),
        (true, _) => "yes".to_owned(),
        (false, _) if joined && thread.allowed.len() <= 1 => "no: per CPU".to_owned(),
        (false, _) => {
            let duty = thread.why.strip_suffix(IMMOVABLE).unwrap_or_default().trim_end_matches(": ");
            let duty = duty.strip_prefix("it ").unwrap_or(duty);
            format!("no: {}", if duty.is_empty() { "the kernel refuses" } else { duty })
        }
    }
}

fn answer(document: &ThreadsDocument, realtime: &[&PlacedThread]) -> String {
    let there = match document.cpus.to_string() {
        all if all.is_empty() => String::new(),
        list => format!(" on {}", named_cpus(list)),
    };
    let of = |kind: ThreadOrigin| -> Vec<&PlacedThread> {
        realtime.iter().copied().filter(|thread| thread.kind == kind).collect()
    };
    let [users, interrupts, kernel] =
        [ThreadOrigin::User, ThreadOrigin::Interrupt, ThreadOrigin::Kernel].map(of);
    if realtime.is_empty() {
        return format!("No real-time thread{there}.");
    }
    let mut range = String::new();
    // The first of the interrupts is the highest, as the document is in the order of the ranks.
    if let (Some(high), Some(low)) = (interrupts.first(), interrupts.last()) {
        let [high, low] = [high, low].map(|thread| policy(thread.policy, thread.priority));
        range = if high == low { format!(" ({high})") } else { format!(" ({low} to {high})") };
    }
    let text = format!(
        "{}{there}: {} user, {} interrupt{range}, {} kernel.",
        several(realtime.len() as u64, "real-time thread", "real-time threads"),
        users.len(),
        interrupts.len(),
        kernel.len()
    );
    text + &users.first().map_or_else(String::new, |highest| highest_user(highest, &interrupts, &kernel))
}

/// Sentence about the user thread that preempts most others.
fn highest_user(highest: &PlacedThread, interrupts: &[&PlacedThread], kernel: &[&PlacedThread]) -> String {
    let own = rank(highest);
    let mut place = Vec::new();
    if let (Some(high), Some(low)) = (interrupts.first(), interrupts.last()) {
        let word = match (rank(low), rank(high)) {
            (_, high) if own > high => "above",
            (low, _) if own < low => "below",
            (low, high) if low == high => "level with",
            _ => "among",
        };
        place.push(format!("{word} interrupt threads"));
    }
    let above =
        collapsed(kernel.iter().filter(|thread| rank(thread) > own).map(|thread| thread.comm.as_str()));
    if !above.is_empty() {
        let more = if above.len() > NAMES { " and others" } else { "" };
        let names: Vec<String> = above.iter().take(NAMES).map(|name| clean(name)).collect();
        place.push(format!("below {}{more}", names.join(", ")));
    }
    let place = if place.is_empty() { String::new() } else { format!(", {}", place.join(", ")) };
    let policy = policy(highest.policy, highest.priority);
    format!(" Highest user thread: {} ({}) at {policy}{place}.", clean(&highest.comm), highest.tid)
}

/// Last line: threads without a row, and the flags that list them.
fn foot(left: usize, joined: bool, others: &[&PlacedThread]) -> String {
    let kernel = others.iter().filter(|thread| thread.kind != ThreadOrigin::User).count();
    let bound = others.iter().filter(|thread| !thread.movable).count();
    let users = others.len() - kernel;
    let mut parts = Vec::new();
    if left > 0 {
        parts.push(format!("{} (--rt)", several(left as u64, "real-time thread", "real-time threads")));
    } else if joined {
        parts.push("the threads of rows with N (--rt)".to_owned());
    }
    if !others.is_empty() {
        let bound = if bound > 0 { format!(" ({bound} not movable)") } else { String::new() };
        parts.push(format!("{kernel} other kernel{bound} and {users} other user threads (--all)"));
    }
    if parts.is_empty() { String::new() } else { format!("Not shown: {}.", parts.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::placement::THREADS_SCHEMA;
    use model::units::CpuSet;

    fn thread(tid: u32, comm: &str, fifo: u32, kind: ThreadOrigin, allowed: &str) -> PlacedThread {
        let movable = kind != ThreadOrigin::Kernel;
        let policy = if fifo > 0 { ThreadPolicy::Fifo } else { ThreadPolicy::Other };
        let why = if movable { String::new() } else { format!("it runs this CPU's timers: {IMMOVABLE}") };
        PlacedThread {
            tid,
            pid: Some(tid),
            comm: comm.to_owned(),
            policy,
            priority: fifo,
            kind,
            allowed: CpuSet::parse(allowed).unwrap(),
            last_cpu: Some(1),
            movable,
            why,
        }
    }

    fn document() -> ThreadsDocument {
        let (kernel, interrupt, user) = (ThreadOrigin::Kernel, ThreadOrigin::Interrupt, ThreadOrigin::User);
        let timers =
            (0..30).map(|cpu| thread(200 + cpu, &format!("ktimers/{cpu}"), 1, kernel, &cpu.to_string()));
        let first = [
            thread(15, "migration/0", 99, kernel, "0"),
            thread(4711, "control", 80, user, "2"),
            thread(71, "irq/9-acpi", 50, interrupt, "0-3"),
        ];
        let others = [thread(2, "cpuhp/0", 0, kernel, "0"), thread(900, "bash", 0, user, "0-3")];
        ThreadsDocument {
            schema: THREADS_SCHEMA,
            cpus: CpuSet::default(),
            threads: first.into_iter().chain(timers).chain(others).collect(),
            unread: 0,
            remarks: Vec::new(),
        }
    }

    const SCREEN: ListLayout = ListLayout { columns: 80, rows: Some(24), color: false };

    #[test]
    fn alike_threads_are_joined_on_a_screen_that_they_do_not_fit() {
        let expected = "\
33 real-time threads: 1 user, 1 interrupt (FIFO 50), 31 kernel. Highest user
  thread: control (4711) at FIFO 80, above interrupt threads, below migration/0.

TID   thread          policy   CPUs          last  kind       movable
15    migration/0     FIFO 99  0             1     kernel     no: runs this
                                                              CPU's timers
4711  control         FIFO 80  2             1     user       yes
71    irq/9-acpi      FIFO 50  0-3           1     interrupt  with its interrupt
      ktimers/N (30)  FIFO 1   each in 0-29  1     kernel     no: per CPU

Not shown: the threads of rows with N (--rt); 1 other kernel (1 not movable) and
  1 other user threads (--all).
";
        assert_eq!(render(&document(), ThreadRows::Screen, SCREEN), expected);
        let each = ListLayout { rows: None, ..SCREEN };
        let text = render(&document(), ThreadRows::Screen, each);
        assert!(text.contains("\n229   ktimers/29   FIFO 1   29 "), "{text}");
        assert_eq!(render(&document(), ThreadRows::All, SCREEN).matches("cpuhp/0").count(), 1);
    }

    #[test]
    fn rows_that_do_not_fit_are_counted() {
        let names = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr", "st", "uv", "wx"];
        let mut many = document();
        many.threads = names.map(|name| thread(9, name, 7, ThreadOrigin::User, "0")).to_vec();
        let text = render(&many, ThreadRows::Screen, ListLayout { rows: Some(12), ..SCREEN });
        assert!(
            text.lines().count() < 12 && text.contains("\nNot shown: 7 real-time threads (--rt).\n"),
            "{text}"
        );
        many.threads.clear();
        many.cpus = CpuSet::parse("3").unwrap();
        assert_eq!(render(&many, ThreadRows::Screen, SCREEN), "No real-time thread on CPU 3.\n");
    }

    #[test]
    fn the_highest_user_thread_is_placed_among_the_others() {
        let at = |fifo: u32| {
            let mut document = document();
            document.threads[1].priority = fifo;
            document.threads.sort_by_key(|thread| std::cmp::Reverse(rank(thread)));
            let text = render(&document, ThreadRows::Screen, ListLayout { columns: 200, ..SCREEN });
            text.lines().next().unwrap().split_once(") at ").unwrap().1.to_owned()
        };
        assert_eq!(at(50), "FIFO 50, level with interrupt threads, below migration/0.");
        assert_eq!(at(99), "FIFO 99, above interrupt threads, below migration/0.");
        assert_eq!(at(20), "FIFO 20, below interrupt threads, below migration/0.");
    }

    #[test]
    fn no_line_is_too_long_and_names_cannot_steer_the_terminal() {
        let mut hostile = document();
        hostile.threads[1].comm = "a\u{1b}[31m\u{202e}".to_owned();
        hostile.threads[2].comm = "irq/9-".to_owned() + &"x".repeat(60);
        for columns in [60, 80, 120] {
            for rows in [ThreadRows::Screen, ThreadRows::All] {
                let text = render(&hostile, rows, ListLayout { columns, ..SCREEN });
                assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}\n{text}");
                assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
            }
        }
    }
}
