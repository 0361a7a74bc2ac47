//! The formats of other tools: cyclictest's JSON and its histogram text, written and read.
//!
//! Functions from values to values: no file is opened here, and whatever bytes come in, an error of
//! one line comes out at worst. A bucket of theirs is a half-open row of onbeat's, a thread is a
//! CPU, and what their format does not carry stays null.

mod command_line;
pub mod cyclictest_hist;
pub mod cyclictest_json;
mod date;
mod hist_gather;
mod hist_line;
mod hist_read;
mod imported;
mod json_read;
pub mod maxima;
mod micros;
#[cfg(test)]
mod testing;

use model::run::Run;
use model::units::Nanos;

/// The largest file that is read, in bytes: 2^20 buckets of eight threads fit, as `-N -H1000000`
/// writes them.
pub const FILE_LIMIT: usize = 64 << 20;

/// The most threads that are read: the kernel has no more CPUs.
pub const THREAD_LIMIT: usize = model::units::CPU_LIMIT as usize;

/// The most non-empty buckets, over all threads, that are read.
pub const BUCKET_LIMIT: usize = 4 << 20;

/// The most overflow cycle numbers that are kept over all threads; a note counts the others.
pub const OVERFLOW_LIMIT: usize = 1 << 16;

/// The remark on a text whose unit had to be assumed.
const TAKEN_AS_US: &str =
    "latencies were taken as microseconds: cyclictest's text does not say, -N takes them as ns";

/// What cyclictest's JSON contains of a run and [`Run`] does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CyclictestContext {
    /// The command and its arguments, joined with blanks.
    pub command_line: String,
    /// The machine's name, as `uname -n`; `""` where it is left out.
    pub node_name: String,
    /// Start of the run in seconds since 1970, UTC.
    pub started_unix_s: i64,
    /// End of the run in seconds since 1970, UTC.
    pub ended_unix_s: i64,
    /// What the command ends with; parsers take 0 as a pass.
    pub return_code: i32,
}

/// Reads another tool's result, whichever of the known formats it is in.
///
/// The run passes [`Run::check`]; its `id` is empty for the caller to fill.
pub fn import(bytes: &[u8]) -> Result<Run, String> {
    if bytes.len() > FILE_LIMIT {
        return Err(format!("the file is larger than {} MiB, the most that is read", FILE_LIMIT >> 20));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err("the file is empty: expected cyclictest's JSON or histogram text".into()),
        Some(b'{') => cyclictest_json::parse(bytes),
        Some(_) => cyclictest_hist::parse(text_of(bytes)?),
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        format!("line {line}: expected UTF-8 text, as cyclictest's JSON and histogram are")
    })
}

/// Gives an imported run the period that its file does not contain; what the file does contain
/// stays.
///
/// With it, an overflow's cycle number can be placed in time, as long as no period was skipped.
pub fn set_interval(run: &mut Run, interval: Nanos) {
    let first = *run.plan.interval_ns.get_or_insert(interval);
    let distance = run.plan.distance_ns.unwrap_or_default();
    let mut next = Some(first);
    for cpu in &mut run.cpus {
        cpu.interval_ns = cpu.interval_ns.or(next);
        next = next.and_then(|n| n.0.checked_add(distance.0)).map(Nanos);
    }
}

/// Reads an imported histogram text as one of cyclictest's `-N`: its buckets were nanoseconds,
/// which the text does not state it.
pub fn set_nanoseconds(run: &mut Run) {
    let ns = |value: Nanos| Nanos(value.0 / 1_000);
    run.plan.notes.retain(|note| note != TAKEN_AS_US);
    for cpu in &mut run.cpus {
        for bucket in &mut cpu.histogram {
            (bucket.lower, bucket.upper) = (ns(bucket.lower), ns(bucket.upper));
        }
        (cpu.min_ns, cpu.mean_ns, cpu.max_ns) = (cpu.min_ns.map(ns), cpu.mean_ns.map(ns), cpu.max_ns.map(ns));
        (cpu.p50_ns, cpu.p90_ns, cpu.p99_ns) = (cpu.p50_ns.map(ns), cpu.p90_ns.map(ns), cpu.p99_ns.map(ns));
        (cpu.p999_ns, cpu.p9999_ns) = (cpu.p999_ns.map(ns), cpu.p9999_ns.map(ns));
        cpu.overflows_from_ns = cpu.overflows_from_ns.map(ns);
    }
}

/// A piece of the input as it may appear in an error: one line, short, no control characters.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(40).is_some() { "..." } else { "" };
    format!("'{shown}{more}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::histogram::Bucket;

    #[test]
    fn a_text_of_nanoseconds_is_read_as_one() {
        let text = b"# Histogram\n000002 000003\n000005 000001\n# Total: 000000004\n# Min Latencies: 00002\n\
            # Avg Latencies: 00003\n# Max Latencies: 00005\n# Histogram Overflows: 00000\n";
        let mut run = import(text).expect("cyclictest's text");
        set_nanoseconds(&mut run);
        let cpu = &run.cpus[0];
        assert_eq!(cpu.histogram, [Bucket::new(Nanos(2), Nanos(3), 3), Bucket::new(Nanos(5), Nanos(6), 1)]);
        assert_eq!((cpu.min_ns, cpu.max_ns, cpu.p50_ns), (Some(Nanos(2)), Some(Nanos(5)), Some(Nanos(3))));
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn what_is_no_result_is_refused_with_what_was_expected() {
        for (bytes, wanted) in [
            (&b""[..], "empty"),
            (b" \n\t", "empty"),
            (b"hello\n", "expected"),
            (b"000000 00001\nab\xff\n", "line 2"),
            (b"{}", "thread"),
            (b"{\"schema\":\"onbeat.run/1\"}", "onbeat's own"),
            (b"\xef\xbb\xbf{", "JSON"),
            (b"\0\0\0\0", "line 1"),
        ] {
            let error = import(bytes).unwrap_err();
            assert!(error.contains(wanted) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn an_interval_fills_only_what_is_unknown() {
        let mut run = import(b"000010 000001\t000002\n").unwrap();
        assert_eq!(run.plan.interval_ns, None);
        set_interval(&mut run, Nanos(250_000));
        assert_eq!(run.plan.interval_ns, Some(Nanos(250_000)));
        set_interval(&mut run, Nanos(1));
        assert!(run.cpus.iter().all(|cpu| cpu.interval_ns == Some(Nanos(250_000))));
    }

    #[test]
    fn quotes_are_short_and_plain() {
        assert_eq!(quoted("a\x1b\n"), "'a\\u{1b}\\n'");
        assert_eq!(quoted(&"x".repeat(90)).len(), 45);
    }
}
