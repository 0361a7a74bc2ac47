//! Largest latency of a line of `blocks.jsonl`, read without parsing the rest of the line: for
//! months of blocks, the rest takes most of the time.

use super::line_cursor::LineCursor;
use model::run::Peak;
use model::units::{Cpu, Nanos};

/// Peak of a line; `None` if it is not a record of a block.
pub fn parse(line: &[u8]) -> Option<Peak> {
    scan(line).or_else(|| serde_json::from_slice(line).ok())
}

/// Peak of a line in the order of fields that onbeat writes; `None` for any other line.
///
/// A line with damage after these fields still has them whole: it is read.
fn scan(line: &[u8]) -> Option<Peak> {
    let mut rest = LineCursor(line.strip_suffix(b"}")?);
    rest.pass(b"{\"cpu\":")?;
    let cpu = Cpu::try_from(u32::try_from(rest.number()?).ok()?).ok()?;
    rest.thread()?;
    rest.pass(b",\"mono_ns\":")?;
    let mono_ns = Nanos(rest.number()?);
    rest.pass(b",\"span_ns\":")?;
    let span_ns = rest.nanos()?;
    rest.pass(b",\"n\":")?;
    let n = rest.count()?;
    rest.pass(b",\"max_ns\":")?;
    let max_ns = rest.nanos()?;
    rest.pass(b",\"max_mono_ns\":")?;
    let max_mono_ns = rest.nanos()?;
    rest.pass(b",\"top_ns\":[")?;
    // Last field, only in lines of followed threads.
    let last = rest.0.iter().rposition(|&byte| byte == b',')?;
    let mut last = LineCursor(rest.0.get(last..)?);
    let response_ns = match last.pass(b",\"response_ns\":") {
        Some(()) => Some(last.whole_number()?),
        None => None,
    };
    Some(Peak { cpu, mono_ns, span_ns, n, max_ns, max_mono_ns, response_ns })
}

#[cfg(test)]
mod tests {
    use super::super::block_line::tests::blocks;
    use super::*;
    use model::run::Block;
    use proptest::prelude::*;

    /// True if no number of it has more digits than the fast path reads.
    fn is_short(block: &Block) -> bool {
        let times = [block.span_ns, block.max_ns, block.max_mono_ns, block.response_ns];
        let all = times.iter().flatten().chain([&block.mono_ns]).map(|ns| ns.0.unsigned_abs());
        all.chain([block.n]).all(|number| number < 1_000_000_000_000_000_000)
    }

    proptest! {
        #[test]
        fn a_written_line_has_the_peak_of_its_record(block in blocks()) {
            let line = serde_json::to_vec(&block).expect("a block is JSON");
            prop_assert!(scan(&line).is_some() || !is_short(&block), "the quick way is taken");
            prop_assert_eq!(parse(&line), Some(Peak::of(&block)));
        }

        #[test]
        fn what_the_quick_way_reads_a_parser_of_json_reads_alike(
            block in blocks(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
        ) {
            let mut line = serde_json::to_vec(&block).expect("a block is JSON");
            let place = at.index(line.len());
            if cut { line.truncate(place) } else { line[place] = byte }
            if let (Some(quick), Ok(whole)) = (scan(&line), serde_json::from_slice::<Peak>(&line)) {
                prop_assert_eq!(quick, whole);
            }
        }
    }

    #[test]
    fn other_layouts_are_read_and_other_lines_refused() {
        let spaced = br#"{ "n": 2, "cpu": 1, "mono_ns": 5, "max_ns": null }"#;
        assert_eq!(parse(spaced).map(|peak| (peak.cpu, peak.n, peak.max_ns)), Some((Cpu(1), 2, None)));
        for line in [&b""[..], b"{", b"}", b"{}", br#"{"cpu":0,"mono_ns":1,"span_ns":2}"#] {
            assert_eq!(parse(line), None);
        }
    }
}
