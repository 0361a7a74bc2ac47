//! Damages files in thousands of seeded ways and checks that every reader is robust: no panic, no
//! long computation, a one-line error, and consistent numbers if it accepts.
//!
//! `ONBEAT_SEED` and `ONBEAT_ROUNDS` change the run; a failure prints the seed and the round.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bundle::foreign::maxima::{self, Maxima};
use bundle::foreign::{self, CyclictestContext, cyclictest_hist, cyclictest_json};
use experiment::design::usual;
use experiment::needs::ProofNeeds;
use experiment::proof::prove;
use experiment::tally::PairTally;
use model::experiment::parse as experiment;
use model::experiment::{
    EXPERIMENT_SCHEMA, ExperimentArm, ExperimentPlan, ExperimentRun, ExperimentSegment, SegmentLoad,
    SettleRun,
};
use model::histogram::{Bucket, quantile, total_of};
use model::rng::SplitMix64;
use model::run::{Block, CpuRun, Peak, Run, SCHEMA, Worst};
use model::units::{Bare, Cpu, CpuSet, Nanos, parse_span};
use report::proving::{Proven, text as proving};
use stats::series::Collector;
use trace::catalog;
use trace::decode::Decoder;
use trace::format::Format;

const SEED: u64 = 0x6f6e_6265_6174;
const ROUNDS: u64 = if option_env!("ONBEAT_NIGHT").is_some() { 2000 } else { 400 };
/// Limit of CPU time, far above the need of any of these files: a loaded machine does not count.
const PATIENCE: Duration = Duration::from_secs(10);

/// CPU time of this thread.
fn cpu_time() -> Duration {
    Duration::from_nanos(host::clock::thread_cpu().expect("a CPU clock").0.unsigned_abs())
}

/// Random choices of the damage, from a seed.
struct Choices(SplitMix64);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.0.next_u64() % n as u64) as usize }
    }

    fn pick<'a>(&mut self, choices: &[&'a [u8]]) -> &'a [u8] {
        choices[self.below(choices.len())]
    }
}

const TOKENS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"1e308",
    b"1e999",
    b"-0.0",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"340282366920938463463374607431768211456",
    b"null",
    b"nan",
    b"true",
    b"\"\"",
    b"[]",
    b"{}",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\0",
    b"\xff\xfe",
    b"\xc3",
    b"\xf0\x9f\x92\xa5",
    b"\r\n",
    b"\n",
    b"\t",
    b"#",
    b"# Thread 8191: 1\n",
    b"# Min Latencies: 1\n",
    b"T: 8191 (1) P:1 I:1 C:1 Min:1 Act:1 Avg:1 Max:1\n",
    b"\x1b[4A",
    b"\xef\xbb\xbf",
];

/// Range of the bytes: a few bytes, a line, or a word.
fn stretch(bytes: &[u8], choices: &mut Choices) -> (usize, usize) {
    let at = choices.below(bytes.len());
    let until =
        |stop: fn(u8) -> bool| bytes[at..].iter().position(|&b| stop(b)).map_or(bytes.len(), |n| at + n);
    let end = match choices.below(3) {
        0 => (at + 1 + choices.below(8)).min(bytes.len()),
        1 => until(|b| b == b'\n'),
        _ => until(|b| !b.is_ascii_alphanumeric()),
    };
    (at, end)
}

fn mutate(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let (at, end) = stretch(bytes, choices);
    match choices.below(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << choices.below(8),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let copy = bytes[at..end].to_vec();
            for _ in 0..=choices.below(3) {
                bytes.splice(at..at, copy.iter().copied());
            }
        }
        3 => {
            let copy = bytes[at..end].to_vec();
            let to = choices.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        4 => bytes.truncate(at),
        5 | 6 => drop(bytes.splice(at..end, choices.pick(TOKENS).iter().copied())),
        7 => drop(bytes.splice(at..at, choices.pick(TOKENS).iter().copied())),
        _ => {
            let depth = [10, 127, 128, 10_000][choices.below(4)];
            let open = choices.pick(&[b"[", b"{\"a\":", b"{\"thread\":"]);
            bytes.splice(at..end, open.repeat(depth));
        }
    }
}

/// Runs the reader on mutations of the sample; the reader asserts properties of accepted ones.
fn batter(name: &str, sample: &[u8], reader: impl Fn(&[u8]) -> Result<(), String>) {
    let number =
        |name: &str, default| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (seed, rounds) = (number("ONBEAT_SEED", SEED), number("ONBEAT_ROUNDS", ROUNDS));
    println!("{name}: seed {seed}, {rounds} rounds");
    assert_eq!(reader(sample), Ok(()), "{name}: the sample itself");
    let mut refused = 0;
    for round in 0..rounds {
        let mut choices = Choices(SplitMix64::new(seed ^ round.wrapping_mul(0x2545_f491_4f6c_dd1d)));
        let mut bytes = sample.to_vec();
        for _ in 0..=choices.below(4) {
            mutate(&mut bytes, &mut choices);
        }
        let start = cpu_time();
        let outcome = catch_unwind(AssertUnwindSafe(|| reader(&bytes)));
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
        match outcome {
            Err(_) => panic!("{name}: seed {seed}, round {round} panics on {shown:?}"),
            Ok(Err(error)) => {
                refused += 1;
                assert!(
                    !error.is_empty() && error.len() < 1000 && !error.contains(['\n', '\r', '\0', '\x1b']),
                    "{name}: seed {seed}, round {round} is not one line: {error:?}"
                );
            }
            Ok(Ok(())) => {}
        }
        assert!(cpu_time() - start < PATIENCE, "{name}: seed {seed}, round {round} takes long on {shown:?}");
    }
    assert!(refused > 0, "{name}: nothing was refused, so the mutations do not reach the reader");
}

/// Checks an accepted run: it is consistent, and valid input for every function that reads runs.
fn use_run(run: &Run) {
    for cpu in &run.cpus {
        assert!(Some(total_of(&cpu.histogram)) <= cpu.cycles || cpu.is_summary());
        for per_million in [0, 1, 500_000, 999_999, 1_000_000] {
            assert_eq!(
                quantile(&cpu.histogram, cpu.max_ns, per_million).is_some(),
                !cpu.histogram.is_empty()
            );
        }
        cpu.clone().fill_quantiles();
    }
    // Formats that grow with the number of CPUs and rows only stay small for small runs.
    if let Ok(json) = cyclictest_json::write(run, &CyclictestContext::default()) {
        serde_json::from_str::<serde_json::Value>(&json).expect("valid JSON");
    }
    let _ = cyclictest_hist::write(run);
}

fn imports(bytes: &[u8]) -> Result<(), String> {
    let results = foreign::import(bytes, &foreign::ImportOptions::default()).map_err(|error| error.0)?;
    for result in results {
        assert_eq!(result.run.check(), Ok(()), "an imported run passes the check");
        use_run(&result.run);
    }
    Ok(())
}

#[test]
fn imports_survive_damage() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/cyclictest");
    let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names.iter().filter(|path| path.extension().is_some_and(|ext| ext != "md")) {
        batter(&path.display().to_string(), &std::fs::read(path).unwrap(), imports);
    }
}

fn sample_run() -> Run {
    let mut cpu = CpuRun {
        cpu: Some(Cpu(1)),
        t0_mono_ns: Some(Nanos(5_000_000_000)),
        scheduled: Some(12),
        cycles: Some(10),
        missed: Some(2),
        early: Some(1),
        min_ns: Some(Nanos(-40)),
        mean_ns: Some(Nanos(4_000)),
        max_ns: Some(Nanos(7_300_000)),
        histogram: vec![
            Bucket::new(Nanos(-40), Nanos(0), 1),
            Bucket::new(Nanos(1_888), Nanos(1_920), 8),
            Bucket::new(Nanos(7_274_496), Nanos(7_405_568), 1),
        ],
        deadline_histogram: Some(vec![Bucket::new(Nanos(1_888), Nanos(1_920), 12)]),
        worst: vec![Worst { latency_ns: Some(Nanos(7_300_000)), cycle: Some(3), ..Worst::default() }],
        ..CpuRun::default()
    };
    cpu.fill_quantiles();
    let other = CpuRun { cpu: Some(Cpu(3)), overflows: Some(2), cycles: Some(2), ..CpuRun::default() };
    let mut run = Run { schema: SCHEMA.into(), cpus: vec![cpu, other], ..Run::default() };
    run.plan.cpus = vec![Cpu(1), Cpu(3)];
    run.plan.interval_ns = Some(Nanos::MILLI);
    run
}

#[test]
fn run_json_survives_damage() {
    let sample = serde_json::to_vec_pretty(&sample_run()).unwrap();
    batter("run.json", &sample, |bytes| {
        let run: Run = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        run.check()?;
        use_run(&run);
        Ok(())
    });
}

/// Experiment with two pairs: one is spoiled, and one counts.
fn sample_experiment() -> ExperimentRun {
    let segment = |pair: u32, arm: ExperimentArm, late: u64, why: &str| ExperimentSegment {
        pair,
        arm,
        valid: why.is_empty(),
        why: why.into(),
        bundle: format!("segments/{:03}-{}", pair + 1, arm.name()),
        settled_ns: Nanos(2_100_000_000),
        astray: vec![24],
        observed_ns: Nanos(4_000_000_000),
        samples: 4_000,
        late,
        late_blocks: [late / 2, late - late / 2],
        p50_ns: Some(Nanos(41_000)),
        max_ns: Some(Nanos(50_100_000)),
        loads: vec![SegmentLoad { spec: "mem:1x64M".into(), rate_per_s: Some(1.5e8) }],
    };
    let settling = |arm: ExperimentArm, altered_ns: Option<Nanos>, why: &str| SettleRun {
        arm,
        bundle: format!("segments/settling-{}", arm.name()),
        altered_ns,
        unsettled: false,
        why: why.into(),
    };
    let plan = ExperimentPlan {
        change: "vmstat-interval=120".into(),
        settings: vec!["vmstat-interval=120".into()],
        limit_ns: Nanos(30_000_000),
        seed: 11,
        segment_ns: Nanos(4_000_000_000),
        cpus: "2-3".into(),
        load: "mem:1x64M".into(),
        load_cpus: "0".into(),
        priority: Some(80),
        ..usual()
    };
    let (a, b) = (ExperimentArm::A, ExperimentArm::B);
    let segments = vec![segment(0, b, 0, "CPU 2 went offline"), segment(1, a, 8, ""), segment(1, b, 1, "")];
    ExperimentRun {
        schema: EXPERIMENT_SCHEMA.into(),
        plan,
        kernel: "6.12.117-rt".into(),
        pilot: Some(segment(0, a, 6, "")),
        trial: vec![settling(b, Some(Nanos(5_000_000_000)), ""), settling(a, None, "the clock stepped")],
        segments,
    }
}

#[test]
fn experiments_survive_damage() {
    let sample = serde_json::to_vec_pretty(&sample_experiment()).unwrap();
    batter("experiment.json", &sample, |bytes| {
        let run = experiment(bytes)?;
        let tally = PairTally::of(&run.segments);
        let (proof, needs) = (prove(&run.plan, &tally), ProofNeeds::of(&run.plan, &tally));
        assert!(proof.wins + proof.ties <= proof.pairs && proof.pairs <= run.segments.len() as u64);
        assert!(proof.e_value >= 0.0 && proof.interval.is_none_or(|[lower, upper]| lower <= upper));
        let proven = Proven { run: &run, proof: &proof, needs, differing: None, next: None };
        let text = proving(&proven, 100, false);
        assert!(!text.contains(['\r', '\0', '\x1b']), "what it quotes is clean: {text:?}");
        Ok(())
    });
}

#[test]
fn long_experiments_take_no_longer_than_their_size() {
    let mut run = sample_experiment();
    run.segments = (0..300_000u32)
        .map(|at| ExperimentSegment { pair: at % 9_000, ..ExperimentSegment::default() })
        .collect();
    let start = cpu_time();
    let tally = PairTally::of(&run.segments);
    assert_eq!((tally.pairs.len(), tally.dropped, tally.next), (0, 9_000, 9_000));
    assert!(cpu_time() - start < PATIENCE, "the tally takes long");
}

#[test]
fn block_lines_survive_damage() {
    let block = Block {
        cpu: Cpu(1),
        mono_ns: Nanos(5_000_000_000),
        n: 1000,
        max_ns: Some(Nanos(7_000)),
        response_ns: Some(Nanos(90_000)),
        top_ns: vec![Nanos(6_000); 7],
        over: vec![(Nanos(10_240), 3)],
        ..Block::default()
    };
    let line = serde_json::to_string(&block).unwrap();
    batter("blocks.jsonl", format!("{line}\n{line}\n").as_bytes(), |bytes| {
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            serde_json::from_slice::<Block>(line).map_err(|error| error.to_string())?;
            let peak = serde_json::from_slice::<Peak>(line).expect("what is a block has a peak");
            let mut collector = Collector::new(None, Nanos::MILLI);
            collector.add(&peak);
            collector.finish(Nanos(1), Nanos::MILLI, None);
        }
        Ok(())
    });
}

#[test]
fn lists_of_maxima_survive_damage() {
    batter("maxima.csv", b"max_ns\n41000\n# a remark\n52000\n\n+47000\r\n9223372036854775807\n", |bytes| {
        let mut maxima = Maxima::default();
        bytes.split(|&byte| byte == b'\n').try_for_each(|line| maxima.line(line))?;
        let (list, _) = maxima.finish()?;
        assert!(maxima::values(&list).flatten().all(|value| value.0 >= 0));
        assert!(maxima::values(&list).last().is_some_and(|last| last.is_some()));
        Ok(())
    });
}

#[test]
fn flags_survive_damage() {
    // These quote the user's words, whatever they are: only panics count here.
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    batter("cpu list", b"0-3,8,10-30:2/4", |bytes| {
        CpuSet::parse(&text(bytes)).map(drop).map_err(|_| "refused".to_owned())
    });
    batter("span", b"1.5ms", |bytes| {
        parse_span(&text(bytes), Bare::Micros).map(drop).map_err(|_| "refused".to_owned())
    });
}

/// Page header, event formats and texts of a kernel of `tests/pages`.
fn recorded(name: &str) -> (Vec<u8>, String, String) {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pages/debian-6.12-rt");
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    (std::fs::read(dir.join(name)).unwrap(), text("header_page"), text("formats"))
}

#[test]
fn trace_pages_survive_damage() {
    let (pages, header, all) = recorded("cpu0.raw");
    let decoder = Decoder::new(&header, false, &catalog::formats(&all)).unwrap();
    let page = &pages[..decoder.layout().page_size()];
    batter("trace page", page, |bytes| {
        let mut times = Vec::new();
        let mut each = |event: trace::event::Raw| times.push(event.time);
        let notes = decoder.page(Cpu(0), bytes, &mut each);
        assert_eq!(times.len() as u64 + notes.unknown + notes.malformed, notes.records);
        assert!(times.is_sorted() && times.iter().all(|&time| time >= notes.start && time <= notes.end));
        assert!(notes.records <= bytes.len() as u64 / 4);
        if notes.cut { Err("the page is cut".to_owned()) } else { Ok(()) }
    });
}

#[test]
fn trace_formats_survive_damage() {
    let (pages, header, all) = recorded("cpu0.raw");
    let (wanted, switch) =
        catalog::formats(&all).into_iter().find(|(w, _)| w.event == "sched_switch").unwrap();
    batter("format", switch.as_bytes(), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let format = Format::parse(&text)?;
        assert!(format.fields.len() <= 256);
        let decoder = Decoder::new(&header, false, &[(wanted, &text)])?;
        decoder.page(Cpu(0), &pages[..4096], &mut |_| {});
        decoder.refused().first().map_or(Ok(()), |refused| Err(refused.1.clone()))
    });
    batter("header_page", header.as_bytes(), |bytes| {
        let decoder = Decoder::new(&String::from_utf8_lossy(bytes), false, &[(wanted, switch)])?;
        decoder.page(Cpu(0), &pages[..4096], &mut |_| {});
        Ok(())
    });
}

/// Peak memory of the process, in KiB (`VmHWM` of proc(5)).
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn long_files_cost_little_more_than_their_size() {
    let mut deep = b"{\"thread\":{\"0\":".to_vec();
    deep.extend(b"[".repeat(1 << 20));
    let keys: String = (0..300_000).map(|n| format!("\"{n}\":1,")).collect();
    for (name, bytes) in [
        ("columns", "1 ".repeat(1 << 20).into_bytes()),
        ("rows", (0..200_000).map(|n| format!("{n} 1\t1\n")).collect::<String>().into_bytes()),
        ("overflows", format!("1 1\n# Thread 0:{}", " 1".repeat(1 << 20)).into_bytes()),
        ("threads", "# Thread 8191: 1\n# Min Latencies: 1\n".to_owned().into_bytes()),
        ("summaries", "T: 8191 (1) P:1 I:1 C:1 Min:1 Act:1 Avg:1 Max:1\n".repeat(20_000).into_bytes()),
        ("comments", format!("# Min Latencies:{}", " 1".repeat(1 << 20)).into_bytes()),
        ("nesting", deep),
        (
            "keys",
            format!(
                "{{\"thread\":{{\"0\":{{\"cycles\":300000,\"histogram\":{{{}}}}}}}}}",
                keys.trim_end_matches(',')
            )
            .into_bytes(),
        ),
        ("blanks", vec![b'\n'; 4 << 20]),
        ("limit", vec![b'1'; foreign::FILE_LIMIT + 1]),
    ] {
        let start = cpu_time();
        let outcome = foreign::import(&bytes, &foreign::ImportOptions::default());
        assert!(cpu_time() - start < PATIENCE, "{name} takes long");
        match outcome {
            Ok(results) => assert!(results.iter().all(|result| result.run.check().is_ok()), "{name}"),
            Err(error) => assert!(error.0.len() < 400, "{name}: {error}"),
        }
    }
    assert!(peak_kib() < 1 << 20, "{} KiB", peak_kib());
}

#[test]
fn a_reader_that_panics_is_caught() {
    let caught = catch_unwind(|| {
        batter("bad", b"abc", |bytes| {
            assert!(bytes.starts_with(b"abc"), "damaged");
            Ok(())
        });
    });
    assert!(caught.is_err());
}
