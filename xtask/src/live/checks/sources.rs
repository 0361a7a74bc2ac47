//! The kernel's measuring tracers as sources: osnoise counts by source, timerlat measures, and the
//! machine's settings of both are as before, also after a kill.

use super::super::frames::Reply;
use super::super::judge::{CheckResult, document, exit, require};
use super::super::machine::Machine;
use super::Check;

/// Settings of both tracers that have to be restored, and a busy tracer of another program.
const BEGIN: &str = "mount -t tracefs nodev /sys/kernel/tracing\n\
    set -- /sys/kernel/tracing/tracing_thresh $(ls /sys/kernel/tracing/osnoise/*us \
    /sys/kernel/tracing/osnoise/print_stack /sys/kernel/tracing/osnoise/options)\n\
    before=$(cat \"$@\")\n";

const END: &str = "tries=0; until [ \"$before\" = \"$(cat \"$@\")\" ] && \
    ! ls /sys/kernel/tracing/instances | grep -q onbeat || [ $tries -ge 100 ]; do \
    usleep 100000; tries=$((tries + 1)); done\n\
    value tries $tries; echo \"$before to $(cat \"$@\")\" >restored; send restored restored\n\
    value left $(ls /sys/kernel/tracing/instances | grep -c onbeat)\n\
    umount /sys/kernel/tracing; rm -rf /var/lib/onbeat\n";

pub fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "hunt-timerlat",
            &format!(
                "{BEGIN}\
                 grep -qw timerlat /sys/kernel/tracing/available_tracers || value none 1\n\
                 run m onbeat hunt --source timerlat -D 4s -a 1 -i 2000 --over 15ms -q -o b --json m.json\n\
                 [ -f m.json ] && send run m.json\n\
                 run x onbeat hunt --cross-check -D 3s -a 1 -i 2000 --over 15ms -q -o x --json x.json\n\
                 [ -f x.json ] && send cross x.json\n\
                 run p onbeat hunt --source timerlat -p 80 -D 1s -q -o p\n\
                 start k onbeat hunt --source timerlat -D 60s -a 1 -q -o k\n\
                 underway k\n\
                 usleep 500000; kill -KILL $pid; reap; usleep 1000000\n\
                 run n onbeat measure -D 500ms -a 1 -q -o n\n\
                 {END}"
            ),
            timerlat,
        ),
        Check::new(
            "probe-osnoise",
            &format!(
                "{BEGIN}\
             grep -qw osnoise /sys/kernel/tracing/available_tracers || value none 1\n\
             run m onbeat probe spin --source osnoise -D 3s -a 1 --over 5us -q -o b --json m.json\n\
             [ -f m.json ] && send run m.json\n\
             run h onbeat probe hw --source osnoise -D 2s -a 1 --width 100ms --window 300ms -q -o h \
             --json h.json\n\
             [ -f h.json ] && send hw h.json\n\
             mkdir /sys/kernel/tracing/instances/other\n\
             echo osnoise >/sys/kernel/tracing/instances/other/current_tracer 2>/dev/null\n\
             run u onbeat probe spin --source osnoise -D 1s -a 1 -q -o u\n\
             rmdir /sys/kernel/tracing/instances/other\n\
             start k onbeat probe spin --source osnoise -D 60s -a 1 -q -o k\n\
             underway k\n\
             usleep 500000; kill -KILL $pid; reap; usleep 1000000\n\
             {END}"
            ),
            noise,
        ),
    ]
}

/// The kernel's samples: one of the interrupt and one of the thread for each slot.
fn timerlat(reply: &Reply, _: &Machine) -> CheckResult {
    if reply.number("none").is_ok() {
        // A kernel without the tracer: refused with the remedy.
        return exit(reply, "m", 5);
    }
    for (name, code) in [("m", 0), ("x", 0), ("p", 2), ("k", 137)] {
        exit(reply, name, code)?;
    }
    let run = document(reply, "run")?;
    let (thread, irq) = (&run["cpus"][0], &run["cpus"][1]);
    require(run["plan"]["kind"] == "timerlat" && run["plan"]["priority"] == 95, || run["plan"].to_string())?;
    require(thread["measures"] == "wakeup" && irq["measures"] == "irq", || run["cpus"].to_string())?;
    let number = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap_or(0);
    let [scheduled, cycles, missed] = ["scheduled", "cycles", "missed"].map(|name| number(thread, name));
    require(cycles + missed == scheduled && (1_500..=2_000).contains(&scheduled), || {
        format!("{cycles} + {missed} of {scheduled} slots")
    })?;
    require(number(irq, "cycles").abs_diff(cycles) <= 2, || format!("{} interrupts", irq["cycles"]))?;
    // The thread runs after its interrupt.
    require(number(irq, "p50_ns") > 0 && number(irq, "mean_ns") < number(thread, "mean_ns"), || {
        format!("mean {} of the interrupt, {} of the thread", irq["mean_ns"], thread["mean_ns"])
    })?;
    let victims = run["spikes"].as_array().ok_or("the document has no list of spikes")?;
    require(victims.iter().all(|spike| spike["victim"]["comm"] == "timerlat/1"), || format!("{victims:?}"))?;
    let checked = &document(reply, "cross")?["cross_check"][0];
    println!("          cross-check: {checked}");
    let sides = [&checked["own"], &checked["timerlat"]];
    require(sides.iter().all(|side| number(side, "count") > 700 && number(side, "p99_ns") > 0), || {
        checked.to_string()
    })?;
    restored(reply)
}

fn restored(reply: &Reply) -> CheckResult {
    require(reply.number("tries")? < 100, || {
        format!("settings of the tracer are not restored: {}", reply.file("restored").unwrap_or_default())
    })?;
    require(reply.number("left")? == 0, || "an instance is left".to_string())
}

fn noise(reply: &Reply, _: &Machine) -> CheckResult {
    if reply.number("none").is_ok() {
        // A kernel without the tracer: refused with the remedy.
        return exit(reply, "m", 5);
    }
    for (name, code) in [("m", 0), ("h", 0), ("u", 4), ("k", 137)] {
        exit(reply, name, code)?;
    }
    let run = document(reply, "run")?;
    let own = &run["cpus"][0];
    let noise = &own["noise"];
    require(run["plan"]["kind"] == "osnoise" && own["measures"] == "gap", || run["plan"].to_string())?;
    let count = |of: &str| noise[of]["count"].as_u64().unwrap_or(0);
    let runtime = noise["runtime_ns"].as_i64().unwrap_or(0);
    let sum = noise["noise_ns"].as_i64().unwrap_or(0);
    // The timer's interrupt is there in each period.
    require(count("irq") > 100 && runtime > 2_000_000_000 && (1..runtime).contains(&sum), || {
        noise.to_string()
    })?;
    require(own["cycles"].as_u64() > Some(50) && noise["lost"] == 0, || own["cycles"].to_string())?;
    println!("          osnoise: {noise}");
    let quiet = &document(reply, "hw")?["cpus"][0]["noise"];
    require(quiet["irq"]["count"] == 0 && quiet["thread"]["count"] == 0, || {
        format!("with interrupts off: {quiet}")
    })?;
    require(quiet["runtime_ns"].as_i64() > Some(300_000_000), || quiet.to_string())?;
    restored(reply)
}
