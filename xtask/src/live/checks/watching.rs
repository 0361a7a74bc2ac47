//! A watch on a real kernel: it records the latencies that a thread measures itself, is informed of
//! losses, and leaves nothing in the kernel.

use serde_json::Value;

use super::super::frames::Reply;
use super::super::judge::{CheckResult, document, exit, require};
use super::super::machine::Machine;
use super::Check;

/// Time between the switch to a thread and its reading of the clock, in the emulator, plus a row of
/// the histogram.
const REST_NS: i64 = 1_000_000;

pub fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "watch-beside",
            "start w onbeat watch -q --interval 2s -o rec\n\
             watch=$pid\n\
             recording rec 1\n\
             run m onbeat measure -p 80 -i 5000 -a 1 -D 5s -q -o b --json m.json\n\
             usleep 500000\n\
             pid=$watch\n\
             kill -TERM $pid\n\
             reap\n\
             run r onbeat report rec --json r.json\n\
             send run m.json\nsend record r.json\n",
            beside,
        ),
        Check::new(
            "watch-killed",
            "start w onbeat watch -q --interval 1s -o rec\n\
             recording rec 3\n\
             kill -KILL $pid\n\
             reap\n\
             value closed $(closed rec)\n\
             usleep 500000\n\
             value left $(grep -l onbeat_ /proc/[0-9]*/fdinfo/* 2>/dev/null | wc -l)\n\
             run again onbeat watch -q -D 1s --interval 1s -o rec\n\
             run r onbeat report rec --json r.json\nsend record r.json\n",
            killed,
        ),
        Check::new(
            "watch-switch",
            "value shown $(grep ' __traceiter_sched_exit_tp$' /proc/kallsyms | wc -l)\n\
             run s onbeat watch --switch -q -D 2s --interval 1s -o rec\n\
             value made $(ls -d rec 2>/dev/null | wc -l)\n",
            switch,
        ),
        Check::new(
            "watch-ring",
            "start w onbeat watch --by ring --interval 2s -o rec\n\
             watch=$pid\n\
             recording rec 1\n\
             run m onbeat measure -p 80 -i 5000 -a 1 -D 5s -q -o b --json m.json\n\
             usleep 500000\n\
             value armed $(ls /sys/kernel/debug/tracing/instances | grep -c onbeat)\n\
             pid=$watch\n\
             kill -TERM $pid\n\
             reap\n\
             value left $(ls /sys/kernel/debug/tracing/instances | grep -c onbeat)\n\
             run r onbeat report rec --json r.json\n\
             send run m.json\nsend record r.json\n",
            through_ring,
        ),
        Check::new(
            "watch-ring-killed",
            "start w onbeat watch -q --by ring --interval 1s -o rec\n\
             recording rec 3\n\
             value armed $(ls /sys/kernel/debug/tracing/instances | grep -c onbeat)\n\
             kill -KILL $pid\n\
             reap\n\
             value closed $(closed rec)\n\
             usleep 1000000\n\
             value left $(ls /sys/kernel/debug/tracing/instances | grep -c onbeat)\n\
             run again onbeat watch -q --by ring -D 1s --interval 1s -o rec\n\
             run r onbeat report rec --json r.json\nsend record r.json\n",
            ring_killed,
        ),
    ]
}

/// The switch is recorded if the kernel shows it; otherwise it is refused before anything is
/// created.
fn switch(reply: &Reply, _: &Machine) -> CheckResult {
    let shown = reply.number("shown")? > 0;
    exit(reply, "s", if shown { 0 } else { 5 })?;
    let made = reply.number("made")?;
    require((made > 0) == shown, || format!("{made} folders, and the kernel shows it: {shown}"))
}

/// The same as by programs, and the instance disappears with its process.
fn through_ring(reply: &Reply, machine: &Machine) -> CheckResult {
    require(reply.number("armed")? == 1, || "no tracing instance exists".to_string())?;
    require(reply.number("left")? == 0, || "the tracing instance remains".to_string())?;
    beside(reply, machine)
}

/// Another process removes the instance.
fn ring_killed(reply: &Reply, machine: &Machine) -> CheckResult {
    require(reply.number("armed")? == 1, || "no tracing instance exists".to_string())?;
    killed(reply, machine)
}

/// The largest latency of the measuring thread, by itself and in the record: the record's ends
/// earlier, at the switch, and never later.
fn beside(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "w", 6)?;
    exit(reply, "m", 0)?;
    exit(reply, "r", 0)?;
    let (run, record) = (document(reply, "run")?, document(reply, "record")?);
    let own = run["cpus"][0]["max_ns"].as_i64().ok_or("the document has no maximum")?;
    let lists =
        ["worst", "worst_by_priority"].map(|list| record[list].as_array().cloned().unwrap_or_default());
    let of_thread = |worst: &&Value| worst["victim"]["comm"] == "onbeat/1" && worst["timer_ns"].is_i64();
    let begun = run["cpus"][0]["t0_mono_ns"].as_i64().ok_or("the document has no begin")?;
    let all = lists.concat();
    let entries: Vec<(i64, i64)> = all
        .iter()
        .filter(of_thread)
        .filter_map(|worst| Some((worst["mono_ns"].as_i64()?, worst["total_ns"].as_i64()?)))
        .collect();
    let largest = |of_run: bool| {
        let within = entries.iter().filter(|(at, _)| (*at >= begun) == of_run);
        within.map(|(_, total)| *total).max().unwrap_or(0)
    };
    // The thread warms up before its first slot: a late wake-up then may hide the maximum.
    let (seen, before) = (largest(true), largest(false));
    require(seen <= own && (own - seen <= REST_NS || before >= own), || {
        format!("{own} ns by itself, {seen} ns in the record, {before} ns before it began")
    })?;
    // Each of its wake-ups is counted, those of its warm-up too.
    let cycles = run["cpus"][0]["cycles"].as_u64().ok_or("the document has no cycles")?;
    let counted = counted(&record);
    require(counted >= cycles, || format!("{cycles} wake-ups by itself, {counted} in the record"))?;
    let share = record["coverage_share"].as_f64().ok_or("the document has no coverage")?;
    require(share >= 0.999, || format!("coverage is {share}: {}", record["coverage"]))
}

/// The wake-ups of programs' threads on CPU 1 that have T and W.
fn counted(record: &Value) -> u64 {
    let series = record["series"].as_array().cloned().unwrap_or_default();
    let is_wanted = |rows: &&Value| rows["series"] == "timer+wakeup" && rows["class"] != "kernel-threads";
    let rows = series.iter().filter(is_wanted).filter_map(|rows| rows["cpus"].as_array()).flatten();
    rows.filter(|row| row["cpu"] == 1).filter_map(|row| row["n"].as_u64()).sum()
}

fn killed(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "w", 137)?;
    exit(reply, "again", 0)?;
    exit(reply, "r", 0)?;
    require(reply.number("left")? == 0, || "a program or a map remains".to_string())?;
    let record = document(reply, "record")?;
    let closed = reply.number("closed")?;
    require(closed >= 3, || format!("{closed} intervals were closed when it was killed"))?;
    // One arrived later.
    let intervals = record["intervals"].as_i64().unwrap_or(0);
    require(intervals > closed, || format!("{intervals} intervals are left, of {closed} and one more"))?;
    Ok(())
}
