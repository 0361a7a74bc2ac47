//! Real output of cyclictest, alone and within logs, against its own totals.

#![allow(clippy::disallowed_methods)] // Tests read the repository's own files.

use std::path::PathBuf;

use super::testing::import_one;
use super::*;
use model::run::{CpuRun, Run};
use model::sort::CompactSort;
use model::units::Nanos;

fn text(name: &str) -> Vec<u8> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/foreign"));
    std::fs::read(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn runs(name: &str) -> Vec<Run> {
    let results =
        import(&text(name), &ImportOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    results.into_iter().map(|one| one.run).collect()
}

/// Count, least, mean and largest latency of each thread in us.
fn brief(run: &Run) -> Vec<(Option<u64>, Option<i64>, Option<i64>)> {
    let us = |value: Option<Nanos>| value.map(|ns| ns.0 / 1_000);
    run.cpus.iter().map(|cpu| (cpu.cycles, us(cpu.min_ns), us(cpu.max_ns))).collect()
}

/// The text and the JSON that cyclictest wrote of the same run state the same.
#[test]
fn text_and_json_of_each_run_agree() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/foreign/cyclictest"));
    let mut compared = 0;
    let mut names: Vec<_> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.compact_sort();
    for name in names.iter().filter_map(|name| name.to_str()?.strip_suffix(".json")) {
        let json = runs(&format!("cyclictest/{name}.json")).remove(0);
        let bytes = text(&format!("cyclictest/{name}.txt"));
        // Output that the tool wrote to a separate file is not on its screen.
        let nanoseconds = name.contains("-ns");
        let Ok(mut results) = import(&bytes, &ImportOptions { nanoseconds, ..ImportOptions::default() })
        else {
            assert!(name.contains("histfile"), "{name}");
            continue;
        };
        let from_text = results.remove(0).run;
        // -v prints no sum, and -M nothing after the last maximum: the JSON counts more.
        if name.contains("verbose") || name.contains("screen") {
            continue;
        }
        // The JSON names CPUs, by which its threads are ordered.
        let threads = |run: &Run| {
            let rows = run.cpus.iter().map(|cpu| {
                cpu.histogram.iter().map(|row| (row.lower, row.upper, row.count)).collect::<Vec<_>>()
            });
            let mut threads: Vec<_> = brief(run).into_iter().zip(rows).collect();
            threads.compact_sort();
            threads
        };
        assert_eq!(threads(&from_text), threads(&json), "{name}");
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn samples_of_v_keep_their_numbers_and_times() {
    for (name, threads) in [("2.4-verbose", 2), ("2.6-verbose", 2), ("2.10-verbose", 2)] {
        let options = ImportOptions { interval: Some(Nanos(2_000_000)), ..ImportOptions::default() };
        let run = import(&text(&format!("cyclictest/{name}.txt")), &options).unwrap().remove(0).run;
        let json = runs(&format!("cyclictest/{name}.json")).remove(0);
        assert_eq!(run.cpus.len(), threads, "{name}");
        for (cpu, json) in run.cpus.iter().zip(&json.cpus) {
            assert!(cpu.cycles.unwrap() <= json.cycles.unwrap() && cpu.cycles > Some(10), "{name}");
            assert!(cpu.max_ns <= json.max_ns && cpu.min_ns >= json.min_ns, "{name}");
            assert!(cpu.worst[0].cycle.is_some() && cpu.worst[0].latency_ns == cpu.max_ns, "{name}");
        }
    }
}

#[test]
fn spikes_keep_their_times() {
    let run = runs("cyclictest/2.10-spike.txt").remove(0);
    let worst = run.cpus.iter().flat_map(|cpu| &cpu.worst).collect::<Vec<_>>();
    assert!(!worst.is_empty() && worst.iter().all(|worst| worst.mono_ns.is_some()));
}

#[test]
fn blocks_within_logs_are_found() {
    let maxima = |name: &str| {
        let of = |run: &Run| brief(run).into_iter().map(|thread| thread.2.unwrap_or(-1)).collect::<Vec<_>>();
        runs(name).iter().filter(|run| run.plan.tool.starts_with("cyclictest")).map(of).collect::<Vec<_>>()
    };
    assert_eq!(maxima("logs/issue-three-boards.txt"), [vec![34], vec![129], vec![211]]);
    let kernels = [vec![306, 342, 399, 333], vec![8380, 8408, 6719, 9070]];
    assert_eq!(maxima("logs/readme-two-kernels.md.txt"), kernels);
    assert_eq!(maxima("logs/job-two-machines.txt"), [vec![9496], vec![5165]]);
    assert_eq!(maxima("logs/gitlab-sections.txt"), [vec![4836, 1931], vec![4549, 1476]]);
    assert_eq!(maxima("logs/job-set-x.txt"), [vec![9498, 3036], vec![113], vec![9573, 3446]]);
    assert_eq!(maxima("logs/serial-console.txt").len(), 2);
    assert_eq!(maxima("logs/job-times.txt").len(), 1);
    let lava = runs("logs/lava-pull-request.txt").remove(0);
    assert_eq!(brief(&lava), [(Some(540_000), Some(4), Some(217)), (Some(360_000), Some(4), Some(340))]);
    let threads = lava.cpus.iter().map(|cpu| (cpu.cpu.map(|cpu| cpu.0), cpu.thread)).collect::<Vec<_>>();
    assert_eq!(threads, [(Some(0), 0), (Some(0), 1)], "-a 0 puts both on CPU 0");
    assert_eq!((lava.plan.priority, lava.plan.interval_ns), (Some(48), Some(Nanos::MILLI)));
}

#[test]
fn a_log_without_a_block_is_refused() {
    let bytes = text("logs/lava-results-mail.txt");
    assert!(import(&bytes, &ImportOptions::default()).is_err());
}

#[test]
fn copies_of_a_terminal_are_read() {
    let block = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000002 001000\t000900\n\
        000008 000001\t000000\n000009 000000\t000001\n# Total: 000001001 000000901\n\
        # Min Latencies: 00002 00002\n\
        # Avg Latencies: 00002 00002\n# Max Latencies: 00008 00009\n# Histogram Overflows: 00000 00000\n\
        # Histogram Overflow at cycle number:\n# Thread 0:\n# Thread 1:\n";
    let expected = [(Some(1001), Some(2), Some(8)), (Some(901), Some(2), Some(9))];
    for (before, after) in [
        ("", ""),
        ("$ cyclictest -l100 -S -p90 -h400 -q", ""),
        ("[root@board ~]# cyclictest -q -S\n", "[root@board ~]# exit\n"),
        ("~ # cyclictest -q -S -p 80 -h 10\n", "~ # \n"),
        ("+ ./cyclictest.sh -D 1m\n", "^C\n"),
        ("```\n", "```\nmax 9 us is fine\n"),
    ] {
        let run = import_one(&format!("{before}{block}{after}"));
        assert_eq!(brief(&run), expected, "{before}");
    }
    let command = "running cmd: cyclictest -q -D 1m -p 1 -t 2 -a 2,4 -h 10 -i 1000 -m\n";
    let run = import_one(&format!("{command}{block}"));
    assert_eq!(run.cpus.iter().map(CpuRun::name).collect::<Vec<_>>(), ["CPU 2", "CPU 4"]);
    assert_eq!((run.plan.priority, run.plan.interval_ns), (Some(1), Some(Nanos::MILLI)));
    let run = import_one(block);
    assert_eq!(run.cpus.iter().map(CpuRun::name).collect::<Vec<_>>(), ["thread 0", "thread 1"]);
}

#[test]
fn what_is_not_known_is_null() {
    let footer = "# Min Latencies: 00002\n# Avg Latencies: 00003\n# Max Latencies: 00008\n\
        # Histogram Overflows: 00000\n";
    let run = import_one(&format!("# Histogram\n{footer}"));
    assert_eq!(brief(&run), [(None, Some(2), Some(8))]);
    let run = import_one(&format!("# Histogram\n# Total: 000060000\n{footer}"));
    assert_eq!(brief(&run), [(Some(60_000), Some(2), Some(8))]);
    assert_eq!(
        brief(&import_one("# Max Latencies: 00008 00011\n")),
        [(None, None, Some(8)), (None, None, Some(11))]
    );
}

#[test]
fn damage_at_the_end_is_seen() {
    let line = |thread: u32| format!("T: {thread} ( 9) P:80 I:1000 C: 10 Min: 2 Act: 3 Avg: 3 Max: 8\n");
    let options = ImportOptions::default();
    let cut = format!("{}T: 1 ( 10) P:80 I:1000 C: 10 Min:", line(0));
    assert!(import(cut.as_bytes(), &options).unwrap_err().0.contains("line 2"));
    let open = line(0).trim_end().to_owned();
    assert_eq!(import(open.as_bytes(), &options).unwrap()[0].remarks.len(), 2, "the unit, and the end");
    let later = import_one(&line(3));
    assert_eq!(later.cpus.iter().map(CpuRun::name).collect::<Vec<_>>(), ["thread 3"]);
    let mean = line(0).replace("Avg: 3", "Avg: 99");
    assert!(import(mean.as_bytes(), &options).unwrap_err().0.contains("mean"));
    let footer = "# Histogram\n000002 000009\n# Min Latencies: 00002\n# Avg Latencies: 00002\n\
        # Max Latencies: 00400\n";
    assert!(import(footer.as_bytes(), &options).unwrap_err().0.contains("Overflows"));
}

#[test]
fn an_early_wake_up_is_no_overflow() {
    let text = "# Histogram\n000001 000010\n000003 000002\n000399 000000\n# Total: 000000012\n\
        # Min Latencies: 00001\n# Avg Latencies: 00001\n# Max Latencies: 18446744073709551590\n\
        # Histogram Overflows: 00001\n# Thread 0: 00005\n";
    let cpu = &import_one(text).cpus[0];
    assert_eq!((cpu.early, cpu.overflows, cpu.cycles), (Some(1), None, Some(13)));
    assert_eq!(cpu.overflow_cycles, [0; 0]);
    assert_eq!((cpu.min_ns, cpu.max_ns), (Some(Nanos(-26_000)), Some(Nanos(3_000))));
    let several = text.replace("Overflows: 00001", "Overflows: 00003");
    let cpu = &import_one(&several).cpus[0];
    assert_eq!((cpu.early, cpu.overflows, cpu.max_ns), (Some(1), Some(2), None));
    assert_eq!(cpu.overflows_from_ns, Some(Nanos(i64::MIN)), "early or late is not known");
    let narrow = text.replace("18446744073709551590", "4294967270");
    assert_eq!(import_one(&narrow).cpus[0].min_ns, Some(Nanos(-26_000)), "of 32 bits");
}
