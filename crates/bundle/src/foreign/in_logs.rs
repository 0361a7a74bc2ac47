//! Real results within logs: prefixes of each kind, kernel lines between, cut ones before.

use super::testing::{fixture, import_one};
use super::*;
use model::units::Nanos;

fn all(text: &str) -> Result<Vec<Imported>, ImportError> {
    import(text.as_bytes(), &ImportOptions::default())
}

macro_rules! foreign {
    ($name:literal) => {
        include_str!(concat!("../../../../tests/fixtures/foreign/", $name))
    };
}

const RESULTS: [&str; 5] = [
    foreign!("cyclictest/2.10-hist.txt"),
    foreign!("oslat/2.10-memmove.txt"),
    foreign!("rtla/6.12.117-timerlat-hist-k.txt"),
    foreign!("rtla/6.12.117-osnoise-top-q.txt"),
    foreign!("jitterdebugger/0.3.1-loops/results.json"),
];

#[test]
fn a_result_reads_the_same_behind_each_prefix() {
    type Prefix = fn(usize) -> String;
    let prefixes: [Prefix; 14] = [
        |_| "INFO  x: ".into(),
        |_| "[INFO] ".into(),
        |_| "job.log:".into(),
        |n| format!("job.log:{n}:"),
        |n| format!("{n}:"),
        |n| format!("{n:6}\t"),
        |n| format!("2026-01-01T00:00:{:02}.000000000Z stdout F ", n % 60),
        |_| "bench-1  | ".into(),
        |n| format!("{}.123 ", 1_750_000_000 + n),
        |n| format!("2026-01-01T00:00:{:02}+0000 board run[81]: ", n % 60),
        |n| format!("Thu 2026-01-01 00:00:{:02} UTC board run[81]: ", n % 60),
        |n| format!("[{n:5}.000001] board run[81]: "),
        |n| format!("[{n:5}.000001] "),
        |n| format!("2026-01-01 00:00:{:02},000 - root - INFO - ", n % 60),
    ];
    for text in RESULTS {
        let expected = import_one(text);
        for prefix in prefixes {
            let lines = text.lines().enumerate();
            let log: String = lines.map(|(n, line)| format!("{}{line}\n", prefix(n + 1))).collect();
            let read = all(&log).unwrap_or_else(|error| panic!("{}: {error}", prefix(1)));
            assert_eq!(read[0].run.cpus, expected.cpus, "{}", prefix(1));
        }
    }
}

#[test]
fn lines_of_the_kernel_s_log_are_passed_over_and_counted() {
    for text in RESULTS {
        let expected = import_one(text);
        let log = text.replace('\n', "\n[   12.345678] usb 1-1: new high-speed USB device\n");
        let read = all(&log).unwrap();
        assert_eq!(read[0].run.cpus, expected.cpus);
        let remarks = read[0].remarks.join("; ");
        assert!(remarks.contains("lines of the kernel's log were skipped"), "{remarks}");
    }
    // Any other line within a table refuses it.
    let oslat = RESULTS[1].replace("Counter Freq", "hello\nCounter Freq");
    assert!(all(&oslat).is_err());
}

#[test]
fn a_cut_result_does_not_hide_a_whole_one() {
    // In rtla's top a second table is the screen's next update.
    let live = "# /dev/cpu_dma_latency set to 0us\n\
                T: 0 (10343) P:80 I:1000 C:    500 Min:     16 Act:   18 Avg:   23 Max:     717\n";
    for text in RESULTS.into_iter().filter(|text| !text.contains("Operating System Noise")).chain([live]) {
        let expected = import_one(text);
        let read = all(&format!("{}\n{text}", &text[..text.len() * 3 / 5])).unwrap();
        assert_eq!((read.len(), &read[0].run.cpus), (1, &expected.cpus));
        let remarks = read[0].remarks.join("; ");
        assert!(remarks.contains("1 result is cut and omitted"), "{remarks}");
    }
    // A contradiction is not a cut.
    let text = fixture("smp-H60.txt");
    let wrong = text.replacen("000020 ", "000020 1", 1);
    assert!(all(&format!("{wrong}{text}")).is_err());
}

#[test]
fn joined_files_are_two_results() {
    let threads = |max: [u32; 2]| {
        let line = |n: usize| {
            format!("T: {n} (1034{n}) P:80 I:1000 C:    500 Min:     16 Act:   18 Avg:   23 Max:{:8}", max[n])
        };
        format!("# /dev/cpu_dma_latency set to 0us\n{}\n{}", line(0), line(1))
    };
    let (first, second) = (threads([717, 28]), threads([32, 5000]));
    let maxima = |read: &Imported| read.run.cpus.iter().map(|cpu| cpu.max_ns).collect::<Vec<_>>();
    let us = |values: [i64; 2]| values.map(|us| Some(Nanos(us * 1000))).to_vec();
    let read = all(&format!("{first}{second}\n")).unwrap();
    assert_eq!(read.iter().map(maxima).collect::<Vec<_>>(), [us([717, 28]), us([32, 5000])]);
    // The end of the first is cut in its last thread.
    for cut in [73, 70, 20, 1] {
        let read = all(&format!("{}{second}\n", &first[..first.len() - cut])).unwrap();
        let remarks = read[0].remarks.join("; ");
        let whole: Vec<_> = read.iter().map(maxima).collect();
        assert!(
            whole == [us([32, 5000])] && remarks.contains("is cut and omitted"),
            "{cut}: {whole:?} {remarks}"
        );
    }
    for cut in [75, 73, 1] {
        let text = &second[..second.len() - cut];
        assert!(
            all(text).unwrap_err().0.contains(if cut == 1 { "ends within" } else { "expected" }),
            "{text}"
        );
    }
}

#[test]
fn a_number_that_the_end_of_a_text_cuts_is_not_read() {
    let refused = |text: &str| all(text).unwrap_err().0;
    let signals = "T: 0 (27915) P:70 C:     60 Min:     23 Act:   25 Avg:  696 Max:   10091\n\
                   T: 1 (27916) P:70 C:     60 Min:     23 Act:   28 Avg:  696 Max:   10093";
    assert_eq!(all(signals).unwrap().len(), 1);
    assert!(refused(&signals[..signals.len() - 1]).contains("ends within the number '1009'"));
    assert!(refused(&signals[..signals.len() - 69]).contains("expected T:"));
    let pair = "#0: ID26375, P70, CPU1, I1000; #1: ID26376, P70, CPU0, TO 0, Cycles 300\n\
                #1 -> #0, Min    6, Cur    9, Avg    9, Max   59";
    assert_eq!(all(pair).unwrap().len(), 1);
    assert!(refused(&pair[..pair.len() - 1]).contains("ends within the number '5'"));
    let samples =
        "Max CPUs = 2\nThread 0 Interval: 1000\n       0:       0:      13\n       0:       1:      17";
    let max = |text: &str| all(text).unwrap()[0].run.cpus[0].max_ns;
    assert_eq!(
        (max(samples), max(&samples[..samples.len() - 1])),
        (Some(Nanos(17_000)), Some(Nanos(13_000)))
    );
}

#[test]
fn a_command_that_the_result_contradicts_is_not_its_own() {
    let rows = "# Histogram\n000000 000000\n000001 000500\n# Total: 000000500\n# Min Latencies: 00001\n\
                # Avg Latencies: 00001\n# Max Latencies: 00001\n# Histogram Overflows: 00000\n";
    let read = |command: &str| {
        let read = all(&format!("$ {command}\n{rows}")).unwrap().remove(0);
        (read.run.plan.priority, read.run.cpus[0].max_ns, read.remarks.join("; ").contains("is not read"))
    };
    assert_eq!(read("cyclictest -N -h 2 -p 99 -t1"), (Some(99), Some(Nanos(1)), false));
    for other in ["cyclictest -N -h 1 -p 99", "cyclictest -N -h 2 -t 7 -p 99"] {
        assert_eq!(read(other), (None, Some(Nanos(1000)), true), "{other}");
    }
}

#[test]
fn samples_that_are_all_beyond_the_rows_are_known() {
    let text = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:02\n\
                Index   IRQ-000   Thr-000\nover:       1500      1501\ncount:      1500      1501\n\
                min:         300       310\navg:         400       410\nmax:        4721      4800\n";
    let run = import_one(text);
    let of = |cpu: &model::run::CpuRun| (cpu.cycles, cpu.overflows, cpu.overflows_from_ns);
    let from = |us: i64| Some(Nanos(us * 1000));
    assert_eq!(of(&run.cpus[0]), (Some(1500), Some(1500), from(300)));
    assert_eq!(of(&run.cpus[1]), (Some(1501), Some(1501), from(310)));
}

#[test]
fn lines_that_a_log_lost_or_damaged_are_seen() {
    let refusal = |text: &str| all(text).map(|_| "read".to_owned()).unwrap_or_else(|error| error.0);
    let oslat = foreign!("oslat/2.10-two.txt");
    let row = oslat.lines().find(|line| line.trim_start().starts_with("005 (us)")).unwrap();
    let lost = oslat.replace(&format!("{row}\n"), "").replace("008 (us):\t 1 1", "008 (us):\t 0 0");
    let error = refusal(&lost);
    assert!(error.contains("rows before that of 6 us are missing"), "{error}");
    let xenomai = foreign!("xenomai/histogram-user.txt");
    let error = refusal(xenomai.split("HSS|").next().unwrap());
    assert!(error.contains("ends without its statistics"), "{error}");
    let jitter = foreign!("jitterdebugger/0.3.1-interval.txt");
    let error = refusal(&jitter.replace("1319", "13\n19"));
    assert!(error.contains("a terminal wrapped it"), "{error}");
    let error = refusal(&jitter.replace("C:      7959", "C:         0"));
    assert!(error.contains("expected T: thread (id) A:"), "{error}");
    // Another program may print between the windows of hwlatdetect; a damaged window is an error.
    let windows = foreign!("hwlatdetect/2.10-samples.txt");
    let last = windows.lines().rfind(|line| line.starts_with("ts: ")).unwrap();
    let between = windows.replace(last, &format!("random: crng init done\n{last}"));
    assert_eq!(import_one(&between).cpus, import_one(windows).cpus);
    let error = refusal(&windows.replace(last, &last[..20]));
    assert!(error.contains("Samples recorded says 7"), "{error}");
}

#[test]
fn signs_that_stand_for_others_are_those() {
    let text = RESULTS[0];
    let expected = import_one(text);
    for copy in [
        text.replace(' ', "\u{a0}"),
        text.replace('\n', "\0\n"),
        text.replace('\n', "^M\n"),
        text.replace(' ', "\u{202f}"),
    ] {
        assert_eq!(import_one(&copy).cpus, expected.cpus);
    }
    let json = format!("{}\u{c}\n", RESULTS[4]);
    assert_eq!(import_one(&json).cpus, import_one(RESULTS[4]).cpus);
    // Seconds in brackets do not name a source, and a log of syslog has one host.
    for prefix in [|n: usize| format!("[{n}.5s] "), |n: usize| format!("Nov 29 09:00:{:02} ", n % 60)] {
        for text in RESULTS {
            let lines = text.lines().enumerate();
            let log: String = lines.map(|(n, line)| format!("{}{line}\n", prefix(n + 1))).collect();
            assert_eq!(import_one(&log).cpus, import_one(text).cpus, "{}", prefix(1));
        }
    }
}

#[test]
fn what_another_command_reads_is_named() {
    let refusal = |bytes: &[u8]| import(bytes, &ImportOptions::default()).unwrap_err().0;
    for trace in [
        &include_bytes!("../../../../tests/fixtures/foreign/traces/v7-zlib.dat")[..],
        include_bytes!("../../../../tests/fixtures/foreign/traces/perf.data"),
        include_bytes!("../../../../tests/fixtures/foreign/traces/timerlat_trace.txt"),
    ] {
        assert_eq!(refusal(trace), "this is a trace: onbeat explain reads it");
    }
    assert!(refusal(b"\xfd7zXZ\0\0\x04").contains("unpack it with `unxz`"));
}
