//! Claims that a run can prove, for runs made there: complete ones, a killed one, and two against
//! each other.

use serde_json::Value;

use super::super::frames::Reply;
use super::super::judge::{CheckResult, count, document, exit, require, text_is};
use super::super::machine::Machine;
use super::Check;

pub fn checks() -> Vec<Check> {
    vec![Check::new(
        "answers",
        "run first onbeat measure -D 4s -i 1000 -a 0-1 -q -o a --json a.json\nsend run a.json\n\
         run second onbeat measure -D 4s -i 1000 -a 0-1 -q -o b\n\
         start killed onbeat measure -D 60s -i 1000 -a 0-1 -q -o c\nunderway c\n\
         usleep 3500000\nkill -KILL $pid\nreap\n\
         run bounds onbeat bounds a --json bounds.json -q\nsend bounds bounds.json\n\
         run limit onbeat bounds a --limit 1ns --json limit.json -q\nsend limit limit.json\n\
         run cut onbeat bounds c --json cut.json\nsend cut cut.json\n\
         run compare onbeat compare a b --json compare.json\nsend compare compare.json\n",
        answers,
    )]
}

fn answers(reply: &Reply, _: &Machine) -> CheckResult {
    for (label, code) in
        [("first", 0), ("second", 0), ("bounds", 0), ("limit", 3), ("cut", 0), ("compare", 7)]
    {
        exit(reply, label, code)?;
    }
    let (run, bounds) = (document(reply, "run")?, document(reply, "bounds")?);
    let largest = run["cpus"].as_array().into_iter().flatten().filter_map(|cpu| cpu["max_ns"].as_i64()).max();
    require(largest.is_some() && bounds["observed_max_ns"].as_i64() == largest, || {
        format!("the largest latency is {largest:?} and bounds says {}", bounds["observed_max_ns"])
    })?;
    let blocks = count(&bounds, "blocks")?;
    require((2..=4).contains(&blocks), || format!("{blocks} blocks of a run of four seconds"))?;
    text_is(&bounds, "/extrapolation/status", "refused")?;
    require(eleven(&bounds), || "not eleven gates".to_string())?;
    text_is(&document(reply, "limit")?, "/verdict", "failed")?;
    require(reply.file("cut.err")?.contains("incomplete"), || {
        "a killed run is not reported as incomplete".to_string()
    })?;
    require(count(&document(reply, "cut")?, "blocks")? > 0, || "a killed run has no block".to_string())?;
    let compared = document(reply, "compare")?;
    text_is(&compared, "/verdict", "inconclusive")?;
    require(compared["environment_diff"].as_array().is_some_and(Vec::is_empty), || {
        format!("two runs of one boot differ in {}", compared["environment_diff"])
    })
}

fn eleven(bounds: &Value) -> bool {
    bounds["gates"].as_array().is_some_and(|gates| gates.len() == 11)
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::MACHINES;
    use super::*;
    use serde_json::json;

    fn judged(max: i64, differing: Value, code: &str) -> CheckResult {
        let mut reply = Reply::default();
        for (label, value) in [
            ("first", "0"),
            ("second", "0"),
            ("bounds", "0"),
            ("limit", "3"),
            ("cut", "0"),
            ("compare", code),
        ] {
            reply.values.insert(format!("{label}.exit"), value.to_string());
        }
        let bounds = json!({ "blocks": 4, "observed_max_ns": max, "gates": vec![0; 11],
            "extrapolation": { "status": "refused" } });
        for (label, text) in [
            ("run", json!({ "cpus": [{ "max_ns": 5 }, { "max_ns": 9 }] }).to_string()),
            ("bounds", bounds.to_string()),
            ("limit", json!({ "verdict": "failed" }).to_string()),
            ("cut", bounds.to_string()),
            ("cut.err", "the run is incomplete".to_string()),
            ("compare", json!({ "verdict": "inconclusive", "environment_diff": differing }).to_string()),
        ] {
            reply.files.insert(label.to_string(), Some(text));
        }
        answers(&reply, &MACHINES[0])
    }

    #[test]
    fn answers_fit_the_runs() {
        assert_eq!(judged(9, json!([]), "7"), Ok(()));
        assert!(judged(8, json!([]), "7").is_err(), "another maximum");
        assert!(judged(9, json!([{ "what": "/proc/x" }]), "7").is_err(), "a file that changes by itself");
        assert!(judged(9, json!([]), "0").is_err(), "one run each and a verdict");
    }
}
