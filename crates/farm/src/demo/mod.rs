//! A synthetic farm for a first look: the records of five boards over a year, written as `onbeat
//! watch` writes them. One got worse with another kernel, one fell silent; of the others, one got
//! that kernel too.

mod board;
pub mod shape;

use std::io;
use std::path::Path;

use bundle::record::write::RecordWriter;
use host::{RecordDisk, RecordFolder};
use model::error::{Exit, Failure, Result};
use model::text::quoted;

use self::board::DemoBoard;

/// Size limit of a record; large enough that nothing is merged, as a farm takes no merged rows.
const SIZE: u64 = 1 << 30;

const REMEDY: &str = "set TMPDIR to a folder that you may write to, with 100 MB of free space";

/// Kernels of the boards, the older one first.
const KERNELS: [&str; 2] = ["6.12.20-rt9", "6.12.41-rt12"];

const BOARDS: [DemoBoard; 5] = [
    DemoBoard { name: "press-1", typical_us: 4, late: 12.0, ..DemoBoard::DEFAULT },
    DemoBoard {
        name: "press-2",
        typical_us: 4,
        late: 12.0,
        updated: Some(27),
        is_worse: true,
        ..DemoBoard::DEFAULT
    },
    DemoBoard { name: "mill-1", typical_us: 6, late: 25.0, silent: 9, ..DemoBoard::DEFAULT },
    DemoBoard { name: "lathe-1", typical_us: 3, late: 15.0, updated: Some(60), ..DemoBoard::DEFAULT },
    DemoBoard { name: "robot-1", typical_us: 8, late: 40.0, ..DemoBoard::DEFAULT },
];

/// Number of the boards.
pub const NUMBER: usize = BOARDS.len();

/// Writes the record of one of the boards below a folder, as `BOARD/watch`, up to a second since
/// 1970.
pub fn write_record(number: usize, runs: &Path, now: i64) -> Result<()> {
    let Some(of) = BOARDS.get(number) else { return Ok(()) };
    let place = runs.join(of.name).join("watch");
    let folder = RecordFolder::make(&place).map_err(|error| {
        Failure::of_call(format!("cannot create {}", quoted(&place)), &error, Exit::Usage, REMEDY)
    })?;
    let opened = RecordWriter::open(FlushlessFolder(folder), SIZE, &format!("demo-{number}"));
    let (mut writer, _) = opened.map_err(|fault| Failure::internal(format!("{fault:?}: {REMEDY}")))?;
    of.each_interval(number, now, |run, interval| match writer.append(run, interval) {
        Ok(_) => Ok(()),
        Err(why) => Err(Failure::usage(format!("{why}: {REMEDY}"))),
    })
}

/// A folder that need not survive a loss of power: thousands of flushes would take minutes.
struct FlushlessFolder(RecordFolder);

impl RecordDisk for FlushlessFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        self.0.length(name)
    }

    fn read_at(&self, name: &str, from: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(name, from, into)
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.append(name, bytes)
    }

    fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        self.0.truncate(name, length)
    }

    fn sync(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
}
