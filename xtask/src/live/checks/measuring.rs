//! Plain runs: the kernel's kind is recognised; every wake mechanism and policy works and reports
//! where its timers expire.

use serde_json::Value;

use super::super::frames::Reply;
use super::super::judge::{CheckResult, all_sums, count, document, exit, require, text_is};
use super::super::machine::Machine;
use super::Check;

const BOTH: [u64; 2] = [0, 1];

pub fn checks() -> Vec<Check> {
    let mut checks = vec![Check::new(
        "measure",
        "uname -v >version\n\
         send version version\n\
         grep -sh PREEMPT /boot/config-* /lib/modules/*/config >config\n\
         send config config\n\
         send choice /sys/kernel/debug/sched/preempt\n\
         run m onbeat measure -D 3s -i 1000 -a 0-1 -q -o b --json m.json\n\
         send run m.json\n\
         send stored b/run.json\n",
        plain,
    )];
    for wake in ["nanosleep", "timerfd", "signal", "futex"] {
        let script = format!(
            "run m onbeat measure -D 2s -i 1000 -a 0-1 -q -o b --wake {wake} --json m.json\nsend run m.json\n"
        );
        checks.push(Check::new(&format!("wake-{wake}"), &script, move |reply, machine| {
            let soft = matches!(wake, "timerfd" | "signal");
            let run = measured(reply)?;
            text_is(&run, "/plan/wake", wake)?;
            text_is(&run, "/plan/expiry", expiry(machine, soft))
        }));
    }
    for policy in ["rr", "other"] {
        let script = format!(
            "run m onbeat measure -D 2s -i 1000 -a 0-1 -q -o b --policy {policy} --json m.json\nsend run m.json\n"
        );
        checks.push(Check::new(&format!("policy-{policy}"), &script, move |reply, machine| {
            let run = measured(reply)?;
            text_is(&run, "/plan/policy", policy)?;
            let priority = count(&run["plan"], "priority")?;
            require((priority > 0) == (policy != "other"), || format!("plan.priority is {priority}"))?;
            text_is(&run, "/plan/expiry", expiry(machine, policy == "other"))
        }));
    }
    checks
}

/// On PREEMPT_RT the timers of ordinary threads, of timerfd and of POSIX timers expire in
/// `ktimers/N`; otherwise all of these expire in the interrupt.
fn expiry(machine: &Machine, soft: bool) -> &'static str {
    if machine.rt && soft { "softirq-thread" } else { "hard-irq" }
}

fn measured(reply: &Reply) -> Result<Value, String> {
    exit(reply, "m", 0)?;
    let run = document(reply, "run")?;
    all_sums(&run, &BOTH)?;
    Ok(run)
}

fn plain(reply: &Reply, _: &Machine) -> CheckResult {
    let run = measured(reply)?;
    let stored = document(reply, "stored")?;
    require(run == stored, || "--json and the bundle's run.json differ".to_string())?;
    require(run["complete"] == Value::Bool(true), || "complete is not true".to_string())?;
    text_is(&run, "/schema", "onbeat.run/1")?;
    text_is(&run, "/ended", "duration")?;
    text_is(&run, "/plan/policy", "fifo")?;
    for cpu in run["cpus"].as_array().into_iter().flatten() {
        let scheduled = count(cpu, "scheduled")?;
        require((2800..=3010).contains(&scheduled), || format!("scheduled {scheduled} in 3 s of 1 ms"))?;
    }
    for foul in ["rt-competitor", "affinity", "offline", "privilege"] {
        let entries = run["integrity"].as_array().ok_or("integrity is not a list")?;
        require(entries.iter().all(|entry| entry["kind"] != foul), || {
            format!("an integrity entry {foul} on a quiet machine")
        })?;
    }
    let choice = reply.files.get("choice").and_then(Option::as_deref);
    let wanted = preempt_of(reply.file("version")?, choice, reply.file("config")?);
    let found = run["host"]["preempt"].as_str().unwrap_or_default();
    require(wanted.contains(&found), || format!("host.preempt is {found:?} where the kernel is {wanted:?}"))
}

/// Preemption models of a kernel by its own files: the build's banner, the choice among models if
/// there is one, and its configuration.
fn preempt_of(version: &str, choice: Option<&str>, config: &str) -> Vec<&'static str> {
    const MODELS: [&str; 4] = ["none", "voluntary", "full", "lazy"];
    if version.contains("PREEMPT_RT") {
        return vec!["rt"];
    }
    if let Some((_, rest)) = choice.unwrap_or_default().split_once('(') {
        let chosen = rest.split(')').next().unwrap_or_default();
        return MODELS.into_iter().filter(|model| *model == chosen).collect();
    }
    // Without a choice the model is the build's.
    let built = [("PREEMPT_NONE", "none"), ("PREEMPT_VOLUNTARY", "voluntary"), ("PREEMPT", "full")];
    let is_set = |option: &str| config.lines().any(|line| line == format!("CONFIG_{option}=y"));
    built.into_iter().filter(|(option, _)| is_set(option)).map(|(_, model)| model).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::judge::tests::cpu;
    use super::super::super::machine::MACHINES;
    use super::*;
    use serde_json::json;

    fn reply(run: &Value) -> Reply {
        let mut reply = Reply::default();
        reply.values.insert("m.exit".into(), "0".into());
        for label in ["run", "stored"] {
            reply.files.insert(label.into(), Some(run.to_string()));
        }
        reply.files.insert("config".into(), Some(String::new()));
        reply.files.insert("version".into(), Some("#1 SMP PREEMPT_RT Debian".into()));
        reply
    }

    fn good() -> Value {
        let (mut a, mut b) = (cpu(0), cpu(1));
        for cpu in [&mut a, &mut b] {
            cpu["cycles"] = json!(2998);
            cpu["scheduled"] = json!(3000);
            cpu["histogram"][0][2] = json!(2997);
            cpu["deadline_histogram"][0][2] = json!(2997);
        }
        json!({ "schema": "onbeat.run/1", "complete": true, "ended": "duration", "cpus": [a, b], "integrity": [],
            "plan": { "policy": "fifo", "priority": 80, "wake": "timerfd", "expiry": "softirq-thread" },
            "host": { "preempt": "rt" } })
    }

    #[test]
    fn a_plain_run_passes_and_each_fault_is_seen() {
        let rt = &MACHINES[0];
        assert_eq!(plain(&reply(&good()), rt), Ok(()));
        for (pointer, value) in [
            ("/host/preempt", json!("full")),
            ("/complete", json!(false)),
            ("/ended", json!("signal")),
            ("/schema", json!("onbeat.run/2")),
            ("/cpus/1/missed", json!(1)),
            ("/integrity", json!([{ "kind": "rt-competitor" }])),
        ] {
            let mut bad = good();
            *bad.pointer_mut(pointer).unwrap() = value;
            assert!(plain(&reply(&bad), rt).is_err(), "{pointer}");
        }
        let mut differs = reply(&good());
        differs.files.insert("stored".into(), Some("{}".into()));
        assert!(plain(&differs, rt).is_err());
    }

    #[test]
    fn the_expiry_depends_on_the_kernel() {
        let check = checks().into_iter().find(|check| check.name == "wake-timerfd").unwrap();
        let stock = MACHINES.iter().find(|machine| !machine.rt).unwrap();
        assert_eq!((check.judge)(&reply(&good()), &MACHINES[0]), Ok(()));
        assert!((check.judge)(&reply(&good()), stock).is_err());
        let mut other = good();
        other["plan"]["wake"] = json!("futex");
        assert!((check.judge)(&reply(&other), &MACHINES[0]).is_err());
    }

    #[test]
    fn the_kernels_own_words() {
        let config =
            "CONFIG_PREEMPT_VOLUNTARY_BUILD=y\nCONFIG_PREEMPT_VOLUNTARY=y\n# CONFIG_PREEMPT is not set\n";
        assert_eq!(preempt_of("#1 SMP PREEMPT_RT Debian", Some("(full) lazy"), config), ["rt"]);
        assert_eq!(preempt_of("#1 SMP PREEMPT_DYNAMIC", Some("none voluntary (full)"), config), ["full"]);
        assert_eq!(preempt_of("#1 SMP Debian", None, config), ["voluntary"]);
        assert!(preempt_of("#1 SMP Debian", None, "").is_empty());
    }
}
