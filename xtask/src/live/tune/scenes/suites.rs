//! Suites that change settings, run to their end and killed in the middle: preemption models,
//! limits of real-time tasks, a partition.

use std::collections::BTreeSet;

use super::super::noise::Noise;
use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, require, text_is};
use crate::live::machine::Machine;

pub fn scenes() -> Vec<UndoScene> {
    vec![
        UndoScene::new("suite-models", include_str!("../../guest/suite-models.sh"), models),
        // 6.12 warns when the server of a CPU with ordinary tasks is written to, isolated or not.
        UndoScene {
            may_warn: "task_non_contending+",
            ..UndoScene::new("suite-throttling", include_str!("../../guest/suite-throttling.sh"), throttling)
        },
        UndoScene::new("suite-partition", include_str!("../../guest/suite-partition.sh"), partition),
    ]
}

fn models(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let offered = reply.value("offered")?.trim().to_string();
    let suite = document(reply, "suite")?;
    text_is(&suite, "/schema", "onbeat.suite/1")?;
    let phases = suite["phases"].as_array().ok_or("the suite has no phases")?;
    let models = offered.split_whitespace().count().max(1);
    require(phases.len() == 6 * models, || format!("{} phases of {models} models", phases.len()))?;
    // A load may be too slow under the emulator to be judged in two seconds: that is a hole with a
    // reason, and the others are there.
    let told = |phase: &&serde_json::Value| phase["valid"] == true || phase["why"] != "";
    require(phases.iter().all(|phase| told(&phase)), || "a hole has no reason".to_string())?;
    let valid = |load: &str| {
        phases
            .iter()
            .filter(|phase| phase["valid"] == true && (phase["load"] == "") == load.is_empty())
            .count()
    };
    let (idle, loaded) = (valid(""), valid("any"));
    require(idle == models && loaded > 0, || {
        format!("valid are {idle} phases without a load of {models}, {loaded} with one")
    })?;
    let valid = idle + loaded;
    let seen: BTreeSet<&str> = phases.iter().filter_map(|phase| phase["model"].as_str()).collect();
    require(reply.value("after")?.trim() == offered, || {
        format!("{offered} became {}", reply.value("after").unwrap_or_default())
    })?;
    require(reply.value("groups")?.trim() == "0", || "control groups of loads are left".to_string())?;
    if offered.is_empty() {
        return Ok(vec![format!("{valid} phases, one model: the kernel cannot switch")]);
    }
    require(seen.len() == models, || format!("models {seen:?} instead of {offered}"))?;
    require(reply.value("switched")?.trim() != offered, || "nothing was switched".to_string())?;
    require(reply.value("given-back")?.trim() == offered, || {
        format!("killed, {offered} stayed {}", reply.value("given-back").unwrap_or_default())
    })?;
    Ok(vec![format!("{valid} of {} phases valid; {offered} came back, also after kill -9", phases.len())])
}

/// The rows whose stops are judged; the expected values are in the document.
const JUDGED: [&str; 3] = ["1", "2", "5"];

/// Two ticks of Debian's kernels (CONFIG_HZ=250), in ns.
const TWO_TICKS: i64 = 8_000_000;

fn throttling(replies: &[Reply], machine: &Machine) -> Measured {
    let reply = &replies[0];
    let found = reply.value("found")?;
    let suite = document(reply, "suite")?;
    let phases = suite["phases"].as_array().ok_or("the suite has no phases")?;
    require(phases.len() == 7, || format!("{} phases instead of 7", phases.len()))?;
    let by = if machine.is_old() { "throttling" } else { "fair server" };
    let mut told = Vec::new();
    let mut wrong = Vec::new();
    // Without a limit only the emulator stops the thread, as it does in every row.
    let unlimited = phases.iter().find(|phase| phase["id"] == "4").map(medians).unwrap_or_default();
    let emulators = unlimited.get(unlimited.len() / 2).copied().unwrap_or(0);
    for phase in phases {
        let id = phase["id"].as_str().unwrap_or_default();
        let medians = medians(phase);
        let (Some(median), Some(expected)) = (medians.get(medians.len() / 2), phase["expected_ns"].as_i64())
        else {
            wrong.push(format!("row {id} has no stops: {}", phase["why"]));
            continue;
        };
        told.push(format!("row {id}: {:.1} ms for {:.1}", *median as f64 / 1e6, expected as f64 / 1e6));
        let off = (median - expected).abs() - emulators;
        if JUDGED.contains(&id) && off > TWO_TICKS && off * 5 > expected {
            wrong.push(format!("row {id}: stops of {medians:?} ns instead of {expected}"));
        }
        if phase["stopped_by"] != by || phase["valid"] != true || medians.len() != 3 {
            wrong.push(format!(
                "row {id}: by {}, {} CPUs, {}",
                phase["stopped_by"],
                medians.len(),
                phase["why"]
            ));
        }
    }
    for label in ["after", "killed.given-back", "interrupted.given-back"] {
        let now = reply.value(label)?;
        if now != found {
            wrong.push(format!("{label}: {found} became {now}"));
        }
    }
    for label in ["killed", "interrupted"] {
        require(reply.value(&format!("{label}.set"))? != found, || format!("{label}: nothing was set"))?;
        require(reply.value(&format!("{label}.left"))?.trim().is_empty(), || {
            format!("{label}: processes are left")
        })?;
    }
    let plan = reply.file("plan.out")?;
    require(plan.matches("needs --yes").count() == 2, || format!("no row is skipped: {plan}"))?;
    require(reply.value("alone.exit")?.trim() == "2", || "all CPUs are taken".to_string())?;
    require(wrong.is_empty(), || format!("{}; {}", wrong.join("; "), told.join("; ")))?;
    told.push("the limits came back, also after kill -9 and SIGTERM".to_string());
    Ok(told)
}

fn partition(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let suite = document(reply, "suite")?;
    let phases = suite["phases"].as_array().ok_or("the suite has no phases")?;
    let ids: Vec<&str> = phases.iter().filter_map(|phase| phase["id"].as_str()).collect();
    require(ids == ["outside", "inside"], || format!("the phases are {ids:?}"))?;
    // A load may be too slow under the emulator to be judged: that is a gap with a reason. Where it
    // was measured does not depend on that.
    let counted = |phase: &serde_json::Value| phase["samples"].as_u64().unwrap_or(0);
    for phase in phases {
        require(counted(phase) >= 3_000, || format!("{} has {} samples", phase["id"], counted(phase)))?;
    }
    require(reply.value("during")?.trim() == "isolated", || {
        format!("inside, the partition was {}", reply.value("during").unwrap_or_default())
    })?;
    let inside = reply.value("inside")?;
    require(inside.trim() == "onbeat", || format!("in the partition ran: {inside}"))?;
    for label in ["after", "killed"] {
        require(reply.value(label)?.trim() == "none", || format!("{label}: the partition is left"))?;
    }
    let noise = Noise::read();
    let left: Vec<&str> =
        reply.file("differ")?.lines().filter(|path| noise.pattern_of(path).is_none()).collect();
    require(left.is_empty(), || format!("not put back: {}", left.join(" ")))?;
    require(reply.value("ssh.exit")?.trim() == "2", || "it runs over ssh".to_string())?;
    let max = |phase: &serde_json::Value| phase["max_ns"].as_f64().unwrap_or(0.0) / 1e6;
    Ok(vec![format!(
        "outside at most {:.1} ms, inside {:.1} ms; partition and settings came back, also after kill -9",
        max(&phases[0]),
        max(&phases[1])
    )])
}

/// The median stop of each CPU of a phase, sorted.
fn medians(phase: &serde_json::Value) -> Vec<i64> {
    let stops = phase["stops"].as_array().map_or(&[][..], Vec::as_slice);
    let mut medians: Vec<i64> = stops.iter().filter_map(|stop| stop["median_ns"].as_i64()).collect();
    medians.sort_unstable();
    medians
}
