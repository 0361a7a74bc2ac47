//! Who may do what: every route by every kind of visitor, and what an attacker tries.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use tower::ServiceExt;

use crate::board_settings::BoardSettings;
use crate::fixture::{block_on, recorded_run, run_folder};
use crate::ingest::board_key::board_key;
use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::records::{CpuRows, SeriesKey, Tier, TierRow};
use crate::store::{BulkRows, FarmStore};
use crate::users::{FarmUser, PasswordCost, Role, digest_password, make_secret};
use crate::web::login::access::RouteNeed;
use crate::web::routes::routes;
use crate::web::{AccessPolicy, App, FarmExposure, Intake, PublicReading, router};

pub const PASSWORD: &str = "correct horse battery";

/// A farm behind a proxy with two boards and somebody of each role.
async fn farm(public: Option<PublicReading>) -> Arc<App> {
    farm_of(FarmStore::in_memory().await.unwrap(), public).await
}

/// The same in a store that is empty.
pub async fn farm_of(store: FarmStore, public: Option<PublicReading>) -> Arc<App> {
    for (name, board) in [("measured", "west"), ("hunt", "east")] {
        let place = run_folder(name);
        let found = FoundBundle { place, board: Some(board.to_owned()) };
        store.put(&read(&found).unwrap().0).await.unwrap();
    }
    for role in Role::ALL {
        let user = FarmUser { name: role.word().to_owned(), role, created: 1 };
        let digest = digest_password(PASSWORD, &[7; 16], PasswordCost::Least).unwrap();
        store.add_user(&user, &digest).await.unwrap();
    }
    let folder = std::env::temp_dir().join("onbeat-farm-no-bundles");
    let intake = Intake::start(store.clone(), &folder, 1);
    let app = App::new(store, FarmExposure::BehindProxy, Some(intake));
    Arc::new(app.with_policy(AccessPolicy { public, metrics_open: false }))
}

/// An answer's status, where it leads, the cookie that it sets, its text.
pub struct Answer {
    pub status: u16,
    pub to: String,
    pub cookie: String,
    pub text: String,
}

/// What a browser sends along; `""` for nothing.
#[derive(Clone, Copy, Default)]
pub struct Browser<'a> {
    pub cookie: &'a str,
    pub site: &'a str,
    pub origin: &'a str,
}

pub const OWN: Browser = Browser { cookie: "", site: "same-origin", origin: "https://farm.test" };

pub async fn ask(
    app: &Arc<App>,
    method: &str,
    address: &str,
    by: Browser<'_>,
    body: impl Into<Body>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(address).header(header::HOST, "farm.test");
    for (name, value) in [("cookie", by.cookie), ("sec-fetch-site", by.site), ("origin", by.origin)] {
        if !value.is_empty() {
            request = request.header(name, value);
        }
    }
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let response = router(app.clone()).oneshot(request.body(body.into()).unwrap()).await.unwrap();
    let of = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (to, cookie) = (of(header::LOCATION).unwrap_or_default(), of(header::SET_COOKIE).unwrap_or_default());
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), 64 << 20).await.unwrap();
    Answer { status, to, cookie, text: String::from_utf8_lossy(&bytes).into_owned() }
}

pub fn form(name: &str, password: &str, next: &str) -> String {
    let part = crate::pages::parts::escaped;
    format!("name={}&password={}&next={}", part(name), part(password), part(next))
}

/// The cookie of somebody who has just logged in.
pub async fn logged_in(app: &Arc<App>, name: &str) -> String {
    let answer = ask(app, "POST", "/login", OWN, form(name, PASSWORD, "/")).await;
    assert_eq!((answer.status, answer.to.as_str()), (303, "/"), "{}", answer.text);
    answer.cookie.split(';').next().unwrap().to_owned()
}

/// Whether an answer says that one has to log in, or be somebody else.
fn is_refused(answer: &Answer) -> bool {
    matches!(answer.status, 401 | 403) || answer.status == 303 && answer.to.starts_with("/login?next=")
}

fn is_allowed(need: RouteNeed, role: Option<Role>, public: Option<PublicReading>) -> bool {
    let sees_all = role.is_some() || public == Some(PublicReading::All);
    match need {
        RouteNeed::Nothing => true,
        RouteNeed::Code | RouteNeed::Token => false,
        RouteNeed::Reading => sees_all || public == Some(PublicReading::Read),
        RouteNeed::Names | RouteNeed::Metrics => sees_all,
        RouteNeed::Role(wanted) => role.is_some_and(|role| role >= wanted),
    }
}

#[test]
fn every_route_is_for_those_of_its_row_alone() {
    block_on(async {
        for public in [None, Some(PublicReading::None), Some(PublicReading::Read), Some(PublicReading::All)] {
            let app = farm(public).await;
            let mut visitors = vec![(None, String::new())];
            for role in Role::ALL {
                visitors.push((Some(role), logged_in(&app, role.word()).await));
            }
            for route in routes() {
                if route.path == "/login" || route.path == "/logout" {
                    continue;
                }
                let address = route.path.replace("{board}", "west").replace("{t}", "1").replace("{seq}", "0");
                let address = address.replace(['{', '}'], "");
                for (role, cookie) in &visitors {
                    let by = Browser { cookie, ..OWN };
                    let answer = ask(&app, route.method, &address, by, "").await;
                    // A code that is none is refused by its handler, as a request without one.
                    let allowed = is_allowed(route.need, *role, public);
                    let refused = is_refused(&answer) || route.need == RouteNeed::Code;
                    assert_eq!(
                        !refused, allowed,
                        "{} {} by {role:?}, public {public:?}: {}",
                        route.method, route.path, answer.status
                    );
                }
            }
        }
    });
}

#[test]
fn the_token_of_a_script_reads_data_and_nothing_else() {
    block_on(async {
        let app = farm(None).await;
        let (token, digest) = make_secret(Role::Script, &[9; 32]).unwrap();
        let script = FarmUser { name: "grafana".into(), role: Role::Script, created: 1 };
        assert!(app.store.add_user(&script, &digest).await.unwrap());
        let status = async |method: &str, address: &str, by: &str| {
            let request = Request::builder().method(method).uri(address).header(header::HOST, "farm.test");
            let request = request.header("sec-fetch-site", "same-origin").header(header::AUTHORIZATION, by);
            let response = router(app.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            response.status().as_u16()
        };
        let bearer = format!("Bearer {token}");
        for route in routes() {
            let address = route.path.replace("{board}", "west").replace("{t}", "1").replace("{seq}", "0");
            let address = address.replace(['{', '}'], "");
            let is_data = route.path.starts_with("/v1") || route.path == "/metrics";
            let is_open = route.method == "GET" && is_data && !matches!(route.need, RouteNeed::Role(_));
            let refused = if route.need == RouteNeed::Token { 401 } else { 403 };
            let is_refused = status(route.method, &address, &bearer).await == refused;
            let wanted = !is_open || route.need == RouteNeed::Token;
            assert_eq!(is_refused, wanted, "{} {}", route.method, route.path);
        }
        let basic = |text: String| format!("basic {}", STANDARD.encode(text));
        for (by, wanted) in [
            (basic(format!("anybody:{token}")), 200),
            (basic(token.clone()), 401),
            (basic("ann:correct horse battery".to_owned()), 401),
            (format!("{bearer}0"), 401),
            (format!("Bearer {digest}"), 401),
        ] {
            assert_eq!(status("GET", "/v1/changes", &by).await, wanted, "{by}");
        }
        // Its name and its token are no login.
        let entered = ask(&app, "POST", "/login", OWN, form("grafana", &token, "/")).await;
        assert_eq!(entered.status, 401);
        assert!(app.store.remove_user("grafana").await.unwrap());
        let mut seen = Vec::new();
        for _ in 0..70 {
            seen.push(status("GET", "/v1/boards", &bearer).await);
        }
        assert!(seen[0] == 401 && seen.contains(&429) && !seen.contains(&200), "{seen:?}");
    });
}

#[test]
fn a_cookie_never_sends_as_a_board_and_nothing_is_sent_from_elsewhere() {
    for route in routes() {
        let sends = route.method != "GET";
        let by_board = matches!(route.need, RouteNeed::Token | RouteNeed::Code);
        assert!(!sends || by_board == route.path.starts_with("/v1/"), "{} {}", route.method, route.path);
        assert!(!by_board || route.path.starts_with("/v1/"), "{}", route.path);
    }
    block_on(async {
        let app = farm(None).await;
        let cookie = logged_in(&app, "admin").await;
        for route in
            routes().into_iter().filter(|route| route.method == "POST" && route.need != RouteNeed::Code)
        {
            let address = route.path.replace("{board}", "west").replace(['{', '}'], "");
            for (site, origin) in [
                ("", ""),
                ("cross-site", "https://evil.test"),
                ("cross-site", "https://farm.test"),
                ("same-site", "https://other.farm.test"),
                ("none", ""),
                ("", "https://evil.test"),
                ("", "null"),
            ] {
                let answer = ask(&app, "POST", &address, Browser { cookie: &cookie, site, origin }, "").await;
                assert_eq!(answer.status, 403, "{address} {site} {origin}");
            }
        }
        assert_eq!(ask(&app, "GET", "/", Browser { cookie: &cookie, ..OWN }, "").await.status, 200);
    });
}

#[test]
fn who_logs_in_is_known_until_the_session_ends() {
    block_on(async {
        let app = farm(None).await;
        let first = ask(&app, "GET", "/b/west?span=all", OWN, "").await;
        assert_eq!((first.status, first.to.as_str()), (303, "/login?next=%2Fb%2Fwest%3Fspan%3Dall"));
        let shown = ask(&app, "GET", &first.to, OWN, "").await.text;
        assert!(shown.contains("name=\"next\" value=\"/b/west?span=all\""), "{shown}");
        let entered = ask(&app, "POST", "/login", OWN, form("viewer", PASSWORD, "/b/west?span=all")).await;
        assert_eq!((entered.status, entered.to.as_str()), (303, "/b/west?span=all"));
        for part in
            ["__Host-onbeat=", "; Path=/;", "; Secure", "; HttpOnly", "; SameSite=Lax", "; Max-Age=604800"]
        {
            assert!(entered.cookie.contains(part), "{}", entered.cookie);
        }
        let cookie = entered.cookie.split(';').next().unwrap();
        let by = Browser { cookie, ..OWN };
        assert_eq!(ask(&app, "GET", "/runs/none", by, "").await.status, 404);
        assert!(ask(&app, "GET", "/login", by, "").await.text.contains("viewer"));
        // Logging in again ends the session before; one that a browser brings along is never taken.
        let again = ask(&app, "POST", "/login", by, form("viewer", PASSWORD, "/")).await;
        let second = again.cookie.split(';').next().unwrap();
        assert!(second != cookie && is_refused(&ask(&app, "GET", "/", by, "").await));
        let planted = Browser { cookie: "__Host-onbeat=planted", ..OWN };
        let entered = ask(&app, "POST", "/login", planted, form("viewer", PASSWORD, "/")).await;
        assert!(entered.status == 303 && is_refused(&ask(&app, "GET", "/", planted, "").await));
        let by = Browser { cookie: second, ..OWN };
        assert_eq!(ask(&app, "GET", "/", by, "").await.status, 200);
        let left = ask(&app, "POST", "/logout", by, "").await;
        assert!(left.cookie.contains("Max-Age=0") && left.to == "/login");
        assert!(is_refused(&ask(&app, "GET", "/", by, "").await));
        let said = app.store.audit(9).await.unwrap();
        assert!(said.iter().all(|one| one.who == "viewer" && one.what == "logged in") && said.len() == 3);
    });
}

#[test]
fn a_user_who_is_removed_or_changed_is_so_with_the_next_request() {
    block_on(async {
        let app = farm(None).await;
        let cookies = [logged_in(&app, "viewer").await, logged_in(&app, "admin").await];
        let [viewer, admin] = cookies.each_ref().map(|cookie| Browser { cookie, ..OWN });
        assert_eq!(ask(&app, "GET", "/v1/boards", viewer, "").await.status, 200);
        app.store.remove_user("viewer").await.unwrap();
        assert_eq!(ask(&app, "GET", "/v1/boards", viewer, "").await.status, 401);
        app.store.set_role("admin", Role::Viewer).await.unwrap();
        assert!(ask(&app, "GET", "/login", admin, "").await.text.contains("(viewer)"));
        app.store.set_password("admin", "other").await.unwrap();
        assert!(is_refused(&ask(&app, "GET", "/", admin, "").await));
    });
}

#[test]
fn nobody_learns_which_names_there_are_and_guessing_comes_to_an_end() {
    block_on(async {
        let app = farm(None).await;
        let wrong = ask(&app, "POST", "/login", OWN, form("admin", "wrong password", "/")).await;
        let nobody = ask(&app, "POST", "/login", OWN, form("nobody", "wrong password", "/")).await;
        assert_eq!((wrong.status, wrong.text), (401, nobody.text));
        let markup = ask(&app, "POST", "/login", OWN, form("<b>x", "<i>y", "\"><script>")).await;
        assert!(markup.status == 401 && !markup.text.contains("<b>") && !markup.text.contains("<script"));
        let mut seen = Vec::new();
        for _ in 0..30 {
            seen.push(ask(&app, "POST", "/login", OWN, form("admin", "wrong password", "/")).await.status);
        }
        assert!(seen.contains(&429) && !seen.contains(&303), "{seen:?}");
        for foreign in ["//evil.test", "https://evil.test", "/\\evil.test", "/\t/evil.test"] {
            let app = farm(None).await;
            let answer = ask(&app, "POST", "/login", OWN, form("viewer", PASSWORD, foreign)).await;
            assert_eq!((answer.status, answer.to.as_str()), (303, "/"), "{foreign}");
        }
    });
}

#[test]
fn what_is_too_large_or_no_form_is_refused() {
    block_on(async {
        let app = farm(None).await;
        let large = form("viewer", &"x".repeat(10 << 20), "/");
        assert_eq!(ask(&app, "POST", "/login", OWN, large).await.status, 413);
        for body in ["", "name=viewer", "%ff", "name=viewer&password=%00&password=2"] {
            let answer = ask(&app, "POST", "/login", OWN, body.to_owned()).await;
            assert!(answer.status / 100 == 4, "{body}: {}", answer.status);
        }
    });
}

/// What is in a name that the public may not see.
const PLANTED: &str = "planted";

/// Plants it where a name can come from that no recorded run has: the command and the path of a
/// load, a lab, a tag that has a budget, a label; and makes a board that its machine names.
async fn plant(app: &Arc<App>) {
    let mut loaded = recorded_run("hunt", "east");
    loaded.run.id = "loaded".to_owned();
    loaded.run.key.plan = "0123456789ab".to_owned();
    loaded.run.labels = [("build".to_owned(), PLANTED.to_owned())].into_iter().collect();
    loaded.plan_words = format!("every 1 ms, load disk:2,path=/{PLANTED}, load cmd:sh -c 'a, {PLANTED}'");
    loaded.slots.clear();
    app.store.put(&loaded).await.unwrap();
    let found = FoundBundle { place: run_folder("measured"), board: None };
    let mut of_machine = read(&found).unwrap().0;
    of_machine.run.id = "of-machine".to_owned();
    of_machine.slots.iter_mut().for_each(|slot| slot.run = "of-machine".to_owned());
    app.store.put(&of_machine).await.unwrap();
    let (lab, tag) = (format!("lab={PLANTED}"), format!("{PLANTED}-tag"));
    app.store.set_budget(&tag, Some(Nanos(1_000))).await.unwrap();
    for name in ["west", "east"] {
        let settings = BoardSettings { tags: vec![lab.clone(), tag.clone()], ..BoardSettings::default() };
        assert!(app.store.set_settings(name, name, &settings).await.unwrap());
    }
}

/// What the public may not see, as it is in the store.
async fn names(app: &Arc<App>) -> Vec<String> {
    let mut names = Vec::new();
    for board in app.store.boards().await.unwrap() {
        names.extend([board.model, board.release, board.preempt, board.environment]);
        for run in app.store.runs(&board.board, 9).await.unwrap() {
            let all = crate::store::TimeStretch { from: i64::MIN, to: i64::MAX };
            let slots = app.store.slots(&board.board, &run.key, all, 999).await.unwrap();
            names.extend(slots.into_iter().flat_map(|slot| [slot.culprit, slot.victim]));
        }
    }
    names.extend(app.store.culprits(None, 99).await.unwrap().into_iter().map(|one| one.name));
    // The board that its machine names is in its address as this.
    let key = board_key(&names[0]);
    names.extend([PLANTED.to_owned(), key]);
    names.retain(|name| name.len() > 3);
    names
}

#[test]
fn the_public_sees_latencies_and_no_names() {
    block_on(async {
        let app = farm(Some(PublicReading::Read)).await;
        plant(&app).await;
        let names = names(&app).await;
        assert!(names.len() > 6, "{names:?}");
        let boards = app.store.boards().await.unwrap();
        assert_eq!(boards.len(), 3);
        let mut runs = Vec::new();
        for board in &boards {
            runs.extend(app.store.runs(&board.board, 9).await.unwrap());
        }
        assert_eq!(runs.len(), 4);
        let mut seen = 0;
        for run in &runs {
            for route in routes().into_iter().filter(|route| route.method == "GET") {
                let address = route.path.replace("{board}", &run.board).replace("{id}", &run.id);
                let address = address.replace("{t}", &run.started.to_string()).replace("{fingerprint}", "x");
                for query in ["", "?only=all", "?worst=day", "?q=6."] {
                    let answer = ask(&app, "GET", &(address.clone() + query), OWN, "").await;
                    if answer.status != 200 {
                        continue;
                    }
                    seen += 1;
                    let told: Vec<&String> =
                        names.iter().filter(|name| answer.text.contains(*name)).collect();
                    assert!(told.is_empty(), "{address}{query} tells {told:?}");
                }
            }
        }
        assert!(seen > 40, "{seen}");
        let fleet = ask(&app, "GET", "/", OWN, "").await.text;
        assert!(fleet.contains("1 board is named after the machine"), "{fleet}");
        let changes = ask(&app, "GET", "/v1/changes", OWN, "").await.text;
        assert!(changes.contains("that of a tag"), "{changes}");
        let page = ask(&app, "GET", "/b/east", OWN, "").await.text;
        assert!(page.contains("The largest latency") && page.contains("log in"), "{page}");
        assert!(page.contains("load disk:2, load cmd<") || page.contains("load disk:2, load cmd "), "{page}");
        assert!(!page.contains("unknown"), "what is left out is not said to be unknown: {page}");
        // With a cookie of somebody everything is there.
        let cookie = logged_in(&app, "viewer").await;
        let page = ask(&app, "GET", "/b/east", Browser { cookie: &cookie, ..OWN }, "").await.text;
        assert!(names.iter().any(|name| page.contains(name)) && page.contains(PLANTED));
        // What was planted is where it was looked for.
        for address in ["/", "/v1/boards", "/v1/boards.csv", "/v1/boards/east", "/v1/changes", "/changes"] {
            let text = ask(&app, "GET", address, Browser { cookie: &cookie, ..OWN }, "").await.text;
            assert!(text.contains(PLANTED), "{address}: {text}");
        }
    });
}

/// A hundred days of a series, and twelve more on which three times as many wake-ups were late.
async fn put_rate(app: &Arc<App>, board: &str, key: &SeriesKey, end: i64) {
    let day = |back: i64| {
        let late = (back % 3 + if back <= 12 { 44 } else { 14 }) as u64;
        let rows = RowCounts::of_rows([(300, 86_000_000), (450, late)]);
        let (t, n) = (Tier::Day.begin(end) - back * 86_400, 86_000_000 + late);
        let cpus = vec![CpuRows { cpu: Cpu(0), rows }];
        (Tier::Day, TierRow { t, n, max_ns: Some(Nanos(100_000)), cpus, ..TierRow::default() })
    };
    let tiers = (1..=112).rev().map(day).collect();
    let rows = BulkRows { key: key.clone(), tiers, ..BulkRows::default() };
    app.store.put_bulk(board, &rows).await.unwrap();
}

#[test]
fn what_changed_of_a_series_tells_the_public_no_command() {
    block_on(async {
        let app = farm(Some(PublicReading::Read)).await;
        plant(&app).await;
        let loaded = app.store.run("loaded").await.unwrap().unwrap();
        put_rate(&app, "east", &loaded.key, loaded.started).await;
        let cookie = logged_in(&app, "viewer").await;
        for address in ["/v1/changes", "/v1/changes.csv", "/changes", "/b/east"] {
            let text = ask(&app, "GET", address, OWN, "").await.text;
            assert!(!text.contains(PLANTED), "{address}: {text}");
            let told = "(every 1 ms, load disk:2, load cmd) of ";
            assert!(text.contains(told) && text.contains("more often"), "{address}: {text}");
            let named = ask(&app, "GET", address, Browser { cookie: &cookie, ..OWN }, "").await.text;
            assert!(named.contains(&format!("path=/{PLANTED}, load cmd:sh -c ")), "{address}: {named}");
        }
    });
}

#[test]
fn on_this_machine_all_read_until_somebody_can_log_in() {
    block_on(async {
        let store = FarmStore::in_memory().await.unwrap();
        let app = Arc::new(App::new(store, FarmExposure::BehindProxy, None));
        assert!(is_refused(&ask(&app, "GET", "/", OWN, "").await));
        let store = FarmStore::in_memory().await.unwrap();
        let app = Arc::new(App::new(store, FarmExposure::Loopback, None));
        let here = async |address: &str| {
            let request =
                Request::get(address).header(header::HOST, "localhost").body(Body::empty()).unwrap();
            router(app.clone()).oneshot(request).await.unwrap().status().as_u16()
        };
        assert_eq!((here("/").await, here("/metrics").await), (200, 200));
        let digest = digest_password(PASSWORD, &[7; 16], PasswordCost::Least).unwrap();
        let ann = FarmUser { name: "ann".into(), role: Role::Viewer, created: 1 };
        app.store.add_user(&ann, &digest).await.unwrap();
        assert_eq!((here("/").await, here("/metrics").await, here("/healthz").await), (303, 401, 200));
    });
}
