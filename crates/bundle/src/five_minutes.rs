//! `rows.jsonl`: the histograms of each five minutes, so that a run of weeks shows when it was how
//! late.
//!
//! A block counts where it began, as in whatever adds blocks up. The edges are five minutes of UTC
//! as the clock stood at the first block, and stay on CLOCK_MONOTONIC whatever becomes of it. Lines
//! of the same five minutes are added up: a CPU that was late has one of its own.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::tail::Tail;
use model::rows::{RowCounts, RowSums, row_of_bucket};
use model::units::{Cpu, Nanos};

/// The file's name.
pub const FIVE_MINUTES: &str = "rows.jsonl";

/// What a line is of.
pub const SPAN: Nanos = Nanos(300 * Nanos::SECOND.0);

/// CPUs in a line: with a megabyte none is as long as its reader takes.
const MOST_CPUS: usize = 64;

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FiveMinuteLine {
    /// CLOCK_MONOTONIC of its beginning.
    pub mono_ns: Nanos,
    pub span_ns: Nanos,
    pub cpus: Vec<CpuFiveMinuteLine>,
}

/// The histogram of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuFiveMinuteLine {
    pub cpu: Cpu,
    /// Its wake-ups.
    pub n: u64,
    pub hist: RowCounts,
}

/// What the five minutes that are on have so far.
#[derive(Debug, Default)]
pub struct FiveMinuteSums {
    /// Where some five minutes begin: that of the first block.
    edge: Option<Nanos>,
    cpus: BTreeMap<Cpu, OpenSums>,
}

#[derive(Debug, Default)]
struct OpenSums {
    /// Which five minutes, from the first edge on.
    number: i64,
    rows: RowSums,
}

impl OpenSums {
    /// What there is, and none from here on.
    fn take(&mut self, cpu: Cpu) -> CpuFiveMinuteLine {
        let hist = self.rows.counts();
        self.rows.clear();
        CpuFiveMinuteLine { cpu, n: hist.total(), hist }
    }
}

impl FiveMinuteSums {
    /// Adds blocks, those of a CPU in the order of time; what they end is written.
    pub fn add(&mut self, blocks: &[Tail], into: &mut Vec<u8>) -> io::Result<()> {
        let mut ended: BTreeMap<i64, Vec<CpuFiveMinuteLine>> = BTreeMap::new();
        for block in blocks {
            let edge = *self.edge.get_or_insert_with(|| begin_of(block));
            let number = block.start.0.saturating_sub(edge.0).div_euclid(SPAN.0);
            let sums = self.cpus.entry(block.cpu).or_insert(OpenSums { number, ..OpenSums::default() });
            if sums.number != number {
                ended.entry(sums.number).or_default().push(sums.take(block.cpu));
                sums.number = number;
            }
            block.rows.iter().for_each(|&(bucket, count)| sums.rows.add(row_of_bucket(bucket), count));
        }
        self.write(ended, into)
    }

    /// The last ones.
    pub fn finish(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut ended: BTreeMap<i64, Vec<CpuFiveMinuteLine>> = BTreeMap::new();
        for (cpu, sums) in &mut self.cpus {
            ended.entry(sums.number).or_default().push(sums.take(*cpu));
        }
        self.cpus.clear();
        self.write(ended, into)
    }

    fn write(&self, ended: BTreeMap<i64, Vec<CpuFiveMinuteLine>>, into: &mut Vec<u8>) -> io::Result<()> {
        let edge = self.edge.unwrap_or_default().0;
        for (number, cpus) in ended {
            let mono_ns = Nanos(edge.saturating_add(number.saturating_mul(SPAN.0)));
            for cpus in cpus.chunks(MOST_CPUS) {
                let line = FiveMinuteLine { mono_ns, span_ns: SPAN, cpus: cpus.to_vec() };
                serde_json::to_writer(&mut *into, &line)?;
                into.push(b'\n');
            }
        }
        Ok(())
    }
}

/// Where the five minutes of UTC begin that a block began in.
fn begin_of(block: &Tail) -> Nanos {
    let wall = block.start.0.saturating_add(block.wall_offset.0);
    Nanos(block.start.0.saturating_sub(wall.rem_euclid(SPAN.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::histogram::bucket_of;
    use model::rows::row_of;
    use proptest::prelude::*;

    fn block(cpu: u32, second: i64, latencies: &[i64]) -> Tail {
        Tail {
            cpu: Cpu(cpu),
            start: Nanos(second * Nanos::SECOND.0),
            // 2 s past an edge when the monotonic clock stands at 0.
            wall_offset: SPAN + Nanos(2 * Nanos::SECOND.0),
            rows: latencies.iter().map(|&latency| (bucket_of(Nanos(latency)), 1)).collect(),
            ..Tail::default()
        }
    }

    fn lines(text: &[u8]) -> Vec<FiveMinuteLine> {
        text.split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    #[test]
    fn a_line_is_of_five_minutes_of_the_wall_clock() {
        let (mut sums, mut text) = (FiveMinuteSums::default(), Vec::new());
        for second in 0..700 {
            sums.add(&[block(0, second, &[7, -1]), block(3, second, &[90])], &mut text).unwrap();
        }
        sums.finish(&mut text).unwrap();
        let found = lines(&text);
        let edges: Vec<i64> = found.iter().map(|line| line.mono_ns.0 / Nanos::SECOND.0).collect();
        assert_eq!(edges, [-2, 298, 598]);
        let counted: Vec<u64> = found.iter().map(|line| line.cpus[0].n).collect();
        assert_eq!(counted, [596, 600, 204]);
        assert!(found.iter().all(|line| line.span_ns == SPAN && line.cpus.len() == 2));
        assert_eq!(
            found[2].cpus[1],
            CpuFiveMinuteLine { cpu: Cpu(3), n: 102, hist: RowCounts::of_rows([(row_of(Nanos(90)), 102)]) }
        );
        let mut more = Vec::new();
        sums.finish(&mut more).unwrap();
        assert!(more.is_empty());
    }

    #[test]
    fn a_line_of_many_cpus_is_several() {
        let (mut sums, mut text) = (FiveMinuteSums::default(), Vec::new());
        let blocks: Vec<Tail> = (0..130).map(|cpu| block(cpu, 0, &[5])).collect();
        sums.add(&blocks, &mut text).unwrap();
        sums.finish(&mut text).unwrap();
        let found = lines(&text);
        assert_eq!(found.iter().map(|line| line.cpus.len()).collect::<Vec<_>>(), [64, 64, 2]);
        assert!(found.iter().all(|line| line.mono_ns == found[0].mono_ns));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_counted_twice(
            blocks in proptest::collection::vec(
                (0u32..3, 1i64..400, proptest::collection::vec(-9i64..1 << 40, 0..4)), 0..60,
            ),
            offset in -(1i64 << 60)..1 << 60, at_once in 1usize..9,
        ) {
            let (mut now, mut all) = ([0; 3], Vec::new());
            for (cpu, later, latencies) in blocks {
                now[cpu as usize] += later;
                let wall_offset = Nanos(offset);
                all.push(Tail { wall_offset, ..block(cpu, now[cpu as usize], &latencies) });
            }
            let (mut sums, mut text) = (FiveMinuteSums::default(), Vec::new());
            all.chunks(at_once).for_each(|some| sums.add(some, &mut text).unwrap());
            sums.finish(&mut text).unwrap();
            let mut found: BTreeMap<(Cpu, i64), RowSums> = BTreeMap::new();
            for line in lines(&text) {
                prop_assert_eq!((line.mono_ns.0 as i128 + offset as i128).rem_euclid(SPAN.0 as i128), 0);
                for cpu in &line.cpus {
                    prop_assert_eq!(cpu.n, cpu.hist.total());
                    found.entry((cpu.cpu, line.mono_ns.0)).or_default().add_all(&cpu.hist);
                }
            }
            let mut wanted: BTreeMap<(Cpu, i64), RowSums> = BTreeMap::new();
            for block in &all {
                let wall = block.start.0 as i128 + offset as i128;
                let begin = block.start.0 as i128 - wall.rem_euclid(SPAN.0 as i128);
                let sums = wanted.entry((block.cpu, begin as i64)).or_default();
                block.rows.iter().for_each(|&(bucket, n)| sums.add(row_of_bucket(bucket), n));
            }
            let counts = |of: &BTreeMap<(Cpu, i64), RowSums>| {
                of.iter().map(|(key, sums)| (*key, sums.counts())).collect::<Vec<_>>()
            };
            prop_assert_eq!(counts(&found), counts(&wanted));
        }
    }
}
