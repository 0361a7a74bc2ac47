//! Queue of intervals that could not be written; each write tries them again.

use std::collections::VecDeque;

use bundle::record::write::RecordWriter;
use host::RecordDisk;
use model::watch::{WatchInterval, WatchRun};

/// Capacity of the queue, an hour of intervals of five minutes; beyond it, the oldest is dropped.
const WAITING: usize = 12;

/// Intervals that are not on the disk yet, the oldest first.
#[derive(Default)]
pub struct WaitingIntervals {
    waiting: VecDeque<WatchInterval>,
    given_up: u64,
}

impl WaitingIntervals {
    /// Writes the waiting intervals and then this one; returns remarks for the user.
    pub fn write<D: RecordDisk>(
        &mut self,
        writer: &mut RecordWriter<D>,
        run: &WatchRun,
        interval: WatchInterval,
    ) -> Vec<String> {
        self.waiting.push_back(interval);
        let mut told = Vec::new();
        while let Some(next) = self.waiting.front() {
            match writer.append(run, next) {
                Ok(appended) => {
                    told.extend(appended.trouble);
                    self.waiting.pop_front();
                }
                Err(why) => {
                    told.push(why);
                    break;
                }
            }
        }
        while self.waiting.len() > WAITING {
            self.waiting.pop_front();
            self.given_up += 1;
            writer.give_up();
            told.push("the oldest interval waiting for the disk is lost".into());
        }
        told
    }

    /// Number of intervals that are not on the disk.
    pub fn unwritten(&self) -> u64 {
        self.given_up + self.waiting.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::record::fake::MemoryDisk;
    use model::units::Nanos;

    fn interval(number: i64) -> WatchInterval {
        const SPAN: i64 = 1_000_000_000;
        WatchInterval { mono_ns: Nanos(number * SPAN), span_ns: Nanos(SPAN), ..WatchInterval::default() }
    }

    #[test]
    fn a_full_disk_costs_nothing_for_an_hour_and_then_the_oldest() {
        for (full_for, lost) in [(WAITING as i64, 0), (WAITING as i64 + 3, 3)] {
            let disk = MemoryDisk::default();
            let (mut writer, _) = RecordWriter::open(&disk, 8 << 20, "r1").unwrap();
            let mut waiting = WaitingIntervals::default();
            let run = WatchRun { boot: "b1".into(), ..WatchRun::default() };
            assert_eq!(waiting.write(&mut writer, &run, interval(0)), Vec::<String>::new());
            disk.room.set(Some(0));
            for number in 0..full_for {
                let told = waiting.write(&mut writer, &run, interval(1 + number));
                assert!(told.iter().any(|line| line.contains("space")), "{told:?}");
            }
            assert_eq!(waiting.unwritten(), full_for as u64);
            disk.room.set(None);
            assert_eq!(waiting.write(&mut writer, &run, interval(1 + full_for)), Vec::<String>::new());
            assert_eq!(waiting.unwritten(), lost);
            drop(writer);
            let mut found = (0, 0);
            let mut reader = bundle::record::read::RecordReader::open(&disk).unwrap();
            reader
                .each_item(|item| {
                    if let bundle::record::read::RecordItem::Worst(_, _, line) = item {
                        found = (found.0 + 1, found.1 + line.coverage.unwritten);
                    }
                })
                .unwrap();
            assert_eq!(found, (full_for as u64 + 2 - lost, lost));
        }
    }
}
