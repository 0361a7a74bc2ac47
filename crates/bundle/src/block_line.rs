//! Reads a line of `blocks.jsonl` into a reused block: parsing months of them would spend most of
//! its time on the names of fields and on lists.

use super::line_cursor::LineCursor;
use model::run::Block;
use model::units::{Cpu, Nanos};

/// Reads a line; false if it is not a record of a block, and the block is then unspecified.
pub fn read(line: &[u8], block: &mut Block) -> bool {
    scan(line, block).is_some() || serde_json::from_slice(line).map(|other| *block = other).is_ok()
}

/// Reads a line in the order of fields that onbeat writes; `None` for any other line.
fn scan(line: &[u8], block: &mut Block) -> Option<()> {
    let mut rest = LineCursor(line);
    rest.pass(b"{\"cpu\":")?;
    block.cpu = Cpu::try_from(u32::try_from(rest.number()?).ok()?).ok()?;
    block.thread = rest.thread()?;
    rest.pass(b",\"mono_ns\":")?;
    block.mono_ns = Nanos(rest.number()?);
    rest.pass(b",\"span_ns\":")?;
    block.span_ns = rest.nanos()?;
    rest.pass(b",\"n\":")?;
    block.n = rest.count()?;
    rest.pass(b",\"max_ns\":")?;
    block.max_ns = rest.nanos()?;
    rest.pass(b",\"max_mono_ns\":")?;
    block.max_mono_ns = rest.nanos()?;
    rest.pass(b",\"top_ns\":[")?;
    block.top_ns.clear();
    rest.list(|rest| {
        block.top_ns.push(Nanos(rest.number()?));
        Some(())
    })?;
    rest.pass(b",\"over\":[")?;
    block.over.clear();
    rest.list(|rest| {
        rest.pass(b"[")?;
        let level = Nanos(rest.number()?);
        rest.pass(b",")?;
        block.over.push((level, rest.count()?));
        rest.pass(b"]")
    })?;
    rest.pass(b",\"missed\":")?;
    block.missed = rest.or_null(LineCursor::count)?;
    rest.pass(b",\"steal_ns\":")?;
    block.steal_ns = rest.nanos()?;
    rest.pass(b",\"irqs\":")?;
    block.irqs = rest.or_null(LineCursor::count)?;
    rest.pass(b",\"khz\":")?;
    block.khz = rest.or_null(LineCursor::count)?;
    rest.pass(b",\"temp_mc\":")?;
    block.temp_mc = rest.or_null(LineCursor::number)?;
    block.response_ns = match rest.pass(b",\"response_ns\":") {
        Some(()) => rest.nanos()?,
        None => None,
    };
    (rest.0 == b"}").then_some(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Blocks with every field, of any size.
    pub fn blocks() -> impl Strategy<Value = Block> {
        let time = prop_oneof![any::<i64>(), 0..i64::MAX / 1_000, -5..100_000i64];
        let maybe = |time: BoxedStrategy<i64>| prop::option::of(time.prop_map(Nanos));
        let time = time.boxed();
        let latencies = (maybe(time.clone()), maybe(time.clone()), maybe(time.clone()));
        let count = prop::option::of(prop_oneof![any::<u64>(), 0..5_000u64]);
        let rest = (count.clone(), maybe(time.clone()), count.clone(), count, prop::option::of(time.clone()));
        let top = prop::collection::vec(time.clone().prop_map(Nanos), 0..8);
        let over = prop::collection::vec((time.clone().prop_map(Nanos), 0..2_000u64), 0..13);
        let head = (0..model::units::CPU_LIMIT, time.clone(), maybe(time), any::<u64>(), latencies);
        (head, top, over, rest).prop_map(
            |(
                (cpu, mono, span_ns, n, (max_ns, max_mono_ns, response_ns)),
                top_ns,
                over,
                (missed, steal_ns, irqs, khz, temp_mc),
            )| Block {
                cpu: Cpu(cpu),
                thread: cpu % 3,
                mono_ns: Nanos(mono),
                span_ns,
                n,
                max_ns,
                max_mono_ns,
                top_ns,
                over,
                missed,
                steal_ns,
                irqs,
                khz,
                temp_mc,
                response_ns,
            },
        )
    }

    fn scanned(line: &[u8]) -> Option<Block> {
        // The earlier contents of the block must not matter.
        let top_ns = vec![Nanos(8); 9];
        let mut block =
            Block { top_ns, irqs: Some(7), thread: 9, response_ns: Some(Nanos(5)), ..Block::default() };
        scan(line, &mut block).map(|()| block)
    }

    proptest! {
        #[test]
        fn a_written_line_is_read_as_written(block in blocks()) {
            let line = serde_json::to_vec(&block).expect("a block is JSON");
            let longest = line.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).max();
            prop_assert!(scanned(&line).is_some() || longest > Some(18), "the quick way is taken");
            let mut found = Block::default();
            prop_assert!(read(&line, &mut found));
            prop_assert_eq!(found, block);
        }

        #[test]
        fn a_damaged_line_is_read_as_a_parser_of_json_reads_it(
            block in blocks(), at in any::<prop::sample::Index>(),
            byte in prop_oneof![any::<u8>(), prop::sample::select(&b"0123456789,[]-{}\" "[..])], cut: bool,
        ) {
            let mut line = serde_json::to_vec(&block).expect("a block is JSON");
            let place = at.index(line.len());
            if cut { line.truncate(place) } else { line[place] = byte }
            let whole = serde_json::from_slice::<Block>(&line).ok();
            if let Some(quick) = scanned(&line) {
                prop_assert_eq!(Some(quick), whole);
            }
        }
    }

    #[test]
    fn other_layouts_are_read_and_other_lines_refused() {
        let spaced = br#"{ "n": 2, "cpu": 1, "mono_ns": 5, "max_ns": null, "max_mono_ns": 3,
            "top_ns": [], "over": [[1, 2]] }"#;
        let mut block = Block { irqs: Some(3), ..Block::default() };
        assert!(read(spaced, &mut block));
        assert_eq!((block.cpu, block.n, block.irqs, block.over.len()), (Cpu(1), 2, None, 1));
        for line in [&b""[..], b"{", b"}", b"{}", br#"{"cpu":0,"mono_ns":1,"span_ns":2}"#] {
            assert!(!read(line, &mut block));
        }
    }
}
