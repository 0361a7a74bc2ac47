//! Real files, read and damaged.

use super::facts::TraceClock;
use super::*;
use proptest::prelude::*;
use std::io::Write;
use trace::event::{Task, What};

const FILES: [(&str, &[u8]); 8] = [
    ("v6.dat", include_bytes!("../../../../tests/fixtures/foreign/traces/v6.dat")),
    ("v7-zlib.dat", include_bytes!("../../../../tests/fixtures/foreign/traces/v7-zlib.dat")),
    ("v7-marker.dat", include_bytes!("../../../../tests/fixtures/foreign/traces/v7-marker.dat")),
    ("v7-stack.dat", include_bytes!("../../../../tests/fixtures/foreign/traces/v7-stack.dat")),
    ("perf.data", include_bytes!("../../../../tests/fixtures/foreign/traces/perf.data")),
    ("ftrace.txt", include_bytes!("../../../../tests/fixtures/foreign/traces/ftrace.txt")),
    ("auto-analysis.txt", include_bytes!("../../../../tests/fixtures/foreign/traces/auto-analysis.txt")),
    ("timerlat_trace.txt", include_bytes!("../../../../tests/fixtures/foreign/traces/timerlat_trace.txt")),
];

/// The sum of all parts of a trace.
#[derive(Debug, Default, PartialEq)]
struct Read {
    wakeups: u64,
    all: u64,
    sorted: bool,
    lost: u64,
    explained: usize,
    facts: TraceFacts,
    first: Option<Raw>,
}

fn read(bytes: &[u8]) -> Result<Read, TraceError> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    let mut trace = open(file.path())?;
    let mut read = Read { sorted: true, ..Read::default() };
    let (mut last, mut middle) = (Nanos(i64::MIN), Nanos(0));
    trace.each(TracePart::Wakeups, &mut |step| {
        match step {
            TraceStep::Event(event) => {
                read.wakeups += 1;
                read.first.get_or_insert_with(|| event.clone());
                read.sorted &= event.time >= last;
                last = event.time;
                if read.wakeups % 2 == 0 {
                    middle = event.time;
                }
            }
            TraceStep::Lost(_, _, count) => read.lost = read.lost.saturating_add(count),
        }
        ControlFlow::Continue(())
    })?;
    let _ = trace.names();
    trace.each(TracePart::From(Nanos(i64::MIN + 1_000_000_000)), &mut |step| {
        read.all += u64::from(matches!(step, TraceStep::Event(_)));
        ControlFlow::Continue(())
    })?;
    let mut rest = 0;
    trace.each(TracePart::From(middle), &mut |step| {
        rest += u64::from(matches!(step, TraceStep::Event(_)));
        if rest < 1_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    assert!(rest <= read.all);
    (read.explained, read.facts) = (trace.explained().len(), trace.facts());
    Ok(read)
}

fn file(name: &str) -> &'static [u8] {
    FILES.iter().find(|file| file.0 == name).expect("a file").1
}

#[test]
fn real_files_have_the_events_that_their_own_tools_count() {
    // Counts of `trace-cmd report`.
    for (name, wakeups, all) in [
        ("v6.dat", 3_241, 4_711),
        ("v7-zlib.dat", 12_202, 18_649),
        ("v7-marker.dat", 3_016, 4_553),
        ("v7-stack.dat", 3_134, 6_268),
    ] {
        let read = read(file(name)).expect(name);
        assert_eq!((read.wakeups, read.all, read.sorted, read.lost), (wakeups, all, true, 0), "{name}");
        assert_eq!((read.facts.clock.clone(), read.facts.unread), (TraceClock::Monotonic, 0), "{name}");
        assert_eq!(read.facts.host.machine, "x86_64", "{name}");
    }
    for name in ["perf.data", "ftrace.txt"] {
        let read = read(file(name)).expect(name);
        assert!(read.all > 100 && read.sorted && read.facts.unread == 0, "{name}: {read:?}");
        assert!(read.facts.events.contains(&"sched:sched_waking".to_owned()), "{name}");
    }
    assert_eq!(read(file("auto-analysis.txt")).expect("read").explained, 1);
    let screens =
        "                     Timer Latency\n  0 00:00:10   |   IRQ Timer Latency (us)\n".repeat(2_000);
    let behind = [screens.as_bytes(), file("auto-analysis.txt")].concat();
    assert_eq!(read(&behind).expect("read").explained, 1);
    assert!(read(file("timerlat_trace.txt")).expect("read").explained > 10);
}

/// A trace.dat of version 6 with one waking, by a machine of that byte order and number of CPUs.
fn of_machine(big: bool, cpus: u32) -> Vec<u8> {
    let number = |value: u64, size: usize| {
        let bytes = value.to_be_bytes()[8 - size..].to_vec();
        if big { bytes } else { bytes.into_iter().rev().collect() }
    };
    let numbers = |all: &[(u64, usize)]| -> Vec<u8> {
        all.iter().flat_map(|&(value, size)| number(value, size)).collect()
    };
    let text = |text: &str| [number(text.len() as u64, 8), text.as_bytes().to_vec()].concat();
    let field = |(declaration, offset, size): &(&str, usize, usize)| {
        format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:0;\n")
    };
    let page = [("u64 timestamp", 0, 8), ("local_t commit", 8, 8), ("char data", 16, 4080)];
    let waking = [
        ("unsigned short common_type", 0, 2),
        ("unsigned char common_flags", 2, 1),
        ("unsigned char common_preempt_count", 3, 1),
        ("int common_pid", 4, 4),
        ("char comm[16]", 8, 16),
        ("pid_t pid", 24, 4),
        ("int prio", 28, 4),
        ("int target_cpu", 32, 4),
    ];
    let waking: String = waking.iter().map(field).collect();
    let head = [
        &b"\x17\x08\x44tracing6\0"[..],
        &[u8::from(big), 8],
        &number(4096, 4),
        b"header_page\0",
        &text(&page.iter().map(field).collect::<String>()),
        b"header_event\0",
        &text(""),
        &numbers(&[(0, 4), (1, 4)]),
        b"sched\0",
        &number(1, 4),
        &text(&format!("name: sched_waking\nID: 300\nformat:\n{waking}")),
        &numbers(&[(0, 4), (0, 4), (0, 8), (1, 4)]),
        b"options  \0",
        &numbers(&[(8, 2), (4, 4), (u64::from(cpus), 4), (0, 2)]),
        b"flyrecord\0",
        &numbers(&[(4096, 8), (4096, 8)]),
        &text("local [mono]"),
    ];
    let mut bytes = head.concat();
    bytes.resize(4096, 0);
    // Nine words of data, five nanoseconds after the page.
    let word = if big { 9 << 27 | 5 } else { 5 << 5 | 9 };
    bytes.extend(numbers(&[(1_000, 8), (40, 8), (word, 4), (300, 2), (1, 1), (0, 1), (3, 4)]));
    bytes.extend(b"robot\0\0\0\0\0\0\0\0\0\0\0");
    bytes.extend(numbers(&[(7, 4), (9, 4), (1, 4)]));
    bytes.resize(8192, 0);
    bytes
}

#[test]
fn machines_of_both_byte_orders_are_read_alike() {
    let little = read(&of_machine(false, 2)).expect("little");
    let waking = What::Waking { task: Task { comm: "robot".into(), pid: 7, prio: 9 }, target: Cpu(1) };
    let first = little.first.as_ref().expect("an event");
    assert_eq!((first.time, first.pid, &first.what), (Nanos(1_005), 3, &waking));
    assert_eq!((little.all, little.facts.host.online.as_str()), (1, "0-1"));
    assert_eq!(read(&of_machine(true, 2)).expect("big"), little);
    assert_eq!(read(&of_machine(true, u32::MAX)).expect("damaged").facts.host.online, "");
}

/// Texts of the clock x86-tsc, and of one CPU after the other.
const COUNTED: &str =
    "# tracer: nop\n#\n a-1 [000] d..2. 26099: sched_waking: comm=b pid=2 prio=19 target_cpu=001\n";
const BACKWARDS: &str = " a-1 [000] d..2. 7.0: sched_waking: comm=b pid=2 prio=19 target_cpu=001\n \
                         a-1 [000] d..2. 8.000001: sched_waking: comm=b pid=2 prio=19 target_cpu=001\n \
                         c-3 [001] d..2. 7.0: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 \
                         prev_state=R ==> next_comm=b next_pid=2 next_prio=19\n";

#[test]
fn a_text_that_lacks_events_of_its_heading_says_so() {
    // The file is the beginning of a longer one.
    let text = std::str::from_utf8(file("ftrace.txt")).expect("text");
    let events = text.lines().filter(|line| !line.starts_with('#')).count();
    let notes = |text: &str| read(text.as_bytes()).expect("events").facts.notes;
    let remark = format!("{events} of the 7025 events in its heading are in the file: it may be truncated");
    assert_eq!(notes(text), [remark]);
    let whole = text.replacen("7025/7025", &format!("{events}/7025"), 1);
    assert_eq!(notes(&whole), [""; 0]);
}

#[test]
fn a_file_that_ends_early_or_says_too_much_is_refused_in_one_line() {
    for (name, bytes) in FILES {
        for length in [0, 5, 12, 30, 200, bytes.len() / 3, bytes.len() - 1] {
            if let Err(error) = read(&bytes[..length]) {
                let line = error.to_string();
                assert!(!line.contains('\n') && line.len() < 400, "{name}: {line}");
            }
        }
    }
    for (bytes, what) in [
        (&b"\x17\x08\x44tracing5\0\0\x08\0\x10\0\0"[..], "version 6 or 7"),
        (b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lzma\x001\0", "lzma"),
        (b"\x17\x08\x44tracing7\0\0\x08\x01\x10\0\0", "page size"),
        (b"PERFILE2\x10\0\0\0\0\0\0\0", "perf record -o"),
        (b"hello\n", "none of these"),
        (COUNTED.as_bytes(), "expected times in seconds"),
        (BACKWARDS.as_bytes(), "found 7.000000 s after 8.000001 s"),
    ] {
        let error = read(bytes).expect_err(what).to_string();
        assert!(error.contains(what), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_files_do_no_harm(
        which in 0usize..FILES.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        head in prop::collection::vec((0usize..600, any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = FILES[which].1.to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for (at, byte) in head {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Err(error) = read(&bytes) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
