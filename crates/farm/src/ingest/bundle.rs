//! Conversion of a bundle to the records of the farm.
//!
//! Bundles are untrusted: a panic of a parser must not end the server, so it is caught by
//! `catch_unwind`, and the bundle is refused.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bundle::five_minutes::FIVE_MINUTES;
use bundle::manifest::RUN_LIMIT;
use bundle::read::{Bundle, host_files, parse_run};
use host::MachineFiles;
use model::histogram::bucket_of;
use model::rows::RowCounts;
use model::run::{CpuRun, Culprit, Run};
use model::text::{excerpt, several};
use model::units::Nanos;
use model::vocabulary::{Expiry, SchedulePhase, WakeMechanism};
use model::wall_time::nanos_of;
use sha2::{Digest, Sha256};
use study::explain::bring_up_to_date;

use super::board_key::{board_of, plain_key};
use super::environment::{ReadEnvironment, environment, hex};
use super::find::FoundBundle;
use super::fingerprint::{fingerprint_of, plain_name};
use super::plausible;
use super::run_rows::RunRows;
use super::seconds::{SlotsRead, stored_cpu};
use super::slots::offset;
use super::stored::{WINDOWS, stored_file};
use crate::records::{BundleRecord, CpuRows, CulpritOfRun, FarmRun, FarmSlot, SeriesKey, TierRow};
use crate::wall_clock::now;

/// Names of culprits that a run may have.
const MOST_CULPRITS: usize = 200;
/// Largest trace, in bytes, that is read for the culprits of a hunt that was killed, or is running:
/// a second or two.
const MOST_TRACED: u64 = 64 << 20;
/// Consequence for a run with an implausible file, and a remedy.
const FOR_THE_DAY: &str = "its histogram counts for the day on which it began";
const WHOLE_COPY: &str = "if there is a complete copy of the bundle, import that one";

/// Converts a bundle, with remarks on what it lacks; the error is one line.
pub fn read(found: &FoundBundle) -> Result<(BundleRecord, Vec<String>), String> {
    match catch_unwind(AssertUnwindSafe(|| read_unguarded(found))) {
        Ok(outcome) => outcome,
        Err(_) => Err("its parser failed: report this, with the bundle".to_owned()),
    }
}

fn read_unguarded(found: &FoundBundle) -> Result<(BundleRecord, Vec<String>), String> {
    let files = MachineFiles::folder(&found.place);
    for name in ["run.json", "blocks.jsonl", FIVE_MINUTES, "tail"] {
        if files.link(&format!("/{name}")).known().is_some() {
            return Err(format!("its {name} is a link, which is not followed: put the file itself there"));
        }
    }
    let document = host::read_user_file(&found.place.join("run.json"), RUN_LIMIT)
        .map_err(|error| format!("its run.json cannot be read ({error})"))?;
    // Separately first, so that a fault is reported without its place.
    parse_run(&document).map_err(|what| format!("invalid run.json: {what}"))?;
    let mut bundle = Bundle::open(&found.place).map_err(|failure| failure.message)?;
    if !is_id(&bundle.run.id) {
        return Err(
            "invalid id of the run: expected at most 128 letters, digits, '.', '_' and '-'".to_owned()
        );
    }
    find_culprits(&found.place, &mut bundle)?;
    let clock = now();
    plausible::run(&bundle.run, clock)?;
    let run_rows = RunRows::of(&bundle)?;
    let whole = whole(&bundle.run);
    let mut read = SlotsRead::of(&bundle, Some(&run_rows))?;
    let mut rows = Vec::new();
    if let Some(why) = read.fault(&bundle.run) {
        read.slots.clear();
        bundle.remarks.push(format!("{why}: {FOR_THE_DAY}; {WHOLE_COPY}"));
    } else if !run_rows.is_empty() {
        match rows_of(&bundle, &run_rows, &read.slots, &whole) {
            Ok(found) => rows = found,
            Err(why) => {
                // Implausible rows do not define the places of the maxima, either.
                read = SlotsRead::of(&bundle, None)?;
                bundle.remarks.push(why);
            }
        }
    }
    read.remarks(&bundle.run, &mut bundle.remarks);
    let slots = read.slots;
    if let (_, left_out @ 1..) = bundle.run.labels.fit() {
        let labels = several(left_out as u64, "label", "labels");
        bundle.remarks.push(format!("{labels} omitted: too many, or not valid"));
    }
    plausible::slots(&slots, clock)?;
    let run = &bundle.run;
    let ReadEnvironment { record: environment, left_out } = environment(run, &host_files(&found.place));
    bundle.remarks.extend(left_out.map(|why| format!("settings dropped: {why}")));
    let (board, board_name) = board_of(found.board.as_deref().unwrap_or(&run.host.model));
    let record = BundleRecord {
        run: farm_run(run, board, &environment.digest, &found.place),
        board_name,
        plan_words: plan_words(run),
        environment,
        slots,
        whole,
        rows,
        culprits: run.culprits.iter().take(MOST_CULPRITS).map(culprit).collect(),
        digest: Sha256::digest(&document).to_vec(),
    };
    Ok((record, bundle.remarks))
}

/// Finds the culprits of a hunt that was killed, as its report does: its document has those of its
/// last checkpoint at best.
fn find_culprits(place: &Path, bundle: &mut Bundle) -> Result<(), String> {
    let traced = stored_file(place, WINDOWS).map_or(0, |file| file.bytes);
    if !bundle.run.complete && traced > MOST_TRACED {
        bundle.remarks.push(format!(
            "its culprits are those of its last checkpoint: the traces around its spikes exceed {} MiB",
            MOST_TRACED >> 20
        ));
        return Ok(());
    }
    let unread = bring_up_to_date(place, bundle).map_err(|failure| failure.message)?;
    if unread > 0 {
        let windows = several(unread, "window", "windows");
        bundle.remarks.push(format!("{windows} of its events could not be read and are not in its culprits"));
    }
    Ok(())
}

/// The histograms of its five minutes, or the reason that they are not used, in a line.
fn rows_of(
    bundle: &Bundle,
    of: &RunRows,
    slots: &[FarmSlot],
    whole: &TierRow,
) -> Result<Vec<TierRow>, String> {
    if of.is_too_long {
        return Err(format!("its rows.jsonl needs too much memory: {FOR_THE_DAY}"));
    }
    let Some(offset) = offset(&bundle.run) else {
        return Err(format!("the run has no wall-clock time: {FOR_THE_DAY}"));
    };
    of.of_slots(offset, slots, whole, !bundle.run.complete)
        .ok_or_else(|| format!("its rows.jsonl does not match its other files: {FOR_THE_DAY}; {WHOLE_COPY}"))
}

/// True if it is valid in an address and as the name of a folder of bundles, in which `lock` is a
/// file of the server.
pub fn is_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=128).contains(&id.len()) && id.chars().all(plain) && !id.starts_with('.') && id != "lock"
}

/// Displayed values of a run.
pub fn farm_run(run: &Run, board: String, environment: &str, place: &Path) -> FarmRun {
    let sum = |of: fn(&CpuRun) -> Option<u64>| {
        run.cpus
            .iter()
            .filter_map(of)
            .fold(None, |sum: Option<u64>, n| Some(sum.unwrap_or(0).saturating_add(n)))
    };
    FarmRun {
        id: run.id.clone(),
        board,
        command: run.command.as_str().to_owned(),
        key: series_key(run),
        started: nanos_of(&run.started).map_or(0, |at| at.0 / Nanos::SECOND.0),
        length_ns: run.elapsed_ns,
        complete: run.complete,
        cpus: run.cpus.len() as u64,
        cycles: run.samples().unwrap_or_default(),
        missed: sum(|cpu| cpu.missed),
        max_ns: run.cpus.iter().filter_map(|cpu| cpu.max_ns).max(),
        p9999_ns: run.cpus.iter().filter_map(|cpu| cpu.p9999_ns).max(),
        invalid: run.integrity.iter().filter(|entry| entry.invalidates).count() as u64,
        spikes: (run.spikes.len() as u64).saturating_add(run.spikes_dropped),
        release: excerpt(&run.host.release),
        environment: environment.to_owned(),
        labels: run.labels.fit().0,
        pinned: false,
        thinned: String::new(),
        place: place.to_string_lossy().into_owned(),
    }
}

/// Conditions that affect a latency: only histograms with equal ones are added up.
fn conditions(run: &Run) -> Vec<String> {
    let plan = &run.plan;
    let mut words = of_probe(run);
    words.push(
        plan.interval_ns
            .map_or_else(|| "interval unknown".to_owned(), |interval| format!("every {interval}")),
    );
    words.push(policy(run).unwrap_or_else(|| "unknown".to_owned()));
    words.extend(idle_and_loads(run));
    words
}

fn of_probe(run: &Run) -> Vec<String> {
    let plan = &run.plan;
    let words = (!plan.probe.is_empty()).then(|| format!("{} {}", plan.probe.as_str(), plan.kind));
    words.into_iter().collect()
}

fn policy(run: &Run) -> Option<String> {
    let policy = run.plan.policy.as_str();
    match run.plan.priority {
        Some(priority) if priority > 0 => {
            Some(format!("{} {priority}", if policy.is_empty() { "unknown" } else { policy }))
        }
        _ => (!policy.is_empty()).then(|| policy.to_owned()),
    }
}

fn idle_and_loads(run: &Run) -> Vec<String> {
    let idle = &run.plan.idle;
    let idle = (!idle.is_empty()).then(|| format!("idle states {}", idle.as_str()));
    idle.into_iter().chain(run.loads.iter().map(|load| format!("load {}", load.spec))).collect()
}

/// Way in which the threads sleep, unless it is a plan's default: it is part of a plan's number,
/// and the words distinguish two plans of a board.
fn sleep_words(run: &Run) -> Vec<String> {
    let plan = &run.plan;
    let said = |name: &str, word: &str, usual: &str| {
        (!word.is_empty() && word != usual).then(|| format!("{name} {word}"))
    };
    let words = [
        said("wake", plan.wake.as_str(), WakeMechanism::Nanosleep.name()),
        said("expiry", plan.expiry.as_str(), Expiry::HardIrq.name()),
        said("phase", plan.phase.as_str(), SchedulePhase::Staggered.name()),
    ];
    words.into_iter().flatten().collect()
}

fn plan_words(run: &Run) -> String {
    let mut words = of_probe(run);
    if run.follows() {
        // Their program determines the wake-ups, and its name may differ between runs.
        words.push("threads of a followed program".to_owned());
        words.extend(policy(run));
    } else {
        let interval = run.plan.interval_ns;
        words.push(interval.map_or_else(|| "interval unknown".to_owned(), |one| format!("every {one}")));
        words.push(policy(run).unwrap_or_else(|| "policy unknown".to_owned()));
        words.extend(sleep_words(run));
    }
    // Loads are last: a command extends to the end of the text.
    words.extend(idle_and_loads(run));
    excerpt(&words.join(", "))
}

fn series_key(run: &Run) -> SeriesKey {
    let command = run.command.as_str();
    let series = match run.plan.probe.as_str() {
        "" => command.to_owned(),
        probe => format!("{command}-{probe}"),
    };
    let mut exact = conditions(run);
    exact.extend(
        [run.plan.wake.as_str(), run.plan.expiry.as_str(), run.plan.phase.as_str()].map(str::to_owned),
    );
    SeriesKey { series: plain_key(&series), plan: hex(&Sha256::digest(exact.join("\n"))[..6]) }
}

/// All samples of the run by CPU. A bucket of the run is part of one row (`model::rows`).
fn whole(run: &Run) -> TierRow {
    let cpu_rows = |cpu: &CpuRun| {
        let buckets = cpu.histogram.iter().map(|row| {
            // Rows of an import may be wider: their samples count at the end, never below the
            // truth.
            (bucket_of(Nanos(row.upper.0.saturating_sub(1))), row.count)
        });
        CpuRows { cpu: stored_cpu(cpu), rows: RowCounts::of_buckets(buckets) }
    };
    let started = nanos_of(&run.started).map_or(0, |at| at.0 / Nanos::SECOND.0);
    TierRow {
        t: started,
        n: run.samples().unwrap_or_default(),
        missed: run.cpus.iter().filter_map(|cpu| cpu.missed).fold(0, u64::saturating_add),
        max_ns: run.cpus.iter().filter_map(|cpu| cpu.max_ns).max(),
        cpus: run.primary().map(cpu_rows).collect(),
    }
}

/// Fingerprint of a culprit, the same in all runs.
pub fn fingerprint(of: &Culprit) -> String {
    fingerprint_of(of.rule.as_deref().unwrap_or_default(), of.kind.as_str(), &of.name)
}

/// Number of culprits that are stored of a run.
pub fn kept_culprits(run: &Run) -> u64 {
    run.culprits.iter().take(MOST_CULPRITS).map(fingerprint).collect::<BTreeSet<_>>().len() as u64
}

fn culprit(of: &Culprit) -> CulpritOfRun {
    let rule = of.rule.clone().unwrap_or_default();
    CulpritOfRun {
        fingerprint: fingerprint(of),
        rule: excerpt(&rule),
        name: plain_name(&of.name),
        kind: of.kind.as_str().to_owned(),
        spikes: of.spikes,
        total_ns: of.total_ns,
        remedy: model::text::clean(&of.remedy).chars().take(400).collect(),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    fn fixture(name: &str) -> FoundBundle {
        let runs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
        FoundBundle { place: runs.join(name), board: Some("a board".into()) }
    }

    #[test]
    fn all_samples_of_a_run_are_kept() {
        for name in ["measured", "hunt"] {
            let (record, _) = read(&fixture(name)).unwrap();
            let total: u64 = record.whole.cpus.iter().map(|cpu| cpu.rows.total()).sum();
            assert_eq!(total, record.run.cycles, "{name}");
            assert_eq!((record.run.board, record.board_name), board_of("a board"));
            assert!(record.run.started > 1_600_000_000 && !record.environment.digest.is_empty());
        }
        let (hunt, _) = read(&fixture("hunt")).unwrap();
        assert!(!hunt.culprits.is_empty() && hunt.run.key.series == "hunt");
    }

    /// The recorded hunt as if killed: its spikes are in the appended file, or in the trace alone.
    fn killed_hunt(place: &Path) {
        let from = fixture("hunt").place;
        fs::create_dir(place.join("events")).unwrap();
        for file in ["blocks.jsonl", "events/spikes.jsonl"] {
            fs::copy(from.join(file), place.join(file)).unwrap();
        }
        let document = fs::read(from.join("run.json")).unwrap();
        let mut run: serde_json::Value = serde_json::from_slice(&document).unwrap();
        run["complete"] = false.into();
        for list in ["spikes", "culprits"] {
            run[list] = serde_json::json!([]);
        }
        fs::write(place.join("run.json"), run.to_string()).unwrap();
    }

    #[test]
    fn a_hunt_that_was_killed_has_the_culprits_of_its_report() {
        let folder = tempfile::tempdir().unwrap();
        killed_hunt(folder.path());
        let found = FoundBundle { place: folder.path().to_owned(), board: Some("a".into()) };
        let (killed, remarks) = read(&found).unwrap();
        let report = study::explain::open(&fixture("hunt").place).unwrap().run;
        assert!(!killed.run.complete && !report.culprits.is_empty());
        assert_eq!(killed.run.spikes, report.spikes.len() as u64);
        let wanted: Vec<CulpritOfRun> = report.culprits.iter().map(culprit).collect();
        assert_eq!(killed.culprits, wanted);
        assert!(remarks.iter().any(|remark| remark.contains("is incomplete")), "{remarks:?}");
        // A completed run of the same kind keeps the culprits of its document.
        assert_eq!(read(&fixture("hunt")).unwrap().0.culprits.len(), wanted.len());
        fs::write(folder.path().join("events/spikes.jsonl"), "{\"cpu\":\n").unwrap();
        let (killed, remarks) = read(&found).unwrap();
        assert!(killed.culprits.is_empty(), "{:?}", killed.culprits);
        assert!(remarks.iter().any(|remark| remark.contains("1 window of its events")), "{remarks:?}");
    }

    #[test]
    fn what_is_no_bundle_is_refused_in_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let found = FoundBundle { place: folder.path().to_owned(), board: None };
        let document = fs::read_to_string(fixture("measured").place.join("run.json")).unwrap();
        let id = document.split("\"id\"").nth(1).unwrap().split('"').nth(1).unwrap();
        for text in [
            "",
            "{}",
            "[[[[",
            r#"{"schema":"onbeat.run/2"}"#,
            &document[..document.len() / 2],
            &document.replacen(id, "../../etc", 1),
        ] {
            fs::write(folder.path().join("run.json"), text).unwrap();
            let refused = read(&found).unwrap_err();
            assert!(!refused.contains('\n') && !refused.is_empty(), "{refused}");
        }
        fs::remove_file(folder.path().join("run.json")).unwrap();
        assert!(read(&found).is_err());
    }

    #[test]
    fn a_bundle_whose_own_files_lead_elsewhere_is_refused() {
        let elsewhere = fixture("measured").place;
        for linked in ["run.json", "blocks.jsonl"] {
            let folder = tempfile::tempdir().unwrap();
            for name in ["run.json", "blocks.jsonl"] {
                let at = folder.path().join(name);
                if name == linked {
                    std::os::unix::fs::symlink(elsewhere.join(name), at).unwrap();
                } else {
                    fs::copy(elsewhere.join(name), at).unwrap();
                }
            }
            let refused = read(&FoundBundle { place: folder.path().to_owned(), board: None }).unwrap_err();
            assert!(refused.contains(&format!("its {linked} is a link")), "{refused}");
        }
    }

    #[test]
    fn plans_of_a_board_are_told_apart_by_their_words() {
        let mut run = Bundle::open(&fixture("measured").place).unwrap().run;
        let usual = plan_words(&run);
        assert!(!usual.contains("nanosleep") && !usual.contains("staggered"), "{usual}");
        let mut seen = BTreeSet::from([usual.clone()]);
        for wake in ["timerfd", "signal", "futex"] {
            run.plan.wake = wake.into();
            assert!(plan_words(&run).contains(&format!(", wake {wake}")), "{}", plan_words(&run));
            assert!(seen.insert(plan_words(&run)));
        }
        (run.plan.expiry, run.plan.phase) = ("softirq-thread".into(), "aligned".into());
        assert!(plan_words(&run).contains(", wake futex, expiry softirq-thread, phase aligned"));
        let mut followed = Bundle::open(&fixture("hunt").place).unwrap().run;
        (followed.plan.interval_ns, followed.plan.priority) = (None, None);
        followed.plan.policy = "".into();
        assert!(
            followed.follows() && !plan_words(&followed).contains("unknown"),
            "{}",
            plan_words(&followed)
        );
        assert!(plan_words(&followed).starts_with("threads of a followed program"));
    }

    #[test]
    fn ids_are_names() {
        assert!(is_id("20261123T201500-1a2b") && is_id("a.b_c-d"));
        for id in ["", "..", ".hidden", "a/b", "a b", "\u{202e}x", &"x".repeat(200)] {
            assert!(!is_id(id), "{id}");
        }
    }
}
