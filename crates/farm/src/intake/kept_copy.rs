//! Verification of a run's copy in the folder of bundles against the store's counts, and its repair
//! from another copy.

use std::path::Path;

use bundle::read::parse_run;
use host::MachineFiles;
use model::error::{ItemFailure, Result};
use model::fact::Fact;
use model::text::several;
use model::vocabulary::Command;
use sha2::{Digest, Sha256};

use crate::folders::lies_in;
use crate::ingest::bundle::{farm_run, kept_culprits, read};
use crate::ingest::find::FoundBundle;
use crate::ingest::keep::{copy_files, keep};
use crate::ingest::stored::{StoredFile, stored_file, stored_files};
use crate::ingest::thin::BLOCK_FILES;
use crate::records::{BundleRecord, FarmRun, FarmSlot};
use crate::store::{BundlePlace, CountedSeconds, FarmStore, ThinnedPart};

/// Parts of a bundle that are compared byte by byte: those that the store's numbers come from.
const COMPARED: [&str; 4] = ["run.json", "blocks.jsonl", "rows.jsonl", "tail"];
const AT_ONCE: usize = 1 << 20;

/// Fault of a run's bundle, in a sentence; `own` is the folder of copies.
pub fn bundle_fault(run: &BundlePlace, own: &Path, counted: Option<&CountedSeconds>) -> Option<String> {
    let (id, at) = (&run.id, Path::new(&run.place));
    let (shown, is_copy) = (at.display(), lies_in(at, own));
    let Fact::Known(bytes) = MachineFiles::folder(at).read_as_it_is("/run.json", bundle::manifest::RUN_LIMIT)
    else {
        return Some(format!("{id}: its run.json cannot be read, in {shown}"));
    };
    if Sha256::digest(&bytes)[..] == *run.digest {
        let seconds = || (is_copy && run.has_seconds).then(|| seconds_fault(run, counted)).flatten();
        let length = || is_copy.then(|| length_fault(run)).flatten();
        return shown_fault(run, &bytes).or_else(seconds).or_else(length);
    }
    // A running one that is shown in place is replaced every ten seconds.
    let is_it = !run.is_over && !is_copy && parse_run(&bytes).is_ok_and(|found| found.id == *id);
    (!is_it).then(|| format!("{id}: its run.json was changed, in {shown}"))
}

/// Compares the displayed values of a run with its document. The tail of a killed run has more than
/// that.
fn shown_fault(run: &BundlePlace, document: &[u8]) -> Option<String> {
    let found = parse_run(document).ok()?;
    // A hunt may have had no room for its spikes in its document.
    let has_spikes = found.command != Command::Hunt || !found.spikes.is_empty();
    let culprits = kept_culprits(&found);
    let found = farm_run(&found, String::new(), "", Path::new(&run.place));
    let shown = &run.shown;
    let all = [
        (found.max_ns == run.max_ns, "largest latency"),
        (found.p9999_ns == shown.p9999_ns, "p99.99"),
        (found.missed == shown.missed, "number of missed wake-ups"),
        (found.invalid == shown.invalid, "number of reasons why it does not count"),
        (!has_spikes || found.spikes == shown.spikes, "number of spikes"),
        (shown.culprits >= culprits, "number of culprits"),
        (found.cpus == shown.cpus, "number of CPUs"),
        (found.length_ns == shown.length_ns, "length"),
    ];
    let what = match (found.complete == run.is_over, run.is_over) {
        (false, _) => "end",
        (true, false) => return None,
        (true, true) => all.into_iter().find(|(is_same, _)| !is_same)?.1,
    };
    Some(format!("{}: its {what} in the store differs from its run.json, in {}", run.id, run.place))
}

fn seconds_fault(run: &BundlePlace, counted: Option<&CountedSeconds>) -> Option<String> {
    let found = FoundBundle { place: run.place.clone().into(), board: None };
    let why = match read(&found) {
        Ok((record, _)) => differs(&record, counted.copied().unwrap_or_default())?.to_owned(),
        Err(why) => why,
    };
    let again = "import the run again from a complete copy";
    Some(format!("{}: {why}, in {}: {again}", run.id, run.place))
}

/// Files from which nothing is counted, as in `events/`, have no stored digests; for a sent bundle,
/// the total length is known.
fn length_fault(run: &BundlePlace) -> Option<String> {
    let sent = run.sent_bytes?;
    let there = stored_files(Path::new(&run.place)).iter().fold(0u64, |sum, file| sum + file.bytes);
    let (id, lacking) = (&run.id, several(sent.checked_sub(there).filter(|n| *n > 0)?, "byte", "bytes"));
    Some(format!(
        "{id}: its files lack {lacking} of those that its board sent, in {}: import the run again from a \
         complete copy",
        run.place
    ))
}

/// Difference between a bundle and its counts.
fn differs(record: &BundleRecord, counted: CountedSeconds) -> Option<&'static str> {
    let sum =
        |of: fn(&FarmSlot) -> u64| -> i128 { record.slots.iter().map(|slot| i128::from(of(slot))).sum() };
    let max_ns = record.slots.iter().filter_map(|slot| slot.max_ns).max();
    let found = (sum(|slot| slot.n), sum(|slot| slot.missed), max_ns);
    if found != (counted.n, counted.missed, counted.max_ns) {
        Some("its blocks.jsonl differs from the seconds that were counted")
    } else if counted.by_rows && record.rows.is_empty() {
        Some("its rows.jsonl no longer matches its other files")
    } else {
        None
    }
}

/// Repairs a damaged or incomplete copy of a run from a bundle with the same document and the
/// counted seconds.
pub async fn mend(
    store: &FarmStore,
    from: &Path,
    record: &BundleRecord,
    own: &Path,
    remarks: &mut Vec<String>,
) -> Result<(), ItemFailure> {
    let id = &record.run.id;
    let Some(known) = store.run(id).await? else { return Ok(()) };
    let copy = Path::new(&known.place);
    if host::identity(&copy.join("run.json")).is_none() {
        let place = match keep(from, id, own) {
            Ok((place, _)) => host::whole_path(&place).unwrap_or(place),
            Err(why) => return Err(ItemFailure::Refused(why)),
        };
        store.moved(id, &place.to_string_lossy()).await?;
        remarks.push(format!("{id}: its copy was missing and was restored"));
        return Ok(());
    }
    // Bundles elsewhere are only shown, and do not belong to the farm.
    if !lies_in(copy, own) {
        return Ok(());
    }
    let wrong = wrong_files(from, copy, &known);
    if wrong.is_empty() {
        return Ok(());
    }
    if let Some(what) = differs(record, store.counted_seconds_of(id).await?) {
        remarks.push(format!(
            "{what}, so the copy here was not changed: to count this one instead, first forget the run \
             (`onbeat-farm forget --allow {id}`)"
        ));
        return Ok(());
    }
    copy_files(from, copy, &wrong).map_err(ItemFailure::Refused)?;
    let files = several(wrong.len() as u64, "file", "files");
    let named = wrong.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    remarks.push(format!("{id}: {files} of its copy restored: {named}"));
    Ok(())
}

/// Files of a bundle that are missing, different or truncated in its copy, `run.json` last; except
/// for those removed by age.
fn wrong_files(bundle: &Path, copy: &Path, run: &FarmRun) -> Vec<String> {
    let has_gone = |path: &str| {
        let part = if path.starts_with("events/") {
            ThinnedPart::Windows
        } else if BLOCK_FILES.contains(&path) {
            ThinnedPart::Blocks
        } else {
            return false;
        };
        run.thinned.contains(part.word())
    };
    let is_wrong = |file: &StoredFile| match stored_file(copy, &file.path) {
        Some(there) if COMPARED.contains(&file.path.as_str()) => {
            there.bytes != file.bytes || !is_same(bundle, copy, file)
        }
        Some(there) => there.bytes < file.bytes,
        None => true,
    };
    let files = stored_files(bundle).into_iter().filter(|file| !has_gone(&file.path) && is_wrong(file));
    let mut wrong: Vec<String> = files.map(|file| file.path).collect();
    wrong.sort_by_key(|path| path == "run.json");
    wrong
}

/// True if a file of the same length has the same bytes in two bundles.
fn is_same(one: &Path, other: &Path, file: &StoredFile) -> bool {
    let (one, other) = (MachineFiles::folder(one), MachineFiles::folder(other));
    let path = format!("/{}", file.path);
    let is_same_from = |from: u64| {
        let part = |of: &MachineFiles| of.read_part(&path, from, AT_ONCE).known().cloned();
        let (one, other) = (part(&one), part(&other));
        one.is_some() && one == other
    };
    (0..file.bytes).step_by(AT_ONCE).all(is_same_from)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests damage files.
mod tests {
    use super::*;
    use crate::fixture::run_folder;
    use crate::store::engines::on_each_engine;
    use crate::store::{SentBundle, ShownNumbers};
    use model::units::Nanos;
    use std::fs;
    use std::path::PathBuf;

    /// The recorded run, with a histogram of its five minutes.
    fn whole_run(folder: &Path) -> PathBuf {
        let fixture = run_folder("hunt");
        let place = keep(&fixture, "whole", folder).unwrap().0;
        let blocks = fs::read_to_string(place.join("blocks.jsonl")).unwrap();
        let mono = |line: &str| -> i64 {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["mono_ns"].as_i64().unwrap()
        };
        let cpu = read_of(&place).whole.cpus.remove(0);
        let line = serde_json::json!({
            "seq": 0, "mono_ns": blocks.lines().map(mono).min(), "span_ns": 300_000_000_000i64,
            "cpus": [{ "cpu": cpu.cpu, "n": cpu.rows.total(), "hist": cpu.rows }],
        });
        fs::write(place.join("rows.jsonl"), format!("{{\"schema\":\"onbeat.rows/1\"}}\n{line}\n")).unwrap();
        assert_eq!(read_of(&place).rows.len(), 1);
        place
    }

    fn read_of(place: &Path) -> BundleRecord {
        read(&FoundBundle { place: place.to_owned(), board: Some("a".into()) }).unwrap().0
    }

    /// A store with the run, whose copy is in a folder.
    async fn stored(store: &FarmStore, whole: &Path, own: &Path) -> (BundleRecord, PathBuf) {
        let record = read_of(whole);
        let copy = keep(whole, &record.run.id, own).unwrap().0;
        store.put(&read_of(&copy)).await.unwrap();
        (record, copy)
    }

    async fn fault(store: &FarmStore, own: &Path) -> Option<String> {
        let (run, counted) =
            (store.places().await.unwrap().remove(0), store.counted_seconds().await.unwrap());
        bundle_fault(&run, own, counted.get(&run.id))
    }

    /// Another digit in its middle, so that it stays as long.
    fn change_digit(file: &Path, after: &str) {
        let mut bytes = fs::read(file).unwrap();
        let at = bytes.windows(after.len()).position(|part| part == after.as_bytes()).unwrap() + after.len();
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        fs::write(file, bytes).unwrap();
    }

    #[test]
    fn a_damaged_copy_is_named_and_put_right_from_a_good_one() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let (whole, own) = (whole_run(folder.path()), folder.path().join("own"));
            // Addresses in a document are compared unmasked.
            let document = fs::read_to_string(whole.join("run.json")).unwrap();
            let document = document.replacen('{', "{\"noted\": \"ffff0123456789ab\", ", 1);
            fs::write(whole.join("run.json"), document).unwrap();
            let (record, copy) = stored(&store, &whole, &own).await;
            let put_right = async || mend(&store, &whole, &record, &own, &mut Vec::new()).await.unwrap();
            let same = |copy: &Path| {
                COMPARED
                    .iter()
                    .chain(&["events/spikes.jsonl"])
                    .all(|name| fs::read(copy.join(name)).ok() == fs::read(whole.join(name)).ok())
            };
            assert_eq!(fault(&store, &own).await, None);
            type Damage = fn(&Path);
            let damages: [(Damage, &str); 7] = [
                (
                    |copy| change_digit(&copy.join("blocks.jsonl"), "\"n\":"),
                    "blocks.jsonl differs from the seconds",
                ),
                (
                    |copy| fs::remove_file(copy.join("blocks.jsonl")).unwrap(),
                    "blocks.jsonl differs from the seconds",
                ),
                (|copy| change_digit(&copy.join("rows.jsonl"), "\"n\":"), "rows.jsonl no longer matches"),
                (|copy| fs::remove_file(copy.join("rows.jsonl")).unwrap(), "rows.jsonl no longer matches"),
                (|copy| change_digit(&copy.join("run.json"), "\"cycles\":"), "run.json was changed"),
                (|copy| fs::remove_dir_all(copy).unwrap(), "run.json cannot be read"),
                (|copy| fs::write(copy.join("events/spikes.jsonl"), "").unwrap(), ""),
            ];
            for (damage, named) in damages {
                damage(&copy);
                assert!(!same(&copy), "{named}");
                let told = fault(&store, &own).await;
                assert!(told.as_deref().unwrap_or_default().contains(named), "{named}: {told:?}");
                put_right().await;
                assert!(same(&copy), "{named}");
                assert_eq!(fault(&store, &own).await, None, "{named}");
            }
        });
    }

    #[test]
    fn a_file_that_was_cut_of_what_a_board_sent_is_named() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let (whole, own) = (whole_run(folder.path()), folder.path().join("own"));
            let name = format!("{}+{}", read_of(&whole).run.id, "07".repeat(8));
            let copy = keep(&whole, &name, &own).unwrap().0;
            let bytes = stored_files(&copy).iter().map(|file| file.bytes).sum();
            let sent = SentBundle { board_id: 1, manifest: vec![7; 32], bytes };
            store.put_sent(&read_of(&copy), &sent).await.unwrap();
            assert_eq!(fault(&store, &own).await, None);
            let cut = copy.join("events/spikes.jsonl");
            let events = fs::read(&cut).unwrap();
            fs::write(&cut, &events[..events.len() - 7]).unwrap();
            assert!(fault(&store, &own).await.unwrap().contains("lack 7 bytes"));
            // A copy from another source may be another state of the run.
            let place = store.places().await.unwrap().remove(0).place;
            store.moved(&read_of(&copy).run.id, &own.join("moved").to_string_lossy()).await.unwrap();
            assert_eq!(store.places().await.unwrap()[0].sent_bytes, None);
            store.moved(&read_of(&copy).run.id, &place).await.unwrap();
            fs::write(&cut, &events).unwrap();
            assert_eq!(fault(&store, &own).await, None);
            // Parts removed by age are not missing.
            let bundle = store.bundles().await.unwrap().remove(0);
            store.begin_thinning(&bundle, ThinnedPart::Windows, 9).await.unwrap().unwrap();
            fs::remove_file(&cut).unwrap();
            assert_eq!(fault(&store, &own).await, None);
        });
    }

    #[test]
    fn another_largest_latency_than_the_document_has_is_named() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let (whole, own) = (whole_run(folder.path()), folder.path().join("own"));
            stored(&store, &whole, &own).await;
            let run = store.places().await.unwrap().remove(0);
            let counted = store.counted_seconds().await.unwrap();
            let told = |run: &BundlePlace| bundle_fault(run, &own, counted.get(&run.id));
            assert_eq!(told(&run), None);
            for max_ns in [None, run.max_ns.map(|max| max + Nanos(1))] {
                let changed = BundlePlace { max_ns, ..run.clone() };
                assert!(
                    told(&changed).unwrap().contains("its largest latency in the store differs"),
                    "{max_ns:?}"
                );
            }
        });
    }

    #[test]
    fn whatever_else_a_run_is_shown_with_is_compared_with_its_document() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let own = folder.path().join("own");
            let place = run_folder("hunt");
            let (record, _) = stored(&store, &place, &own).await;
            assert!(!record.culprits.is_empty() && record.run.spikes > 0);
            let told = async || {
                let run = store.places().await.unwrap().remove(0);
                bundle_fault(&run, &own, store.counted_seconds().await.unwrap().get(&run.id))
            };
            assert_eq!(told().await, None);
            let run = store.places().await.unwrap().remove(0);
            let counted = store.counted_seconds().await.unwrap();
            let shown = run.shown;
            let changed = |shown: ShownNumbers| {
                bundle_fault(&BundlePlace { shown, ..run.clone() }, &own, counted.get(&run.id))
            };
            for (shown, words) in [
                (ShownNumbers { p9999_ns: Some(Nanos(1)), ..shown }, "its p99.99 in the store"),
                (ShownNumbers { missed: Some(1 << 40), ..shown }, "number of missed wake-ups"),
                (ShownNumbers { invalid: shown.invalid + 1, ..shown }, "why it does not count"),
                (ShownNumbers { spikes: shown.spikes - 1, ..shown }, "number of spikes"),
                (ShownNumbers { culprits: shown.culprits - 1, ..shown }, "number of culprits"),
                (ShownNumbers { cpus: shown.cpus + 1, ..shown }, "number of CPUs"),
                (ShownNumbers { length_ns: None, ..shown }, "its length in the store"),
            ] {
                let told = changed(shown);
                assert!(told.as_deref().is_some_and(|told| told.contains(words)), "{words}: {told:?}");
            }
            let not_over = BundlePlace { is_over: false, ..run.clone() };
            let told = bundle_fault(&not_over, &own, counted.get(&run.id)).unwrap();
            assert!(told.contains("its end in the store"), "{told}");
        });
    }

    /// Even if another run during its five minutes has histograms of them.
    #[test]
    fn a_run_that_never_had_histograms_of_its_five_minutes_lacks_none() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let (whole, own) = (whole_run(folder.path()), folder.path().join("own"));
            let mut beside = read_of(&whole);
            (beside.run.id, beside.digest) = ("beside".into(), vec![1]);
            beside.slots.iter_mut().for_each(|slot| slot.run = "beside".into());
            store.put(&beside).await.unwrap();
            let without = keep(&whole, "without", folder.path()).unwrap().0;
            fs::remove_file(without.join("rows.jsonl")).unwrap();
            let (record, _) = stored(&store, &without, &own).await;
            let mut places = store.places().await.unwrap();
            places.retain(|one| one.id == record.run.id);
            let counted = store.counted_seconds().await.unwrap();
            assert_eq!(bundle_fault(&places[0], &own, counted.get(&record.run.id)), None);
        });
    }

    #[test]
    fn a_worse_bundle_replaces_nothing_and_what_went_with_its_age_stays_away() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let (whole, own) = (whole_run(folder.path()), folder.path().join("own"));
            let (_, copy) = stored(&store, &whole, &own).await;
            let worse = keep(&whole, "worse", folder.path()).unwrap().0;
            change_digit(&worse.join("blocks.jsonl"), "\"n\":");
            let before = fs::read(copy.join("blocks.jsonl")).unwrap();
            mend(&store, &worse, &read_of(&worse), &own, &mut Vec::new()).await.unwrap();
            assert_eq!(fs::read(copy.join("blocks.jsonl")).unwrap(), before);
            let bundle = store.bundles().await.unwrap().remove(0);
            let begun = store.begin_thinning(&bundle, ThinnedPart::Blocks, 9).await.unwrap().unwrap();
            BLOCK_FILES.iter().for_each(|name| fs::remove_file(copy.join(name)).unwrap());
            store.end_thinning(begun, 5).await.unwrap();
            assert_eq!(fault(&store, &own).await, None);
            mend(&store, &whole, &read_of(&whole), &own, &mut Vec::new()).await.unwrap();
            assert!(!copy.join("blocks.jsonl").exists() && !copy.join("rows.jsonl").exists());
        });
    }

    #[test]
    fn a_run_that_is_on_is_another_every_ten_seconds_and_that_is_no_fault() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let (whole, own) = (whole_run(folder.path()), folder.path().join("own"));
            let document = whole.join("run.json");
            let over = fs::read_to_string(&document).unwrap();
            let on = over.replacen("\"complete\": true", "\"complete\": false", 1);
            let on = on.replacen("\"complete\":true", "\"complete\":false", 1);
            assert_ne!(on, over);
            fs::write(&document, &on).unwrap();
            store.put(&read_of(&whole)).await.unwrap();
            assert!(!store.places().await.unwrap()[0].is_over);
            assert_eq!(fault(&store, &own).await, None);
            let id = read_of(&whole).run.id;
            for (text, is_fault) in [
                (format!("{on}\n"), false),
                (over.clone(), false),
                (on.replace(&id, "another"), true),
                (on[..on.len() / 2].to_owned(), true),
            ] {
                fs::write(&document, text).unwrap();
                let told = fault(&store, &own).await;
                assert_eq!(told.is_some_and(|told| told.contains("was changed")), is_fault);
            }
            // A copy of it does not change.
            fs::write(&document, format!("{on}\n")).unwrap();
            assert!(fault(&store, folder.path()).await.unwrap().contains("was changed"));
        });
    }
}
