//! `compare`: four verdicts, and inputs that must not lead to one.

use model::labels::Labels;
use model::run::{Block, CpuRun, Integrity, Run};
use model::units::{Cpu, Nanos};
use serde_json::Value;

use super::place::*;

fn side(place: &Place, name: &str, n: usize, shift: f64, spikes: usize) -> Vec<String> {
    let run = |i: usize| {
        let seed = i as u64 + (shift * 7.0) as u64 * 100 + spikes as u64 * 1_000 + name.len() as u64 * 31;
        let mut us: Vec<f64> = gumbel(300, seed).iter().map(|us| us + shift).collect();
        (0..spikes).for_each(|k| us[(k * 37 + i) % 300] = 70.0);
        place.list(&format!("{name}{i}.csv"), &us)
    };
    (0..n).map(run).collect()
}

fn compared(a: &[String], b: &[String], flags: &[&str], expected: i32) -> Value {
    let mut args = vec!["compare"];
    args.extend(a.iter().map(String::as_str));
    args.push("--");
    args.extend(b.iter().map(String::as_str));
    args.extend(flags);
    args.extend(["--json", "-"]);
    let output = onbeat(&args);
    assert_eq!(code(&output), expected, "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn comparisons_end_in_four_verdicts() {
    let place = Place::new();
    let (calm, wild) = (side(&place, "calm", 6, 0.0, 2), side(&place, "wild", 6, 0.0, 20));
    let limit = ["--limit", "60us"];
    let worse = compared(&calm, &wild, &limit, 3);
    assert_eq!(
        (worse["verdict"].as_str(), worse["schema"].as_str()),
        (Some("worse"), Some("onbeat.comparison/1"))
    );
    near(&worse["rate_ratio"], 10.0, 1e-9);
    let ends = [&worse["ci"][0], &worse["ci"][1]].map(number);
    assert!(ends[0] < 10.0 && 10.0 < ends[1], "{ends:?}");
    assert!(number(&worse["p_value"]) < 0.05 && worse["units"] == 12);
    assert_eq!(compared(&wild, &calm, &limit, 0)["verdict"], "better");
    let same = compared(&wild[..3], &wild[3..], &limit, 7);
    assert!(same["reason"].as_str().unwrap().contains("4 v 4"), "{same}");
    let again = side(&place, "other", 6, 0.0, 20);
    assert_eq!(compared(&wild, &again, &limit, 0)["verdict"], "equivalent");
    let one = compared(&calm[..1], &wild[..1], &limit, 7);
    assert!(one["p_value"].is_null() && one["reason"].as_str().unwrap().contains("one run each"));
    let shifted = side(&place, "shifted", 6, 5.0, 2);
    let quantile = compared(&calm, &shifted, &["--metric", "p50"], 3);
    near(&quantile["difference_ns"], 5_000.0, 0.2);
}

#[test]
fn lengths_and_lost_records_make_no_verdict() {
    let place = Place::new();
    let quiet = |name: &str, n: usize, seconds: usize| -> Vec<String> {
        (0..n).map(|i| place.list(&format!("{name}{i}.csv"), &vec![20.0 + i as f64; seconds])).collect()
    };
    let (long, short) = (quiet("long", 5, 600), quiet("short", 5, 60));
    let found = compared(&long, &short, &["--limit", "50us"], 7);
    assert!(found["rate_ratio"].is_null() && found["p_value"] == 1.0, "{found}");
    // The second half of the blocks is missing; the run itself contains its maximum.
    let mut us = gumbel(120, 12);
    us[110] = 90.0;
    let lost = place.bundle("lost", &us, |_, blocks| blocks.truncate(60));
    let answer = json(&["bounds", &lost, "--limit", "50us", "--horizon", "20s"], 7);
    assert_eq!(
        (answer["claim"]["exceedances"].as_u64(), answer["observed_ns"].as_i64()),
        (Some(1), Some(60 * SECOND))
    );
    assert!(!gate(&answer, "G11")["passed"].as_bool().unwrap());
    let killed = place.bundle("killed", &us, |run, blocks| {
        run.complete = false;
        run.cpus.clear();
        run.elapsed_ns = None;
        blocks.clear();
    });
    assert_eq!(json(&["bounds", &killed], 0)["observed_max_ns"], Value::Null);
    let imported = place.bundle("imported", &us, |run, blocks| {
        (run.elapsed_ns, run.plan.interval_ns) = (None, None);
        run.cpus[0].interval_ns = None;
        blocks.clear();
    });
    assert_eq!(json(&["bounds", &imported, "--limit", "50us"], 7)["observed_ns"], 0);
}

#[test]
fn few_events_in_long_runs_are_not_better_than_none_in_short_ones() {
    let place = Place::new();
    let some = |name: &str, seconds: usize, events: &[usize]| -> Vec<String> {
        let run = |(i, n): (usize, &usize)| {
            let mut us = vec![20.0; seconds];
            us.iter_mut().take(*n).for_each(|us| *us = 60.0);
            place.list(&format!("{name}{i}.csv"), &us)
        };
        events.iter().enumerate().map(run).collect()
    };
    let (long, short) = (some("long", 600, &[2, 1, 2, 1, 2]), some("short", 60, &[0; 5]));
    assert_eq!(compared(&long, &short, &["--limit", "50us"], 7)["verdict"], "inconclusive");
    let past = some("past", 3_600, &[6; 20]);
    assert_eq!(compared(&past, &some("new", 60, &[1]), &["--limit", "50us"], 7)["baseline"]["worse"], false);
}

#[test]
fn what_was_measured_and_not_recorded_carries_no_verdict() {
    let place = Place::new();
    let mut us = gumbel(120, 21);
    (60..66).for_each(|i| us[i] = 90.0);
    let runs = |name: &str, kept: usize| -> Vec<String> {
        (0..4).map(|i| place.bundle(&format!("{name}{i}"), &us, |_, blocks| blocks.truncate(kept))).collect()
    };
    let found = compared(&runs("whole", 120), &runs("cut", 60), &["--limit", "50us"], 7);
    assert!(found["reason"].as_str().unwrap().contains("lost records"), "{found}");
    let silent = place.bundle("silent", &us, |run, _| {
        let other = CpuRun { cpu: Some(Cpu(1)), ..run.cpus[0].clone() };
        run.cpus.push(other);
        run.plan.cpus.push(Cpu(1));
    });
    let answer = json(&["bounds", &silent, "--limit", "80us", "--horizon", "10s"], 7);
    assert!(gate(&answer, "G11")["detail"].as_str().unwrap().contains("CPU 1"), "{answer}");
    // A second without a due wake-up was watched all the same, and a line without a length is as
    // long as its wake-ups.
    let slow = place.bundle("slow", &us, |run, blocks| {
        run.plan.interval_ns = Some(Nanos(2 * SECOND));
        run.cpus[0].interval_ns = Some(Nanos(2 * SECOND));
        blocks.iter_mut().skip(1).step_by(2).for_each(|block| (block.max_ns, block.n) = (None, 0));
    });
    let answer = json(&["bounds", &slow], 0);
    assert_eq!(
        (answer["observed_ns"].as_i64(), gate(&answer, "G11")["passed"].as_bool()),
        (Some(120 * SECOND), Some(true))
    );
    let long = place.bundle("long", &us, |_, blocks| {
        blocks.drain(21..30);
        (blocks[20].n, blocks[20].span_ns) = (10_000, None);
    });
    let answer = json(&["bounds", &long], 0);
    assert!(
        gate(&answer, "G11")["detail"].as_str().unwrap().contains("1 record spans several blocks"),
        "{answer}"
    );
}

#[test]
fn the_environment_is_compared_and_nonsense_is_refused() {
    let place = Place::new();
    let us = gumbel(300, 9);
    let plain = place.bundle("plain", &us, |_, _| {});
    let tuned = place.bundle("tuned", &us, |run, _| {
        run.host.cmdline = "isolcpus=2-3".into();
        run.plan.policy = "other".into();
        run.labels = Labels::parse(&["build=7".to_owned()]).unwrap();
    });
    let said = String::from_utf8(onbeat(&["compare", &plain, &tuned]).stdout).unwrap();
    for line in [
        "labels: (none) -> build=7",
        "isolcpus (kernel command line): (none) -> 2-3",
        "policy: (none) -> other",
    ] {
        assert!(said.contains(&format!("\n  {line}\n")), "{said}");
    }
    let both = String::from_utf8(onbeat(&["report", &plain, &tuned]).stdout).unwrap();
    assert!(both.contains("What differs in the conditions\n"), "{both}");
    assert!(both.contains("\n  policy: (none) in plain; other in tuned\n"), "{both}");
    let output = onbeat(&["compare", &plain, &tuned, "--json", "-"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found: Vec<&str> = answer["environment_diff"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["what"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["labels", "cmdline isolcpus", "plan.policy"]);
    assert_eq!(answer["environment_diff"][1]["b"], "2-3");
    assert!(refused(&["compare", &plain, &plain], 2).contains("given twice"));
    let slow = place.bundle("slow", &us, |run, _| run.plan.interval_ns = Some(Nanos(2_000_000)));
    let said = refused(&["compare", &plain, &slow], 2);
    assert!(
        said.contains("interval: 1 ms -> 2 ms") && said.contains("their interval"),
        "differences first: {said}"
    );
    let wide = place.bundle("wide", &us, |run, blocks| {
        let other = CpuRun { cpu: Some(Cpu(1)), ..run.cpus[0].clone() };
        run.cpus.push(other);
        run.plan.cpus.push(Cpu(1));
        let twins: Vec<Block> = blocks.iter().map(|block| Block { cpu: Cpu(1), ..block.clone() }).collect();
        blocks.extend(twins);
    });
    assert!(refused(&["compare", &plain, &wide], 2).contains("CPUs"));
    let half = onbeat(&["compare", &plain, &wide, "-a", "0"]);
    assert_eq!(code(&half), 7, "with the CPU that both have it can be compared");
    let spoiled = place.bundle("spoiled", &us, |run, _| {
        run.integrity.push(Integrity { kind: "throttled".into(), invalidates: true, ..Integrity::default() });
    });
    assert_eq!(code(&onbeat(&["compare", &plain, &spoiled])), 7);
    assert!(refused(&["compare", &plain], 2).contains("--"));
}

/// Histogram of a night by cyclictest: 60,000 wake-ups about `usual` us, `late` of them at 60 us.
fn night(place: &Place, name: &str, usual: usize, late: usize) -> String {
    let rows = [(usual - 1, 20_000), (usual, 39_700 - late), (usual + 1, 300), (60, late)];
    let rows: String =
        rows.iter().filter(|row| row.1 > 0).map(|(us, n)| format!("{us:06} {n:06}\n")).collect();
    let max = if late > 0 { 60 } else { usual + 1 };
    let ends = format!("# Min Latencies: {:05}\n# Avg Latencies: {usual:05}\n", usual - 1);
    let max = format!("# Max Latencies: {max:05}\n# Histogram Overflows: 00000\n");
    imported(place, name, &format!("# /dev/cpu_dma_latency set to 0us\n# Histogram\n{rows}{ends}{max}"))
}

fn imported(place: &Place, name: &str, text: &str) -> String {
    let (file, folder) = (place.text(&format!("{name}.txt"), text), place.path(name));
    assert_eq!(code(&onbeat(&["import", "-q", &file, "-i", "1000", "-o", &folder])), 0, "{text}");
    folder
}

fn nights(place: &Place, name: &str, usual: usize, late: &[usize]) -> Vec<String> {
    let of = |i: usize| night(place, &format!("{name}{i}"), usual + i % 2, late[i]);
    (0..late.len()).map(of).collect()
}

/// Screen of the same comparison.
fn screen(a: &[String], b: &[String], flags: &[&str]) -> String {
    let mut args: Vec<&str> = ["compare", "-q"].to_vec();
    args.extend(a.iter().map(String::as_str).chain(["--"]).chain(b.iter().map(String::as_str)));
    args.extend(flags);
    let text = String::from_utf8(onbeat(&args).stdout).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn nightly_histograms_of_two_kernels_give_a_verdict() {
    let place = Place::new();
    let (late_a, late_b) = ([2, 2, 0, 1, 1, 1, 1, 2], [180, 248, 164, 236, 224, 247, 231, 249]);
    let (a, b) = (nights(&place, "a", 12, &late_a), nights(&place, "b", 20, &late_b));
    let limit = ["--limit", "50us"];
    let worse = compared(&a, &b, &limit, 3);
    assert_eq!(
        (worse["verdict"].as_str(), worse["metric"].as_str()),
        (Some("worse"), Some("exceedance-rate"))
    );
    near(&worse["p_value"], 2.0 / 12_870.0, 1e-9);
    near(&worse["rate_ratio"], 1_779.0 / 10.0, 1e-9);
    assert_eq!((worse["units"].as_u64(), worse["counted"].as_str()), (Some(16), Some("wake-ups")));
    let answer = "answer B is worse than A: at or above 50 us in 164 to 249 of 60,000 wake-ups a run, \
                  before 0 to 2 (8 runs against 8, exact rank test p = 0.00016).";
    let said = screen(&a, &b, &limit);
    assert!(said.contains(answer), "{said}");
    assert_eq!(compared(&b, &a, &limit, 0)["verdict"], "better");
    // Fixed beforehand: without a limit it is the 99th percentile.
    let quantile = compared(&a, &b, &[], 3);
    assert_eq!(quantile["metric"], "p99");
    near(&quantile["difference_ns"], 8_000.0, 1e-9);
    near(&quantile["p_value"], 2.0 / 12_870.0, 1e-9);
    assert_eq!(compared(&a, &b, &["--metric", "p99"], 3)["difference_ns"], quantile["difference_ns"]);
    let again = nights(&place, "again", 12, &[1, 1, 0, 2, 1, 2, 0, 1]);
    assert_eq!(compared(&a, &again, &[], 0)["verdict"], "equivalent");
    let few = screen(&a[..3], &b[..3], &limit);
    assert!(
        few.contains("4 v 4 runs are needed") && few.contains("next more runs: at least four of each"),
        "{few}"
    );
}

#[test]
fn what_no_number_of_runs_decides_has_a_remedy_that_is_true() {
    let place = Place::new();
    let (a, b) = (nights(&place, "a", 12, &[1; 6]), nights(&place, "b", 12, &[90; 6]));
    // Latencies beyond the end of a histogram are not known.
    let cut = |i: usize| {
        let text = "# Histogram\n000010 059991\n# Max Latencies: 00090\n# Histogram Overflows: 00009\n";
        imported(&place, &format!("cut{i}"), text)
    };
    let cut: Vec<String> = (0..6).map(cut).collect();
    let said = screen(&a, &cut, &["--limit", "50us"]);
    assert!(said.contains("9 wake-ups lie beyond: the number that reached 50 us is not known"), "{said}");
    assert!(said.contains("next compare at a limit of at most 11 us, or measure with onbeat"), "{said}");
    assert!(screen(&a, &b, &["--limit", "1ms"]).contains("next compare at a limit that some runs reach"));
    // One run with a histogram among many with blocks: all have one.
    let us = vec![20.0; 60];
    let own = |name: &str, us: &[f64]| -> Vec<String> {
        let of_onbeat = |run: &mut Run, _: &mut Vec<Block>| {
            run.command = "measure".into();
            let cpu = &mut run.cpus[0];
            cpu.histogram[0].lower = cpu.histogram[0].upper - Nanos::MICRO;
            cpu.min_ns = Some(cpu.histogram[0].lower);
        };
        (1..6).map(|i| place.bundle(&format!("{name}{i}"), us, of_onbeat)).collect()
    };
    let (calm, late) = (own("calm", &us), own("late", &vec![90.0; 60]));
    let (mixed, mixed_b) = ([&a[..1], &calm].concat(), [&b[..1], &late].concat());
    let found = compared(&mixed, &mixed_b, &["--limit", "50us"], 3);
    assert_eq!((found["verdict"].as_str(), found["counted"].as_str()), (Some("worse"), Some("wake-ups")));
    // One tool made most of A and nothing of B: its numbers give no verdict, whatever one run is.
    let found = compared(&mixed, &b, &["--limit", "50us"], 7);
    let reason = found["reason"].as_str().unwrap();
    assert!(reason.contains("the tool (cyclictest | onbeat in A, cyclictest in B)"), "{reason}");
    // A spoiled run stays spoiled, however many there are.
    let spoiled = place.bundle("spoiled", &us, |run, blocks| {
        run.integrity.push(Integrity { kind: "throttled".into(), invalidates: true, ..Integrity::default() });
        blocks.clear();
    });
    let said = screen(&[&a[..], &[spoiled]].concat(), &b, &["--limit", "50us"]);
    assert!(said.contains("a run is invalid") && said.contains("next remove that run"), "{said}");
}

#[test]
fn maxima_alone_decide_where_runs_are_of_one_length() {
    let place = Place::new();
    let of = |name: &str, max: usize, cycles: usize| {
        let line = |i: usize| {
            let max = max + 2 * i;
            format!("T: 0 ( 1234) P:80 I:1000 C:{cycles:7} Min:      2 Act:    5 Avg:    5 Max:{max:8}\n")
        };
        (0..5).map(|i| imported(&place, &format!("{name}{i}"), &line(i))).collect::<Vec<_>>()
    };
    let (a, b, long) = (of("a", 30, 60_000), of("b", 90, 60_000), of("long", 90, 600_000));
    let found = compared(&a, &b, &["--limit", "50us"], 3);
    assert_eq!((found["metric"].as_str(), found["rate_ratio"].is_null()), (Some("max"), true));
    let said = screen(&a, &long, &[]);
    assert!(
        said.contains("only compared between runs of equal length: these lengths differ")
            && said.contains("store the tool's histogram"),
        "{said}"
    );
}

#[test]
fn what_two_tools_differ_in_is_named() {
    let place = Place::new();
    let (a, us) = (nights(&place, "a", 12, &[1; 6]), vec![90.0; 60]);
    let own = |i: usize| {
        place.bundle(&format!("own{i}"), &us, |run, blocks| {
            run.command = "measure".into();
            (run.cpus[0].min_ns, run.plan.interval_ns) = (Some(Nanos(0)), Some(Nanos(200_000)));
            blocks.clear();
        })
    };
    let b: Vec<String> = (0..6).map(own).collect();
    let found = compared(&a, &b, &["--limit", "50us"], 7);
    let reason = found["reason"].as_str().unwrap();
    assert!(
        reason.contains("the tool") && reason.contains("the interval (1 ms in A, 200 us in B)"),
        "{reason}"
    );
    let what: Vec<&str> =
        found["environment_diff"].as_array().unwrap().iter().filter_map(|one| one["what"].as_str()).collect();
    assert!(
        what.starts_with(&["command", "plan.tool", "resolution"]) && what.contains(&"plan.interval_ns"),
        "{what:?}"
    );
    assert_eq!(found["environment_diff"][1]["b"], "onbeat");
    // Only entries with the same quantity are paired: gaps are not wake-ups.
    let measuring = |name: &str, quantities: [&str; 2]| {
        place.bundle(name, &us, |run, blocks| {
            let entry = |quantity: &&str| CpuRun { measures: (*quantity).into(), ..run.cpus[0].clone() };
            run.cpus = quantities.iter().map(entry).collect();
            run.cpus[1].max_ns = Some(Nanos(30_000));
            run.cpus[1].histogram[0].upper = Nanos(30_001);
            blocks.clear();
        })
    };
    let (gaps, both) = (measuring("gaps", ["gap", "signal"]), measuring("both", ["irq", "wakeup"]));
    assert!(refused(&["compare", "-q", &a[0], &gaps], 2).contains("no measured quantity in common"));
    let paired = compared(&a[..1], &[both], &[], 7);
    assert_eq!(paired["b"][0]["max_ns"], 30_000, "{paired}");
    // Conditions missing in a file are neither the same nor different.
    assert!(what.iter().all(|what| !what.starts_with("host.")), "{what:?}");
    assert!(screen(&a[..1], &a[1..2], &[]).contains("fair the conditions of A or B are not recorded"));
}
