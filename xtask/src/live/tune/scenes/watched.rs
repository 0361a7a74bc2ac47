//! `onbeat watch` unattended on a machine: as a unit, and through the events of one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{count, document, exit, require};
use crate::live::machine::Machine;

/// Limit of a watch's private memory, in kB.
const MEMORY_KB: u64 = 3 * 1024;
/// The suspend, and latencies that would span it, are about as long.
const SUSPENDED_NS: i64 = 2_000_000_000;

pub fn scenes() -> Vec<UndoScene> {
    vec![
        UndoScene {
            systemd: true,
            ..UndoScene::new("watch-unit", include_str!("../../guest/watch-unit.sh"), unit)
        },
        UndoScene::new("watch-marks", include_str!("../../guest/watch-marks.sh"), marks),
    ]
}

fn unit(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    for label in ["start", "measure", "stop", "report"] {
        exit(reply, label, 0)?;
    }
    let (first, second) = (reply.number("first")?, reply.number("second")?);
    require(first > 0 && second > 0 && first != second, || {
        format!("killed, it did not come back: process {first}, then {second}")
    })?;
    require(reply.value("result")? == "success", || {
        format!("stopped, it counts as {}", reply.value("result").unwrap_or_default())
    })?;
    require(reply.number("left")? == 0, || "a program or a map remains".to_string())?;
    let status = reply.file("status")?;
    let capabilities = ["CapEff:", "CapPrm:"].map(|key| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.map(str::trim).unwrap_or("unknown").to_string()
    });
    require(capabilities.iter().all(|set| set.bytes().all(|digit| digit == b'0')), || {
        format!("it keeps capabilities: {}", capabilities.join(", "))
    })?;
    let memory = reply.value("memory")?;
    let anonymous = memory.split_once("Anonymous ").and_then(|(_, rest)| rest.split(' ').next());
    let anonymous: u64 = anonymous.and_then(|kb| kb.parse().ok()).ok_or("its memory is not reported")?;
    require(anonymous <= MEMORY_KB, || format!("{anonymous} kB of anonymous memory"))?;
    let record = document(reply, "record")?;
    let intervals = count(&record, "intervals")?;
    require(intervals >= 6, || format!("{intervals} intervals"))?;
    let recorded = record.pointer("/coverage/recorded").and_then(Value::as_u64).unwrap_or(0);
    require(recorded > 500, || format!("{recorded} wake-ups recorded during 1,000 of a measurement"))?;
    let ring = unit_by_ring(reply)?;
    Ok(vec![format!(
        "{intervals} intervals, {recorded} wake-ups; no capability kept; memory in kB: {}; {ring}",
        memory.trim()
    )])
}

/// The unit's process is restarted after a kill, and its tracefs instance disappears with it.
fn unit_by_ring(reply: &Reply) -> Result<String, String> {
    for label in ["ring.start", "ring.stop"] {
        exit(reply, label, 0)?;
    }
    let (first, second) = (reply.number("ring.first")?, reply.number("ring.second")?);
    require(first > 0 && second > 0 && first != second, || {
        format!("killed, that of a ring did not come back: process {first}, then {second}")
    })?;
    let instances = ["ring.instances", "ring.left"].map(|label| reply.number(label));
    require(instances == [Ok(1), Ok(0)], || format!("instances while it ran and after: {instances:?}"))?;
    require(reply.value("ring.result")? == "success", || "stopped, that of a ring failed".to_string())?;
    Ok(format!("{} intervals by a ring", reply.number("ring.intervals")?))
}

fn marks(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    exit(reply, "watch", 6)?;
    exit(reply, "report", 0)?;
    let slept = reply.value("slept")?.trim();
    let ms = reply.number("slept.ms")?;
    let record = document(reply, "record")?;
    let all = record["marks"].as_array().cloned().unwrap_or_default();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for mark in &all {
        *kinds.entry(mark["kind"].as_str().unwrap_or_default()).or_default() += 1;
    }
    for kind in ["cpu-offline", "cpu-online", "clock-step", "suspend", "measure"] {
        require(kinds.contains_key(kind), || {
            format!("no mark of {kind}, only {kinds:?}; {ms} ms suspended ({slept})")
        })?;
    }
    require(kinds["clock-step"] == 2, || format!("{} steps of the clock, of 2", kinds["clock-step"]))?;
    let lists = ["worst", "worst_by_priority", "worst_of_kernel_threads"]
        .map(|list| record[list].as_array().cloned().unwrap_or_default());
    let totals: Vec<i64> = lists.concat().iter().filter_map(|worst| worst["total_ns"].as_i64()).collect();
    let largest = totals.iter().max().copied().ok_or("the document has no worst wake-up")?;
    require(largest < SUSPENDED_NS, || format!("a latency of {largest} ns spans the suspend"))?;
    Ok(vec![format!("marks: {kinds:?}; suspended for {ms} ms ({slept}); largest latency {largest} ns")])
}
