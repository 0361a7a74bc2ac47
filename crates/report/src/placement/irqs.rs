//! Interrupts by number, with their CPUs, counts and threads.

use super::{Heads, List, ListLayout, ListRow, cpus, grouped, policy, render as listed};
use crate::map::{collapsed, kind_of};
use crate::words::{clean, duration, several};
use model::placement::{InterruptOrigin, IrqCount, IrqsDocument, PlacedIrq};
use model::units::{Cpu, CpuSet, Nanos, named_cpus};

/// Limit of names in the answer, and of CPUs whose counts are shown one by one.
const NAMES: usize = 5;
const COUNTED: usize = 3;

const HEADS: &Heads = &[
    ("IRQ", 0),
    ("device", 9),
    ("on", 3),
    ("may be on", 3),
    ("CPU:count", 7),
    ("thread", 4),
    ("movable", 6),
];
const RATES: &Heads = &[HEADS[0], HEADS[1], HEADS[2], HEADS[3], ("CPU:per s", 7), HEADS[5], HEADS[6]];

/// Document as text; `all` has the rows without a count, too.
pub fn render(document: &IrqsDocument, all: bool, layout: ListLayout) -> String {
    let counts = document.irqs.iter().any(|irq| !irq.counts.is_empty());
    // The architecture lists interrupts that most machines never see.
    let is_shown = |irq: &&PlacedIrq| all || irq.is_numbered() || !irq.counts.is_empty();
    let irqs: Vec<&PlacedIrq> = document.irqs.iter().filter(is_shown).collect();
    let silent = document.irqs.len() - irqs.len();
    let row = |group: &[&PlacedIrq]| row(group, document.counted_ns, counts);
    let alike = |irq: &PlacedIrq| (kind_of(&irq.name), irq.kind, irq.movable, irq.is_numbered());
    let list = List {
        answer: answer(document),
        heads: if document.counted_ns.is_some() { RATES } else { HEADS },
        rows: irqs.iter().map(|&irq| row(&[irq])).collect(),
        joined: &|| grouped(&irqs, alike).iter().map(|group| row(group)).collect(),
        remarks: &document.remarks,
    };
    let layout = if all { ListLayout { rows: None, ..layout } } else { layout };
    listed(list, |left, joined| foot(left, joined, silent), layout)
}

fn row(group: &[&PlacedIrq], counted_ns: Option<i64>, counts: bool) -> ListRow {
    let (first, last) = (group[0], group[group.len() - 1]);
    let irq = if group.len() > 1 { format!("{}..{}", first.irq, last.irq) } else { first.irq.clone() };
    let threads = group.iter().flat_map(|irq| &irq.threads);
    let mut threads: Vec<String> = match group {
        [_] => threads.map(|one| format!("{} {}", one.tid, policy(one.policy, one.priority))).collect(),
        _ => threads.map(|one| policy(one.policy, one.priority)).collect(),
    };
    threads.dedup();
    let placed = |set: fn(&PlacedIrq) -> &CpuSet| {
        if first.is_numbered() { cpus(group.iter().map(|irq| set(irq))) } else { String::new() }
    };
    let cells = vec![
        irq,
        collapsed(group.iter().map(|irq| irq.name.as_str())).join(", "),
        placed(|irq| &irq.effective),
        placed(|irq| &irq.allowed),
        if counts { counts_of(group, counted_ns) } else { String::new() },
        threads.join(", "),
        movable(first).to_owned(),
    ];
    ListRow { cells, entries: group.len() }
}

fn movable(irq: &PlacedIrq) -> &str {
    match (irq.movable, irq.kind) {
        (true, _) => "yes",
        (false, InterruptOrigin::Managed) => "no: managed",
        (false, InterruptOrigin::PerCpu) => "no: per CPU",
        (false, InterruptOrigin::Device) => &irq.why,
    }
}

/// Counts, or rates, of each CPU; the sum of many.
fn counts_of(group: &[&PlacedIrq], counted_ns: Option<i64>) -> String {
    let value =
        |count: &IrqCount| if counted_ns.is_some() { count.counted.unwrap_or(0) } else { count.total };
    let mut by_cpu = std::collections::BTreeMap::<Cpu, u64>::new();
    for count in group.iter().flat_map(|irq| &irq.counts).filter(|count| value(count) > 0) {
        let sum = by_cpu.entry(Cpu(count.cpu)).or_default();
        *sum = sum.saturating_add(value(count));
    }
    let amount = |count: u64| counted_ns.map_or_else(|| count.to_string(), |ns| rate(count, ns));
    if by_cpu.is_empty() {
        return "0".to_owned();
    }
    if by_cpu.len() > COUNTED {
        let sum = by_cpu.values().fold(0u64, |sum, count| sum.saturating_add(*count));
        return format!("{}:{}", by_cpu.into_keys().collect::<CpuSet>(), amount(sum));
    }
    let each: Vec<String> =
        by_cpu.into_iter().map(|(cpu, count)| format!("{cpu}:{}", amount(count))).collect();
    each.join(" ")
}

fn rate(count: u64, ns: i64) -> String {
    let rate = count as f64 * 1e9 / ns.max(1) as f64;
    if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

fn answer(document: &IrqsDocument) -> String {
    let numbered: Vec<&PlacedIrq> = document.irqs.iter().filter(|irq| irq.is_numbered()).collect();
    let here = |irq: &&&PlacedIrq| document.cpus.is_empty() || irq.may_arrive_on(&document.cpus);
    let here: Vec<&PlacedIrq> = numbered.iter().filter(here).copied().collect();
    let mut text = several(here.len() as u64, "interrupt", "interrupts");
    if document.cpus.is_empty() {
        text += "; no CPU is isolated.";
    } else {
        text += &format!(" may arrive on {}.", named_cpus(&document.cpus));
    }
    let stuck: Vec<&str> = here.iter().filter(|irq| !irq.movable).map(|irq| irq.name.as_str()).collect();
    let names = collapsed(stuck.iter().copied());
    let more = if names.len() > NAMES { " and others" } else { "" };
    let names: Vec<String> = names.iter().take(NAMES).map(|name| clean(name)).collect();
    text += &match stuck.len() {
        0 if here.is_empty() => String::new(),
        0 if here.len() == 1 => " It can be moved.".to_owned(),
        0 => " All of them can be moved.".to_owned(),
        count => format!(" {count} cannot be moved: {}{more}.", names.join(", ")),
    };
    if let Some(ns) = document.counted_ns {
        let on = |count: &&IrqCount| document.cpus.is_empty() || document.cpus.contains(Cpu(count.cpu));
        let all = document.irqs.iter().flat_map(|irq| &irq.counts).filter(on);
        let sum = all.fold(0u64, |sum, count| sum.saturating_add(count.counted.unwrap_or(0)));
        text += &format!(" {sum} arrived in {}, with those of the CPUs' timers.", duration(Nanos(ns)));
    }
    text
}

/// Last line: interrupts without a row, and the flag that lists them.
fn foot(left: usize, joined: bool, silent: usize) -> String {
    let mut parts = Vec::new();
    if left > 0 {
        parts.push(several(left as u64, "interrupt", "interrupts"));
    } else if joined {
        parts.push("the interrupts of rows with N".to_owned());
    }
    if silent > 0 {
        parts.push(format!("{} of the architecture without a count", several(silent as u64, "row", "rows")));
    }
    if parts.is_empty() { String::new() } else { format!("Not shown: {} (--all).", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::placement::{IRQS_SCHEMA, IrqHandler, ThreadPolicy};

    fn irq(irq: &str, name: &str, kind: InterruptOrigin, on: &str, counts: &[(u32, u64)]) -> PlacedIrq {
        let set = CpuSet::parse(on).unwrap();
        let count = |&(cpu, total): &(u32, u64)| IrqCount { cpu, total, counted: Some(total / 10) };
        let thread = IrqHandler {
            tid: 71,
            comm: String::new(),
            policy: ThreadPolicy::Fifo,
            priority: 50,
            allowed: CpuSet::default(),
        };
        let is_device = kind == InterruptOrigin::Device;
        PlacedIrq {
            irq: irq.to_owned(),
            name: name.to_owned(),
            kind,
            effective: set.clone(),
            allowed: set,
            movable: is_device,
            why: String::new(),
            counts: counts.iter().map(count).collect(),
            threads: if is_device { vec![thread] } else { Vec::new() },
        }
    }

    fn document(queues: u32) -> IrqsDocument {
        let queue = |at: u32| {
            let name = format!("nvme0q{at}");
            irq(&(27 + at).to_string(), &name, InterruptOrigin::Managed, &at.to_string(), &[(at, 10)])
        };
        let first = [
            irq("0", "timer", InterruptOrigin::PerCpu, "0", &[(0, 123)]),
            irq("9", "acpi", InterruptOrigin::Device, "0-3", &[(0, 7), (2, 11)]),
        ];
        let last = [
            irq(
                "LOC",
                "Local timer interrupts",
                InterruptOrigin::PerCpu,
                "",
                &[(0, 1), (1, 2), (2, 3), (3, 4)],
            ),
            irq("MCE", "Machine check exceptions", InterruptOrigin::PerCpu, "", &[]),
        ];
        IrqsDocument {
            schema: IRQS_SCHEMA,
            cpus: CpuSet::parse("2-3").unwrap(),
            counted_ns: None,
            irqs: first.into_iter().chain((1..=queues).map(queue)).chain(last).collect(),
            unread: 0,
            remarks: vec!["Not all could be read.".to_owned()],
        }
    }

    const SCREEN: ListLayout = ListLayout { columns: 80, rows: Some(24), color: false };

    #[test]
    fn what_may_arrive_and_cannot_be_moved_is_named() {
        let expected = "\
3 interrupts may arrive on CPUs 2-3. 2 cannot be moved: nvme0qN (2).

IRQ  device                  on   may be on  CPU:count  thread      movable
0    timer                   0    0          0:123                  no: per CPU
9    acpi                    0-3  0-3        0:7 2:11   71 FIFO 50  yes
28   nvme0q1                 1    1          1:10                   no: managed
29   nvme0q2                 2    2          2:10                   no: managed
30   nvme0q3                 3    3          3:10                   no: managed
LOC  Local timer interrupts                  0-3:10                 no: per CPU

Not all could be read.
Not shown: 1 row of the architecture without a count (--all).
";
        assert_eq!(render(&document(3), false, SCREEN), expected);
        assert!(render(&document(3), true, SCREEN).contains("\nMCE  Machine check"));
    }

    #[test]
    fn queues_are_joined_on_a_screen_that_they_do_not_fit() {
        let text = render(&document(40), false, SCREEN);
        assert!(text.contains("\n28..67  nvme0qN (40) ") && text.contains(" 1-40:400 "), "{text}");
        assert!(
            text.contains("Not shown: the interrupts of rows with N, 1 row of the architecture"),
            "{text}"
        );
        let text = render(&document(40), true, SCREEN);
        assert!(text.contains("\n34   nvme0q7 "), "{text}");
    }

    #[test]
    fn rates_are_of_the_count() {
        let mut counted = document(1);
        counted.counted_ns = Some(2_000_000_000);
        let text = render(&counted, false, SCREEN);
        assert!(text.contains(" It can be moved. 1 arrived in"), "{text}");
        assert!(text.contains("CPU:per s") && text.contains(" 0:6.0 "), "{text}");
        assert!(text.contains(" 2:0.5 "), "{text}");
        counted.cpus = CpuSet::default();
        let text = render(&counted, false, SCREEN);
        assert!(
            text.starts_with("3 interrupts; no CPU is isolated. 2 cannot be moved: timer, nvme0q1. 14"),
            "{text}"
        );
        counted.irqs.clear();
        let text = render(&counted, false, SCREEN);
        assert!(text.starts_with("0 interrupts; no CPU is isolated. 0 arrived"), "{text}");
    }

    #[test]
    fn no_line_is_too_long_and_names_cannot_steer_the_terminal() {
        let mut hostile = document(5);
        hostile.irqs[1].name = "a\u{1b}[31m\u{202e}".to_owned() + &"x".repeat(70);
        hostile.irqs[1].allowed = CpuSet::parse("0-63:2").unwrap();
        for columns in [60, 80, 120] {
            let text = render(&hostile, false, ListLayout { columns, ..SCREEN });
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}\n{text}");
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        }
    }
}
