//! Whole rounds against a farm that follows the contract, over a network that fails.

#![allow(clippy::disallowed_methods)] // Tests make folders of their own.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bundle::record::made::MadeRecord;
use bundle::record::write::{DEFAULT_SIZE, LEAST_SIZE, RecordWriter};
use model::units::Nanos;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::fake_farm::{FakeFarm, Trouble};
use super::*;
use crate::enrolment::PushFolder;
use crate::link::LinkFault;
use crate::sent::SentLog;
use crate::session::{FarmComparison, PushAllowance};
use crate::stop::StopFlag;

const MADE: MadeRecord =
    MadeRecord { cpus: 2, span: Nanos(300 * Nanos::SECOND.0), reboot: 25, wakeups: 300_000 };
/// Number of series in the synthetic record.
const SERIES: usize = 3;

struct Board {
    place: tempfile::TempDir,
    sources: PushSources,
    recorded: u64,
    measuring: bool,
    /// State of the comparison at the start of each round.
    comparison: FarmComparison,
}

fn compared() -> FarmComparison {
    FarmComparison::Done(host::clock::monotonic())
}

impl Board {
    fn new() -> Board {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("push")).unwrap();
        fs::create_dir(at("runs")).unwrap();
        let sources = PushSources { runs: vec![at("runs")], records: vec![at("watch")] };
        Board { place, sources, recorded: 0, measuring: false, comparison: compared() }
    }

    fn record(&mut self, intervals: u64, size: u64) {
        let (mut writer, _) = RecordWriter::open_folder(&self.place.path().join("watch"), size).unwrap();
        for n in self.recorded..self.recorded + intervals {
            assert_eq!(writer.append(&MADE.run(n), &MADE.interval(n)).unwrap().trouble, None);
        }
        self.recorded += intervals;
    }

    fn add_run(&self, name: &str) -> PathBuf {
        self.add_run_as(name, &format!("runs/{name}"))
    }

    fn add_run_as(&self, name: &str, place: &str) -> PathBuf {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs").join(name);
        let to = self.place.path().join(place);
        fs::create_dir_all(&to).unwrap();
        for file in ["run.json", "blocks.jsonl"] {
            fs::copy(fixture.join(file), to.join(file)).unwrap();
        }
        to
    }

    /// Runs a round; returns its outcome and its end.
    fn round(
        &self,
        farm: &mut FakeFarm,
        allowed: &dyn Fn() -> PushAllowance,
    ) -> (RoundOutcome, Result<(), RoundEnd>) {
        self.round_after(farm, allowed, BTreeMap::new())
    }

    /// Like `round`, with runs that were passed over before.
    fn round_after(
        &self,
        farm: &mut FakeFarm,
        allowed: &dyn Fn() -> PushAllowance,
        passed_over: BTreeMap<String, ((u64, u64), Nanos)>,
    ) -> (RoundOutcome, Result<(), RoundEnd>) {
        let folder = PushFolder(self.place.path().join("push"));
        let mut round = PushRound {
            link: farm,
            log: SentLog::read(&folder, "farm", "board"),
            folder: &folder,
            allowed,
            stop: StopFlag::default(),
            measuring: &|| self.measuring,
            passed_over,
            known: None,
            comparison: self.comparison,
            outcome: RoundOutcome::default(),
        };
        let end = run_round(&mut round, &self.sources);
        (round.outcome, end)
    }

    /// Changes the log of what was acknowledged.
    fn change_log(&self, change: impl FnOnce(&mut SentLog)) {
        let folder = PushFolder(self.place.path().join("push"));
        let mut log = SentLog::read(&folder, "farm", "board");
        change(&mut log);
        log.write(&folder).unwrap();
    }

    fn send_all(&self, farm: &mut FakeFarm) -> RoundOutcome {
        let (outcome, end) = self.round(farm, &|| PushAllowance::All);
        end.unwrap();
        outcome
    }
}

#[test]
fn the_newest_row_of_each_series_is_sent_first_and_each_once() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.record(40, DEFAULT_SIZE);
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.rows, farm.rows.len(), farm.had), (120, 40 * SERIES, 0));
    // The last row of the second boot.
    let is_newest = |key: &(String, u64)| key.0.starts_with("5b1f3c9e-0002") && key.1 == 15;
    assert!(farm.order[..SERIES].iter().all(is_newest), "{:?}", &farm.order[..SERIES]);
    // Then the last row of the boot before it, which dates that boot.
    let end = &farm.order[SERIES];
    assert!(end.0.starts_with("5b1f3c9e-0001") && end.1 == 25, "{end:?}");
    assert_eq!(farm.order[SERIES + 1].1, 1, "then the backlog");
    let requests = farm.requests;
    assert_eq!(board.send_all(&mut farm).rows, 0);
    assert_eq!(farm.requests, requests);
    board.record(1, DEFAULT_SIZE);
    assert_eq!(board.send_all(&mut farm).rows, SERIES as u64);
    // The log is lost: all is sent again, and the farm has it already.
    fs::remove_file(board.place.path().join("push/sent.json")).unwrap();
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.rows, outcome.refused, farm.had), (0, 0, 41 * SERIES as u64));
}

#[test]
fn environments_are_sent_once_and_before_the_rows_that_name_them() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    farm.wants_environments = true;
    board.record(40, DEFAULT_SIZE);
    board.send_all(&mut farm);
    assert_eq!((farm.environments.len(), farm.rows.len()), (2, 40 * SERIES));
    assert_eq!(farm.environments["digest of 6.12.94-rt"]["release"], "6.12.94-rt");
    // One request for the rows of each series.
    let requests = farm.requests;
    board.record(1, DEFAULT_SIZE);
    board.send_all(&mut farm);
    assert_eq!(farm.requests, requests + SERIES as u64);
    // The log is lost, and the farm is unchanged.
    fs::remove_file(board.place.path().join("push/sent.json")).unwrap();
    assert_eq!((board.send_all(&mut farm).refused, farm.environments.len()), (0, 2));
}

#[test]
fn rows_that_are_no_rows_to_the_farm_are_left_out_and_the_others_sent() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.record(24, DEFAULT_SIZE);
    farm.malformed = [3, 4, 24].into();
    farm.most_lines = Some(5);
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.rows, outcome.refused), (21 * SERIES as u64, 3 * SERIES as u64));
    assert!(outcome.remarks.iter().any(|remark| remark.contains("row 24 of timer")), "{:?}", outcome.remarks);
    assert_eq!(board.send_all(&mut farm).refused, 0);
    // An unreadable record does not end the round.
    fs::write(board.place.path().join("watch/record.json"), "{\"schema\":\"onbeat.watch/99\"}\n").unwrap();
    let run = board.add_run("measured");
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.runs, outcome.left), (1, true), "{}", run.display());
    let [why] = &outcome.remarks[..] else { panic!("{:?}", outcome.remarks) };
    assert!(why.contains("by a newer onbeat") && why.starts_with("rows are not sent: "), "{why}");
    // A folder that cannot be opened may hold rows; a missing one holds none.
    fs::remove_dir_all(board.place.path().join("watch")).unwrap();
    assert_eq!(board.send_all(&mut farm), RoundOutcome::default());
    std::os::unix::fs::symlink("watch", board.place.path().join("watch")).unwrap();
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.left, outcome.remarks.len()), (true, 1), "{outcome:?}");
}

/// First closed interval file of a series.
fn closed_file(record: &Path, series: &str) -> PathBuf {
    let end = format!(".interval.{series}.rows.jsonl");
    let files = fs::read_dir(record).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.to_string_lossy().ends_with(&end)).min().expect("a closed file")
}

/// Changes a digit of a row in the first section of a series; returns that section's row count.
fn damage(record: &Path, series: &str) -> usize {
    let file = closed_file(record, series);
    let mut text = fs::read_to_string(&file).unwrap();
    let section = text.lines().take_while(|line| !line.starts_with("{\"end\""));
    let rows = section.filter(|line| line.starts_with("{\"seq\"")).count();
    let at = text.find("\"max_ns\":").unwrap() + 9;
    let digit = if text.as_bytes()[at] == b'9' { "8" } else { "9" };
    text.replace_range(at..=at, digit);
    fs::write(file, text).unwrap();
    rows
}

#[test]
fn rows_that_no_checksum_proves_are_left_out_once_and_the_others_sent() {
    // One boot, two boots in one file, and a record without a manifest of its files.
    for (first, with_manifest) in [(25, true), (24, true), (25, false)] {
        let (mut board, mut farm) = (Board::new(), FakeFarm::default());
        board.recorded = first;
        board.record(60, LEAST_SIZE);
        let record = board.place.path().join("watch");
        let rows = damage(&record, "timer");
        assert!(rows > 2 && rows < 60, "{rows}");
        if !with_manifest {
            fs::remove_file(record.join("record.json")).unwrap();
        }
        let outcome = board.send_all(&mut farm);
        assert_eq!((outcome.refused, outcome.rows), (rows as u64, (60 * SERIES - rows) as u64));
        assert_eq!((farm.rows.len(), outcome.lost), (60 * SERIES - rows, 0));
        let told: Vec<&String> =
            outcome.remarks.iter().filter(|remark| remark.contains("checksum")).collect();
        assert!(told.len() == 1 && told[0].contains("import the undamaged record"), "{:?}", outcome.remarks);
        // The log holds the remark until it was reported.
        board.change_log(|log| {
            assert_eq!(log.untold.refused, rows as u64);
            assert!(log.untold.remarks.contains(told[0]), "{:?}", log.untold);
        });
        let requests = farm.requests;
        let outcome = board.send_all(&mut farm);
        assert_eq!((outcome.refused, outcome.rows, farm.requests), (0, 0, requests));
        assert!(outcome.remarks.iter().all(|remark| !remark.contains("checksum")), "{:?}", outcome.remarks);
        if with_manifest {
            board.record(1, LEAST_SIZE);
            assert_eq!(board.send_all(&mut farm).rows, SERIES as u64);
        }
        // A farm that lost rows gets the intact ones again.
        farm.rows.clear();
        board.comparison = FarmComparison::Due;
        let outcome = board.send_all(&mut farm);
        assert_eq!(
            (outcome.refused, farm.rows.len()),
            (0, (60 + usize::from(with_manifest)) * SERIES - rows)
        );
    }
}

#[test]
fn rows_that_a_cut_file_lacks_are_told_and_the_others_sent() {
    // One boot, and two in one file, of which the missing rows are not known.
    for (first, of_one_boot) in [(25, true), (24, false)] {
        let (mut board, mut farm) = (Board::new(), FakeFarm::default());
        board.recorded = first;
        board.record(60, LEAST_SIZE);
        let file = closed_file(&board.place.path().join("watch"), "timer");
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        let outcome = board.send_all(&mut farm);
        let lacking = 60 * SERIES as u64 - outcome.rows;
        assert!(lacking > 0 && farm.rows.len() as u64 == outcome.rows, "{outcome:?}");
        let told = if of_one_boot { (lacking, false) } else { (0, true) };
        assert_eq!((outcome.refused, outcome.left), told, "{outcome:?}");
        let is_told = |remark: &String| remark.contains("lacking: ") && remark.contains("is cut short by ");
        assert!(outcome.remarks.iter().any(is_told), "{outcome:?}");
        let outcome = board.send_all(&mut farm);
        assert_eq!((outcome.rows, outcome.refused, outcome.left), (0, 0, !of_one_boot), "{outcome:?}");
        assert_eq!(outcome.remarks.iter().any(is_told), !of_one_boot, "{outcome:?}");
    }
}

#[test]
fn rows_with_other_content_are_told_and_not_sent_again() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.record(10, DEFAULT_SIZE);
    board.send_all(&mut farm);
    for line in farm.rows.values_mut().take(4) {
        line.push(' ');
    }
    fs::remove_file(board.place.path().join("push/sent.json")).unwrap();
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.rows, outcome.refused), (0, 4));
    assert!(outcome.remarks[0].contains("token"), "{:?}", outcome.remarks);
    assert_eq!(board.send_all(&mut farm).refused, 0);
}

#[test]
fn boots_that_are_no_longer_recorded_are_forgotten_and_nothing_is_sent_again() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.record(40, DEFAULT_SIZE);
    board.send_all(&mut farm);
    let noted = || SentLog::read(&PushFolder(board.place.path().join("push")), "farm", "board").rows;
    let before = noted();
    assert_eq!(before.len(), 2 * SERIES);
    let add_gone = || {
        board.change_log(|log| {
            let recording = log.rows[0].recording.clone();
            log.insert(&recording, "a boot that has gone", &before[0].series, 1, 9);
            log.insert("a recording that has gone", &before[0].boot, &before[0].series, 1, 9);
        });
    };
    add_gone();
    let requests = farm.requests;
    assert_eq!(board.send_all(&mut farm), RoundOutcome::default());
    assert_eq!((noted(), farm.requests), (before.clone(), requests));
    // Nothing is known of a record that cannot be read now.
    add_gone();
    let manifest = board.place.path().join("watch/record.json");
    let whole = fs::read(&manifest).unwrap();
    fs::write(&manifest, "{\"schema\":\"onbeat.watch/99\"}").unwrap();
    board.send_all(&mut farm);
    assert_eq!(noted().len(), before.len() + 2);
    fs::write(&manifest, whole).unwrap();
    assert_eq!(board.send_all(&mut farm), RoundOutcome::default());
    assert_eq!((noted(), farm.requests), (before, requests));
}

#[test]
fn what_was_merged_before_it_was_sent_is_counted_once() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.record(2, LEAST_SIZE);
    board.send_all(&mut farm);
    // Offline until the folder is full and unsent rows are merged to hours.
    board.record(1_500, LEAST_SIZE);
    let outcome = board.send_all(&mut farm);
    assert!(outcome.lost > 0, "{outcome:?}");
    assert_eq!(board.send_all(&mut farm).lost, 0);
}

#[test]
fn a_run_that_was_passed_over_is_tried_again_after_a_day() {
    let (board, mut farm) = (Board::new(), FakeFarm::default());
    let place = board.add_run("measured");
    let (document, at) = host::file_version(&place.join("run.json")).unwrap();
    let version = (document, at.max(crate::sent::last_change(&place)));
    for (hours, sent) in [(1, 0), (25, 1)] {
        let ago = Nanos(hours * 3_600 * Nanos::SECOND.0);
        let noted = (version, host::clock::monotonic() - ago);
        let passed_over = BTreeMap::from([(place.to_string_lossy().into_owned(), noted)]);
        let (outcome, end) = board.round_after(&mut farm, &|| PushAllowance::All, passed_over);
        end.unwrap();
        assert_eq!((outcome.runs, outcome.left), (sent, sent == 0), "{hours} h");
    }
}

#[test]
fn what_a_proxy_refuses_is_sent_again_and_nothing_is_set_aside() {
    let later = |end: Result<(), RoundEnd>| matches!(end, Err(RoundEnd::Fault(LinkFault::Later { .. })));
    for status in [403, 409, 413, 422] {
        let (mut board, mut farm) = (Board::new(), FakeFarm::default());
        board.record(10, DEFAULT_SIZE);
        // The environment is the first request, rows are the second.
        for from in [1, 2] {
            farm.requests = 0;
            farm.trouble =
                Some(Box::new(move |n: u64| if n < from { Trouble::None } else { Trouble::Refused(status) }));
            let (outcome, end) = board.round(&mut farm, &|| PushAllowance::All);
            assert!(later(end), "{status}");
            assert_eq!((outcome.rows, outcome.refused), (0, 0), "{status}");
        }
        farm.trouble = None;
        let outcome = board.send_all(&mut farm);
        assert_eq!((outcome.rows, outcome.refused), (10 * SERIES as u64, 0), "{status}");
        assert!(!farm.environments.is_empty(), "{status}");
    }
    // Requests: what the farm has, the manifest, its pieces.
    for (number, status) in (1..=4).flat_map(|number| [409, 422].map(|status| (number, status))) {
        let (board, mut farm) = (Board::new(), FakeFarm::default());
        board.add_run("measured");
        let refuses = move |n: u64| if n == number { Trouble::Refused(status) } else { Trouble::None };
        farm.trouble = Some(Box::new(refuses));
        let (outcome, end) = board.round(&mut farm, &|| PushAllowance::All);
        assert!(later(end), "{number} {status}");
        assert_eq!((outcome.runs, outcome.refused), (0, 0));
        let outcome = board.send_all(&mut farm);
        assert_eq!((outcome.runs, outcome.refused), (1, 0), "{number} {status}");
    }
}

/// Makes a gateway under maintenance answer the request of this number.
fn gateway(number: u64, status: u16) -> Option<Box<dyn FnMut(u64) -> Trouble>> {
    Some(Box::new(move |n| if n == number { Trouble::Gateway(status) } else { Trouble::None }))
}

fn is_no_farm(end: &Result<(), RoundEnd>) -> bool {
    let Err(RoundEnd::Fault(LinkFault::Later { detail, .. })) = end else { return false };
    detail.contains("is not onbeat-farm")
}

#[test]
fn what_a_gateway_answers_acknowledges_nothing() {
    let recorded = || {
        let mut board = Board::new();
        board.record(10, DEFAULT_SIZE);
        board.add_run("measured");
        board
    };
    let mut whole = FakeFarm::default();
    recorded().send_all(&mut whole);
    // Requests: environment, rows, what the farm has, manifest, pieces, manifest again.
    assert!(whole.requests > 8, "{}", whole.requests);
    for (number, status) in (1..=whole.requests).flat_map(|number| [200, 201, 202].map(|of| (number, of))) {
        let (board, mut farm) = (recorded(), FakeFarm::default());
        farm.trouble = gateway(number, status);
        let (outcome, end) = board.round(&mut farm, &|| PushAllowance::All);
        assert!(is_no_farm(&end), "{number} {status} {end:?}");
        assert_eq!((outcome.runs, outcome.refused, outcome.lost), (0, 0, 0), "{number} {status}");
        board.send_all(&mut farm);
        let there = |farm: &FakeFarm| (farm.rows.len(), farm.runs.len(), farm.environments.len());
        assert_eq!(there(&farm), there(&whole), "{number} {status}");
    }
}

#[test]
fn what_a_gateway_says_that_the_farm_has_is_no_reason_to_forget_anything() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.record(10, DEFAULT_SIZE);
    board.add_run("measured");
    let text = fs::read_to_string(board.add_run("hunt").join("run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&text).unwrap();
    farm.removed.insert(run["id"].as_str().unwrap().to_owned());
    assert_eq!(board.send_all(&mut farm).refused, 1);
    board.change_log(|log| log.removed_asked_s = 0);
    let folder = PushFolder(board.place.path().join("push"));
    let noted = || SentLog::read(&folder, "farm", "board");
    let before = noted();
    assert!(!before.rows.is_empty() && before.runs.len() == 2 && before.removed.len() == 1);
    for status in [200, 201] {
        for comparison in [FarmComparison::Due, compared()] {
            board.comparison = comparison;
            farm.trouble = gateway(farm.requests + 1, status);
            let (_, end) = board.round(&mut farm, &|| PushAllowance::All);
            assert!(is_no_farm(&end), "{status} {end:?}");
            assert_eq!(noted(), before, "{status}");
        }
    }
}

#[test]
fn a_run_is_sent_in_pieces_and_once() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    let place = board.add_run("measured");
    let other = board.add_run("hunt");
    // A run in progress is sent when it ends, or when its program does.
    let text = fs::read_to_string(other.join("run.json")).unwrap();
    let (whole, on) = ("\"complete\":true", "\"complete\":false");
    assert_eq!(text.matches(whole).count(), 1);
    fs::write(other.join("run.json"), text.replace(whole, on)).unwrap();
    board.measuring = true;
    assert_eq!(board.send_all(&mut farm).runs, 1);
    board.measuring = false;
    assert_eq!(board.send_all(&mut farm).runs, 1);
    fs::write(other.join("new"), text).unwrap();
    fs::rename(other.join("new"), other.join("run.json")).unwrap();
    farm.runs.clear();
    fs::remove_file(board.place.path().join("push/sent.json")).unwrap();
    assert_eq!(board.send_all(&mut farm).runs, 2);
    let requests = farm.requests;
    assert_eq!((board.send_all(&mut farm).runs, farm.requests), (0, requests));
    // The farm is asked what it has, and nothing is sent again.
    fs::remove_file(board.place.path().join("push/sent.json")).unwrap();
    assert_eq!((board.send_all(&mut farm).runs, farm.requests), (0, requests + 1));
    // An invalid run delays nothing else.
    fs::write(place.join("new"), "no JSON").unwrap();
    fs::rename(place.join("new"), place.join("run.json")).unwrap();
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.refused, outcome.remarks.len()), (1, 1));
    assert_eq!((board.send_all(&mut farm).refused, farm.left_out), (0, 1));
    fs::remove_dir_all(place).unwrap();
    board.send_all(&mut farm);
    let text = fs::read_to_string(board.place.path().join("push/sent.json")).unwrap();
    assert!(text.contains("runs/hunt"), "{text}");
}

/// A file system may give a new document the inode number of an earlier one.
#[test]
fn a_run_is_sent_again_when_its_document_changed_and_is_the_same_file_by_number() {
    let (board, mut farm) = (Board::new(), FakeFarm::default());
    let document = board.add_run("measured").join("run.json");
    let whole = fs::read_to_string(&document).unwrap();
    fs::write(&document, whole.replace("\"complete\":true", "\"complete\":false")).unwrap();
    let before = host::file_version(&document).unwrap();
    assert_eq!((board.send_all(&mut farm).runs, board.send_all(&mut farm).runs), (1, 0));
    // File times have the granularity of the kernel's tick.
    while host::file_version(&document) == Some(before) {
        fs::write(&document, &whole).unwrap();
    }
    assert_eq!(host::file_version(&document).map(|version| version.0), Some(before.0));
    assert_eq!((board.send_all(&mut farm).runs, board.send_all(&mut farm).runs), (1, 0));
    let digest = model::text::hex(&Sha256::digest(&whole));
    assert_eq!(farm.runs.values().next().unwrap().run_digest(), Some(digest.as_str()));
}

/// Puts a run into the state that a kill leaves, at its last checkpoint; returns its old document.
fn killed(place: &Path) -> String {
    let document = place.join("run.json");
    let whole = fs::read_to_string(&document).unwrap();
    fs::write(&document, whole.replace("\"complete\":true", "\"complete\":false")).unwrap();
    whole
}

/// Replaces the data after the checkpoint. File times have the granularity of the kernel's tick.
fn grow(place: &Path, bytes: &str) {
    let before = crate::sent::last_change(place);
    while crate::sent::last_change(place) == before {
        fs::write(place.join("tail"), bytes).unwrap();
    }
}

/// The last seconds are in other files than the document, which is that of the last checkpoint.
#[test]
fn the_last_seconds_of_a_run_that_was_killed_are_sent_wherever_the_document_is_known() {
    let (board, mut farm) = (Board::new(), FakeFarm::default());
    let place = board.add_run("measured");
    let whole = killed(&place);
    for (bytes, is_noted) in [("one", true), ("two more", true), ("and three", false), ("four", true)] {
        grow(&place, bytes);
        if !is_noted {
            fs::remove_file(board.place.path().join("push/sent.json")).unwrap();
        }
        let runs = (board.send_all(&mut farm).runs, board.send_all(&mut farm).runs);
        assert_eq!(runs, (1, 0), "{bytes}");
        let mut files = farm.runs.values().flat_map(|manifest| &manifest.files);
        assert!(files.any(|file| file.path == "tail" && file.bytes == bytes.len() as u64), "{bytes}");
    }
    // Of a finished run only the document is compared.
    fs::write(place.join("run.json"), &whole).unwrap();
    assert_eq!(board.send_all(&mut farm).runs, 1);
    let requests = farm.requests;
    grow(&place, "five");
    assert_eq!((board.send_all(&mut farm).runs, farm.requests), (0, requests));
}

#[test]
fn a_farm_that_lost_the_last_seconds_of_a_run_that_was_killed_gets_them_again() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    let place = board.add_run("measured");
    killed(&place);
    assert_eq!(board.send_all(&mut farm).runs, 1);
    let earlier = farm.runs.clone();
    grow(&place, "more");
    assert_eq!(board.send_all(&mut farm).runs, 1);
    let latest = farm.runs.clone();
    assert_ne!(earlier, latest);
    board.comparison = FarmComparison::Due;
    for (says_manifests, runs) in [(false, 0), (true, 1), (true, 0)] {
        if runs > 0 {
            // The farm is restored from a backup.
            farm.runs.clone_from(&earlier);
        }
        farm.says_manifests = says_manifests;
        let outcome = board.send_all(&mut farm);
        assert_eq!((outcome.runs, outcome.remarks.len()), (runs, runs as usize), "{outcome:?}");
        assert_eq!(farm.runs, latest);
    }
}

#[test]
fn the_phases_of_suites_are_sent_and_no_link_is_followed() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.sources.runs.push(board.place.path().join("suites"));
    let phase = board.add_run_as("measured", "suites/enea-20260302/phases/none-cpu");
    board.add_run_as("hunt", "suites/enea-20260302/none-none");
    board.add_run_as("hunt", "suites/x/y/z/too-deep");
    board.add_run_as("hunt", "elsewhere/linked");
    let at = |name: &str| board.place.path().join(name);
    std::os::unix::fs::symlink(at("elsewhere"), at("runs/link")).unwrap();
    std::os::unix::fs::symlink("enea-20260302", at("suites/link")).unwrap();
    assert_eq!(board.send_all(&mut farm).runs, 2);
    let known = || fs::read_to_string(at("push/sent.json")).unwrap();
    assert!(known().contains("none-cpu") && known().contains("none-none"), "{}", known());
    assert!(!known().contains("/link") && !known().contains("too-deep"), "{}", known());
    let requests = farm.requests;
    assert_eq!((board.send_all(&mut farm).runs, farm.requests), (0, requests));
    // A run that was removed is forgotten.
    fs::remove_dir_all(phase).unwrap();
    let itself = board.add_run_as("measured", "suites/enea-20260302/again");
    board.send_all(&mut farm);
    assert!(!known().contains("none-cpu") && known().contains("again"), "{}", known());
    // A run that is named by itself is the one in its folder.
    assert_eq!(crate::runs::found_runs::found(&itself).places, std::slice::from_ref(&itself));
}

#[test]
fn what_is_called_like_an_address_is_sent_by_its_name() {
    let (board, mut farm) = (Board::new(), FakeFarm::default());
    let place = board.add_run_as("measured", "runs/enx001122aabbcc/0ffff0123456789abcd");
    let named = "host/net/wlx001122aabbcc";
    fs::create_dir_all(place.join("host/net")).unwrap();
    fs::write(place.join(named), "1500").unwrap();
    assert_eq!(board.send_all(&mut farm).runs, 1);
    let mut files = farm.runs.values().flat_map(|manifest| &manifest.files);
    assert!(files.any(|file| file.path == named));
}

#[test]
fn what_the_farm_lost_is_sent_again_and_nothing_else() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.comparison = FarmComparison::Due;
    board.record(24, DEFAULT_SIZE);
    board.add_run("measured");
    board.add_run("hunt");
    farm.malformed = [3].into();
    // The log is empty: the first run alone causes a request for what the farm has.
    board.send_all(&mut farm);
    assert_eq!((farm.asked, farm.rows.len(), farm.runs.len()), (1, 23 * SERIES, 2));
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome, farm.asked), (RoundOutcome::default(), 2));
    // Restored to an earlier state: the last rows, one in the middle and a run are missing.
    let is_there = |key: &(String, u64)| key.1 < 20 && key.1 != 7;
    farm.rows.retain(|key, _| is_there(key));
    farm.runs.pop_first();
    let known = std::mem::take(&mut farm.environments);
    let lost = (23 * SERIES - farm.rows.len()) as u64;
    board.comparison = compared();
    assert_eq!(board.send_all(&mut farm), RoundOutcome::default());
    board.comparison = FarmComparison::Due;
    farm.had = 0;
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.rows, outcome.runs, outcome.refused, outcome.lost), (lost, 1, 0, 0), "{outcome:?}");
    assert_eq!((farm.rows.len(), farm.runs.len(), farm.had), (23 * SERIES, 2, 0));
    assert!(!known.is_empty() && farm.environments == known, "what rows name is there again");
    assert_eq!(outcome.remarks.len(), 2, "{:?}", outcome.remarks);
    let text = fs::read_to_string(board.place.path().join("push/sent.json")).unwrap();
    let noted: serde_json::Value = serde_json::from_str(&text).unwrap();
    // The document of the run that the farm kept is not read again.
    assert_eq!(noted["documents"].as_object().unwrap().len(), 1, "{text}");
    // During a measurement rows are compared; runs are compared after it.
    farm.rows.clear();
    farm.runs.clear();
    let (outcome, end) = board.round(&mut farm, &|| PushAllowance::Rows);
    assert!(
        matches!(end, Err(RoundEnd::Quiet)) && outcome.rows == 23 * SERIES as u64 && farm.runs.is_empty()
    );
    assert_eq!(board.send_all(&mut farm).runs, 2);
    // A partial list says nothing about the rest.
    farm.runs.clear();
    farm.is_cut = true;
    let outcome = board.send_all(&mut farm);
    assert_eq!(outcome.runs, 0);
    assert!(outcome.remarks[0].contains("update onbeat-farm"), "{outcome:?}");
}

#[test]
fn what_the_farm_lost_is_found_in_however_many_answers_it_names_the_rest() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.record(24, DEFAULT_SIZE);
    board.add_run("measured");
    board.add_run("hunt");
    board.send_all(&mut farm);
    board.comparison = FarmComparison::Due;
    for most in [1, 7, 24 * SERIES] {
        farm.most_named = Some(most);
        let requests = farm.requests;
        assert_eq!(board.send_all(&mut farm), RoundOutcome::default());
        assert_eq!(farm.requests - requests, (24 * SERIES / most + 1) as u64, "{most}");
        farm.rows.retain(|key, _| key.1 != 11);
        farm.runs.pop_last();
        let outcome = board.send_all(&mut farm);
        assert_eq!((outcome.rows, outcome.runs), (SERIES as u64, 1), "{outcome:?}");
        assert_eq!((farm.rows.len(), farm.runs.len()), (24 * SERIES, 2));
    }
}

#[test]
fn a_run_that_was_removed_is_sent_again_once_it_may_come() {
    let (board, mut farm) = (Board::new(), FakeFarm::default());
    board.add_run("hunt");
    let text = fs::read_to_string(board.add_run("measured").join("run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&text).unwrap();
    farm.removed.insert(run["id"].as_str().unwrap().to_owned());
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.runs, outcome.refused), (1, 1), "{outcome:?}");
    // The farm is asked once a day, by a request that sends nothing.
    let requests = farm.requests;
    for (earlier_s, asked) in [(0, 0), (86_000, 0), (400, 1), (0, 1), (86_400, 2)] {
        board.change_log(|log| log.removed_asked_s -= earlier_s);
        assert_eq!(board.send_all(&mut farm), RoundOutcome::default());
        assert_eq!(farm.requests - requests, asked, "{earlier_s}");
    }
    board.change_log(|log| log.removed_asked_s = 0);
    assert!(board.round(&mut farm, &|| PushAllowance::Rows).1.is_ok());
    assert_eq!((farm.requests - requests, farm.left_out), (2, 1), "while something measures it waits");
    farm.removed.clear();
    let outcome = board.send_all(&mut farm);
    assert_eq!((outcome.runs, outcome.refused, farm.runs.len()), (1, 0, 2), "{outcome:?}");
    assert!(outcome.remarks.iter().any(|remark| remark.contains("is allowed again")), "{outcome:?}");
    let requests = farm.requests;
    board.change_log(|log| log.removed_asked_s = 0);
    assert_eq!(board.send_all(&mut farm), RoundOutcome::default());
    assert_eq!((farm.requests, farm.left_out), (requests, 0));
}

#[test]
fn of_many_removed_runs_the_newest_are_asked_about() {
    let (board, mut farm) = (Board::new(), FakeFarm::default());
    farm.removed = (1..599).map(|number| format!("r{number:03}")).collect();
    board.change_log(|log| {
        for number in 0..600 {
            let (key, id) = (format!("/elsewhere/r{number:03}"), format!("r{number:03}"));
            log.refused.insert(key.clone());
            log.removed.insert(key, id);
        }
    });
    let outcome = board.send_all(&mut farm);
    assert_eq!(outcome.remarks, ["/elsewhere/r599 was removed from the farm and is allowed again"]);
    assert_eq!(farm.requests, 16);
    board.change_log(|log| assert_eq!((log.removed.len(), log.refused.len()), (599, 599)));
}

#[test]
fn while_something_measures_nothing_is_asked() {
    let (mut board, mut farm) = (Board::new(), FakeFarm::default());
    board.record(30, DEFAULT_SIZE);
    board.add_run("measured");
    let (_, end) = board.round(&mut farm, &|| PushAllowance::Nothing);
    assert!(matches!(end, Err(RoundEnd::Quiet)) && farm.requests == 0);
    // A measurement starts in the middle of a round.
    let left = Cell::new(2);
    let allowed = || {
        left.set(left.get() - 1);
        if left.get() < 0 { PushAllowance::Nothing } else { PushAllowance::All }
    };
    let (_, end) = board.round(&mut farm, &allowed);
    assert!(matches!(end, Err(RoundEnd::Quiet)) && farm.requests == 2);
    let (_, end) = board.round(&mut farm, &|| PushAllowance::Rows);
    assert!(matches!(end, Err(RoundEnd::Quiet)) && farm.rows.len() == 90 && farm.runs.is_empty());
    assert_eq!(board.send_all(&mut farm).runs, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Requests, answers and the log get lost, and in the end each row and run is there once.
    #[test]
    fn a_bad_network_loses_and_doubles_nothing(
        trouble in prop::collection::vec(0u8..3, 1..40), forget in prop::collection::vec(any::<bool>(), 1..6),
        intervals in 1u64..40,
    ) {
        let (mut board, mut farm) = (Board::new(), FakeFarm::default());
        board.record(intervals, DEFAULT_SIZE);
        board.add_run("measured");
        farm.trouble = Some(Box::new(move |n| match trouble.get(n as usize) {
            Some(1) => Trouble::Lost,
            Some(2) => Trouble::Unanswered,
            _ => Trouble::None,
        }));
        for round in 0..60 {
            let (_, end) = board.round(&mut farm, &|| PushAllowance::All);
            if end.is_ok() {
                break;
            }
            prop_assert!(round < 59, "it comes to no end");
            if forget.get(round) == Some(&true) {
                let _ = fs::remove_file(board.place.path().join("push/sent.json"));
            }
        }
        prop_assert_eq!(farm.rows.len() as u64, intervals * SERIES as u64);
        prop_assert_eq!(farm.order.len(), farm.rows.len());
        prop_assert_eq!(farm.runs.len(), 1);
    }
}
