//! A change that is proven against a planted fault, killed in the middle and gone on with.

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require, text_is};
use crate::live::machine::Machine;

pub fn scenes() -> Vec<UndoScene> {
    vec![UndoScene::new("prove", include_str!("../../guest/prove.sh"), proven)]
}

/// What undoes a killed command's changes has so long, in ms.
const PATIENCE: i64 = 10_000;

fn proven(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let is = |label: &str, wanted: &str| -> Result<(), String> {
        let found = reply.value(label)?;
        require(found.trim() == wanted, || format!("{label}: {found} instead of {wanted}"))
    };
    exit(reply, "plan", 0)?;
    let plan = reply.file("plan.out")?;
    require(plan.contains("sysctl:vm.stat_interval: 1 -> 120") && plan.contains("seed 11"), || {
        format!("the plan does not say what it changes: {plan}")
    })?;
    is("found", "1")?;
    is("set", "120")?;
    exit(reply, "other", 4)?;
    is("given-back", "1")?;
    let given_back = reply.number("given-back.ms")?;
    require(given_back < PATIENCE, || format!("given back only after {given_back} ms"))?;
    let record = document(reply, "record")?;
    text_is(&record, "/schema", "onbeat.experiment/1")?;
    require(record["pilot"]["valid"] == true, || "the warm-up is not in the record".to_string())?;
    exit(reply, "resumed", 0)?;
    is("after", "1")?;
    is("left", "")?;
    exit(reply, "again", 2)?;
    exit(reply, "status", 0)?;
    let proof = document(reply, "proof")?;
    text_is(&proof, "/schema", "onbeat.comparison/1")?;
    text_is(&proof, "/verdict", "better")?;
    text_is(&proof, "/experiment/stopped", "e-value")?;
    let ends = [&proof["ci"][0], &proof["ci"][1]].map(|end| end.as_f64().unwrap_or(f64::NAN));
    require(ends[1] < 1.0, || format!("the interval is {ends:?}"))?;
    let differs = proof["environment_diff"].as_array().is_some_and(|all| {
        all.iter().any(|one| one["what"].as_str().is_some_and(|what| what.contains("stat_interval")))
    });
    let experiment = &proof["experiment"];
    Ok(vec![format!(
        "late {} without, {} with it; {} of {} pairs, {} dropped; given back {given_back} ms after kill -9; the \
         change is{} among the conditions",
        experiment["late"][0],
        experiment["late"][1],
        experiment["wins"],
        experiment["pairs"],
        experiment["dropped"],
        if differs { "" } else { " not" }
    )])
}
