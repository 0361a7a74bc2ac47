//! Limit on the size of the runs on the board: those that the farm has are removed first, the
//! oldest first, then the oldest unsent ones, which are counted and reported.
//!
//! The record of `onbeat watch` has a separate limit, and is not touched.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use bundle::parts::BundleParts;
use host::MachineFiles;
use host::dir::Dir;
use model::text::{quoted, several};

use super::session::PushRound;

/// Limit of names in a remark.
const MOST_NAMED: usize = 5;

/// Run on the board.
struct LyingRun {
    place: PathBuf,
    name: String,
    bytes: u64,
    is_sent: bool,
}

/// Removes runs until those in the folders take at most `most` bytes; keeps the newest of all.
/// Removes nothing during a measurement.
pub fn hold(round: &mut PushRound<'_>, folders: &[PathBuf], most: u64) {
    if (round.measuring)() {
        return;
    }
    let mut unsent = finish(round);
    let mut runs: Vec<LyingRun> = folders.iter().flat_map(|folder| lying(round, folder)).collect();
    let mut all = runs.iter().fold(0u64, |sum, run| sum.saturating_add(run.bytes));
    // Their names begin with their time.
    runs.sort_by(|a, b| a.name.cmp(&b.name));
    runs.pop();
    let (sent, waiting): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.is_sent);
    for run in sent.into_iter().chain(waiting) {
        if all <= most {
            break;
        }
        let key = run.place.to_string_lossy().into_owned();
        round.log.removing.insert(key.clone(), run.is_sent);
        // A full disk keeps the log from being written, and needs the removal most.
        let _ = round.keep();
        let is_gone = remove(&run.place);
        round.log.removing.remove(&key);
        if !is_gone {
            let place = quoted(&run.place);
            round.remark(format!("{place} cannot be removed to keep within --spool: run this as its owner"));
            continue;
        }
        all = all.saturating_sub(run.bytes);
        if !run.is_sent {
            unsent.push(run.name);
        }
    }
    tell(round, unsent);
}

/// Finishes removals that were interrupted; returns the names of the runs that the farm does not
/// have.
fn finish(round: &mut PushRound<'_>) -> Vec<String> {
    let mut unsent = Vec::new();
    for (key, is_sent) in std::mem::take(&mut round.log.removing) {
        let place = PathBuf::from(key);
        // The removal did not begin: the run is whole.
        if host::identity(&place.join("run.json")).is_some() {
            continue;
        }
        remove(&place);
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        unsent.extend((!is_sent).then(|| name.into_owned()));
    }
    unsent
}

fn tell(round: &mut PushRound<'_>, mut unsent: Vec<String>) {
    let number = unsent.len() as u64;
    if number == 0 {
        return;
    }
    round.outcome.dropped = number;
    round.log.dropped_runs = round.log.dropped_runs.saturating_add(number);
    unsent.truncate(MOST_NAMED);
    let more = if number > MOST_NAMED as u64 { ", .." } else { "" };
    let (runs, names) = (several(number, "run was", "runs were"), unsent.join(", "));
    round.remark(format!("{runs} removed before they could be sent, to keep within --spool: {names}{more}"));
}

/// Runs of a folder, each with a `run.json`. Phases of suites lie deeper and stay: the suite's
/// table refers to them.
fn lying(round: &PushRound<'_>, folder: &Path) -> Vec<LyingRun> {
    let names = MachineFiles::folder(folder).list_as_it_is("/.").known().cloned().unwrap_or_default();
    let run = |name: String| {
        let place = folder.join(&name);
        let (inode, changed) = host::file_version(&place.join("run.json"))?;
        let key = place.to_string_lossy().into_owned();
        let is_sent = round.log.has_run(&key, &place, inode, changed) && !round.log.refused.contains(&key);
        let parts = BundleParts::of(&MachineFiles::folder(&place));
        let bytes = parts.found.iter().fold(0u64, |sum, part| sum.saturating_add(part.bytes));
        Some(LyingRun { place, name, bytes, is_sent })
    };
    names.into_iter().filter_map(run).collect()
}

/// Removes a run, its `run.json` first: what an interruption leaves is not a run. Follows no link,
/// and keeps files that are not the run's.
fn remove(place: &Path) -> bool {
    let (Some(folder), Some(name)) = (place.parent(), place.file_name().and_then(OsStr::to_str)) else {
        return false;
    };
    let folder = host::whole_path(folder).and_then(|folder| Dir::existing(&folder));
    let Ok(folder) = folder else { return false };
    let Ok(inner) = folder.existing_subdir(name) else { return false };
    let parts = BundleParts::of(&MachineFiles::folder(place));
    // A run that cannot be read whole is never sent, and is not removed in part either.
    if parts.unread.is_some() {
        return false;
    }
    inner.remove("run.json");
    if host::identity(&place.join("run.json")).is_some() {
        return false;
    }
    for part in parts.found.iter().rev() {
        if part.is_folder { inner.remove_dir(&part.path) } else { inner.remove(&part.path) }
    }
    folder.remove_dir(name);
    true
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::enrolment::PushFolder;
    use crate::round::fake_farm::{FakeFarm, Trouble};
    use crate::round::{PushSources, run_round};
    use crate::sent::SentLog;
    use crate::session::{FarmComparison, PushAllowance, RoundOutcome};
    use crate::stop::StopFlag;
    use std::collections::BTreeMap;
    use std::fs;

    const KIB: u64 = 1 << 10;

    struct Board(tempfile::TempDir);

    impl Board {
        fn new() -> Board {
            let place = tempfile::tempdir().unwrap();
            fs::create_dir(place.path().join("push")).unwrap();
            fs::create_dir(place.path().join("runs")).unwrap();
            Board(place)
        }

        /// Adds a run of about this many bytes.
        fn add(&self, name: &str, bytes: u64) {
            let place = self.0.path().join("runs").join(name);
            fs::create_dir_all(place.join("host/proc")).unwrap();
            fs::write(place.join("run.json"), format!("{{\"id\":\"{name}\",\"complete\":true}}")).unwrap();
            fs::write(place.join("host/proc/x"), vec![7; bytes as usize]).unwrap();
        }

        fn there(&self) -> Vec<String> {
            let names = fs::read_dir(self.0.path().join("runs")).unwrap();
            let mut names: Vec<_> =
                names.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        fn round(&self, farm: &mut FakeFarm, most: u64, measuring: bool) -> RoundOutcome {
            let folder = PushFolder(self.0.path().join("push"));
            let sources = PushSources { runs: vec![self.0.path().join("runs")], records: Vec::new() };
            let mut round = PushRound {
                link: farm,
                log: SentLog::read(&folder, "farm", "board"),
                folder: &folder,
                allowed: &|| PushAllowance::All,
                stop: StopFlag::default(),
                measuring: &|| measuring,
                passed_over: BTreeMap::new(),
                known: Some(BTreeMap::new()),
                comparison: FarmComparison::Done(host::clock::monotonic()),
                outcome: RoundOutcome::default(),
            };
            let _ = run_round(&mut round, &sources);
            hold(&mut round, &sources.runs, most);
            round.log.write(&folder).unwrap();
            round.outcome
        }
    }

    #[test]
    fn what_the_farm_has_goes_first_and_what_waits_is_told() {
        let (board, mut farm) = (Board::new(), FakeFarm::default());
        for name in ["r1", "r2", "r3"] {
            board.add(name, 10 * KIB);
        }
        assert_eq!(board.round(&mut farm, 100 * KIB, false).runs, 3);
        assert_eq!(board.there(), ["r1", "r2", "r3"]);
        // The farm is unreachable; the oldest of the runs that it has is removed.
        farm.trouble = Some(Box::new(|_| Trouble::Lost));
        board.add("r4", 10 * KIB);
        let outcome = board.round(&mut farm, 35 * KIB, false);
        assert_eq!((board.there(), outcome.dropped), (vec!["r2".into(), "r3".into(), "r4".into()], 0));
        for name in ["r5", "r6", "r7"] {
            board.add(name, 10 * KIB);
        }
        // Nothing is removed during a measurement.
        assert_eq!(board.round(&mut farm, 25 * KIB, true).dropped, 0);
        assert_eq!(board.there().len(), 6);
        let outcome = board.round(&mut farm, 25 * KIB, false);
        assert_eq!((board.there(), outcome.dropped), (vec!["r6".into(), "r7".into()], 2));
        assert!(
            outcome
                .remarks
                .iter()
                .any(|remark| remark.contains("2 runs were removed") && remark.contains("r4, r5"))
        );
        // The newest stays regardless of its size, and the farm gets the count.
        board.add("r8", 90 * KIB);
        assert_eq!(board.round(&mut farm, 25 * KIB, false).dropped, 2);
        assert_eq!(board.there(), ["r8"]);
        farm.trouble = None;
        assert_eq!(board.round(&mut farm, 25 * KIB, false).runs, 1);
        assert_eq!((farm.dropped, farm.runs.len()), ((4, 0), 4));
    }

    #[test]
    fn a_removal_that_was_cut_short_is_finished_and_told_once() {
        let (board, mut farm) = (Board::new(), FakeFarm::default());
        ["r1", "r2", "r3"].iter().for_each(|name| board.add(name, KIB));
        farm.trouble = Some(Box::new(|_| Trouble::Lost));
        board.round(&mut farm, 100 * KIB, false);
        // As a kill leaves it: one run has lost its document, another is still whole.
        let folder = PushFolder(board.0.path().join("push"));
        let mut log = SentLog::read(&folder, "farm", "board");
        let runs = board.0.path().join("runs");
        let key = |name: &str| runs.join(name).to_string_lossy().into_owned();
        log.removing = [(key("r1"), false), (key("r2"), true)].into();
        log.write(&folder).unwrap();
        fs::remove_file(runs.join("r1/run.json")).unwrap();
        fs::create_dir_all(runs.join("r0/host")).unwrap();
        let outcome = board.round(&mut farm, 100 * KIB, false);
        assert_eq!((board.there(), outcome.dropped), (vec!["r0".into(), "r2".into(), "r3".into()], 1));
        assert!(outcome.remarks.iter().any(|remark| remark.ends_with(": r1")), "{:?}", outcome.remarks);
        assert_eq!(board.round(&mut farm, 100 * KIB, false).dropped, 0);
        assert_eq!(SentLog::read(&folder, "farm", "board").dropped_runs, 1);
    }

    #[test]
    fn what_is_no_run_or_of_no_run_stays_and_no_link_is_followed() {
        let (board, mut farm) = (Board::new(), FakeFarm::default());
        for name in ["r1", "r2"] {
            board.add(name, 10 * KIB);
        }
        let runs = board.0.path().join("runs");
        fs::write(runs.join("r1/report.html"), "mine").unwrap();
        fs::create_dir(runs.join("r0")).unwrap();
        fs::write(runs.join("r0/notes"), "mine").unwrap();
        let outside = board.0.path().join("outside");
        fs::create_dir_all(outside.join("proc")).unwrap();
        fs::write(outside.join("run.json"), "{}").unwrap();
        fs::write(outside.join("proc/x"), "mine").unwrap();
        std::os::unix::fs::symlink(&outside, runs.join("a-link")).unwrap();
        std::os::unix::fs::symlink(&outside, runs.join("r1/events")).unwrap();
        farm.trouble = Some(Box::new(|_| Trouble::Lost));
        let outcome = board.round(&mut farm, 1, false);
        assert_eq!(board.there(), ["a-link", "r0", "r1", "r2"]);
        assert!(runs.join("r1/report.html").exists() && !runs.join("r1/run.json").exists());
        assert!(!runs.join("r1/host").exists() && runs.join("r2/run.json").exists());
        assert!(outside.join("run.json").exists() && outside.join("proc/x").exists());
        assert!(outcome.remarks.iter().any(|remark| remark.contains("a-link cannot be removed")));
    }

    #[test]
    fn a_run_that_cannot_be_sent_whole_is_not_removed_as_one_that_was() {
        let (board, mut farm) = (Board::new(), FakeFarm::default());
        ["r1", "r2"].iter().for_each(|name| board.add(name, KIB));
        let runs = board.0.path().join("runs");
        std::os::unix::fs::symlink("/etc", runs.join("r1/events")).unwrap();
        let outcome = board.round(&mut farm, 100 * KIB, false);
        assert_eq!((outcome.runs, farm.runs.len(), outcome.left), (1, 1, true));
        assert!(outcome.remarks.iter().any(|remark| remark.contains("r1 is not sent: its events")));
        // Another is removed first, and this one is reported as never sent.
        board.add("r3", KIB);
        assert_eq!(board.round(&mut farm, 2 * KIB + 200, false).dropped, 0);
        assert_eq!(board.there(), ["r1", "r3"]);
        let outcome = board.round(&mut farm, 1, false);
        assert!(outcome.dropped == 1 && outcome.remarks.iter().any(|remark| remark.ends_with(": r1")));
    }

    #[test]
    fn a_run_goes_whole_whatever_it_and_its_files_are_called() {
        let (board, mut farm) = (Board::new(), FakeFarm::default());
        board.add("enx001122aabbcc", 10 * KIB);
        let files = board.0.path().join("runs/enx001122aabbcc/host/proc");
        fs::write(files.join("0ffff0123456789abcd"), "x").unwrap();
        board.add("r2", KIB);
        let outcome = board.round(&mut farm, 5 * KIB, false);
        assert_eq!((outcome.runs, outcome.dropped, board.there()), (2, 0, vec!["r2".to_owned()]));
    }

    #[test]
    fn what_the_farm_refused_is_not_taken_for_sent() {
        let (board, mut farm) = (Board::new(), FakeFarm::default());
        board.add("r1", KIB);
        let document = board.0.path().join("runs/r1/run.json");
        fs::write(&document, "no JSON").unwrap();
        board.add("r2", KIB);
        assert_eq!(board.round(&mut farm, 100 * KIB, false).refused, 1);
        assert_eq!(board.round(&mut farm, 1, false).dropped, 1);
    }
}
