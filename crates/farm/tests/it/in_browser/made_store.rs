//! A store like that of an older farm: a synthetic fleet, recorded runs, users.

use std::path::{Path, PathBuf};

use farm::board_settings::BoardSettings;
use farm::fixture::MadeFleet;
use farm::ingest::bundle::read;
use farm::ingest::find::FoundBundle;
use farm::records::BundleRecord;
use farm::store::FarmStore;
use tempfile::TempDir;

use super::browser::Browser;
use crate::server;
use crate::users::given;

/// The first second after the last day of the fleet, 2026-11-22, which is also that of the recorded
/// runs.
const END: i64 = 1_795_392_000;
pub const PASSWORD: &str = "correct horse battery";
/// The recorded run of `hunt`, and its board.
pub const HUNT: &str = "20261122T053833-1dab78ed";
pub const HUNTED: &str = "kiln-9";

/// A store in a temporary folder.
pub struct MadeStore {
    folder: TempDir,
    pub url: String,
}

impl MadeStore {
    /// A store with an admin, ann, and a viewer, vic.
    pub fn new() -> MadeStore {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("farm.db").display());
        for (name, role) in [("ann", "admin"), ("vic", "viewer")] {
            let words = ["user", "add", name, "--role", role, "--store", &url];
            let (code, _, said) = given(&words, &format!("{PASSWORD}\n"));
            assert_eq!(code, 0, "{said}");
        }
        MadeStore { folder, url }
    }

    /// A place in its folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// With boards of a synthetic fleet, tags on the presses, and the recorded runs of a board.
    pub async fn with_fleet(boards: usize, days: i64, fine_days: i64) -> MadeStore {
        let made = MadeStore::new();
        let (measured, hunt) = (recorded("measured"), recorded("hunt"));
        let fleet = MadeFleet { boards, days, end: END, measured, hunt, fine_days };
        let store = FarmStore::file(&made.at("farm.db")).await.unwrap();
        fleet.fill(&store, |_| ()).await.unwrap();
        for board in store.boards().await.unwrap() {
            if board.board.starts_with("press") {
                let settings =
                    BoardSettings { tags: vec!["lab=west".to_owned()], ..BoardSettings::default() };
                store.set_settings(&board.board, &board.name, &settings).await.unwrap();
            }
        }
        made.import(HUNTED, &runs());
        made
    }

    /// Imports runs from a folder.
    pub fn import(&self, board: &str, runs: &Path) {
        let words = ["import", "--board", board, "--store", &self.url];
        let imported = server::farm(&words).arg(runs).output().unwrap();
        assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    }
}

/// The folder of the recorded runs.
pub fn runs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs").canonicalize().unwrap()
}

fn recorded(name: &str) -> BundleRecord {
    read(&FoundBundle { place: runs().join(name), board: Some("made up".to_owned()) }).unwrap().0
}

/// Logs in, replacing the current session.
pub async fn log_in(browser: &Browser, name: &str, password: &str) {
    browser.go("/login").await;
    if browser.count("form[action='/logout']").await > 0 {
        browser.press("form[action='/logout'] button").await;
    }
    browser.fill("input[name=name]", name).await;
    browser.fill("input[name=password]", password).await;
    browser.press("form[action='/login'] button").await;
}
