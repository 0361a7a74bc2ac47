//! Fills a store with a synthetic fleet (`farm::fixture`), and prints its size and the time of each
//! page: lines of description, value and limit, separated by tabs. `cargo xtask bench --only farm`
//! runs it. With `fill` it only fills the store, for use with `onbeat-farm serve`; with `pages
//! FOLDER` it writes each page there as a file, for `cargo xtask browser`.

// In place of `main.rs`: it accesses the process.
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use farm::board_settings::{BoardSettings, BoardState};
use farm::encoding::pack_rows;
use farm::fixture::MadeFleet;
use farm::ingest::bundle::read;
use farm::ingest::find::FoundBundle;
use farm::records::{BundleRecord, EnvironmentRecord, SeriesKey, Tier};
use farm::sides::FarmSide;
use farm::store::{AuditEntry, FarmStore, TimeStretch};
use farm::users::{FarmUser, PasswordCost, Role, digest_password};
use farm::web::login::sender::digest_of;
use farm::web::{App, FarmExposure, router};
use model::units::Nanos;
use tower::ServiceExt;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Number of responses whose median counts.
const TIMES: usize = 20;
/// The first second of 2026-11-23: the end of the synthetic boards' data.
const END: i64 = 1_795_392_000;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [store, boards, days, rest @ ..] = &words[..] else {
        return Err("give a file for the store, a number of boards and a number of days".into());
    };
    let days: i64 = days.parse()?;
    let fleet = MadeFleet {
        boards: boards.parse()?,
        days,
        end: END,
        measured: bundle("measured")?,
        hunt: bundle("hunt")?,
        // A thousand boards, for the first page alone, have no five minutes.
        fine_days: if rest.iter().any(|word| word == "days") { 0 } else { days },
    };
    let wanted = match rest {
        [word, folder] if word == "pages" => Wanted::Pages(PathBuf::from(folder)),
        [] => Wanted::Times,
        _ => Wanted::Store,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(all(Path::new(store), &fleet, &wanted))
}

/// A farm, and the session of an administrator.
struct Asked {
    app: Arc<App>,
    cookie: String,
}

impl Asked {
    /// Builds a request; the login page is requested without a session.
    fn request(&self, address: &str) -> Outcome<Request<Body>> {
        let request = Request::get(address).header(header::HOST, "localhost");
        let known = if address.starts_with("/login?") { "" } else { &self.cookie };
        Ok(request.header(header::COOKIE, known).body(Body::empty())?)
    }
}

/// Adds a user of each role, and properties of boards; returns the administrator's cookie.
async fn users(store: &FarmStore) -> Outcome<String> {
    for role in Role::ALL {
        let digest = digest_password("made up, and nobody's", &[7; 16], PasswordCost::Least);
        let user = FarmUser { name: role.word().to_owned(), role, created: END - 9 * 86_400 };
        store.add_user(&user, &digest.unwrap_or_default()).await?;
    }
    let admin = Role::Admin.word();
    let digest = store.password_of(admin).await?.unwrap_or_default();
    store.begin_session(admin, &digest, &digest_of("made up"), END, i64::MAX).await?;
    store.set_budget("", Some(Nanos(500_000))).await?;
    store.set_budget("lab=west", Some(Nanos(200_000))).await?;
    let boards = store.boards().await?;
    let states = [BoardState::Active, BoardState::Replaced, BoardState::Muted, BoardState::Maintenance];
    for (board, state) in boards.iter().take(3).chain(boards.last()).zip(states) {
        let settings = BoardSettings {
            state,
            state_since: END - 5 * 86_400,
            tags: vec!["arm".to_owned(), "lab=west".to_owned()],
            ..BoardSettings::default()
        };
        store.set_settings(&board.board, &board.name, &settings).await?;
    }
    for (at, what) in ["logged in", "set the budget of all boards: 500.0 us"].into_iter().enumerate() {
        let t_ns = (END - 3_600 + at as i64) * Nanos::SECOND.0;
        let entry = AuditEntry { t_ns, who: admin.to_owned(), what: what.to_owned() };
        store.note(&entry).await?;
    }
    Ok("onbeat=made up".to_owned())
}

/// Action on the store.
enum Wanted {
    Store,
    Times,
    Pages(PathBuf),
}

fn bundle(name: &str) -> Outcome<BundleRecord> {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs").join(name);
    Ok(read(&FoundBundle { place: place.canonicalize()?, board: Some("made up".into()) })?.0)
}

async fn all(file: &Path, fleet: &MadeFleet, wanted: &Wanted) -> Outcome<()> {
    let store = FarmStore::file(file).await?;
    if store.boards().await?.is_empty() {
        fleet.fill(&store, |number| eprintln!("{number} of {} boards", fleet.boards)).await?;
    }
    let app = Arc::new(App::new(store.clone(), FarmExposure::Loopback, None));
    match wanted {
        Wanted::Store => return Ok(()),
        Wanted::Times => sizes(file, &store, fleet).await?,
        Wanted::Pages(folder) => std::fs::create_dir_all(folder)?,
    }
    let cookie = users(&store).await?;
    let app = Asked { app, cookie };
    // A running server has done this already.
    app.app.changes.all(&store, &store.boards().await?).await.map_err(|refusal| refusal.detail)?;
    for address in addresses(&store).await? {
        match wanted {
            Wanted::Pages(folder) => written(&app, &address, folder).await?,
            _ => page(&app, &address).await?,
        }
    }
    Ok(())
}

/// A page as a file: the style sheet inside, because a file has no server to ask.
async fn written(app: &Asked, address: &str, folder: &Path) -> Outcome<()> {
    if address.starts_with("/v1/") || address == "/metrics" {
        return Ok(());
    }
    let response = router(app.app.clone()).oneshot(app.request(address)?).await?;
    let text = String::from_utf8(to_bytes(response.into_body(), 256 << 20).await?.to_vec())?;
    let sheet = "<link rel=\"stylesheet\" href=\"/assets/farm.css\">";
    let text = text.replace(sheet, &format!("<style>{}</style>", farm::pages::style_sheet()));
    let name: String =
        address.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
    std::fs::write(folder.join(format!("farm{name}.html")), text)?;
    Ok(())
}

async fn sizes(file: &Path, store: &FarmStore, fleet: &MadeFleet) -> Outcome<()> {
    let log = file.with_extension("db-wal");
    let size = |file: &Path| std::fs::metadata(file).map_or(0, |known| known.len());
    let bytes = (size(file) + size(&log)) as f64;
    let year = bytes / 1e9 * 100.0 / fleet.boards as f64 * 365.0 / fleet.days as f64;
    println!("a store of {} boards and {} days: GB\t{:.2}\t", fleet.boards, fleet.days, bytes / 1e9);
    println!("the same for 100 boards and 365 days: GB\t{year:.2}\t6");
    let Some(board) = store.boards().await?.into_iter().next() else { return Ok(()) };
    let key = SeriesKey { series: "measure".into(), plan: fleet.measured.run.key.plan.clone() };
    let within = TimeStretch { from: END - 2 * 86_400, to: END - 86_400 };
    let rows = store.tiers(&board.board, &key, Tier::Slot, within).await?;
    let packed: usize = rows.iter().map(|row| pack_rows(&row.cpus).len()).sum();
    let cpus: usize = rows.iter().map(|row| row.cpus.len()).sum();
    let each = packed as f64 / cpus.max(1) as f64 / 1e3;
    println!("five minutes of a CPU, made up: kB\t{each:.3}\t0.5");
    let recorded =
        pack_rows(&fleet.measured.whole.cpus).len() as f64 / fleet.measured.whole.cpus.len() as f64;
    println!("a CPU of the run in tests/fixtures: kB\t{:.3}\t0.6", recorded / 1e3);
    Ok(())
}

/// Every page, of the board with the most data and of the one with the least.
async fn addresses(store: &FarmStore) -> Outcome<Vec<String>> {
    let mut all: Vec<String> = [
        "/changes",
        "/",
        "/?sort=name",
        "/runs",
        "/culprits",
        "/kernels",
        "/compare",
        "/metrics",
        "/v1/boards",
    ]
    .map(str::to_owned)
    .to_vec();
    all.extend(["/login", "/login?next=%2F", "/admin"].map(str::to_owned));
    let boards = store.boards().await?;
    for board in boards.iter().take(1).chain(boards.iter().skip(1).take(1)) {
        let name = &board.board;
        all.push(format!("/b/{name}"));
        all.extend(["?span=month", "?span=all", "/env"].map(|rest| format!("/b/{name}{rest}")));
        all.push(format!("/admin/boards/{name}"));
        all.extend(board.worst_day().map(|day| format!("/b/{name}/at/{}?worst=day", day.t)));
        let runs = store.runs(name, 500).await?;
        all.extend(runs.iter().take(1).map(|run| format!("/runs/{}", run.id)));
        let hunts = runs.iter().filter(|run| run.command == "hunt");
        all.extend(hunts.take(1).map(|run| format!("/runs/{}/spike/1", run.id)));
        // Runs of one command are of one bundle here, which is not compared with itself.
        let last = |command: &str| runs.iter().find(|run| run.command == command);
        if let (Some(a), Some(b)) = (last("measure"), last("hunt")) {
            all.push(format!("/compare?a={}&b={}", a.id, b.id));
        }
        // Days of a board before and after another environment.
        let history = store.environments(name).await?;
        if let [after, before, ..] = &history[..] {
            let (a, b) = (&before.record.digest, &after.record.digest);
            all.push(format!("/compare?b_board={name}&b_environment={b}&a_board={name}&a_environment={a}"));
        }
    }
    let records = store.environment_records().await?;
    if let Some((first, last)) = records.values().next().zip(records.values().next_back()) {
        all.push(format!("/compare?a_kernel={}&b_kernel={}", first.release, last.release));
        let machine = |of: &EnvironmentRecord| FarmSide { machine: of.model.clone(), ..FarmSide::default() };
        all.push(format!("/compare?{}&{}", machine(first).query("a"), machine(last).query("b")));
    }
    let culprits = store.culprits(None, 1).await?;
    all.extend(culprits.iter().map(|one| format!("/culprits/{}", one.fingerprint)));
    all.extend(["/changes?only=all".to_owned(), "/compare?a=none&b=none".to_owned()]);
    Ok(all)
}

async fn page(app: &Asked, address: &str) -> Outcome<()> {
    let (mut times, mut size) = (Vec::new(), 0);
    // The first is not warm.
    for _ in 0..=TIMES {
        let mut asked = app.request(address)?;
        asked.headers_mut().insert(header::ACCEPT_ENCODING, "gzip".parse()?);
        let before = Instant::now();
        let response = router(app.app.clone()).oneshot(asked).await?;
        let status = response.status();
        size = to_bytes(response.into_body(), 256 << 20).await?.len();
        times.push(before.elapsed().as_secs_f64() * 1e3);
        if !status.is_success() {
            return Err(format!("{address}: {status}").into());
        }
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    // Reports of runs are as long as the run was eventful.
    let most = if address.starts_with("/runs/") { "" } else { "300" };
    println!("{address}: ms\t{:.1}\t200", times[TIMES / 2]);
    println!("{address}: kB\t{:.1}\t{most}", size as f64 / 1e3);
    Ok(())
}
