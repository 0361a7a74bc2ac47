//! `onbeat-farm prune`: what is old and counted elsewhere goes.

use std::path::{Path, PathBuf};

use host::dir::Dir;
use host::{MachineFiles, RecordFolder};
use model::error::{Exit, Failure, Result};
use model::text::{quoted, several};
use model::units::{Bare, Nanos, parse_span};

use super::store_flag::StorePlace;
use super::{FarmEnvironment, note, say};
use crate::ingest::unpack::remove_tree;
use crate::records::Tier;
use crate::store::FarmStore;
use crate::web::sender::now;

/// Drop histograms of five minutes and of hours that are old
///
/// Nothing is lost from the sums: their samples are in the histograms of days, and the maximum of
/// each five minutes stays for ever with its time and names. Where no server runs, pieces of runs
/// that were never finished go too, and bundles that no run is in.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  onbeat-farm prune --five-minutes 7d")]
pub struct Args {
    /// How long histograms of five minutes stay
    #[arg(long, value_name = "SPAN", default_value = "30d")]
    five_minutes: String,
    /// How long those of hours stay
    #[arg(long, value_name = "SPAN", default_value = "365d")]
    hours: String,
    /// The store, sqlite:PATH or postgres://.. [default: onbeat/farm.db in the state folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The folder of bundles [default: next to the store's file; onbeat/farm.bundles in the state
    /// folder for PostgreSQL]
    #[arg(long, value_name = "DIR")]
    objects: Option<PathBuf>,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    let place = StorePlace::of(args.store.as_deref(), environment)?.with_bundles(args.objects.as_deref());
    let store = place.open_existing().await?;
    let before = |flag: &str, text: &str| {
        let span = parse_span(text, Bare::Seconds).map_err(|why| Failure::usage(format!("{flag}: {why}")))?;
        Ok::<i64, Failure>(now() - span.0.div_euclid(Nanos::SECOND.0))
    };
    let slots = before("--five-minutes", &args.five_minutes)?;
    let hours = before("--hours", &args.hours)?;
    let (slots, hours) = (store.prune(Tier::Slot, slots).await?, store.prune(Tier::Hour, hours).await?);
    let dropped = several(slots + hours, "histogram", "histograms");
    say(&format!("onbeat-farm: {dropped} dropped, whose samples are in those of days"));
    note(&store, format!("pruned: {dropped} dropped")).await?;
    let Ok(folder) = RecordFolder::open(&place.bundles) else { return Ok(Exit::Ok) };
    match folder.lock() {
        Ok(Ok(_alone)) => {
            let gone = sweep(&store, &place.bundles).await?;
            say(&format!("onbeat-farm: {} of no run removed", several(gone, "folder", "folders")));
        }
        _ => say("onbeat-farm: a server runs: what boards sent in part is left for it"),
    }
    Ok(Exit::Ok)
}

/// Removes what was assembled for no run, and pieces that wait: boards send them again.
async fn sweep(store: &FarmStore, bundles: &Path) -> Result<u64> {
    let places: std::collections::BTreeSet<String> =
        store.places().await?.into_iter().map(|(_, place, _)| place).collect();
    let names = MachineFiles::folder(bundles).list("/.").known().cloned().unwrap_or_default();
    let mut gone = 0;
    for name in names {
        let place = bundles.join(&name);
        // What boards send has a plus in its name; the rest may be about to be imported.
        let is_sent = matches!(name.as_str(), ".pieces" | ".pulled") || name.contains('+');
        if !is_sent || places.contains(place.to_string_lossy().as_ref()) {
            continue;
        }
        let top = Dir::existing(bundles).map_err(|error| {
            let what = format!("cannot open {}", quoted(bundles));
            Failure::of_call(what, &error, Exit::NotPermitted, "run this as who runs the server")
        })?;
        remove_tree(&MachineFiles::folder(bundles), &top, &name, 0);
        gone += 1;
    }
    Ok(gone)
}
