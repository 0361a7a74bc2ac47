//! A change that is proven against a planted fault, killed at any point and continued.

use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require, text_is};
use crate::live::machine::Machine;

pub fn scenes() -> Vec<UndoScene> {
    vec![
        UndoScene { faults: true, ..UndoScene::new("prove", include_str!("../../guest/prove.sh"), proven) },
        UndoScene {
            boots: WAYS.iter().map(|way| script(way)).collect(),
            ..UndoScene::new("prove-killed", "", killed)
        },
    ]
}

/// Ways to make and undo the change, each in a separate boot.
const WAYS: [&str; 2] = ["knob", "script"];

fn script(way: &str) -> String {
    format!("BY={way}\n{}", include_str!("../../guest/prove-killed.sh"))
}

/// Time limit for undoing a killed command's changes, in ms.
const PATIENCE: i64 = 10_000;

fn proven(replies: &[Reply], _: &Machine) -> Measured {
    let reply = &replies[0];
    let is = |label: &str, wanted: &str| -> Result<(), String> {
        let found = reply.value(label)?;
        require(found.trim() == wanted, || format!("{label}: {found} instead of {wanted}"))
    };
    exit(reply, "plan", 0)?;
    let (plan, found) = (reply.file("plan.out")?, reply.value("found")?.trim());
    // Line breaks depend on the lengths of the words.
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    let change = format!("sysctl:vm.stat_interval: {found} -> 120");
    require(plan.contains(&change) && plan.contains("seed 11"), || {
        format!("the plan does not say what it changes: {plan}")
    })?;
    is("set", "120")?;
    exit(reply, "other", 4)?;
    is("given-back", found)?;
    let given_back = reply.number("given-back.ms")?;
    require(given_back < PATIENCE, || format!("given back only after {given_back} ms"))?;
    let record = document(reply, "record")?;
    text_is(&record, "/schema", "onbeat.experiment/1")?;
    require(record["pilot"]["valid"] == true, || "the warm-up is not in the record".to_string())?;
    exit(reply, "resumed", 0)?;
    is("after", found)?;
    is("left", "")?;
    exit(reply, "again", 2)?;
    exit(reply, "status", 0)?;
    let proof = document(reply, "proof")?;
    let told = ProofTold::of(&proof)?;
    told.require_better()?;
    let trial = proof["experiment"]["trial"].as_array().map_or(0, Vec::len);
    let settle = proof["experiment"]["settle_s"].as_f64().unwrap_or(f64::NAN);
    require(trial == 2 && (2.0..=20.0).contains(&settle), || {
        format!("{trial} runs told the settling time of {settle} s")
    })?;
    let differs = proof["environment_diff"].as_array().is_some_and(|all| {
        all.iter().any(|one| one["what"].as_str().is_some_and(|what| what.contains("stat_interval")))
    });
    Ok(vec![format!(
        "{}; {settle} s left out behind a switch; given back {given_back} ms after kill -9; the change \
         is{} among the conditions",
        told.line,
        if differs { "" } else { " not" }
    )])
}

/// Result of an experiment.
pub struct ProofTold {
    pub verdict: String,
    /// The numbers behind it.
    pub line: String,
    stopped: String,
    upper: f64,
}

impl ProofTold {
    pub fn of(proof: &serde_json::Value) -> Result<ProofTold, String> {
        text_is(proof, "/schema", "onbeat.comparison/1")?;
        let experiment = &proof["experiment"];
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
        let verdict = text(&proof["verdict"]);
        let line = format!(
            "{}: {verdict}, late {} without, {} with it; fewer in {} of {} pairs, {} ties, {} dropped; \
             interval {}",
            text(&experiment["change"]),
            experiment["late"][0],
            experiment["late"][1],
            experiment["wins"],
            experiment["pairs"],
            experiment["ties"],
            experiment["dropped"],
            proof["ci"]
        );
        let upper = proof["ci"][1].as_f64().unwrap_or(f64::NAN);
        Ok(ProofTold { verdict, line, stopped: text(&experiment["stopped"]), upper })
    }

    /// Requires `better`, decided by the pairs, with an interval that agrees.
    pub fn require_better(&self) -> Result<(), String> {
        let holds = self.verdict == "better" && self.stopped == "e-value" && self.upper < 1.0;
        require(holds, || format!("not proven ({}): {}", self.stopped, self.line))
    }
}

/// State after a kill of an experiment.
struct KilledRun<'a> {
    code: i64,
    /// Until the value was back, and until nothing of onbeat's ran any more, in ms.
    back: i64,
    over: i64,
    kept: bool,
    runs: [i64; 2],
    value: &'a str,
    place: String,
}

impl KilledRun<'_> {
    fn parse(said: &str) -> Result<KilledRun<'_>, String> {
        let words: Vec<&str> = said.split_whitespace().collect();
        let [code, back, over, kept, before, after, value, place @ ..] = words.as_slice() else {
            return Err(format!("a kill is told as {said:?}"));
        };
        let number = |text: &str| text.parse().map_err(|_| format!("{text} is no number in {said:?}"));
        Ok(KilledRun {
            code: number(code)?,
            back: number(back)?,
            over: number(over)?,
            kept: *kept == "yes",
            runs: [number(before)?, number(after)?],
            value,
            place: place.join(" "),
        })
    }

    fn wrong(&self, found: &str) -> Option<String> {
        let place = &self.place;
        if self.value != found || self.back >= PATIENCE {
            return Some(format!("killed at {place}: {} after {} ms", self.value, self.back));
        }
        let lost = !self.kept || self.runs[1] < self.runs[0];
        lost.then(|| format!("killed at {place}: of {} runs {} are left", self.runs[0], self.runs[1]))
    }
}

fn killed(replies: &[Reply], _: &Machine) -> Measured {
    WAYS.iter().zip(replies).map(|(way, reply)| killed_by(way, reply)).collect()
}

fn killed_by(way: &str, reply: &Reply) -> Result<String, String> {
    let found = reply.value("found")?.trim();
    let (mut kills, mut flushes, mut back, mut over) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for part in ["begun", "pair"] {
        let code = reply.number(&format!("{part}.exit"))?;
        require(code == 7, || format!("{part} without a kill ended with {code}"))?;
        let points = reply.number(&format!("{part}.points"))?;
        let mut reached = 0;
        for point in 1..=points {
            let run = KilledRun::parse(reply.value(&format!("{part}.{point}"))?)?;
            // The first arm differs between pairs, and the first of all creates the journal: one
            // may end before its last points.
            if run.code != 137 {
                continue;
            }
            reached += 1;
            flushes += usize::from(run.place.contains("-flush"));
            (back, over) = (run.back.max(back), run.over.max(over));
            wrong.extend(run.wrong(found));
        }
        kills += reached;
        require(reached >= 2 && reached + 2 >= points, || {
            format!("{part}: killed at {reached} of {points} points only")
        })?;
    }
    let line = format!(
        "by a {way}: killed at {kills} points, {flushes} of them flushes; undone after {back} ms at most, \
         over after {over} ms"
    );
    require(wrong.is_empty(), || format!("{line}; wrong: {}", wrong.join(" | ")))?;
    gone_on_with(reply, found)?;
    Ok(line)
}

/// Checks that it is continued in the end, and that every kept run counts.
fn gone_on_with(reply: &Reply, found: &str) -> Result<(), String> {
    exit(reply, "last", 7)?;
    let last = document(reply, "last")?;
    let (runs, all) = (reply.number("runs")?, reply.number("last.runs")?);
    // The warm-up is a line of the record and no segment.
    let counted = last["experiment"]["segments"].as_i64().unwrap_or(-1);
    require(all > runs && counted == all - 1, || {
        format!("{runs} runs, then {all}, of which {counted} count")
    })?;
    require(reply.value("after")?.trim() == found, || "the change is still in force".to_string())?;
    let status = document(reply, "status.out")?;
    let changes = status["changes"].as_array().ok_or("tune status has no changes")?;
    require(changes.is_empty(), || format!("tune status still has {changes:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_that_left_the_change_or_lost_a_run_is_told() {
        let wrong = |said: &str| KilledRun::parse(said).unwrap().wrong("2");
        assert_eq!(wrong("137 300 400 yes 3 4 2 7 before-flush /a"), None);
        let told = wrong("137 10050 400 yes 3 4 120 7 before-flush /a").unwrap();
        assert_eq!(told, "killed at 7 before-flush /a: 120 after 10050 ms");
        assert!(wrong("137 10050 400 yes 3 4 2 7 x").is_some());
        let told = wrong("137 0 0 no 3 4 2 7 before-flush /a").unwrap();
        assert_eq!(told, "killed at 7 before-flush /a: of 3 runs 4 are left");
        assert!(wrong("137 0 0 yes 3 2 2 7 x").is_some());
        assert!(KilledRun::parse("137 0 0 yes 3").is_err() && KilledRun::parse("x 0 0 yes 3 2 2 7").is_err());
    }

    #[test]
    fn a_proof_is_better_only_where_the_pairs_decided() {
        let proof = |verdict: &str, stopped: &str, upper: f64| {
            let experiment = serde_json::json!({ "stopped": stopped, "late": [40, 1] });
            let proof = serde_json::json!({
                "schema": "onbeat.comparison/1", "verdict": verdict, "ci": [0.1, upper],
                "experiment": experiment,
            });
            ProofTold::of(&proof).unwrap().require_better().is_ok()
        };
        assert!(proof("better", "e-value", 0.5));
        assert!(!proof("equivalent", "e-value", 0.5) && !proof("better", "time", 0.5));
        assert!(!proof("better", "e-value", 1.5) && !proof("better", "e-value", f64::NAN));
        assert!(ProofTold::of(&serde_json::json!({})).is_err());
    }
}
