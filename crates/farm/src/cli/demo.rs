//! `onbeat-farm demo`: a synthetic farm for a first look.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use host::MachineFiles;
use host::dir::Dir;
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use tokio::task::JoinSet;

use crate::cli::flags::store_flag::StorePlace;
use crate::cli::serve::{asked_to_end, listen, served};
use crate::cli::{FarmEnvironment, say};
use crate::demo::{NUMBER, write_record};
use crate::ingest::remove_tree::remove_tree;
use crate::intake::{Keeping, ScanOptions, SeenRuns, scan};
use crate::store::FarmStore;
use crate::wall_clock::now;
use crate::web::{App, FarmExposure, Intake, keep_changes};

/// Limit of the wait for the store to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Show a farm of five synthetic boards
///
/// They have a year of data; one got worse with a new kernel, and one fell silent. Their records
/// are imported like those of real boards, into a temporary folder that is removed when Ctrl-C ends
/// the command. The pages can be opened on this machine only.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat-farm demo\n  onbeat-farm demo --no-browser --listen 127.0.0.1:9000"
)]
pub struct Args {
    /// Listen on this address of this machine; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Do not open a browser
    #[arg(long)]
    no_browser: bool,
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    if !args.listen.ip().is_loopback() {
        return Err(Failure::usage(
            "--listen: the demo has no login: give an address of this machine, like 127.0.0.1:9000",
        ));
    }
    let (listener, address) = listen(args.listen).await?;
    host::make_new_files_private();
    let folder = DemoFolder::make(environment)?;
    let mut farm = DemoFarm::default();
    let show = async {
        let app = farm.imported(&folder.path(), now()).await?;
        let url = format!("http{}{address}/", "://");
        say(&format!("onbeat-farm: a farm of {NUMBER} synthetic boards is at {url} (Ctrl-C ends it)"));
        if environment.has_display && !args.no_browser {
            // The address is printed, for a machine without a browser.
            let _ = host::start_apart("xdg-open", &[&url]);
        }
        let searched = app.clone();
        farm.tasks.spawn(async move {
            keep_changes(searched).await;
            Ok(())
        });
        served(listener, app, None).await;
        Ok(Exit::Ok)
    };
    let outcome = tokio::select! {
        outcome = show => outcome,
        () = asked_to_end() => Ok(Exit::Ok),
    };
    farm.close().await;
    outcome
}

/// Parts of a demo that write to its folder.
#[derive(Default)]
struct DemoFarm {
    store: Option<FarmStore>,
    /// Tasks that write the records, then the one that searches changes.
    tasks: JoinSet<Result<()>>,
}

impl DemoFarm {
    /// Writes the records of the boards below a folder, imports them, and searches their changes.
    async fn imported(&mut self, folder: &Path, now: i64) -> Result<Arc<App>> {
        let runs = folder.join("runs");
        for number in 0..NUMBER {
            let runs = runs.clone();
            self.tasks.spawn_blocking(move || write_record(number, &runs, now));
        }
        while let Some(record) = self.tasks.join_next().await {
            record.unwrap_or_else(|error| Err(Failure::internal(format!("{error}: report this"))))?;
        }
        let place = StorePlace::file(folder.join("farm.db"));
        let store = self.store.insert(place.open().await?);
        let options = ScanOptions { keeping: &Keeping::InPlace, board: None, progress: &() };
        let found = scan(store, &runs, &mut SeenRuns::default(), &options).await?;
        if let Some(why) = found.records.iter().flat_map(|one| &one.left_out).next() {
            return Err(Failure::internal(format!("a synthetic record was refused ({why}): report this")));
        }
        let intake = Intake::start(store.clone(), &place.bundles, 1 << 30);
        let app = App::new(store.clone(), FarmExposure::Loopback, Some(intake));
        app.changes.look_through(&app.store).await.map_err(|refusal| Failure::internal(refusal.detail))?;
        Ok(Arc::new(app))
    }

    /// Ends all writing, so that the folder can be removed.
    async fn close(mut self) {
        self.tasks.shutdown().await;
        if let Some(store) = &self.store {
            // A request that does not end is not awaited longer.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, store.close()).await;
        }
    }
}

/// The folder of a demo, removed with this value.
struct DemoFolder {
    parent: PathBuf,
    name: String,
}

impl DemoFolder {
    fn make(environment: &FarmEnvironment) -> Result<DemoFolder> {
        let parent = environment.temporary.as_ref().map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let folder = DemoFolder { parent, name: format!("onbeat-farm-demo-{:016x}", host::random_u64()) };
        match Dir::create(&folder.path()) {
            Ok(_) => Ok(folder),
            Err(error) => {
                let what = format!("cannot create {}", quoted(folder.path()));
                Err(Failure::of_call(
                    what,
                    &error,
                    Exit::Usage,
                    "set TMPDIR to a folder that you may write to",
                ))
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if let Ok(parent) = Dir::existing(&self.parent) {
            remove_tree(&MachineFiles::folder(&self.parent), &parent, &self.name, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::block_on;
    use crate::ingest::plausible::WRITTEN;
    use crate::web::made_app::get;

    #[test]
    fn the_first_page_leads_with_what_got_worse_and_its_kernel_and_with_what_is_silent() {
        let parent = tempfile::tempdir().unwrap();
        let temporary = Some(parent.path().as_os_str().to_owned());
        let environment = FarmEnvironment { temporary, ..FarmEnvironment::default() };
        block_on(async {
            let folder = DemoFolder::make(&environment).unwrap();
            // 2026-11-26 08:00, which is past by the clock of any machine.
            let mut farm = DemoFarm::default();
            let app = farm.imported(&folder.path(), WRITTEN + 8 * 3_600).await.unwrap();
            let (_, json) = get(&app, "/v1/boards").await;
            let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
            let lead = answer["lead"].as_array().unwrap();
            let of = |at: usize, field: &str| lead[at][field].as_str().unwrap_or_default().to_owned();
            assert_eq!((lead.len(), of(0, "board"), of(1, "board")), (2, "press-2".into(), "mill-1".into()));
            let worse = of(0, "says");
            assert!(worse.starts_with("press-2: late wake-ups "), "{worse}");
            assert!(
                worse.contains(" since 2026-10-30, with kernel 6.12.41-rt12 (nohz_full gone)"),
                "{worse}"
            );
            assert_eq!(of(1, "says"), "mill-1: silent since 2026-11-17.");
            let (_, page) = get(&app, "/").await;
            for at in 0..2 {
                let claim = of(at, "says").split_once(": ").map(|says| says.1.to_owned()).unwrap();
                let (claim, rest) = claim.split_once(" since ").unwrap();
                let link = format!("</strong>: <a href=\"{}\">{claim}</a> since <time>", of(at, "address"));
                assert!(page.contains(&link) && page.contains(&rest[10..]), "{link}: {page}");
            }
            // The evidence is where the link leads.
            let (path, id) = lead[0]["address"].as_str().unwrap().split_once('#').unwrap();
            let (_, page) = get(&app, path).await;
            assert!(page.contains(&format!(" id=\"{id}\">")) && page.contains("6.12.20-rt9"), "{page}");
            let boards = answer["boards"].as_array().unwrap();
            assert_eq!(boards.len(), NUMBER);
        });
        assert_eq!(Dir::existing(parent.path()).unwrap().names().unwrap(), [""; 0]);
    }
}
