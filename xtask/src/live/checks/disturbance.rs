//! Disturbances by the machine are in a run's integrity list: a CPU that goes offline, a thread
//! above it.

use super::super::frames::Reply;
use super::super::judge::{CheckResult, document, integrity, require, sums};
use super::super::machine::Machine;
use super::Check;

pub fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "hotplug",
            "start m onbeat measure -D 5s -i 1000 -a 0-1 -q -o b --json m.json\n\
             underway b\n\
             usleep 1500000\n\
             echo 0 >/sys/devices/system/cpu/cpu1/online; value offline $?\n\
             usleep 1500000\n\
             echo 1 >/sys/devices/system/cpu/cpu1/online; value online $?\n\
             reap\n\
             send run b/run.json\n",
            hotplug,
        ),
        Check::new(
            "competitor",
            "onbeat measure -D 60s -i 500 -p 95 -a 1 -q -o above >/dev/null 2>&1 &\n\
             underway above\n\
             run m onbeat measure -D 3s -i 1000 -p 80 -a 0-1 -q -o b --json m.json\n\
             send run m.json\n",
            competitor,
        ),
    ]
}

fn hotplug(reply: &Reply, _: &Machine) -> CheckResult {
    for label in ["offline", "online"] {
        let code = reply.number(label)?;
        require(code == 0, || format!("the guest could not set the CPU {label}"))?;
    }
    let code = reply.number("m.exit")?;
    require((0..128).contains(&code), || format!("ended by a signal: {code}"))?;
    let run = document(reply, "run")?;
    run["cpus"].as_array().ok_or("cpus is not a list")?.iter().try_for_each(sums)?;
    let invalidates = integrity(&run, &["affinity", "offline"])?;
    require(invalidates, || "a CPU that went away does not invalidate the run".to_string())
}

fn competitor(reply: &Reply, _: &Machine) -> CheckResult {
    super::super::judge::exit(reply, "m", 0)?;
    integrity(&document(reply, "run")?, &["rt-competitor"]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::super::judge::tests::cpu;
    use super::super::super::machine::MACHINES;
    use super::*;
    use serde_json::{Value, json};

    fn reply(entries: Value) -> Reply {
        let mut reply = Reply::default();
        for label in ["offline", "online", "m.exit"] {
            reply.values.insert(label.into(), "0".into());
        }
        let run = json!({ "cpus": [cpu(0), cpu(1)], "integrity": entries });
        reply.files.insert("run".into(), Some(run.to_string()));
        reply
    }

    #[test]
    fn a_cpu_that_went_away_invalidates() {
        let rt = &MACHINES[0];
        assert_eq!(hotplug(&reply(json!([{ "kind": "offline", "invalidates": true }])), rt), Ok(()));
        assert!(hotplug(&reply(json!([{ "kind": "offline", "invalidates": false }])), rt).is_err());
        assert!(hotplug(&reply(json!([])), rt).is_err());
        let mut refused = reply(json!([{ "kind": "offline", "invalidates": true }]));
        refused.values.insert("offline".into(), "1".into());
        assert!(hotplug(&refused, rt).is_err());
    }

    #[test]
    fn a_thread_above_is_named() {
        assert_eq!(competitor(&reply(json!([{ "kind": "rt-competitor" }])), &MACHINES[0]), Ok(()));
        assert!(competitor(&reply(json!([{ "kind": "steal" }])), &MACHINES[0]).is_err());
    }
}
