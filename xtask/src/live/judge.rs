//! Judges a run.json by the contract, without onbeat's own code: a check that shares the code it
//! checks agrees with any mistake in it.

use serde_json::Value;

use super::frames::Reply;

/// Result of a judge: the error is the fault.
pub type CheckResult = Result<(), String>;

/// A complaint unless the condition holds.
pub fn require(holds: bool, complaint: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(complaint()) }
}

/// A document that the guest sent.
pub fn document(reply: &Reply, label: &str) -> Result<Value, String> {
    serde_json::from_str(reply.file(label)?).map_err(|error| format!("{label}: {error}"))
}

/// Requires of each command that `documented` ran a document, or a refusal in a line; of at least
/// `least` a document.
pub fn documents(reply: &Reply, least: usize) -> CheckResult {
    let mut written = 0;
    for label in reply.values.keys().filter_map(|name| name.strip_suffix(".exit")) {
        if !label.starts_with("document.") {
            continue;
        }
        let code = reply.number(&format!("{label}.exit"))?;
        let (out, err) = (reply.file(&format!("{label}.out"))?, reply.file(&format!("{label}.err"))?);
        let found = serde_json::from_str::<Value>(out).unwrap_or_default();
        let is_document = found["schema"].as_str().is_some_and(|schema| schema.starts_with("onbeat."));
        let holds = match code {
            0 | 3 | 6 | 7 => is_document,
            2 | 4 | 5 => out.trim().is_empty() && err.contains("onbeat: "),
            _ => false,
        };
        require(holds, || format!("{label}: exit {code} with the output {out:?} and the error {err:?}"))?;
        written += usize::from(is_document);
    }
    require(written >= least, || format!("{written} documents were written, and {least} are asked for"))
}

/// Checks the exit code of a program; the complaint quotes its output.
pub fn exit(reply: &Reply, label: &str, wanted: i64) -> CheckResult {
    let code = reply.number(&format!("{label}.exit"))?;
    require(code == wanted, || {
        let said = reply.file(&format!("{label}.err")).unwrap_or_default();
        format!("exit {code} instead of {wanted}; it said: {}", said.lines().last().unwrap_or("nothing"))
    })
}

/// A field that must be a number that is not negative.
pub fn count(value: &Value, field: &str) -> Result<u64, String> {
    value[field].as_u64().ok_or_else(|| format!("{field} is not a count: {}", value[field]))
}

/// A field that must be a whole number.
pub fn whole(value: &Value, field: &str) -> Result<i64, String> {
    value[field].as_i64().ok_or_else(|| format!("{field} is not a whole number: {}", value[field]))
}

/// A string by its path.
pub fn text_is(run: &Value, pointer: &str, wanted: &str) -> CheckResult {
    let found = run.pointer(pointer).and_then(Value::as_str);
    require(found == Some(wanted), || format!("{pointer} is {found:?} instead of {wanted:?}"))
}

/// The CPUs of a run that has measured on exactly these.
pub fn cpus<'a>(run: &'a Value, wanted: &[u64]) -> Result<&'a [Value], String> {
    let cpus = run["cpus"].as_array().ok_or("cpus is not a list")?;
    let found: Vec<Option<u64>> = cpus.iter().map(|cpu| cpu["cpu"].as_u64()).collect();
    require(found.iter().copied().eq(wanted.iter().copied().map(Some)), || {
        format!("measured on {found:?} instead of {wanted:?}")
    })?;
    Ok(cpus)
}

/// Checks a CPU's sums: cycles and missed add up to scheduled, the histograms match both, and
/// cycles are not 0.
pub fn sums(cpu: &Value) -> CheckResult {
    let name = format!("cpu {}", cpu["cpu"]);
    let (scheduled, cycles, missed) =
        (count(cpu, "scheduled")?, count(cpu, "cycles")?, count(cpu, "missed")?);
    require(cycles > 0, || format!("{name}: nothing was measured"))?;
    require(cycles + missed == scheduled, || {
        format!("{name}: cycles {cycles} + missed {missed} is not scheduled {scheduled}")
    })?;
    for (field, wanted) in [("histogram", cycles), ("deadline_histogram", scheduled)] {
        let held: u64 = rows(cpu, field)?.iter().map(|row| row.2).sum();
        require(held == wanted, || format!("{name}: {field} holds {held} of {wanted}"))?;
    }
    Ok(())
}

/// All of a run's CPUs add up.
pub fn all_sums(run: &Value, wanted: &[u64]) -> CheckResult {
    cpus(run, wanted)?.iter().try_for_each(sums)
}

/// A histogram's rows.
pub fn rows(cpu: &Value, field: &str) -> Result<Vec<(i64, i64, u64)>, String> {
    let rows = cpu[field].as_array().ok_or_else(|| format!("{field} is not a list"))?;
    let row = |row: &Value| Some((row[0].as_i64()?, row[1].as_i64()?, row[2].as_u64()?));
    rows.iter().map(|value| row(value).ok_or_else(|| format!("{field} has a row {value}"))).collect()
}

/// The integrity entry of a kind; true if it invalidates the run.
pub fn integrity(run: &Value, kinds: &[&str]) -> Result<bool, String> {
    let entries = run["integrity"].as_array().ok_or("integrity is not a list")?;
    let kind = |entry: &Value| entry["kind"].as_str().unwrap_or_default().to_string();
    let of_kind: Vec<&Value> = entries.iter().filter(|entry| kinds.contains(&kind(entry).as_str())).collect();
    require(!of_kind.is_empty(), || {
        format!(
            "no integrity entry {}; there are {:?}",
            kinds.join(" or "),
            entries.iter().map(kind).collect::<Vec<_>>()
        )
    })?;
    Ok(of_kind.iter().any(|entry| entry["invalidates"] == Value::Bool(true)))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    /// A CPU whose numbers add up: 8 wake-ups of 10 slots, one of them 2.5 ms late.
    pub fn cpu(number: u64) -> Value {
        json!({ "cpu": number, "scheduled": 10, "cycles": 8, "missed": 2,
            "interval_ns": 1_000_000, "t0_mono_ns": 1_000_000_000i64, "max_ns": 2_500_000,
            "histogram": [[1000, 1010, 7], [2_490_000, 2_520_000, 1]],
            "deadline_histogram": [[1000, 1010, 7], [490_000, 500_001, 1], [1_490_000, 1_510_000, 1], [2_490_000, 2_520_000, 1]] })
    }

    #[test]
    fn sums_that_hold_pass_and_each_that_does_not_is_named() {
        assert_eq!(sums(&cpu(0)), Ok(()));
        for (field, value, complaint) in [
            ("missed", json!(3), "is not scheduled"),
            ("cycles", json!(0), "nothing was measured"),
            ("histogram", json!([[1000, 1010, 9]]), "histogram holds 9 of 8"),
            ("deadline_histogram", json!([[1000, 1010, 9]]), "deadline_histogram holds 9 of 10"),
            ("deadline_histogram", json!([[1000, 1010]]), "has a row"),
            ("scheduled", json!(null), "not a count"),
        ] {
            let mut bad = cpu(0);
            bad[field] = value;
            let why = sums(&bad).unwrap_err();
            assert!(why.contains(complaint), "{field}: {why}");
        }
    }

    #[test]
    fn the_cpus_must_be_those_asked_for() {
        let run = json!({ "cpus": [cpu(0), cpu(1)] });
        assert_eq!(all_sums(&run, &[0, 1]), Ok(()));
        assert!(all_sums(&run, &[0]).is_err() && all_sums(&run, &[1, 0]).is_err());
        assert!(all_sums(&json!({ "cpus": [] }), &[0]).is_err() && all_sums(&json!({}), &[0]).is_err());
    }

    #[test]
    fn integrity_entries_are_found_by_kind() {
        let run = json!({ "integrity": [ { "kind": "steal", "invalidates": false }, { "kind": "offline", "invalidates": true } ] });
        assert_eq!(integrity(&run, &["affinity", "offline"]), Ok(true));
        assert_eq!(integrity(&run, &["steal"]), Ok(false));
        assert!(integrity(&run, &["rt-competitor"]).unwrap_err().contains("offline"));
    }

    #[test]
    fn exits_and_strings_are_exact() {
        let mut reply = Reply::default();
        reply.values.insert("m.exit".into(), "4".into());
        reply.files.insert("m.err".into(), Some("first\nno permission\n".into()));
        assert_eq!(exit(&reply, "m", 4), Ok(()));
        assert!(exit(&reply, "m", 0).unwrap_err().contains("no permission"));
        assert!(exit(&reply, "n", 0).is_err());
        let run = json!({ "host": { "preempt": "rt" } });
        assert_eq!(text_is(&run, "/host/preempt", "rt"), Ok(()));
        assert!(
            text_is(&run, "/host/preempt", "full").is_err() && text_is(&run, "/host/none", "rt").is_err()
        );
    }
}
