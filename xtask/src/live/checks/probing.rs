//! The probes on a real kernel: a process that is held and a machine that is held show as gaps,
//! every kind hands over, inversions are resolved, the highest threads run, jobs and packets are
//! counted, and a kill leaves nothing.

use super::super::faults::log;
use super::super::frames::Reply;
use super::super::judge::{CheckResult, document, exit, require};
use super::super::machine::Machine;
use super::Check;

/// The guest's clock for the hold has steps of 10 ms.
const STEP_MS: i64 = 10;
/// Tolerance for delays by the emulator.
const NOISE_MS: i64 = 60;

/// Number of stops of the whole machine, their length, and the number to be found with an error of
/// at most a tenth.
const STOPS: usize = 20;
const STOP_MS: i64 = 200;
const FOUND: usize = 18;

/// Stops of 30 to 60 ms during `probe hw`, and the number to be found by the tracer: it samples for
/// nine tenths of the time.
const HW_STOPS: usize = 20;
const HW_FOUND: usize = 15;

/// Checks of the newest kernel in the complete gate.
pub fn long_checks() -> Vec<Check> {
    vec![Check::new(
        "probe-hw-stops",
        &format!(
            "mount -t tracefs nodev /sys/kernel/tracing\n\
             onbeat probe hw --source spin -D 34s -a 0 --threshold 15ms -q -o s --json s.json 3>&- &\n\
             start m onbeat probe hw --source hwlat -D 32s -a 1 --width 450ms --window 500ms \
             --threshold 15ms -q -o b --json m.json\n\
             underway b\n\
             clock\n\
             echo \"=== STOP {HW_STOPS} 30 60 1200 7\" >&3\n\
             reap\n\
             usleep 3000000\n\
             send run m.json; send spin s.json\n\
             umount /sys/kernel/tracing; rm -r /var/lib/onbeat\n"
        ),
        found_by_tracer,
    )]
}

pub fn checks() -> Vec<Check> {
    vec![
        Check::new(
            "probe-spin",
            "start m onbeat probe spin -D 3s -a 1 --over 1ms -q -o b --json m.json\n\
             underway b\n\
             usleep 1000000\n\
             before=$(now_ms); kill -STOP $pid; value held_from $(now_ms)\n\
             usleep 200000\n\
             value held_to $(now_ms); kill -CONT $pid; after=$(now_ms)\n\
             value stop_from $before; value stop_to $after\n\
             reap\n\
             send run m.json\n",
            stopped_spin,
        ),
        Check::new(
            "probe-stopped",
            &format!(
                "start m onbeat probe spin -D 13s -a 1 --over 20ms -q -o b --json m.json\n\
                 underway b\n\
                 clock\n\
                 echo \"=== STOP {STOPS} {STOP_MS} {STOP_MS} 300 7\" >&3\n\
                 reap\n\
                 send run m.json\n"
            ),
            stopped,
        ),
        Check::new(
            "probe-kinds",
            "run m onbeat probe ipc -a 0-1 -D 1s -i 5000 -q -o b --json m.json\nsend run m.json\n\
             run s onbeat probe switch -a 1 -D 1s -i 5000 -q -o s --json s.json\nsend switch s.json\n",
            kinds,
        ),
        Check::new(
            "probe-pi",
            "limit=$(cat /proc/sys/kernel/sched_rt_runtime_us)\n\
             echo -1 >/proc/sys/kernel/sched_rt_runtime_us\n\
             run m onbeat probe pi -D 2s -i 5000 -q -o b --json m.json\nsend run m.json\n\
             run s onbeat probe pi --mutex shared -l 100 -i 5000 -q -o s\n\
             run p onbeat probe pi --mutex plain -l 100 -i 5000 -q -o p\n\
             echo $limit >/proc/sys/kernel/sched_rt_runtime_us\n",
            inversions,
        ),
        Check::new(
            "probe-migrate",
            "limit=$(cat /proc/sys/kernel/sched_rt_runtime_us)\n\
             echo -1 >/proc/sys/kernel/sched_rt_runtime_us\n\
             run m onbeat probe migrate -l 50 -D 20s -i 40ms --over 100ms -q -o b --json m.json\n\
             send run m.json\n\
             run p onbeat probe migrate --bound -l 50 -D 20s -i 600ms --work 200ms --over 100ms -q -o p\n\
             echo $limit >/proc/sys/kernel/sched_rt_runtime_us\n",
            migrations,
        ),
        Check::new(
            "probe-deadline",
            "limit=$(cat /proc/sys/kernel/sched_rt_runtime_us)\n\
             run f onbeat probe deadline -P d:5ms:50ms -l 20 -D 20s -q -o f --json f.json\nsend free f.json\n\
             run r onbeat probe deadline -P d:5ms:50ms -a 1 -l 20 -q -o r\n\
             run a onbeat probe deadline -P d:49900us:50ms -l 20 -q -o a\n\
             echo -1 >/proc/sys/kernel/sched_rt_runtime_us\n\
             run o onbeat probe deadline -P d:20ms:100ms -a 1 --work 40ms -l 10 -D 20s -q -o o \
             --json o.json\n\
             send own o.json\n\
             start m onbeat probe deadline -P d:100ms:200ms -a 1 --work 80ms -l 15 -D 20s -q -o p \
             --json p.json\n\
             underway p\n\
             run h onbeat probe deadline -P d:20ms:40ms -a 1 --work 15ms -D 2s -q -o h\n\
             reap\nsend higher p.json\n\
             echo $limit >/proc/sys/kernel/sched_rt_runtime_us\n",
            jobs,
        ),
        Check::new(
            "probe-net",
            "before=$(ls /sys/class/net | wc -l)\n\
             ip link set lo up\n\
             run m onbeat probe net -l 200 -D 20s -i 5000 -q -o b --json m.json\nsend run m.json\n\
             run s onbeat probe net --stamps hardware -q -o s\n\
             ip link set lo down\n\
             value devices $(($(ls /sys/class/net | wc -l) - before))\n",
            packets,
        ),
        Check::new(
            "probe-hw",
            "mount -t tracefs nodev /sys/kernel/tracing\n\
             grep -qw hwlat /sys/kernel/tracing/available_tracers || value none 1\n\
             set -- /sys/kernel/tracing/tracing_thresh /sys/kernel/tracing/hwlat_detector/*\n\
             before=$(cat \"$@\")\n\
             run w onbeat probe hw --source hwlat -D 3s -a 1 --width 200ms --window 500ms --threshold 15ms \
             -q -o w --json w.json --hwlatdetect w.txt\n\
             [ -f w.json ] && send run w.json\n\
             run i onbeat import w.txt -q -o i\n\
             start m onbeat probe hw --source hwlat -D 60s --width 100ms --window 300ms -q -o b\n\
             underway b\n\
             usleep 500000; kill -KILL $pid; reap\n\
             tries=0; until [ \"$before\" = \"$(cat \"$@\")\" ] || [ $tries -ge 100 ]; do \
             usleep 100000; tries=$((tries + 1)); done\n\
             value tries $tries; echo \"$before to $(cat \"$@\")\" >restored; send restored restored\n\
             value left $(ls /sys/kernel/tracing/instances | grep -c onbeat)\n\
             run s onbeat probe hw --source spin -D 1s -a 1 --threshold 1ms -q -o s --json s.json\n\
             send spin s.json\n\
             umount /sys/kernel/tracing; rm -r /var/lib/onbeat\n",
            hardware,
        ),
        Check::new(
            "probe-killed",
            "start m onbeat probe ipc semaphore mqueue -a 0-1 -D 60s -q -o b\n\
             underway b/semaphore-same\n\
             usleep 1000000\n\
             kill -KILL $pid\n\
             reap\n\
             usleep 1000000\n\
             value sets $(($(wc -l </proc/sysvipc/sem) - 1)); value left $(pidof onbeat | wc -w)\n",
            killed,
        ),
    ]
}

fn stopped_spin(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 0)?;
    let run = document(reply, "run")?;
    let least = reply.number("held_to")? - reply.number("held_from")? - STEP_MS;
    let most = reply.number("stop_to")? - reply.number("stop_from")? + STEP_MS + NOISE_MS;
    let gaps = run["gaps"].as_array().ok_or("the document has no list of gaps")?;
    let longest = gaps.iter().filter_map(|gap| gap["ns"].as_i64()).max().unwrap_or(0) / 1_000_000;
    require((least..=most).contains(&longest), || {
        format!("the longest gap is {longest} ms for a hold of {least} to {most} ms")
    })?;
    let lost = run["cpus"][0]["lost_ppm"].as_f64().ok_or("the document has no share of lost time")?;
    require(lost >= (least * 1_000) as f64 / 4.0, || format!("{lost} ppm were lost"))
}

/// The host records when it stopped the emulator; the two clocks agree to a few milliseconds.
fn stopped(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 0)?;
    let run = document(reply, "run")?;
    let gaps = run["gaps"].as_array().ok_or("the document has no list of gaps")?;
    let gaps: Vec<(i64, i64)> =
        gaps.iter().filter_map(|gap| Some((gap["mono_ns"].as_i64()?, gap["ns"].as_i64()?))).collect();
    let stops = log::parse(reply.file("stops")?)?;
    let near = |a: i64, b: i64| (a - b).abs() <= STOP_MS * 100_000;
    let is_found = |start: i64, end: i64| {
        gaps.iter().any(|(begin, length)| near(*begin, start) && near(*length, end - start))
    };
    let found = stops.iter().filter(|stop| is_found(stop.start, stop.end)).count();
    require(stops.len() == STOPS && found >= FOUND, || {
        format!("{found} of {} stops are among the gaps: {gaps:?}", stops.len())
    })
}

fn kinds(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 0)?;
    exit(reply, "s", 0)?;
    let (run, switch) = (document(reply, "run")?, document(reply, "switch")?);
    let cpus = run["cpus"].as_array().ok_or("the document has no CPUs")?;
    // Eight kinds on each of two CPUs and across them.
    require(cpus.len() == 24, || format!("{} pairs were measured instead of 24", cpus.len()))?;
    for own in cpus.iter().chain([&switch["cpus"][0]]) {
        let (kind, mean) = (&own["kind"], own["mean_ns"].as_i64().unwrap_or(0));
        require(own["cycles"].as_u64() > Some(50), || format!("{kind}: {} samples", own["cycles"]))?;
        require((100..20_000_000).contains(&mean), || format!("{kind}: a mean of {mean} ns"))?;
    }
    Ok(())
}

fn inversions(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 0)?;
    exit(reply, "s", 0)?;
    exit(reply, "p", 3)?;
    let run = document(reply, "run")?;
    let cpus = run["cpus"].as_array().ok_or("the document has no CPUs")?;
    for own in cpus {
        let of = &own["inversions"];
        require(of["made"].as_u64() > Some(50) && of["made"] == of["resolved"], || {
            format!("CPU {}: {of}", own["cpu"])
        })?;
    }
    Ok(())
}

fn migrations(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 0)?;
    exit(reply, "p", 3)?;
    let run = document(reply, "run")?;
    let cpus = run["cpus"].as_array().ok_or("the document has no threads")?;
    require(cpus.len() >= 2, || format!("{} threads", cpus.len()))?;
    for own in cpus {
        let of = &own["migration"];
        require(own["cpu"].is_null() && own["cycles"] == 50 && of["violations"] == 0, || {
            format!("thread {}: {} rounds, {of}", own["thread"], own["cycles"])
        })?;
    }
    Ok(())
}

/// Jobs that overran by their own work, or lost their CPU to a thread with an earlier deadline.
fn jobs(reply: &Reply, _: &Machine) -> CheckResult {
    for (name, code) in [("f", 0), ("r", 4), ("a", 4), ("o", 0), ("m", 0), ("h", 0)] {
        exit(reply, name, code)?;
    }
    let of = |name: &str| document(reply, name).map(|run| run["cpus"][0]["deadline"].clone());
    let (free, own, higher) = (of("free")?, of("own")?, of("higher")?);
    require(free["jobs"] == 20, || format!("free: {free}"))?;
    require(own["overruns"] == own["jobs"] && own["throttled"].as_u64() > Some(0), || {
        format!("work beyond the runtime: {own}")
    })?;
    require(higher["overruns"] == 0 && higher["preempted"].as_u64() > Some(5), || {
        format!("beside an earlier deadline: {higher}")
    })
}

fn packets(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 0)?;
    exit(reply, "s", 5)?;
    let run = document(reply, "run")?;
    let own = &run["cpus"][0];
    let of = &own["packets"];
    // Not every kernel has veth; the loopback device is the other way, which the run names.
    let kind = run["plan"]["kind"].as_str().unwrap_or_default();
    require(["veth", "loopback"].contains(&kind) && of["answered"] == own["cycles"], || format!("{of}"))?;
    let sum = ["answered", "lost", "late"].iter().filter_map(|name| of[*name].as_u64()).sum::<u64>();
    require(of["sent"].as_u64() == Some(sum) && of["path_mean_ns"].is_i64(), || format!("{of}"))?;
    require(reply.number("devices")? == 0, || "a network device is left".to_string())
}

fn hardware(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "s", 0)?;
    require(document(reply, "spin")?["plan"]["kind"] == "spin", || "no spinning thread".to_string())?;
    if reply.number("none").is_ok() {
        // A kernel without the tracer: refused with the remedy.
        return exit(reply, "w", 5);
    }
    exit(reply, "w", 0)?;
    exit(reply, "i", 0)?;
    exit(reply, "m", 137)?;
    let run = document(reply, "run")?;
    require(run["plan"]["probe"] == "hw" && run["plan"]["kind"] == "hwlat", || run["plan"].to_string())?;
    require(run["cpus"][0]["measures"] == "gap", || run["cpus"].to_string())?;
    let gaps = run["gaps"].as_array().ok_or("the document has no list of gaps")?;
    let is_whole = |gap: &&serde_json::Value| gap["ns"].as_i64() >= Some(15_000_000) && gap["origin"] != "";
    require(gaps.iter().all(|gap| is_whole(&gap)), || format!("{gaps:?}"))?;
    require(reply.number("tries")? < 100, || {
        format!("settings of the tracer are not restored: {}", reply.file("restored").unwrap_or_default())
    })?;
    require(reply.number("left")? == 0, || "an instance is left".to_string())
}

/// Each stop that the tracer found has its length within a fifth, and the spinning loop of the
/// other CPU found it, too.
fn found_by_tracer(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 0)?;
    let gaps = |name: &str| -> crate::tools::Result<Vec<(i64, i64)>> {
        let run = document(reply, name)?;
        let gaps = run["gaps"].as_array().ok_or("the document has no list of gaps")?;
        let own = |gap: &serde_json::Value| Some((gap["mono_ns"].as_i64()?, gap["ns"].as_i64()?));
        Ok(gaps.iter().filter_map(own).collect())
    };
    let (traced, spun) = (gaps("run")?, gaps("spin")?);
    let stops = log::parse(reply.file("stops")?)?;
    let is = |gap: &(i64, i64), start: i64, end: i64| {
        // The two clocks agree to a few milliseconds.
        let overlaps = gap.0 - 10_000_000 < end && start < gap.0 + gap.1 + 10_000_000;
        overlaps && (gap.1 - (end - start)).abs() * 5 <= end - start
    };
    let by = |gaps: &[(i64, i64)]| -> Vec<bool> {
        stops.iter().map(|stop| gaps.iter().any(|gap| is(gap, stop.start, stop.end))).collect()
    };
    let (by_tracer, by_loop) = (by(&traced), by(&spun));
    let found = by_tracer.iter().filter(|&&found| found).count();
    let agreed = by_tracer.iter().zip(&by_loop).filter(|(tracer, spin)| **tracer && **spin).count();
    let others = traced.iter().filter(|gap| !stops.iter().any(|stop| is(gap, stop.start, stop.end))).count();
    println!(
        "          {found} of {} stops in the tracer's windows, {agreed} in both; {others} other gaps",
        stops.len()
    );
    require(stops.len() == HW_STOPS && found >= HW_FOUND && agreed * 10 >= found * 9, || {
        format!("{found} of {} stops found, {agreed} by both: {traced:?} {spun:?}", stops.len())
    })
}

fn killed(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 137)?;
    require(reply.number("sets")? == 0, || "a set of semaphores is left".to_string())?;
    require(reply.number("left")? == 0, || "a process is left".to_string())
}
