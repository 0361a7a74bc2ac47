//! Planted faults for a trial of a change or a cure: the culprit named by a hunt, and the verdict
//! of an experiment on a change.

use super::super::scene::{Measured, UndoScene};
use super::proofs::ProofTold;
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require};
use crate::live::machine::Machine;

/// The functions that plant.
const PLANTED: &str = include_str!("../../guest/planted.sh");

/// Through no shell: a program that moves the planted thread to CPU 3 and back.
const MOVES: &str = "\
cat >/run/move <<END
#!/bin/sh
case \\$1 in a) mask=4 ;; b) mask=8 ;; esac
exec taskset -p \\$mask $spinner
END
chmod 755 /run/move
";

pub fn scenes() -> Vec<UndoScene> {
    // The hunt has a separate boot: it switches tracepoints, which an emulated machine may not
    // survive.
    let scene = |name, plant: &str, proofs: &[&str], judge| UndoScene {
        faults: true,
        boots: std::iter::once(&"hunted").chain(proofs).map(|act| script(plant, act)).collect(),
        ..UndoScene::new(name, "", judge)
    };
    // Half of two faults remain, as of one that occurs twice as often: more of them have to be
    // seen.
    let irq = "proof irq --change irq-affinity=0-1";
    let moved = format!("{MOVES}proof moved --script /run/move");
    vec![
        scene("planted-two", "plant_thread\nplant_storm\nsegment=5s", &[&moved, irq], two),
        scene("planted-storm", "plant_storm", &[irq], storm),
        scene(
            "planted-incurable",
            "plant_incurable",
            &["proof nothing --pairs 7 --change vmstat-interval=10"],
            incurable,
        ),
        scene(
            "planted-doubling",
            "plant_doubling\nsegment=5s",
            &["proof doubled --change vmstat-interval=10"],
            doubling,
        ),
    ]
}

pub fn script(plant: &str, act: &str) -> String {
    format!("{PLANTED}\n{plant}\n{act}\n")
}

/// A fault: the rule that identifies it, and a word that its report must contain.
type Named = (&'static str, &'static str);

const THREAD: Named = ("realtime-thread", "user_spin");
const STORM: Named = ("device-interrupt", "onbeat_storm");
const CALL: Named = ("remote-call", "fault_ipi");
const WORK: Named = ("vmstat-work", "vmstat_update");

fn two(replies: &[Reply], _: &Machine) -> Measured {
    let mut told = vec![named(&replies[0], &[THREAD, STORM])?];
    told.push(better(&replies[1], "moved")?);
    told.push(better(&replies[2], "irq")?);
    Ok(told)
}

fn storm(replies: &[Reply], _: &Machine) -> Measured {
    Ok(vec![named(&replies[0], &[STORM])?, better(&replies[1], "irq")?])
}

fn incurable(replies: &[Reply], _: &Machine) -> Measured {
    let named = named(&replies[0], &[CALL])?;
    let (code, told) = proof(&replies[1], "nothing")?;
    let fits = matches!((told.verdict.as_str(), code), ("inconclusive", 7) | ("equivalent", 0));
    require(fits, || format!("what does nothing ended with {code}: {}", told.line))?;
    Ok(vec![named, told.line])
}

fn doubling(replies: &[Reply], _: &Machine) -> Measured {
    let named = named(&replies[0], &[WORK])?;
    let (code, told) = proof(&replies[1], "doubled")?;
    require(told.verdict == "worse" && code == 3, || {
        format!("what doubles the fault ended with {code}: {}", told.line)
    })?;
    Ok(vec![named, told.line])
}

fn better(reply: &Reply, label: &str) -> Result<String, String> {
    let (code, told) = proof(reply, label)?;
    told.require_better()?;
    require(code == 0, || format!("exit {code}: {}", told.line))?;
    Ok(told.line)
}

fn proof(reply: &Reply, label: &str) -> Result<(i64, ProofTold), String> {
    let code = reply.number(&format!("{label}.exit"))?;
    let told = document(reply, &format!("{label}.document")).and_then(|proof| ProofTold::of(&proof));
    let told = told.map_err(|why| {
        let said = reply.file(&format!("{label}.err")).unwrap_or_default();
        format!("{why}; exit {code}: {}", said.lines().last().unwrap_or("nothing"))
    })?;
    Ok((code, told))
}

/// The faults have to be the culprits that took most time, in any order.
fn named(reply: &Reply, wanted: &[Named]) -> Result<String, String> {
    exit(reply, "hunt", 0)?;
    let run = document(reply, "hunt")?;
    let culprits = run["culprits"].as_array().ok_or("the hunt has no culprits")?;
    let shown = |culprit: &serde_json::Value| {
        let of = |field: &str| culprit[field].as_str().unwrap_or("no rule").to_string();
        format!("{} ({}) in {} spikes, share {}", of("rule"), of("name"), culprit["spikes"], culprit["share"])
    };
    let line = format!("hunt: {}", culprits.iter().take(4).map(shown).collect::<Vec<_>>().join("; "));
    let most = culprits.get(..wanted.len()).unwrap_or_default();
    let is_among = |(rule, word): &Named| {
        most.iter().any(|culprit| culprit["rule"] == *rule && culprit.to_string().contains(word))
    };
    require(wanted.iter().all(is_among), || format!("not {wanted:?}: {line}"))?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hunt(culprits: &serde_json::Value) -> Reply {
        let mut reply = Reply::default();
        reply.values.insert("hunt.exit".into(), "0".into());
        reply.files.insert("hunt".into(), Some(json!({ "culprits": culprits }).to_string()));
        reply
    }

    #[test]
    fn the_planted_faults_have_to_be_those_that_took_most() {
        let culprit =
            |rule: &str, name: &str| json!({ "rule": rule, "name": name, "spikes": 3, "share": 0.4 });
        let thread = culprit("realtime-thread", "user_spin, real-time priority 90");
        let storm = culprit("device-interrupt", "onbeat_storm");
        let other = culprit("timer-function", "x");
        assert!(named(&hunt(&json!([storm, thread, other])), &[THREAD, STORM]).is_ok());
        assert!(named(&hunt(&json!([storm, other, thread])), &[THREAD, STORM]).is_err());
        assert!(named(&hunt(&json!([storm])), &[THREAD, STORM]).is_err());
        assert!(named(&hunt(&json!([culprit("device-interrupt", "nvme0q1")])), &[STORM]).is_err());
        assert!(named(&hunt(&json!([])), &[STORM]).is_err() && named(&Reply::default(), &[STORM]).is_err());
    }
}
