//! Real files, read and damaged.

use super::facts::TraceClock;
use super::*;
use proptest::prelude::*;
use std::io::Write;

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
    // As `trace-cmd report` counts them.
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
        (b"PERFILE2\x10\0\0\0\0\0\0\0", "stream"),
        (b"hello\n", "none of these"),
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
