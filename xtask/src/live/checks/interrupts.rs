//! Responses to interrupts on a real kernel: the parts sum to the nanosecond, a section with
//! interrupts off is in the part before the interrupt, and a device's events are followed.

use serde_json::Value;

use super::super::frames::Reply;
use super::super::judge::{CheckResult, document, exit, require};
use super::super::machine::Machine;
use super::Check;

/// Time for which the hwlat tracer turns interrupts off, and the least that a timer which was due
/// early in it has to wait; the emulator may add as much.
const OFF_MS: i64 = 20;
const SEEN_MS: i64 = 12;

/// Events of the complete gate.
const MANY: u64 = 10_000;

/// Script with these numbers of events of the timer and of the serial port.
fn script(timer: u64, serial: u64) -> String {
    format!(
        "mount -t tracefs nodev /sys/kernel/tracing\n\
         grep -qw hwlat /sys/kernel/tracing/available_tracers || value none 1\n\
         run m onbeat probe irq -a 1 -l {timer} -D 120s -q -o b --json m.json\nsend run m.json\n\
         start h onbeat probe hw --source hwlat -D 9s -a 1 --width {OFF_MS}ms --window 200ms --threshold 1ms \
         -q -o h\n\
         [ -d h ] || underway h\n\
         run o onbeat probe irq -a 1 -D 4s -q -o o --json o.json\nsend off o.json\n\
         reap\n\
         exec 4>/dev/ttyS0\n\
         irq=$(sed -n 's/^ *\\([0-9]*\\):.* ttyS0$/\\1/p' /proc/interrupts)\n\
         before=$(cat /proc/irq/$irq/smp_affinity); echo 2 >/proc/irq/$irq/smp_affinity\n\
         (while :; do cat /lab/helpers.sh >&4; usleep 50000; done) 3>&- & writer=$!\n\
         run t onbeat probe irq --irq ttyS0 -l {serial} -D 120s -q -o t --json t.json\nsend tty t.json\n\
         kill $writer; wait $writer; exec 4>&-\n\
         echo $before >/proc/irq/$irq/smp_affinity\n\
         run r onbeat probe irq --irq none-such\n\
         run d onbeat probe irq --irq $irq --read /dev/null\n\
         run g onbeat probe irq --gpio gpiochip99:0\n\
         umount /sys/kernel/tracing; rm -rf /var/lib/onbeat\n"
    )
}

/// Devices that take modules: a disk with an interrupt for each CPU, and a simulated GPIO line.
fn devices_script() -> String {
    format!(
        "mount -t tracefs nodev /sys/kernel/tracing\n\
         for module in $(cat /lab/modules.order); do insmod /lab/modules/$module 2>/dev/null; done\n\
         tries=0; until [ -b /dev/nvme0n1 ] || [ $tries -ge 100 ]; do usleep 50000; \
         tries=$((tries + 1)); done\n\
         run n onbeat probe irq --irq nvme0q2 --read /dev/nvme0n1 -l {MANY} -D 200s -q -o n --json n.json\n\
         send disk n.json\n\
         mount -t configfs configfs /sys/kernel/config\n\
         mkdir -p /sys/kernel/config/gpio-sim/lab/bank; cd /sys/kernel/config/gpio-sim/lab\n\
         echo 8 >bank/num_lines; echo 1 >live; chip=$(cat bank/chip_name); cd - >/dev/null\n\
         run g onbeat probe irq --gpio $chip:3 -a 1 -l {MANY} -D 200s -q -o g --json g.json\n\
         send gpio g.json\n\
         run w onbeat probe irq --gpio $chip:2,3\n\
         run x onbeat probe irq --gpio $chip:99\n\
         echo 0 >/sys/kernel/config/gpio-sim/lab/live\n\
         rmdir /sys/kernel/config/gpio-sim/lab/bank /sys/kernel/config/gpio-sim/lab\n\
         umount /sys/kernel/config\n\
         for module in $(tac /lab/modules.order); do rmmod ${{module%.ko}} 2>/dev/null; done\n\
         umount /sys/kernel/tracing; rm -rf /var/lib/onbeat\n"
    )
}

fn devices(reply: &Reply, _: &Machine) -> CheckResult {
    for (name, code) in [("n", 0), ("g", 0), ("w", 5), ("x", 2)] {
        exit(reply, name, code)?;
    }
    // A simulated line interrupts its writer's CPU: often before the writer sleeps.
    for (name, kind, least) in [("disk", "read", MANY * 9 / 10), ("gpio", "gpio-sim", MANY / 2)] {
        let run = document(reply, name)?;
        require(run["plan"]["kind"] == kind, || format!("{name}: {}", run["plan"]))?;
        all_divided(&run, least).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

/// Checks of the newest kernel in the complete gate.
pub fn long_checks() -> Vec<Check> {
    vec![
        Check::new("probe-irq-many", &script(MANY, MANY), |reply, machine| {
            judge(reply, machine, MANY * 9 / 10)
        }),
        Check::new("probe-irq-devices", &devices_script(), devices).with_modules(&["nvme", "gpio-sim"]),
    ]
}

pub fn checks() -> Vec<Check> {
    vec![Check::new("probe-irq", &script(1_000, 200), |reply, machine| judge(reply, machine, 180))]
}

fn judge(reply: &Reply, _: &Machine, least: u64) -> CheckResult {
    for (name, code) in [("m", 0), ("o", 0), ("t", 0), ("r", 2), ("d", 2), ("g", 5)] {
        exit(reply, name, code)?;
    }
    for (name, least) in [("run", least), ("off", 100), ("tty", least)] {
        let run = document(reply, name)?;
        all_divided(&run, least).map_err(|why| format!("{name}: {why}"))?;
    }
    if reply.number("none").is_ok() {
        return Ok(());
    }
    let run = document(reply, "off")?;
    let longest = &run["cpus"][0]["responses"]["longest"];
    let by_entry = |of: &&Value| of["entry_ns"].as_i64() >= Some(SEEN_MS * 1_000_000);
    let seen = longest.as_array().map_or(0, |longest| longest.iter().filter(by_entry).count());
    require(seen >= 3, || format!("{seen} sections of {OFF_MS} ms with interrupts off are seen: {longest}"))
}

/// Every event is divided, and the parts sum to the responses.
fn all_divided(run: &Value, least: u64) -> CheckResult {
    let of = &run["cpus"][0]["responses"];
    let count = |name: &str| of[name].as_u64().unwrap_or(u64::MAX);
    let whole: u64 = ["split", "not_slept", "not_split", "no_thread"].iter().map(|name| count(name)).sum();
    require(count("events") == whole && count("split") >= least, || format!("{of}"))?;
    // Of a device that is in use, an interrupt that began before the first event is not divided.
    let begun = u64::from(of["handler"] == "ttyS0");
    require(count("events_lost") == 0 && count("not_split") <= begun, || format!("{of}"))?;
    let parts = of["parts"].as_array().ok_or("no parts")?;
    let sum: i64 = parts.iter().filter_map(|part| part["sum_ns"].as_i64()).sum();
    require(Some(sum) == of["response_sum_ns"].as_i64(), || format!("parts of {sum} ns: {of}"))?;
    let longest = of["longest"].as_array().ok_or("no longest responses")?;
    const NAMES: [&str; 5] = ["entry_ns", "handler_ns", "deferred_ns", "wakeup_ns", "switch_ns"];
    for own in longest {
        let sum: i64 = NAMES.iter().filter_map(|name| own[name].as_i64()).sum();
        require(Some(sum) == own["response_ns"].as_i64(), || format!("parts of {sum} ns: {own}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(entry: i64) -> Value {
        json!({ "cpus": [{ "responses": {
            "events": 3, "split": 3, "not_slept": 0, "not_split": 0, "no_thread": 0, "events_lost": 0,
            "response_sum_ns": 12, "parts": [{ "part": "entry", "sum_ns": entry }, { "sum_ns": 5 }],
            "longest": [{ "response_ns": 7, "entry_ns": 3, "handler_ns": 0, "deferred_ns": 0, "wakeup_ns": 1,
                "switch_ns": 3 }],
        } }] })
    }

    #[test]
    fn parts_that_do_not_sum_fail() {
        assert_eq!(all_divided(&run(7), 3), Ok(()));
        assert!(all_divided(&run(8), 3).is_err() && all_divided(&run(7), 4).is_err());
        let mut lost = run(7);
        lost["cpus"][0]["responses"]["events_lost"] = json!(1);
        assert!(all_divided(&lost, 3).is_err());
    }
}
