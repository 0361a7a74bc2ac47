//! `onbeat-farm check`: integrity of the store and its bundles.

use std::path::Path;
use std::sync::Arc;

use model::error::{Exit, Failure, Result};
use model::text::{clean, several};
use serde::Serialize;

use crate::cli::FarmEnvironment;
use crate::cli::flags::farm_flags::FarmFlags;
use crate::cli::flags::objects_flag::{is_at, where_to_look};
use crate::cli::output::document_flags::DocumentFlags;
use crate::folders::{lies_in, name_in_bucket};
use crate::intake::bundle_fault;
use crate::objects::ObjectBucket;
use crate::store::{BundlePlace, CountedSeconds, FarmStore};

/// Verify the integrity of the store and its bundles
///
/// Reads everything: whether the database is whole and its references hold (as its engine checks
/// them), each histogram readable, slots, hours and days with the same samples and the
/// largest latency of each that of its slots, and whether each run's document is where it was put,
/// unchanged, and says what the run is shown with, its seconds and five minutes add up to what was
/// counted, and its files are as long as its board sent them. Of a bucket it lists what there is,
/// and looks whether each run has its manifest and its pieces. The last lines say what it did not
/// look at.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    farm: FarmFlags,
    /// Also fetch all pieces from the bucket and compare them with their SHA-256
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    output: DocumentFlags,
}

/// Results of the check.
#[derive(Serialize)]
struct CheckDocument {
    schema: &'static str,
    /// Runs that were looked at.
    runs: u64,
    /// A sentence for each.
    faults: Vec<String>,
}

/// Location of the bundles, and the depth of the check.
struct BundleLook<'a> {
    /// The folder of copies.
    bundles: &'a Path,
    bucket: Option<&'a Arc<ObjectBucket>>,
    deep: bool,
}

impl BundleLook<'_> {
    /// True if the bundle is to be checked in the bucket.
    fn is_in_bucket(&self, run: &BundlePlace) -> bool {
        self.bucket.is_some() && name_in_bucket(Path::new(&run.place), self.bundles).is_some()
    }

    /// Faults of a run's bundle, a sentence each.
    async fn faults(&self, run: &BundlePlace, counted: Option<&CountedSeconds>) -> Result<Vec<String>> {
        match (self.bucket, name_in_bucket(Path::new(&run.place), self.bundles)) {
            (Some(bucket), Some(name)) => Ok(bucket.faults(&name, &run.digest, self.deep).await?),
            _ => Ok(bundle_fault(run, self.bundles, counted).into_iter().collect()),
        }
    }

    /// Faults by the current state of the store: since the list was read, a server may have stored
    /// a later state of the run, or removed it.
    async fn faults_now(&self, store: &FarmStore, run: &BundlePlace) -> Result<Vec<String>> {
        let Some(now) = store.place_of(&run.id).await? else { return Ok(Vec::new()) };
        let now = BundlePlace { has_seconds: run.has_seconds && now.has_seconds, ..now };
        let counted = store.counted_seconds_of(&run.id).await?;
        self.faults(&now, Some(&counted)).await
    }
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    args.output.check()?;
    let (place, bucket) = args.farm.open(environment)?;
    if args.deep && bucket.is_none() {
        return Err(Failure::usage(
            "--deep needs a bucket: name it with --objects s3://BUCKET, or omit the flag",
        ));
    }
    let store = place.open_existing().await?;
    if let Some(bucket) = &bucket {
        // Even if it contains no run yet.
        bucket.check_owner(store.identity().await?).await?;
    }
    let progress = args.output.progress(environment);
    progress.step("checking the database", None);
    let mut faults = store.faults().await?;
    faults.extend(store.own_faults().await?);
    let places = store.places().await?;
    let counted = store.counted_seconds().await?;
    let look = BundleLook { bundles: &place.bundles, bucket: bucket.as_ref(), deep: args.deep };
    let (mut missing, mut unread) = (0, Unread::default());
    progress.step("checking runs", Some(places.len() as u64));
    for run in &places {
        unread.add(&look, run);
        if !look.faults(run, counted.get(&run.id)).await?.is_empty() {
            let now = look.faults_now(&store, run).await?;
            missing += u64::from(!now.is_empty() && !is_at(&run.place));
            faults.extend(now);
        }
        progress.add();
    }
    drop(progress);
    let exit = told(args, places.len() as u64, &faults)?;
    if let Some(hint) = where_to_look(missing).filter(|_| !args.farm.names_objects()) {
        args.output.remark(&hint);
    }
    unread.words().iter().for_each(|words| args.output.remark(words));
    Ok(exit)
}

/// Parts of bundles that were not checked.
#[derive(Default)]
struct Unread {
    /// Contents of the pieces of a bucket.
    pieces: bool,
    /// Values of runs against their documents in the bucket.
    documents: bool,
    /// Files in the folder of copies.
    files: bool,
    /// Files in other folders.
    elsewhere: bool,
}

impl Unread {
    fn add(&mut self, look: &BundleLook<'_>, run: &BundlePlace) {
        if look.is_in_bucket(run) {
            (self.pieces, self.documents) = (!look.deep, true);
        } else if lies_in(Path::new(&run.place), look.bundles) {
            self.files = true;
        } else {
            self.elsewhere = true;
        }
    }

    /// Sentences, each with the means to check the part.
    fn words(&self) -> Vec<&'static str> {
        let pieces = "not checked: the contents of pieces in the bucket; --deep fetches them and compares \
                      each with its SHA-256";
        let documents = "not checked: the numbers of runs against their run.json in the bucket; those of \
                         copies in a folder are compared";
        let files = "not checked: the contents of files that are not counted, like events/ and host/; the \
                     store keeps no digests of them, so no flag checks them";
        let elsewhere = "not checked: files other than run.json outside the folder of copies; if another \
                         folder has copies, name it with --objects";
        let rows = "not checked: missing rows that nothing else in the store implies, such as labels, \
                    environments and clocks of recorders, and what boards sent";
        let all = [
            (true, rows),
            (self.pieces, pieces),
            (self.documents, documents),
            (self.files, files),
            (self.elsewhere, elsewhere),
        ];
        all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words).collect()
    }
}

/// Prints the results.
fn told(args: &Args, runs: u64, faults: &[String]) -> Result<Exit> {
    let faults: Vec<String> = faults.iter().map(|fault| clean(fault)).collect();
    faults.iter().try_for_each(|fault| args.output.print(fault))?;
    let found = several(faults.len() as u64, "fault", "faults");
    args.output.answer(&format!("{} checked, {found} found", several(runs, "run", "runs")))?;
    let exit = if faults.is_empty() { Exit::Ok } else { Exit::Limit };
    args.output.write(&CheckDocument { schema: "onbeat.farm-check/1", runs, faults })?;
    Ok(exit)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::store::ShownNumbers;
    use crate::store::engines::on_each_engine;

    #[tokio::test]
    async fn what_is_for_a_bucket_alone_says_what_to_do_without_one() {
        use clap::Parser;

        #[derive(Parser)]
        struct Given {
            #[command(flatten)]
            args: Args,
        }
        let given = Given::try_parse_from(["check", "--deep", "--store", "sqlite:/nowhere/farm.db"]).unwrap();
        let failure = run(&given.args, &FarmEnvironment::default()).await.unwrap_err();
        assert!(failure.exit == Exit::Usage && failure.message.contains("omit the flag"), "{failure}");
    }

    #[tokio::test]
    async fn of_what_is_no_store_none_is_made() {
        use clap::Parser;

        #[derive(Parser)]
        struct Given {
            #[command(flatten)]
            args: Args,
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("empty.db"), "").unwrap();
        for name in ["empty.db", "none.db"] {
            let store = format!("sqlite:{}", folder.path().join(name).display());
            let given = Given::try_parse_from(["check", "--store", store.as_str()]).unwrap();
            let failure = run(&given.args, &FarmEnvironment::default()).await.unwrap_err();
            assert!(failure.exit == Exit::Usage && failure.message.contains(name), "{failure}");
        }
        assert_eq!(std::fs::read(folder.path().join("empty.db")).unwrap(), b"");
        assert!(!folder.path().join("none.db").exists());
    }

    #[test]
    fn what_was_not_looked_at_is_said_with_the_flag_that_looks_at_it() {
        let bucket = crate::objects::tests::in_memory();
        let bundles = Path::new("/nowhere");
        let place = |place: &str| BundlePlace {
            id: "r".into(),
            place: place.into(),
            digest: Vec::new(),
            max_ns: None,
            shown: ShownNumbers::default(),
            is_over: true,
            has_seconds: true,
            sent_bytes: None,
        };
        let words = |bucket, deep, of: &str| {
            let mut unread = Unread::default();
            unread.add(&BundleLook { bundles, bucket, deep }, &place(of));
            unread.words().join("; ")
        };
        let copies = words(None, false, "/nowhere/r");
        assert!(copies.contains("events/") && !copies.contains("--objects"), "{copies}");
        let listed = words(Some(&bucket), false, "/nowhere/r");
        assert!(listed.contains("--deep") && !listed.contains("events/"), "{listed}");
        let fetched = words(Some(&bucket), true, "/nowhere/r");
        assert!(!fetched.contains("--deep") && fetched.contains("run.json in the bucket"), "{fetched}");
        let elsewhere = words(None, false, "/srv/runs/r");
        assert!(elsewhere.contains("--objects") && !elsewhere.contains("events/"), "{elsewhere}");
        for all in [copies, listed, fetched, elsewhere, Unread::default().words().join("; ")] {
            assert!(all.starts_with("not checked: missing rows"), "{all}");
        }
    }

    #[test]
    fn a_run_that_was_replaced_or_removed_meanwhile_has_no_fault_and_a_changed_one_has() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let mut record = recorded_run("measured", "a");
            let document = std::fs::read(Path::new(&record.run.place).join("run.json")).unwrap();
            let copy = folder.path().join("run.json");
            std::fs::write(&copy, &document).unwrap();
            record.run.place = folder.path().to_str().unwrap().to_owned();
            store.put(&record).await.unwrap();
            let known = store.places().await.unwrap().remove(0);
            let look = BundleLook { bundles: Path::new("/nowhere"), bucket: None, deep: false };
            let earlier = BundlePlace { digest: vec![1; 32], ..known.clone() };
            let removed = BundlePlace { id: "removed".into(), ..earlier.clone() };
            for one in [&earlier, &removed] {
                assert_eq!(look.faults(one, None).await.unwrap().len(), 1);
                assert_eq!(look.faults_now(&store, one).await.unwrap(), [""; 0]);
            }
            std::fs::write(&copy, [&document[..], b" "].concat()).unwrap();
            let found = look.faults_now(&store, &known).await.unwrap();
            assert!(found.len() == 1 && found[0].contains("its run.json was changed"), "{found:?}");
        });
    }
}
