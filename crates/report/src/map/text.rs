//! Map of a machine for the terminal: groups of CPUs by their properties, then one scale of all
//! real-time priorities.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::words::{listed, named};
use super::{APART, CpuGroup, Map, PriorityStep, Work, WorkItem, rank_name};
use crate::folded::{FoldedColumn, write_columns};
use crate::palette::{BOLD, DIM, PLAIN, Palette};
use crate::words::{clean, filled, wrapped};
use model::text::several;
use model::units::{CpuSet, named_cpus};

/// Limit of groups that are shown; the others are counted. `NAMES` is that of names in a list.
const GROUPS: usize = 24;
const NAMES: usize = 24;
/// Least number of columns for the names of threads.
const NAME: usize = 20;
/// Limit of CPUs, or groups, with a column each in the scale.
const COLUMNS: usize = 24;

/// Map as text of up to this number of columns, with ANSI codes if `color` is set.
pub fn render(map: &Map, width: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    if map.cpus.is_empty() {
        page.push_str("The CPUs are not known, so there is no map of them.\n");
    } else {
        table(&mut page, map, width, palette);
        legend(&mut page, map, width);
        besides(&mut page, map, width, palette);
    }
    scale(&mut page, map, width, palette);
    if !map.unknown.is_empty() {
        let _ = writeln!(page, "\n{}", palette.paint(BOLD, "Not on the map"));
        map.unknown.iter().for_each(|what| wrapped(&mut page, &format!("  {}", clean(what)), width));
    }
    page
}

fn table(page: &mut String, map: &Map, width: usize, palette: Palette) {
    let groups = &map.groups[..map.groups.len().min(GROUPS)];
    let column = |head, least, cell: &dyn Fn(usize, &CpuGroup) -> String| FoldedColumn {
        head,
        least,
        cells: groups.iter().enumerate().map(|(at, group)| cell(at, group)).collect(),
    };
    let letters = by_group(map, width);
    let columns = vec![
        column("", 1, &|at, _| if letters { letter(at) } else { String::new() }),
        column("CPU", 6, &|_, group| {
            format!("{}{}", group.cpus, if group.alike.matters { " *" } else { "" })
        }),
        column("cores", 7, &|_, group| cores(group)),
        column("isolated via", 9, &|_, group| apart(group)),
        column("interrupts", 10, &|_, group| {
            let count = |work: &Work| work.on(&group.cpus).count();
            or_partial(&map.lands, format!("{} ({})", count(&map.lands), count(&map.may)))
        }),
        column("kernel threads", 8, &|_, group| {
            let count = |work: &Work| work.on(&group.cpus).count();
            or_partial(&map.movable, format!("{} + {}", count(&map.movable), count(&map.bound)))
        }),
        column("unbound work", 7, &|_, group| match group.alike.workqueues {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => "?".to_owned(),
        }),
    ];
    let style = |at: usize| if groups[at].alike.matters { BOLD } else { PLAIN };
    write_columns(page, columns, width, &style, palette);
    if map.groups.len() > GROUPS {
        let _ = writeln!(
            page,
            "and {} of CPUs",
            several((map.groups.len() - GROUPS) as u64, "more group", "more groups")
        );
    }
}

fn or_partial(work: &Work, text: String) -> String {
    match (work.partial, work.items.is_empty()) {
        (true, true) => "?".to_owned(),
        (true, false) => format!("{text} ?"),
        (false, _) => text,
    }
}

fn cores(group: &CpuGroup) -> String {
    let alike = &group.alike;
    let mut words = Vec::new();
    if !alike.online {
        words.push("offline".to_owned());
    }
    words.extend(Some(clean(&alike.kind)).filter(|kind| !kind.is_empty()));
    words.extend(alike.node.map(|node| format!("node {node}")));
    if alike.threads > 1 {
        words.push(format!("{} CPUs each", alike.threads));
    }
    if !group.split.is_empty() {
        words.push(format!("shared with {}", named_cpus(&group.split)));
    }
    words.join(", ")
}

fn apart(group: &CpuGroup) -> String {
    let word = |(name, has): (&str, &Option<bool>)| match has {
        Some(true) => Some(name.to_owned()),
        Some(false) => None,
        None => Some(format!("{name}?")),
    };
    let words: Vec<String> = APART.into_iter().zip(&group.alike.apart).filter_map(word).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

fn legend(page: &mut String, map: &Map, width: usize) {
    let star = if map.matter.is_empty() { "" } else { "* audited. " };
    wrapped(
        page,
        &format!(
            "{star}interrupts: arriving there now (allowed). kernel threads: movable + bound. unbound work: whether workqueues may use the CPUs."
        ),
        width,
    );
}

/// Further work that may run on the audited CPUs, by name.
fn besides(page: &mut String, map: &Map, width: usize, palette: Palette) {
    if map.matter.is_empty() {
        return;
    }
    let _ = writeln!(
        page,
        "\n{}",
        palette.paint(BOLD, &format!("Other work that may run on {}", named_cpus(&map.matter)))
    );
    let landing: BTreeSet<Option<u32>> = map.lands.on(&map.matter).map(|item| item.number).collect();
    let more: Vec<&WorkItem> =
        map.may.on(&map.matter).filter(|item| !landing.contains(&item.number)).collect();
    let mut list = |head: &str, work: &Work, items: Vec<&WorkItem>| {
        let text = listed(&named(&items), NAMES);
        let text = or_partial(work, if text.is_empty() { "none".to_owned() } else { text });
        filled(page, &format!("  {head:<16} "), &text, 19, width);
    };
    list("interrupts", &map.lands, map.lands.on(&map.matter).collect());
    list("more may come", &map.may, more);
    list("movable threads", &map.movable, map.movable.on(&map.matter).collect());
    list("bound threads", &map.bound, map.bound.on(&map.matter).collect());
}

/// True if the scale has a column for each group, because one for each CPU would take more than
/// half of the width.
fn by_group(map: &Map, width: usize) -> bool {
    let digits = map.cpus.iter().last().map_or(1, |last| last.to_string().len());
    map.cpus.len() > COLUMNS || map.cpus.len() * (digits + 1) > width / 2
}

fn letter(at: usize) -> String {
    char::from_u32('a' as u32 + at as u32).filter(|_| at < COLUMNS).map_or_else(String::new, String::from)
}

/// Columns of the scale: each with its heading and its CPUs.
fn columns(map: &Map, width: usize) -> Vec<(String, CpuSet)> {
    if by_group(map, width) {
        let groups = map.groups.iter().take(COLUMNS.min(width / 4)).enumerate();
        return groups.map(|(at, group)| (letter(at), group.cpus.clone())).collect();
    }
    map.cpus.iter().map(|cpu| (cpu.to_string(), CpuSet::from_iter([cpu]))).collect()
}

fn scale(page: &mut String, map: &Map, width: usize, palette: Palette) {
    let _ = writeln!(page, "\n{}", palette.paint(BOLD, "Real-time threads by priority"));
    if map.realtime.is_empty() {
        page.push_str(if map.bound.partial { "  not known\n" } else { "  none\n" });
        return;
    }
    let columns = columns(map, width);
    let room = columns.iter().map(|(head, _)| head.len()).max().unwrap_or(1);
    let heads: Vec<String> = columns.iter().map(|(head, _)| format!("{head:>room$}")).collect();
    let cpus = |step: &PriorityStep| step.cpus.as_ref().map_or("?".to_owned(), |cpus| reach(cpus, map));
    let list = map
        .realtime
        .iter()
        .map(|step| cpus(step).chars().count())
        .max()
        .unwrap_or(0)
        .clamp(3, (width / 5).max(8));
    let _ = writeln!(
        page,
        "{}",
        palette.paint(DIM, &format!("        {}  {:<list$}  threads", heads.join(" "), "CPU"))
    );
    let mut before = None;
    for step in &map.realtime {
        let rank = if before == Some(step.rank) { String::new() } else { rank_name(step.rank) };
        before = Some(step.rank);
        let cells: Vec<String> =
            columns.iter().map(|(_, cpus)| format!("{:>room$}", cell(step, cpus))).collect();
        let cpus = cpus(step);
        let cpus = if cpus.chars().count() > list { format!("{}..", &cpus[..list - 2]) } else { cpus };
        let first = format!("  {rank:>4}  {}  {cpus:<list$}  ", cells.join(" "));
        let mut line = String::new();
        // If there is no space next to the cells, the names go below.
        let (first, hang) = match first.chars().count() {
            start if start + NAME > width => {
                line = format!("{}\n", first.trim_end());
                (" ".repeat(8), 8)
            }
            start => (first, start),
        };
        let of = if step.kernel { "" } else { "program " };
        filled(&mut line, &first, &format!("{of}{}", listed(&step.names, NAMES)), hang, width);
        page.push_str(&if step.kernel { line } else { palette.paint(BOLD, line.trim_end()) + "\n" });
    }
    wrapped(
        page,
        "# may run there, + one or some of them may, . none may. Threads not marked as a program are kernel threads.",
        width,
    );
}

/// CPUs of a step: all, or a list.
fn reach(cpus: &CpuSet, map: &Map) -> String {
    let online = map.cpus.without(&map.offline);
    if !online.is_empty() && online.without(cpus).is_empty() { "all".to_owned() } else { cpus.to_string() }
}

fn cell(step: &PriorityStep, cpus: &CpuSet) -> char {
    let Some(allowed) = &step.cpus else { return '?' };
    match (cpus.0.is_disjoint(&allowed.0), cpus.0.is_subset(&allowed.0)) {
        (true, _) => '.',
        (false, true) if !step.each => '#',
        _ => '+',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::tests::{four, machine, map_of, thread};

    #[test]
    fn a_machine_with_two_isolated_cpus() {
        let expected = "CPU    isolated via         interrupts  kernel threads  unbound work
0-1    -                    \
                        3 (3)       2 + 4           yes
2-3 *  isolcpus, rcu_nocbs  2 (3)       1 + 4           \
                        no
* audited. interrupts: arriving there now (allowed). kernel threads: movable +
  \
                        bound. unbound work: whether workqueues may use the CPUs.

Other work that may run \
                        on CPUs 2-3
  interrupts       nvme0qN (2)
  more may come    9 acpi
  movable \
                        threads  kcompactd0
  bound threads    cpuhp/N (2), migration/N (2)

Real-time \
                        threads by priority
        0 1 2 3  CPU  threads
  stop  + + + +  all  migration/N \
                        (4)
    80  . . # .  2    program control
    50  # . . .  0    irq/9-acpi
# may run \
                        there, + one or some of them may, . none may. Threads not marked as a
  program are \
                        kernel threads.
";
        assert_eq!(render(&map_of(&four()), 80, false), expected);
    }

    #[test]
    fn what_is_unknown_is_marked() {
        let edits = "/sys/devices/system/cpu/isolated refused\n/proc/irq refused\n/proc refused\n--cpus 1";
        let text = render(&map_of(&machine(2, edits)), 60, false);
        for line in [
            "0    isolcpus?,      ?           ?              yes",
            "  movable threads  ?",
            "  not known",
            "  /sys/devices/system/cpu/isolated may not be read (EACCES,",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let evil = "\u{1b}[31mx\u{202e}\u{7}";
        let edits = format!("/sys/kernel/irq/100/actions: {evil}\n{}", thread(9, evil, 0, 70, "0"));
        let text = render(&map_of(&machine(2, &(edits + "--cpus 0"))), 80, false);
        assert!(text.contains("[31mx") && !text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    }

    #[test]
    fn no_line_is_too_long() {
        let cpus = [1, 9, 16, 24, 25, 64];
        // As many groups as CPUs.
        let types = (0..64).map(|n| format!("/sys/devices/system/cpu/cpu{n}/cpu_capacity: {n}\n"));
        let edits = types.collect::<String>() + &thread(9, "a thread's name", 0, 70, "0-63:2");
        for map in cpus.map(|cpus| map_of(&machine(cpus, &edits))) {
            for width in [60, 80, 100, 200] {
                let text = render(&map, width, false);
                assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
            }
        }
    }
}
