//! Files that are not traces: the known ones by name, with an alternative.

use crate::foreign::is_event;

/// Kind of a file, and its remedy.
struct KnownFile {
    is: fn(&[u8], &str) -> bool,
    what: &'static str,
    remedy: &'static str,
}

/// Files that contain others.
const ARCHIVES: &[KnownFile] = &[
    KnownFile {
        is: |bytes, _| bytes.starts_with(b"\x1f\x8b"),
        what: "a file compressed by gzip",
        remedy: "unpack it with `gunzip`",
    },
    KnownFile {
        is: |bytes, _| bytes.starts_with(b"\xfd7zXZ"),
        what: "a file compressed by xz",
        remedy: "unpack it with `unxz`",
    },
    KnownFile {
        is: |bytes, _| bytes.starts_with(b"\x28\xb5\x2f\xfd"),
        what: "a file compressed by zstd",
        remedy: "unpack it with `unzstd`",
    },
    KnownFile {
        is: |bytes, _| bytes.starts_with(b"BZh"),
        what: "a file compressed by bzip2",
        remedy: "unpack it with `bunzip2`",
    },
    KnownFile {
        is: |bytes, _| bytes.starts_with(b"PK\x03\x04"),
        what: "a zip archive",
        remedy: "unpack it with `unzip`",
    },
    KnownFile {
        is: |bytes, _| bytes.get(257..262) == Some(b"ustar"),
        what: "a tar archive",
        remedy: "unpack it, and give the file or the folder of the run in it",
    },
];

/// Known files; the first that fits counts.
const KNOWN: &[KnownFile] = &[
    KnownFile {
        is: |bytes, _| bytes.is_empty(),
        what: "an empty file",
        remedy: "record it again, or give another",
    },
    KnownFile {
        is: |bytes, _| bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff"),
        what: "a text in UTF-16",
        remedy: "convert it with `iconv -f UTF-16 -t UTF-8`",
    },
    KnownFile {
        is: |bytes, _| bytes.starts_with(b"\xc1\x1f\xfc\xc1"),
        what: "a trace of LTTng or another in CTF",
        remedy: "convert it to ftrace's text, or record with `trace-cmd record -e sched -e irq -e timer`",
    },
    KnownFile {
        is: |_, text| text.contains("onbeat.run/") || text.contains("onbeat.capture/"),
        what: "a document of a bundle",
        remedy: "give the folder that it is in",
    },
    KnownFile {
        is: |_, text| text.contains("\"traceEvents\""),
        what: "a trace for Perfetto or Chrome",
        remedy: "give the original trace",
    },
    KnownFile {
        is: |_, text| {
            has_line(text, &["# RTLA timerlat histogram", "# RTLA osnoise histogram", "# Histogram"])
        },
        what: "a histogram, which has no events",
        remedy: "convert it with `onbeat import`",
    },
    KnownFile {
        is: |_, text| has_line(text, &["T: 0 (", "T:0 (", "\"file_version\""]),
        what: "a result of cyclictest, which has no events",
        remedy: "convert it with `onbeat import`",
    },
    KnownFile {
        is: |_, text| text.contains("Timer Latency") && text.contains("IRQ Timer Latency"),
        what: "the table of rtla timerlat top, which has no events",
        remedy: "run it with `-a SPAN` and give its auto-analysis or timerlat_trace.txt",
    },
    KnownFile {
        is: |_, text| {
            let has = |words: &[&str]| words.iter().all(|word| text.contains(word));
            has(&["wait time", "sch delay", "run time"]) || has(&["Runtime ms", "Avg delay ms"])
        },
        what: "a table of perf sched",
        remedy: "give its perf.data",
    },
    KnownFile {
        is: |_, text| text.lines().any(is_event),
        what: "the text of perf script",
        remedy: "give its recording, perf.data or trace.dat",
    },
    KnownFile {
        is: |bytes, _| bytes.starts_with(b"\x7fELF"),
        what: "a program",
        remedy: "give the trace that was recorded",
    },
];

fn has_line(text: &str, begins: &[&str]) -> bool {
    text.lines().map(str::trim_start).any(|line| begins.iter().any(|begin| line.starts_with(begin)))
}

/// Name and remedy of an archive.
pub fn archive(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let archive = ARCHIVES.iter().find(|known| (known.is)(head, ""))?;
    Some((archive.what, archive.remedy))
}

/// Refusal of a file, in one line.
pub fn refusal(head: &[u8], text: &str) -> String {
    let known = ARCHIVES.iter().chain(KNOWN).find(|known| (known.is)(head, text));
    let (what, remedy) = known.map_or(
        (
            "none of these",
            "record with `trace-cmd record -e sched -e irq -e timer`, or give the folder of a hunt",
        ),
        |known| (known.what, known.remedy),
    );
    format!(
        "invalid trace: expected a trace.dat, a perf.data, a text of ftrace or rtla's auto-analysis, \
         found {what}; {remedy}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_named_with_what_serves() {
        for (bytes, what) in [
            (&b""[..], "an empty file; record"),
            (b"\x1f\x8b\x08", "gunzip"),
            (b"\xff\xfea\0", "iconv"),
            (b"{\"schema\": \"onbeat.run/1\"", "the folder that it is in"),
            (b"# RTLA timerlat histogram\n# Time unit is microseconds (us)\n", "`onbeat import`"),
            (b"# /dev/cpu_dma_latency set to 0us\nT: 0 ( 123) P:80", "`onbeat import`"),
            (
                b"swapper     0 [001]  1234.567890: sched:sched_wakeup: comm=a pid=12 prio=19\n",
                "the text of perf script; give its recording, perf.data",
            ),
            (
                b"           time    cpu  task name   wait time  sch delay   run time\n",
                "a table of perf sched; give its perf.data",
            ),
            (b"hello\n", "none of these; record with"),
        ] {
            let line = refusal(bytes, &String::from_utf8_lossy(bytes));
            assert!(line.contains(what) && !line.contains('\n'), "{line}");
        }
    }
}
