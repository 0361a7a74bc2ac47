//! CPUs isolated and released: the remaining threads, the effect of systemd, and arrivals.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::scene::{Measured, UndoScene, compared, idle, none_left, state};
use super::super::state::MachineState;
use crate::live::frames::Reply;
use crate::live::judge::{document, documents, exit, require, text_is};
use crate::live::machine::Machine;

/// CPUs 2 and 3.
const APART: u64 = 0xc;
/// Limit of interrupts of a task in ten seconds besides its CPU's own timer.
const INTERRUPTS: u64 = 50;
/// Length of the observation.
const WINDOW_MS: i64 = 10_000;

pub fn scenes() -> Vec<UndoScene> {
    vec![
        UndoScene::new("isolate-created", include_str!("../../guest/isolate-created.sh"), created),
        UndoScene {
            systemd: true,
            ..UndoScene::new("isolate-systemd", include_str!("../../guest/isolate-systemd.sh"), under_systemd)
        },
        UndoScene::new("isolate-quiet", include_str!("../../guest/isolate-quiet.sh"), quiet),
    ]
}

fn mask(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches("\\n").replace(',', "");
    u64::from_str_radix(&digits, 16).map_err(|_| format!("{text} is not a mask"))
}

/// Threads that remain there although the kernel permits moving them.
fn threads_there(state: &MachineState) -> Result<Vec<String>, String> {
    let mut there = Vec::new();
    for task in state.tasks() {
        let may = mask(state.of_task(task, "mask"))?;
        if may & APART != 0 && !state.of_task(task, "kind").contains("pinned") {
            there.push(format!("{} {} ({may:x})", task, state.of_task(task, "name")));
        }
    }
    Ok(there)
}

/// Interrupts that remain there although the kernel permits moving them.
fn interrupts_there(state: &MachineState, movable: &BTreeSet<&str>) -> Result<Vec<String>, String> {
    let mut there = Vec::new();
    for irq in movable {
        let text = state.text(&format!("/proc/irq/{irq}/smp_affinity"));
        let may = mask(text.ok_or_else(|| format!("interrupt {irq} has no mask"))?)?;
        if may & APART != 0 {
            there.push(format!("{irq} ({may:x})"));
        }
    }
    Ok(there)
}

fn isolation(reply: &Reply, label: &str, partition: &str) -> Result<Value, String> {
    let document = document(reply, label)?;
    text_is(&document, "/schema", "onbeat.isolation/1")?;
    text_is(&document, "/partition", partition)?;
    Ok(document)
}

fn created(replies: &[Reply], machine: &Machine) -> Measured {
    let reply = &replies[0];
    exit(reply, "create", 0)?;
    let [before, created, after] = ["before", "created", "after"].map(|label| state(reply, label, machine));
    let (before, created, after) = (before?, created?, after?);
    require(reply.value("partition")? == "isolated", || {
        format!("the partition is {}", reply.value("partition").unwrap_or_default())
    })?;
    let listed = isolation(reply, "list", "isolated")?;
    text_is(&listed, "/cpus", "2-3")?;
    let threads = threads_there(&created)?;
    require(threads.is_empty(), || format!("threads may run there: {}", threads.join(", ")))?;
    let movable: BTreeSet<&str> = reply.file("movable")?.lines().collect();
    require(movable.len() >= 3, || format!("{} movable interrupts are too few", movable.len()))?;
    let interrupts = interrupts_there(&created, &movable)?;
    require(interrupts.is_empty(), || format!("interrupts may come there: {}", interrupts.join(", ")))?;
    exit(reply, "inside", 0)?;
    let inside = reply.file("inside.out")?;
    // The fields 40 and 41: priority 80, SCHED_FIFO.
    let placed = inside.contains("onbeat") && inside.contains("Cpus_allowed_list:\t3\n");
    require(placed && inside.contains("80 1\n"), || {
        format!("what is run inside is not FIFO 80 on CPU 3: {}", inside.replace('\n', " "))
    })?;
    measured_beside_a_load(reply)?;
    exit(reply, "undo", 0)?;
    isolation(reply, "given-back", "none")?;
    let (left, line) = compared(&before, &after, &idle(reply)?);
    none_left(&left, "after the undo")?;
    let count = |list: &str| listed[list].as_array().map_or(0, Vec::len);
    documents(reply, 6)?;
    Ok(vec![
        line,
        format!(
            "{} movable interrupts, none there; list names {} threads, {} interrupts",
            movable.len(),
            count("threads"),
            count("interrupts")
        ),
    ])
}

/// Checks that the refusal outside names the way in; inside, the CPUs are measured during a load.
fn measured_beside_a_load(reply: &Reply) -> Result<(), String> {
    exit(reply, "barred", 4)?;
    let refused = reply.file("barred.err")?;
    require(refused.contains("onbeat isolate run -c 2-3 --"), || format!("refused with: {refused}"))?;
    let document = document(reply, "measured").map_err(|why| {
        format!("{why}: {}", reply.file("measured.err").unwrap_or_default().replace('\n', " "))
    })?;
    text_is(&document, "/loads/0/cpus", "0-1")?;
    let counted = document.pointer("/cpus/1/cycles").and_then(Value::as_u64).unwrap_or(0);
    let loaded = document.pointer("/loads/0/total").and_then(Value::as_u64).unwrap_or(0);
    require(counted > 0 && loaded > 0, || format!("{counted} cycles during a load that counted {loaded}"))
}

fn under_systemd(replies: &[Reply], machine: &Machine) -> Measured {
    let reply = &replies[0];
    exit(reply, "create", 0)?;
    require(reply.value("created")? == "isolated", || {
        format!("created as {}", reply.value("created").unwrap_or_default())
    })?;
    isolation(reply, "list", "isolated")?;
    let [before, created, reloaded, after] =
        ["before", "created", "reloaded", "after"].map(|label| state(reply, label, machine));
    let (before, created, reloaded, after) = (before?, created?, reloaded?, after?);
    let found = reply.value("reloaded")?;
    if machine.is_old() {
        require(found != "isolated", || {
            "the old kernel's partition is still there: nothing was tried".to_string()
        })?;
        isolation(reply, "list-again", "invalid")?;
    } else {
        require(found == "isolated", || format!("after daemon-reload it is {found}"))?;
        isolation(reply, "list-again", "isolated")?;
        let threads = threads_there(&reloaded)?;
        require(threads.is_empty(), || format!("threads may run there: {}", threads.join(", ")))?;
    }
    require(threads_there(&created)?.is_empty(), || "threads may run there".to_string())?;
    exit(reply, "undo", 0)?;
    let (left, line) = compared(&before, &after, &idle(reply)?);
    none_left(&left, "after the undo")?;
    Ok(vec![
        line,
        format!("systemd is {}; after daemon-reload the partition is {found}", reply.value("systemd")?),
    ])
}

/// Interrupts of CPU 3 by their names, from /proc/interrupts.
fn counted(text: &str) -> Result<BTreeMap<String, u64>, String> {
    let mut lines = text.lines();
    let cpus = lines.next().unwrap_or_default().split_whitespace().count();
    require(cpus == 4, || format!("interrupts of {cpus} CPUs"))?;
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let count = fields.get(3)?.parse().ok()?;
        let words = fields.get(4..).unwrap_or_default().join(" ");
        Some((format!("{} {words}", name.trim()), count))
    };
    Ok(lines.filter_map(line).collect())
}

fn quiet(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    exit(reply, "create", 0)?;
    // The CPU, the priority, the policy (1 is SCHED_FIFO), the CPUs that it may run on.
    for label in ["first.where", "second.where"] {
        let found = reply.value(label)?.trim();
        require(found == "3 80 1 3", || {
            let said = reply.file("spin.err").unwrap_or_default().trim();
            format!("{label}: the task is not FIFO 80 on CPU 3: {found} {said}")
        })?;
    }
    require(reply.number("loads")? == 4, || "the load on the other CPUs has ended".to_string())?;
    let ms = reply.number("window.ms")?;
    require(ms >= WINDOW_MS, || format!("it was watched for {ms} ms only"))?;
    let (first, second) = (counted(reply.file("first")?)?, counted(reply.file("second")?)?);
    let came = |(name, count): (&String, &u64)| {
        (name.clone(), count - first.get(name).copied().unwrap_or(0).min(*count))
    };
    let came: Vec<(String, u64)> = second.iter().map(came).filter(|(_, count)| *count > 0).collect();
    let (timer, others): (Vec<_>, Vec<_>) = came.into_iter().partition(|(name, _)| name.starts_with("LOC "));
    let sum: u64 = others.iter().map(|(_, count)| count).sum();
    let told: Vec<String> = others.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let own: u64 = timer.iter().map(|(_, count)| count).sum();
    let line = format!("in {ms} ms {sum} interrupts ({}), and {own} of its own timer", told.join(", "));
    require(own > 0, || format!("{line}: the timer did not come either"))?;
    require(sum <= INTERRUPTS, || line.clone())?;
    exit(reply, "undo", 0)?;
    Ok(vec![line])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_interrupts_that_may_be_moved_are_found() {
        let state = MachineState::parse(
            "task:1/1/name\t=init\ntask:1/1/kind\t=user\ntask:1/1/mask\t=3\n\
             task:2/1/name\t=kthreadd\ntask:2/1/kind\t=kernel\ntask:2/1/mask\t=7\n\
             task:3/1/name\t=ksoftirqd/3\ntask:3/1/kind\t=kernel pinned\ntask:3/1/mask\t=8\n\
             /proc/irq/24/smp_affinity\t=3\\n\n/proc/irq/25/smp_affinity\t=00000000,0000000c\\n\n",
        )
        .unwrap();
        assert_eq!(threads_there(&state).unwrap(), ["2/1 kthreadd (7)"]);
        assert!(interrupts_there(&state, &BTreeSet::from(["24"])).unwrap().is_empty());
        assert_eq!(interrupts_there(&state, &BTreeSet::from(["24", "25"])).unwrap(), ["25 (c)"]);
        assert!(interrupts_there(&state, &BTreeSet::from(["26"])).is_err());
    }

    #[test]
    fn interrupts_are_counted_by_name_on_the_fourth_cpu() {
        let text = "   CPU0 CPU1 CPU2 CPU3\n 24: 1 2 3 4 PCI-MSIX nvme0q0\n\
             LOC: 5 6 7 8 Local timer interrupts\nERR: 0\n";
        let counted = counted(text).unwrap();
        assert_eq!((counted["24 PCI-MSIX nvme0q0"], counted["LOC Local timer interrupts"]), (4, 8));
        assert!(super::counted("CPU0\n").is_err());
    }
}
