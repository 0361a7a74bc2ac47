//! A process stopped for 200 ms: the slots during the stop are missed, and every sum includes them.

use serde_json::Value;

use super::super::frames::Reply;
use super::super::judge::{CheckResult, all_sums, count, cpus, document, exit, require, rows, whole};
use super::super::machine::Machine;
use super::Check;

const INTERVAL: i64 = 1_000_000;
/// The guest's clock for the hold has steps of 10 ms.
const STEP_MS: i64 = 10;
/// Latency of a wake-up without a stop: the emulator's maxima, generously.
const NOISE_MS: i64 = 60;

pub fn checks() -> Vec<Check> {
    vec![Check::new(
        "stall",
        "start m onbeat measure -D 3s -i 1000 -a 0-1 -q -o b --json m.json\n\
         underway b\n\
         usleep 1000000\n\
         before=$(now_ms); kill -STOP $pid; value held_from $(now_ms)\n\
         usleep 200000\n\
         value held_to $(now_ms); kill -CONT $pid; after=$(now_ms)\n\
         value stop_from $before; value stop_to $after\n\
         reap\n\
         send run m.json\n",
        stall,
    )]
}

fn stall(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 0)?;
    let run = document(reply, "run")?;
    all_sums(&run, &[0, 1])?;
    let least = reply.number("held_to")? - reply.number("held_from")? - STEP_MS;
    let most = reply.number("stop_to")? - reply.number("stop_from")? + STEP_MS + NOISE_MS;
    require(least >= 150, || format!("the guest held the process for {least} ms only"))?;
    cpus(&run, &[0, 1])?.iter().try_for_each(|cpu| one_cpu(cpu, least, most))
}

fn one_cpu(cpu: &Value, least: i64, most: i64) -> CheckResult {
    let name = format!("cpu {}", cpu["cpu"]);
    let (missed, max) = (count(cpu, "missed")? as i64, whole(cpu, "max_ns")? / INTERVAL);
    // One slot is in progress when the stop begins, and one may fall on either edge.
    require(missed >= least - 2, || format!("{name}: missed {missed} while held for at least {least} ms"))?;
    require((least - 2..=most).contains(&max), || {
        format!("{name}: the longest latency is {max} ms for a hold of {least} to {most} ms")
    })?;
    // A wake-up that is L late skips L / interval slots: other stalls are in the histogram too, so
    // its rows bound the number of missed slots. The last wake-up's own slots are never counted.
    let (mut low, mut high) = (0, 0);
    for (lower, upper, n) in rows(cpu, "histogram")? {
        low += lower.max(0) / INTERVAL * n as i64;
        high += upper.max(0) / INTERVAL * n as i64;
    }
    require((low - NOISE_MS - 2..=high + 2).contains(&missed), || {
        format!("{name}: missed {missed} where the wake-ups passed over {low} to {high} slots")
    })?;
    let half = least / 2;
    let late = rows(cpu, "deadline_histogram")?.into_iter().filter(|row| row.0 >= (least - half) * INTERVAL);
    let late: u64 = late.map(|row| row.2).sum();
    require(late as i64 >= half - 12, || {
        format!("{name}: {late} slots of the deadline histogram are {half} ms late where {half} should be")
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::MACHINES;
    use super::*;
    use serde_json::json;

    /// 2,800 wake-ups in time and one 200.5 ms late, with the slots of a periodic task.
    fn cpu(number: u64) -> Value {
        let deadline: Vec<Value> =
            (0..=200).map(|ms| json!([ms * INTERVAL + 400_000, ms * INTERVAL + 600_000, 1])).collect();
        let deadline: Vec<Value> = std::iter::once(json!([1000, 1010, 2800])).chain(deadline).collect();
        json!({ "cpu": number, "scheduled": 3001, "cycles": 2801, "missed": 200, "max_ns": 200_500_000,
            "histogram": [[1000, 1010, 2800], [200_000_000, 202_000_000, 1]], "deadline_histogram": deadline })
    }

    fn judged(a: Value) -> CheckResult {
        let mut reply = Reply::default();
        for (label, value) in [
            ("m.exit", "0"),
            ("held_from", "5000"),
            ("held_to", "5200"),
            ("stop_from", "5000"),
            ("stop_to", "5210"),
        ] {
            reply.values.insert(label.into(), value.into());
        }
        reply.files.insert("run".into(), Some(json!({ "cpus": [a, cpu(1)] }).to_string()));
        stall(&reply, &MACHINES[0])
    }

    #[test]
    fn a_stall_that_is_accounted_for_passes() {
        assert_eq!(judged(cpu(0)), Ok(()));
    }

    #[test]
    fn a_stall_that_was_left_out_fails() {
        // As if the schedule had restarted after the stall: the sums match although slots are
        // missing.
        let mut forgot = cpu(0);
        forgot["missed"] = json!(0);
        forgot["scheduled"] = json!(2801);
        forgot["deadline_histogram"] = forgot["histogram"].clone();
        assert!(judged(forgot).unwrap_err().contains("missed 0"));
    }

    #[test]
    fn slots_from_nowhere_fail() {
        let mut more = cpu(0);
        more["missed"] = json!(400);
        more["scheduled"] = json!(3201);
        more["deadline_histogram"][0][2] = json!(3000);
        assert!(judged(more).unwrap_err().contains("passed over"));
    }

    #[test]
    fn a_deadline_histogram_that_hides_the_wait_fails() {
        let mut hides = cpu(0);
        hides["deadline_histogram"] = json!([[1000, 1010, 3000], [200_000_000, 202_000_000, 1]]);
        assert!(judged(hides).unwrap_err().contains("deadline"));
    }

    #[test]
    fn a_latency_that_is_not_the_hold_fails() {
        let mut short = cpu(0);
        short["max_ns"] = json!(1_000_000);
        assert!(judged(short).unwrap_err().contains("longest latency"));
    }
}
