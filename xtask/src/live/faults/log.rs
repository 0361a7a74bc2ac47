//! Injected faults, as logged by the module and the program: a line of `key=value` per fault.

use std::collections::BTreeMap;

/// A fault of known kind, place, time and length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogRecord {
    /// Shared by the records of one injection.
    pub seq: u64,
    /// The request's word for it.
    pub fault: String,
    /// The kind of slice that it should appear as.
    pub kind: String,
    /// CPU of the fault.
    pub cpu: u64,
    /// Start, CLOCK_MONOTONIC in ns.
    pub start: i64,
    /// Until when.
    pub end: i64,
}

impl LogRecord {
    /// Part of a time span within it, in ns.
    pub fn overlap(&self, from: i64, to: i64) -> i64 {
        (self.end.min(to) - self.start.max(from)).max(0)
    }
}

/// Parses a log, which has to end with the number of records without room, which must be 0.
pub fn parse(text: &str) -> Result<Vec<LogRecord>, String> {
    let (dropped, lines): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("dropped="));
    if dropped != ["dropped=0"] {
        return Err(format!("the log of faults is not whole: {dropped:?}"));
    }
    lines.into_iter().map(record).collect()
}

fn record(line: &str) -> Result<LogRecord, String> {
    let fields: BTreeMap<&str, &str> =
        line.split_whitespace().filter_map(|field| field.split_once('=')).collect();
    let text = |key: &str| fields.get(key).copied().ok_or_else(|| format!("no {key} in {line:?}"));
    let number = |key: &str| -> Result<i64, String> {
        text(key)?.parse().map_err(|_| format!("{key} is not a number in {line:?}"))
    };
    let count = |key: &str| number(key)?.try_into().map_err(|_| format!("{key} is negative in {line:?}"));
    let (start, end) = (number("start")?, number("end")?);
    if end <= start {
        return Err(format!("a fault without length: {line:?}"));
    }
    let (fault, kind) = (text("fault")?.to_string(), text("kind")?.to_string());
    Ok(LogRecord { seq: count("seq")?, fault, kind, cpu: count("cpu")?, start, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "seq=3 fault=ipi kind=ipi cpu=1 from=0 start=1000 end=21000 name=fault_ipi";

    #[test]
    fn a_line_is_a_fault() {
        let records = parse(&format!("{LINE}\ndropped=0\n")).unwrap();
        let wanted =
            LogRecord { seq: 3, fault: "ipi".into(), kind: "ipi".into(), cpu: 1, start: 1000, end: 21000 };
        assert_eq!(records, [wanted]);
        assert_eq!(records[0].overlap(500, 1500), 500);
        assert_eq!((records[0].overlap(0, 1000), records[0].overlap(30000, 40000)), (0, 0));
    }

    #[test]
    fn a_log_that_is_cut_or_odd_is_refused() {
        assert!(parse(LINE).is_err());
        assert!(parse(&format!("{LINE}\ndropped=2")).is_err());
        assert!(parse("seq=3 fault=ipi\ndropped=0").is_err());
        assert!(
            parse(&format!("{}\ndropped=0", LINE.replace("21000", "900"))).unwrap_err().contains("length")
        );
        assert!(parse(&format!("{}\ndropped=0", LINE.replace("cpu=1", "cpu=-1"))).is_err());
    }
}
