//! A synthetic board: a record of `onbeat watch`, and its sender, which is a separate program.

use std::fs::{File, create_dir_all};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bundle::record::made::MadeRecord;
use bundle::record::read::RecordReader;
use bundle::record::write::RecordWriter;
use host::RecordFolder;
use model::units::Nanos;
use model::watch::WatchSeries;

use crate::server::Outcome;

/// Size limit of a record; large enough that nothing is merged.
const SIZE: u64 = 1 << 30;
/// Series with one row each for every five minutes.
const SERIES: [WatchSeries; 3] = [WatchSeries::Timer, WatchSeries::Wakeup, WatchSeries::TimerWakeup];

/// A board's folder, and its growing record.
pub struct MadeBoard {
    folder: PathBuf,
    made: MadeRecord,
    writer: RecordWriter<RecordFolder>,
    next: u64,
}

impl MadeBoard {
    /// A board without rows.
    pub fn new(folder: PathBuf, cpus: u32) -> Outcome<MadeBoard> {
        create_dir_all(folder.join("runs"))?;
        let span = Nanos(300 * Nanos::SECOND.0);
        let made = MadeRecord { cpus, span, reboot: 25, wakeups: 300_000 };
        let (writer, _) =
            RecordWriter::open_folder(&folder.join("watch"), SIZE).map_err(|why| why.message)?;
        Ok(MadeBoard { folder, made, writer, next: 0 })
    }

    /// Records that many further intervals of five minutes.
    pub fn record(&mut self, intervals: u64) -> Outcome<()> {
        for n in self.next..self.next + intervals {
            self.writer.append(&self.made.run(n), &self.made.interval(n))?;
        }
        self.next += intervals;
        Ok(())
    }

    /// Number of rows and samples in its record.
    pub fn recorded(&self) -> Outcome<(i64, i64)> {
        let (mut rows, mut samples) = (0, 0);
        let mut reader = RecordReader::open_folder(&self.folder.join("watch")).map_err(|why| why.message)?;
        for series in SERIES {
            reader.each_row(series, |_, _, line| {
                rows += 1;
                samples += line.cpus.iter().map(|row| row.n as i64).sum::<i64>();
            })?;
        }
        Ok((rows, samples))
    }

    /// Enrols it with a farm.
    pub fn enrol(&self, program: &str, url: &str, code: &str, name: &str) -> Outcome<()> {
        let enrolled = Command::new(program)
            .args(["enrol", url, code, "--name", name, "--state"])
            .arg(self.folder.join("push"))
            .output()?;
        if enrolled.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&enrolled.stderr).into_owned().into())
        }
    }

    /// Starts its sender, with its output in a file.
    pub fn send(&self, program: &str, how: &str) -> Outcome<Sender> {
        let said = self.folder.join("said.txt");
        let child = Command::new(program)
            .args([how, "--when", "always", "--state"])
            .arg(self.folder.join("push"))
            .arg("--record")
            .arg(self.folder.join("watch"))
            .arg("--runs")
            .arg(self.folder.join("runs"))
            .stdin(Stdio::null())
            .stderr(File::create(&said)?)
            .spawn()?;
        Ok(Sender { child, said })
    }
}

/// A running `onbeat-push`; it ends with this.
pub struct Sender {
    pub child: Child,
    said: PathBuf,
}

impl Sender {
    /// Output of the sender.
    pub fn said(&self) -> Outcome<String> {
        Ok(std::fs::read_to_string(&self.said)?)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Codes with which boards enrol.
pub fn codes(program: &str, store: &str, count: usize) -> Outcome<Vec<String>> {
    let count = count.to_string();
    let printed = Command::new(program).args(["enrol", "--count", &count, "--store", store]).output()?;
    Ok(String::from_utf8(printed.stdout)?.lines().map(str::to_owned).collect())
}

/// True if a store passes its check.
pub fn is_sound(program: &str, store: &str) -> Outcome<bool> {
    let looked = Command::new(program).args(["check", "--store", store]).output()?;
    Ok(looked.status.success())
}
