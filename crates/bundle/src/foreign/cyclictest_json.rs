//! cyclictest's JSON (`--json`, `file_version` 1), for the scripts that read it and the results
//! that exist.
//!
//! The keys `cmdline:` and `rt_test_version:` really have a colon inside their quotes. Latencies
//! are in microseconds, or in nanoseconds if `resolution_in_ns` is 1. Checked: the parser of
//! Linaro's test-definitions (`parse_rt_tests_results.py`) reads the output of [`write()`] and
//! reports t0-min-latency to tN-max-latency and a pass.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{CyclictestContext, date, micros};
use model::error::{Result, json_pretty};
use model::run::{CpuRun, Run};
use model::vocabulary::Preempt;

#[derive(Serialize)]
struct File<'a> {
    file_version: u32,
    #[serde(rename = "cmdline:")]
    command_line: &'a str,
    #[serde(rename = "rt_test_version:")]
    version: &'a str,
    start_time: String,
    end_time: String,
    return_code: i32,
    sysinfo: SysInfo<'a>,
    num_threads: usize,
    resolution_in_ns: u32,
    thread: BTreeMap<usize, WrittenThread>,
}

#[derive(Serialize)]
struct SysInfo<'a> {
    sysname: &'a str,
    nodename: &'a str,
    release: &'a str,
    version: &'a str,
    machine: &'a str,
    realtime: u32,
}

#[derive(Serialize)]
struct WrittenThread {
    histogram: micros::Buckets,
    cycles: u64,
    min: i64,
    max: i64,
    avg: f64,
    cpu: i64,
    node: i32,
}

/// Writes the run like cyclictest: a thread per CPU, ascending, everything in microseconds.
///
/// `rt_test_version:` is onbeat's version. How rows become buckets is described at
/// `micros::microsecond_buckets`: counts are kept exactly, there is no overflow, early wake-ups are
/// in bucket 0. A number that the run does not know is 0, since parsers do arithmetic on it.
pub fn write(run: &Run, context: &CyclictestContext) -> Result<String> {
    micros::require_cyclictest(run)?;
    let file = File {
        file_version: 1,
        command_line: &context.command_line,
        version: &run.version,
        start_time: date::as_rfc2822(context.started_unix_s),
        end_time: date::as_rfc2822(context.ended_unix_s),
        return_code: context.return_code,
        sysinfo: SysInfo {
            sysname: "Linux",
            nodename: &context.node_name,
            release: &run.host.release,
            version: &run.host.kernel,
            machine: &run.host.machine,
            realtime: (run.host.preempt == Preempt::Rt).into(),
        },
        num_threads: run.cpus.len(),
        resolution_in_ns: 0,
        thread: run.cpus.iter().map(written).enumerate().collect(),
    };
    json_pretty(&file)
}

fn written(cpu: &CpuRun) -> WrittenThread {
    WrittenThread {
        histogram: micros::microsecond_buckets(cpu),
        cycles: cpu.cycles.unwrap_or(0),
        min: micros::whole(cpu.min_ns),
        max: micros::whole(cpu.max_ns),
        avg: (cpu.mean_ns.unwrap_or_default().0 as f64 / 10.0).round() / 100.0,
        cpu: cpu.cpu.map_or(-1, |cpu| i64::from(cpu.0)),
        // Value of cyclictest for a node that it did not determine.
        node: -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing::{run_of, sample_sets};
    use model::units::Nanos;
    use proptest::prelude::*;

    #[test]
    fn the_keys_are_cyclictests() {
        let mut run = run_of(&[vec![1_893, 7_300_000], vec![-20]]);
        run.version = "0.1.0".into();
        let context = CyclictestContext {
            command_line: r#"onbeat measure -o a"b\c"#.into(),
            started_unix_s: 1_795_223_137,
            ..CyclictestContext::default()
        };
        let text = write(&run, &context).unwrap();
        assert!(
            text.starts_with("{\n  \"file_version\": 1,\n  \"cmdline:\": \"onbeat measure -o a\\\"b"),
            "{text}"
        );
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["cmdline:"], r#"onbeat measure -o a"b\c"#);
        assert_eq!(value["rt_test_version:"], "0.1.0");
        assert_eq!(value["start_time"], "Sat, 21 Nov 2026 01:05:37 +0000");
        assert_eq!((&value["num_threads"], &value["resolution_in_ns"]), (&2.into(), &0.into()));
        let thread = &value["thread"]["0"];
        assert_eq!(thread["histogram"], serde_json::json!({"1": 1, "7300": 1}));
        assert_eq!((&thread["cycles"], &thread["min"], &thread["max"]), (&2.into(), &1.into(), &7300.into()));
        assert_eq!(value["thread"]["1"]["histogram"], serde_json::json!({"0": 1}));
    }

    proptest! {
        #[test]
        fn counts_and_extremes_survive_the_round_trip(sets in sample_sets()) {
            let run = run_of(&sets);
            let json = write(&run, &CyclictestContext::default()).unwrap();
            let back = crate::foreign::json_read::parse(json.as_bytes()).unwrap();
            prop_assert_eq!(back.check(), Ok(()));
            prop_assert_eq!(back.cpus.len(), run.cpus.len());
            for (there, here) in back.cpus.iter().zip(&run.cpus) {
                prop_assert_eq!((there.cpu, there.cycles, there.overflows), (here.cpu, here.cycles, None));
                let close = |a: Option<Nanos>, b: Option<Nanos>| (0..1000).contains(&(b.unwrap() - a.unwrap()).0);
                prop_assert!(there.min_ns.is_none() || close(there.min_ns, here.min_ns));
                prop_assert!(there.max_ns.is_none() || close(there.max_ns, here.max_ns));
                prop_assert!((there.mean_ns.map_or(0, |n| n.0 - here.mean_ns.unwrap().0)).abs() <= 5);
            }
        }
    }
}
