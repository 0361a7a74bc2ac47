//! What a killed hunt left: its tail and its explained spikes, whole, cut, damaged or made up.

#![cfg_attr(fuzzing, no_main)]

use std::path::PathBuf;
use std::sync::LazyLock;

use bundle::read::Bundle;
use bundle::tail::Tail;
use entry::fuzz_target;
use model::run::{CpuRun, Plan, Run, SCHEMA, Slice, Spike};
use model::units::{Cpu, Nanos};

/// A folder of this process's own, with the `run.json` of a hunt's first checkpoint.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("onbeat-fuzz-recovery-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("events")).expect("a folder");
    let cpu = |cpu| CpuRun {
        cpu: Some(Cpu(cpu)),
        cycles: Some(0),
        missed: Some(0),
        scheduled: Some(0),
        early: Some(0),
        sum_ns: Some(0),
        deadline_histogram: Some(Vec::new()),
        ..CpuRun::default()
    };
    let run = Run {
        schema: SCHEMA.to_owned(),
        command: model::vocabulary::Command::Hunt.into(),
        plan: Plan { cpus: vec![Cpu(0), Cpu(1)], interval_ns: Some(Nanos::MILLI), ..Plan::default() },
        cpus: vec![cpu(0), cpu(1)],
        ..Run::default()
    };
    let bytes = serde_json::to_vec(&run).expect("a document");
    std::fs::write(folder.join("run.json"), bytes).expect("written");
    folder
});

type Block = (u8, [i64; 5], u64, Vec<(u16, u64)>, Vec<(u16, u64)>, Vec<(i64, u64, i64)>);
type Late = (u8, i64, Vec<(i64, i64)>, i64);

fn tail((cpu, [start, end, wall, sum, min], missed, rows, missed_rows, worst): Block) -> Tail {
    let pairs = |rows: Vec<(u16, u64)>| rows.into_iter().map(|(row, count)| (row.into(), count)).collect();
    Tail {
        cpu: Cpu(u32::from(cpu % 4)),
        start: Nanos(start),
        end: Nanos(end),
        wall_offset: Nanos(wall),
        sum,
        min: Nanos(min),
        missed,
        rows: pairs(rows),
        missed_rows: pairs(missed_rows),
        worst: worst.into_iter().map(|(latency, cycle, at)| (Nanos(latency), cycle, Nanos(at))).collect(),
    }
}

fn spike((cpu, expected, slices, unexplained): Late) -> Spike {
    let slice = |(start, ns)| Slice { start_ns: Nanos(start), ns: Nanos(ns), ..Slice::default() };
    let slices: Vec<Slice> = slices.into_iter().map(slice).collect();
    let latency = slices.iter().fold(unexplained, |sum, slice| sum.wrapping_add(slice.ns.0));
    Spike {
        cpu: Cpu(cpu.into()),
        expected_ns: Nanos(expected),
        actual_ns: Nanos(expected.wrapping_add(latency)),
        latency_ns: Nanos(latency),
        unexplained_ns: Nanos(unexplained),
        slices,
        ..Spike::default()
    }
}

fuzz_target!(|input: (Vec<Block>, Vec<u8>, Vec<Late>, Vec<u8>)| {
    let (blocks, rest, late, more) = input;
    let mut bytes = Vec::new();
    blocks.into_iter().for_each(|block| tail(block).encode(&mut bytes));
    bytes.extend_from_slice(&rest);
    let mut lines = Vec::new();
    for late in late {
        serde_json::to_writer(&mut lines, &spike(late)).expect("a line");
        lines.push(b'\n');
    }
    lines.extend_from_slice(&more);
    std::fs::write(FOLDER.join("tail"), &bytes).expect("written");
    std::fs::write(FOLDER.join("events/explained.jsonl"), &lines).expect("written");
    let Ok(bundle) = Bundle::open(&FOLDER) else { return };
    assert_eq!(bundle.run.check(), Ok(()));
    for spike in &bundle.run.spikes {
        let sum: i128 = spike.slices.iter().map(|slice| i128::from(slice.ns.0)).sum();
        assert_eq!(sum + i128::from(spike.unexplained_ns.0), i128::from(spike.latency_ns.0));
    }
    assert!(bundle.run.spikes.windows(2).all(|pair| pair[0].actual_ns <= pair[1].actual_ns));
});
