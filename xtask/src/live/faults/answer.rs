//! Result of `hunt`, read from its run.json without onbeat's own types: a score that shares the
//! code it judges agrees with any mistake in it.

use serde_json::Value;

/// A spike with its explanation; times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundSpike {
    pub cpu: u64,
    pub expected: i64,
    pub actual: i64,
    pub latency: i64,
    pub slices: Vec<FoundSlice>,
    pub unexplained: i64,
    /// Reason for the unexplained part, if known.
    pub why: String,
    pub classes: Vec<String>,
    pub lost: u64,
    /// Pid of the victim.
    pub victim: i64,
}

/// A stretch of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundSlice {
    pub kind: String,
    pub start: i64,
    pub ns: i64,
    /// Thread, function and interrupt.
    pub who: [String; 3],
    pub pid: i64,
    /// Every text of the slice except its stack: names, evidence, and others.
    pub said: String,
}

/// Index of a function among the names of a slice.
pub const FUNCTION: usize = 1;

/// A culprit over all spikes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundCulprit {
    pub kind: String,
    pub spikes: u64,
    pub share: f64,
    /// The time that it took, each nanosecond once; `None` if it is not counted.
    pub took: Option<i64>,
    /// Its name and the functions that it was seen in.
    pub names: Vec<String>,
}

/// All data of a hunt on its spikes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Start of the measurement.
    pub t0: i64,
    pub spikes: Vec<FoundSpike>,
    pub culprits: Vec<FoundCulprit>,
    /// CPUs of the thread that records.
    pub housekeeping: Vec<u64>,
    /// Cost of onbeat's own path from the timer to the clock read with the recorder, as measured by
    /// the run.
    pub cost: i64,
}

impl FoundSlice {
    /// Its kind and its names, for a complaint.
    pub fn told(&self) -> String {
        let names = self.who.iter().map(String::as_str).filter(|name| !name.is_empty());
        std::iter::once(self.kind.as_str()).chain(names).collect::<Vec<_>>().join(" ")
    }
}

impl FoundSpike {
    /// True if the contract's sum holds: the slices and the unexplained part are the latency.
    pub fn adds_up(&self) -> bool {
        let slices: i64 = self.slices.iter().map(|slice| slice.ns).sum();
        slices + self.unexplained == self.latency
            && self.actual - self.expected == self.latency
            && self.unexplained >= 0
            && self.slices.iter().all(|slice| slice.ns >= 0)
    }
}

/// A median wake-up with the recorder on, a turn of the loop, a read of the clock.
fn cost(run: &Value) -> i64 {
    let medians = run.pointer("/recorder/median_ns").and_then(Value::as_array).into_iter().flatten();
    let median = medians.filter_map(Value::as_i64).max().unwrap_or_default();
    let rest = ["loop_ns", "clock_read_ns"].map(|field| run["overhead"][field].as_i64().unwrap_or_default());
    median + rest.iter().sum::<i64>()
}

/// Reads `spikes` and `culprits`; a field that is missing is a fault of the document.
pub fn of(run: &Value) -> Result<Answer, String> {
    let t0 = list(run, "cpus")?.iter().filter_map(|cpu| cpu["t0_mono_ns"].as_i64()).min();
    Ok(Answer {
        t0: t0.unwrap_or(0),
        spikes: list(run, "spikes")?.iter().map(spike).collect::<Result<_, _>>()?,
        culprits: list(run, "culprits")?.iter().map(culprit).collect::<Result<_, _>>()?,
        housekeeping: run["plan"]["housekeeping"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect(),
        cost: cost(run),
    })
}

fn spike(value: &Value) -> Result<FoundSpike, String> {
    Ok(FoundSpike {
        cpu: whole(value, "cpu")?.unsigned_abs(),
        expected: whole(value, "expected_ns")?,
        actual: whole(value, "actual_ns")?,
        latency: whole(value, "latency_ns")?,
        slices: list(value, "slices")?.iter().map(slice).collect::<Result<_, _>>()?,
        unexplained: whole(value, "unexplained_ns")?,
        why: value["unexplained_why"].as_str().unwrap_or_default().to_string(),
        classes: texts(value, "classes")?,
        lost: whole(value, "events_lost")?.unsigned_abs(),
        victim: value["victim"]["pid"].as_i64().unwrap_or_default(),
    })
}

fn slice(value: &Value) -> Result<FoundSlice, String> {
    let who =
        ["comm", "function", "irq"].map(|field| value["who"][field].as_str().unwrap_or_default().into());
    let mut said = String::new();
    gather(value, &mut said);
    Ok(FoundSlice {
        kind: text(value, "kind")?,
        start: whole(value, "start_ns")?,
        ns: whole(value, "ns")?,
        who,
        pid: value["who"]["pid"].as_i64().unwrap_or_default(),
        said,
    })
}

fn gather(value: &Value, said: &mut String) {
    match value {
        Value::String(text) => *said += &format!("{text} "),
        Value::Array(values) => values.iter().for_each(|value| gather(value, said)),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "stack");
            fields.for_each(|(_, value)| gather(value, said));
        }
        _ => {}
    }
}

fn culprit(value: &Value) -> Result<FoundCulprit, String> {
    let mut names = texts(value, "functions")?;
    names.push(text(value, "name")?);
    let share = value["share"].as_f64().ok_or("a culprit has no share")?;
    Ok(FoundCulprit {
        kind: text(value, "kind")?,
        spikes: whole(value, "spikes")?.unsigned_abs(),
        share,
        took: value["cpu_time_ns"].as_i64(),
        names,
    })
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>, String> {
    value[field].as_array().ok_or_else(|| format!("{field} is not a list"))
}

fn whole(value: &Value, field: &str) -> Result<i64, String> {
    super::super::judge::whole(value, field)
}

fn text(value: &Value, field: &str) -> Result<String, String> {
    value[field]
        .as_str()
        .map(str::to_string)
        .ok_or_else(|| format!("{field} is not a text: {}", value[field]))
}

fn texts(value: &Value, field: &str) -> Result<Vec<String>, String> {
    let texts = list(value, field)?.iter().map(|text| text.as_str().map(str::to_string));
    texts.collect::<Option<_>>().ok_or_else(|| format!("{field} does not hold texts"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run() -> Value {
        json!({ "cpus": [{ "cpu": 1, "t0_mono_ns": 500 }], "plan": { "housekeeping": [0] },
            "overhead": { "loop_ns": 30, "clock_read_ns": 4 }, "recorder": { "median_ns": [400, 500, null] },
            "spikes": [{ "cpu": 1, "cycle": 7, "expected_ns": 1000, "actual_ns": 1100, "latency_ns": 100, "events_lost": 0,
                "slices": [{ "kind": "thread", "start_ns": 1000, "ns": 90, "evidence": "asked by b",
                    "who": { "comm": "a", "pid": 8, "function": "", "irq": "" }, "stack": ["above"] }],
                "unexplained_ns": 10, "unexplained_why": "stopped", "victim": { "pid": 9 }, "classes": ["thread", "unexplained"] }],
            "culprits": [{ "name": "a", "kind": "thread", "spikes": 1, "share": 0.9, "functions": ["f"] }] })
    }

    #[test]
    fn an_answer_is_read() {
        let answer = of(&run()).unwrap();
        assert_eq!((answer.t0, answer.spikes[0].slices[0].who[0].as_str()), (500, "a"));
        assert!(answer.spikes[0].adds_up());
        assert_eq!(answer.culprits[0].names, ["f", "a"]);
        assert_eq!((answer.housekeeping, answer.cost), (vec![0], 534));
        let spike = &answer.spikes[0];
        assert_eq!((spike.why.as_str(), spike.victim, spike.slices[0].pid), ("stopped", 9, 8));
        assert!(spike.slices[0].said.contains("asked by b") && !spike.slices[0].said.contains("above"));
    }

    #[test]
    fn a_sum_that_is_one_off_does_not_add_up() {
        for (field, value) in [("unexplained_ns", 11), ("latency_ns", 101), ("actual_ns", 1101)] {
            let mut run = run();
            run["spikes"][0][field] = json!(value);
            assert!(!of(&run).unwrap().spikes[0].adds_up(), "{field}");
        }
        let mut negative = run();
        negative["spikes"][0]["unexplained_ns"] = json!(-5);
        negative["spikes"][0]["slices"][0]["ns"] = json!(105);
        assert!(!of(&negative).unwrap().spikes[0].adds_up());
    }

    #[test]
    fn what_is_missing_is_said() {
        for field in ["spikes", "culprits", "cpus"] {
            let mut run = run();
            run[field] = Value::Null;
            assert!(of(&run).unwrap_err().contains(field));
        }
        let mut run = run();
        run["spikes"][0]["classes"] = json!([1]);
        assert!(of(&run).is_err());
    }
}
