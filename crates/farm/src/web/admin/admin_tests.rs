//! Looking after the farm: what users set holds, is seen, and is noted.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, header};
use quick_xml::events::Event;
use serde_json::Value;
use tower::ServiceExt;

use crate::board_settings::BoardState;
use crate::pages::parts::escaped;
use crate::store::engines::on_page_engines;
use crate::users::Role;
use crate::web::changes::note_found;
use crate::web::login::access_tests::{Answer, Browser, OWN, ask, farm_of, form, logged_in};
use crate::web::{App, ServerCertificate, router};

/// Somebody with a session at a farm.
struct Somebody {
    app: Arc<App>,
    cookie: String,
}

impl Somebody {
    async fn of(app: &Arc<App>, name: &str) -> Somebody {
        Somebody { app: app.clone(), cookie: logged_in(app, name).await }
    }

    async fn get(&self, address: &str) -> Answer {
        ask(&self.app, "GET", address, Browser { cookie: &self.cookie, ..OWN }, "").await
    }

    async fn post(&self, address: &str, fields: &[(&str, &str)]) -> Answer {
        let pairs = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        ask(&self.app, "POST", address, Browser { cookie: &self.cookie, ..OWN }, body).await
    }

    async fn json(&self, address: &str) -> Value {
        serde_json::from_str(&self.get(address).await.text).unwrap()
    }

    async fn did(&self) -> String {
        let all = self.app.store.audit(99).await.unwrap();
        all.into_iter().map(|one| format!("{}: {}\n", one.who, one.what)).collect()
    }
}

/// A board as a request sets it.
fn set<'a>(name: &'a str, state: &'a str, tags: &'a str, budget: &'a str) -> [(&'a str, &'a str); 4] {
    [("name", name), ("state", state), ("tags", tags), ("budget", budget)]
}

#[test]
fn a_budget_that_is_broken_is_a_change_until_it_is_acknowledged() {
    on_page_engines(async |store| {
        let app = farm_of(store, None).await;
        let ann = Somebody::of(&app, "operator").await;
        assert!(!ann.get("/").await.text.contains("24 h / budget"));
        assert_eq!(ann.post("/admin/budgets", &[("limit", "1us")]).await.to, "/admin");
        assert_eq!(ann.post("/admin/boards/east", &set("East", "active", "lab", "")).await.status, 303);
        assert_eq!(ann.post("/admin/budgets", &[("tag", "Lab"), ("limit", "10s")]).await.status, 303);
        // The tag's is narrower than the fleet's, however large it is.
        let changes = ann.json("/v1/changes").await["changes"].clone();
        assert_eq!((changes.as_array().unwrap().len(), &changes[0]["kind"]), (1, &"over-budget".into()));
        assert_eq!(changes[0]["board"], "west");
        let front = ann.get("/").await.text;
        assert!(front.contains("24 h / budget") && front.contains("over budget"), "{front}");
        let listed = ann.json("/v1/boards?sort=name").await["boards"].clone();
        let told = [&listed[0]["changes"], &listed[1]["changes"]];
        assert_eq!(told, [&serde_json::json!([]), &serde_json::json!(["over-budget"])]);
        assert!(listed[1]["max_day"].as_i64().is_some_and(|day| day % 86_400 == 0), "{listed}");
        let csv = ann.get("/v1/boards.csv?q=west").await.text;
        assert!(csv.lines().nth(1).unwrap().contains(",fleet,over-budget,"), "{csv}");
        assert_eq!(ann.json("/v1/boards/west").await["changes"][0]["kind"], "over-budget");
        let metrics = ann.get("/metrics").await.text;
        assert!(metrics.contains("onbeat_over_budget{board=\"west\"} 1"), "{metrics}");
        assert!(metrics.contains("onbeat_over_budget{board=\"east\"} 0"));
        assert!(metrics.contains("onbeat_budget_seconds{board=\"west\"} 0.000001"));
        let t = changes[0]["t"].to_string();
        let subject = changes[0]["subject"].as_str().unwrap();
        let which = [("board", "west"), ("subject", subject), ("t", t.as_str())];
        let note = "a <b>known</b> thing";
        let noted = ann.post("/changes/acknowledge", &[&which[..], &[("note", note)]].concat()).await;
        assert_eq!(noted.to, "/changes?board=west", "{}", noted.text);
        assert_eq!(ann.json("/v1/changes").await["changes"].as_array().unwrap().len(), 0);
        let seen = ann.json("/v1/changes?only=acknowledged").await["changes"][0]["acknowledged"].clone();
        assert_eq!((&seen["who"], &seen["note"]), (&"operator".into(), &note.into()));
        let page = ann.get("/changes?only=acknowledged").await.text;
        assert!(page.contains("by operator") && !page.contains("<b>known"), "{page}");
        assert!(!ann.get("/").await.text.contains("over budget"));
        // A viewer sees who looked at it, and cannot say so.
        let bob = Somebody::of(&app, "viewer").await;
        assert!(!bob.get("/changes?only=all").await.text.contains("action=\"/changes/acknowledge"));
        let reopened = ann.post("/changes/acknowledge", &[&which[..], &[("reopen", "yes")]].concat()).await;
        assert_eq!(reopened.status, 303);
        assert_eq!(ann.json("/v1/changes").await["changes"].as_array().unwrap().len(), 1);
        for wrong in [[("board", "none"), which[1], which[2]], [which[0], ("subject", "x"), which[2]]] {
            assert_eq!(ann.post("/changes/acknowledge", &wrong).await.status, 404);
        }
        // With another budget it is another question; without one there is none.
        ann.post("/admin/budgets", &[("limit", "")]).await;
        assert!(ann.json("/v1/changes").await["changes"].as_array().unwrap().is_empty());
        assert!(ann.did().await.contains("operator: set the budget of tag lab: 10"));
        let entries = ann.json("/v1/audit?limit=9").await["entries"].clone();
        let mut did = entries.as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap());
        assert!(did.any(|what| what.starts_with("set the budget of tag lab: 10")), "{entries}");
        assert_eq!(ann.get("/v1/audit?limit=0").await.status, 400);
        let budgets = ann.json("/v1/budgets").await;
        assert_eq!((&budgets["fleet_ns"], &budgets["tags"][0]["tag"]), (&Value::Null, &"lab".into()));
        assert_eq!(bob.get("/v1/budgets").await.status, 403);
    });
}

/// Texts and attributes of a feed's elements by their names, in order; it has to be well-formed.
fn elements(feed: &str) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut reader = quick_xml::Reader::from_str(feed);
    let (mut path, mut all): (Vec<String>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) => {
                path.push(text(element.name().as_ref()));
                for attribute in element.attributes().map(Result::unwrap) {
                    all.push((
                        format!("{}@{}", path.join("/"), text(attribute.key.as_ref())),
                        quick_xml::escape::unescape(&text(&attribute.value)).unwrap().into_owned(),
                    ));
                }
            }
            Event::Text(content) => all.push((path.join("/"), content.decode().unwrap().into_owned())),
            Event::End(_) => drop(path.pop()),
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(path.is_empty(), "{path:?}");
    all
}

#[test]
fn a_feed_has_each_change_once_with_the_time_of_its_first_report() {
    on_page_engines(async |store| {
        let app = farm_of(store, None).await;
        let ann = Somebody::of(&app, "operator").await;
        let values = async |name: &str| -> Vec<String> {
            let all = elements(&ann.get("/v1/changes.atom").await.text);
            all.into_iter().filter(|one| one.0 == name).map(|one| one.1).collect()
        };
        assert_eq!(values("feed/title").await, ["onbeat farm: changes"]);
        assert!(values("feed/entry/id").await.is_empty());
        ann.post("/admin/budgets", &[("limit", "1us")]).await;
        ann.post("/admin/boards/west", &set("<b>W&", "active", "", "")).await;
        let mut ids = Vec::new();
        for now in [4_000_000_000, 4_000_086_400] {
            let all = app.changes.look_through(&app.store).await.unwrap();
            note_found(&app, &all, now).await.unwrap();
            ids.push(values("feed/entry/id").await);
            assert_eq!(values("feed/entry/updated").await, ["2096-10-02T07:06:40.000000Z"; 2]);
        }
        assert!(ids[0] == ids[1] && ids[0][0] != ids[0][1], "{ids:?}");
        assert!(ids[0].iter().all(|id| id.starts_with("https://farm.test/changes#")), "{ids:?}");
        assert_eq!(values("feed@xml:base").await, ["https://farm.test/"]);
        assert_eq!(values("feed/updated").await, ["2096-10-02T07:06:40.000000Z"]);
        let changes = ann.json("/v1/changes").await["changes"].clone();
        let addresses: Vec<&str> =
            changes.as_array().unwrap().iter().map(|one| one["address"].as_str().unwrap()).collect();
        assert_eq!(values("feed/entry/link@href").await, addresses);
        assert_eq!(values("feed/entry/category@term").await, ["over-budget"; 2]);
        let feed = ann.get("/v1/changes.atom?board=west").await.text;
        assert!(feed.contains("&lt;b&gt;W&amp;: over budget") && !feed.contains("east"), "{feed}");
        assert_eq!(ann.get("/v1/changes.atom?board=none").await.status, 404);
    });
}

#[test]
fn of_a_board_that_is_muted_nothing_is_reported_and_its_page_says_so() {
    on_page_engines(async |store| {
        let app = farm_of(store, None).await;
        let ann = Somebody::of(&app, "operator").await;
        for state in BoardState::ALL {
            let answer = ann.post("/admin/boards/west", &set("West", state.word(), "", "1us")).await;
            assert_eq!(answer.to, "/admin/boards/west", "{}", answer.text);
            let open = ann.json("/v1/changes?board=west").await["changes"].as_array().unwrap().len();
            // What the hardware before did is not held against the one of now.
            assert_eq!(open, usize::from(state == BoardState::Active), "{state:?}");
            let page = ann.get("/b/west").await.text;
            assert_eq!(page.contains("are not reported"), state.is_quiet());
            assert_eq!(page.contains("hardware was replaced"), state == BoardState::Replaced);
            let metrics = ann.get("/metrics").await.text;
            let said = format!("\nonbeat_board_state{{board=\"west\",state=\"{}\"}} 1\n", state.word());
            assert!(metrics.contains(&said), "{metrics}");
            assert_eq!(metrics.contains("onbeat_over_budget{board=\"west\"}"), !state.is_quiet());
        }
        let said = ann.json("/v1/boards/west").await["board"].clone();
        assert_eq!((&said["state"], &said["budget_of"]), (&"replaced".into(), &"board".into()));
        // A name is text, and one that is empty is the board's own.
        ann.post("/admin/boards/west", &set("<b>W</b>", "active", "", "")).await;
        let page = ann.get("/admin").await.text;
        assert!(page.contains("&lt;b&gt;W") && !page.contains("<b>"), "{page}");
        ann.post("/admin/boards/west", &set("", "active", "", "")).await;
        assert_eq!(ann.json("/v1/boards/west").await["board"]["name"], "west");
        for wrong in [
            set("W", "gone", "", ""),
            set("W", "active", "<b>", ""),
            set("W", "active", "", "-1"),
            set("W", "active", "", "1 yard"),
        ] {
            assert_eq!(ann.post("/admin/boards/west", &wrong).await.status, 400, "{wrong:?}");
        }
        assert_eq!(ann.post("/admin/boards/none", &set("W", "active", "", "")).await.status, 404);
        // What another board is called it cannot be called, until that one has another name.
        let taken = ann.post("/admin/boards/west", &set("east", "muted", "", "")).await;
        assert!(taken.status == 409 && taken.text.contains("choose another name"), "{}", taken.text);
        assert_eq!(ann.post("/admin/boards/east", &set("East 1", "active", "", "")).await.status, 303);
        assert_eq!(ann.post("/admin/boards/west", &set("East 1", "active", "", "")).await.status, 409);
        let board = ann.json("/v1/boards/west").await["board"].clone();
        assert_eq!((&board["name"], &board["state"]), (&"west".into(), &"active".into()));
    });
}

/// What a page shows this once.
fn once(page: &str) -> String {
    let shown = page.split("<pre class=\"copy\">").nth(1).unwrap_or_else(|| panic!("{page}"));
    shown.split('<').next().unwrap().to_owned()
}

#[test]
fn users_are_let_in_and_out_and_the_last_admin_stays() {
    on_page_engines(async |store| {
        let app = farm_of(store, None).await;
        let root = Somebody::of(&app, "admin").await;
        let added = root.post("/admin/users", &[("name", "eve"), ("role", "operator")]).await;
        let password = once(&added.text);
        assert_eq!(password.len(), 32);
        let entered = ask(&app, "POST", "/login", OWN, form("eve", &password, "/admin")).await;
        assert_eq!((entered.status, entered.to.as_str()), (303, "/admin"));
        let eve = Somebody { app: app.clone(), cookie: entered.cookie.split(';').next().unwrap().to_owned() };
        let page = eve.get("/admin").await;
        assert!(page.status == 200 && !page.text.contains("Enrolment") && !page.text.contains("Users"));
        assert!(eve.get("/b/west").await.text.contains("/admin/boards/west"));
        let again = root.post("/admin/users", &[("name", "eve"), ("role", "viewer")]).await;
        assert_eq!(again.status, 409);
        for (name, role) in [("<b>", "viewer"), ("a b", "viewer"), ("", "viewer"), ("bob", "root")] {
            assert_eq!(
                root.post("/admin/users", &[("name", name), ("role", role)]).await.status,
                400,
                "{name}"
            );
        }
        // Another role holds from the next request on, another password ends the session.
        root.post("/admin/users/eve", &[("what", "role"), ("role", "viewer")]).await;
        assert_eq!((eve.get("/admin").await.status, eve.get("/").await.status), (403, 200));
        let changed = root.post("/admin/users/eve", &[("what", "password")]).await;
        assert!(once(&changed.text) != password && eve.get("/").await.status == 303);
        assert_eq!(root.post("/admin/users/eve", &[("what", "remove")]).await.status, 303);
        assert_eq!(root.post("/admin/users/eve", &[("what", "remove")]).await.status, 404);
        for what in [[("what", "remove"), ("role", "")], [("what", "role"), ("role", "viewer")]] {
            assert_eq!(root.post("/admin/users/admin", &what).await.status, 409);
        }
        assert_eq!(root.post("/admin/users/admin", &[("what", "dance")]).await.status, 400);
        // A script has a token, which stays one.
        let added = root.post("/admin/users", &[("name", "grafana"), ("role", "script")]).await;
        let token = once(&added.text);
        assert!(token.starts_with("obr_") && added.text.contains("New token"), "{token}");
        for (name, role) in [("grafana", "viewer"), ("viewer", "script")] {
            let to = format!("/admin/users/{name}");
            assert_eq!(root.post(&to, &[("what", "role"), ("role", role)]).await.status, 409, "{name}");
        }
        let changed = root.post("/admin/users/grafana", &[("what", "password")]).await;
        let other = once(&changed.text);
        assert!(other.starts_with("obr_") && other != token, "{other}");
        root.post("/admin/users/viewer", &[("what", "role"), ("role", Role::Admin.word())]).await;
        assert_eq!(root.post("/admin/users/admin", &[("what", "remove")]).await.status, 303);
        assert_eq!(root.get("/admin").await.status, 303);
        let did = root.did().await;
        assert!(
            did.contains("admin: added eve, operator\n") && did.contains("admin: removed admin\n"),
            "{did}"
        );
        assert!(
            did.contains("admin: added grafana, script\n") && did.contains("changed the token of grafana")
        );
        assert!(!did.contains(&password) && !did.contains(&token) && !did.contains(&other));
    });
}

#[test]
fn a_board_is_let_in_by_a_code_and_what_it_was_refused_is_shown() {
    on_page_engines(async |store| {
        let app = farm_of(store, None).await;
        let root = Somebody::of(&app, "admin").await;
        let code = once(&root.post("/admin/codes", &[("count", "1")]).await.text);
        assert_eq!(root.post("/admin/codes", &[("count", "1000")]).await.status, 400);
        let enrol = serde_json::json!({ "code": code, "name": "press-3" }).to_string();
        let enrolled = ask(&app, "POST", "/v1/enrol", Browser::default(), enrol).await;
        let answer: Value = serde_json::from_str(&enrolled.text).unwrap();
        let token = answer["token"].as_str().unwrap().to_owned();
        let put = async |body: &'static str| {
            let request = Request::put("/v1/rows/boot/rec/timer/0")
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .body(Body::from(body))
                .unwrap();
            router(app.clone()).oneshot(request).await.unwrap().status().as_u16()
        };
        assert_eq!(put("no <b>row\n").await, 422);
        let page = root.get("/admin").await.text;
        assert!(page.contains("press-3") && page.contains("PUT /v1/rows/boot/rec/timer/0"), "{page}");
        assert!(!page.contains("<b>"));
        let page = root.get("/admin/boards/press-3").await.text;
        assert!(
            page.contains("Refused since the server was started") && page.contains("Revoke it"),
            "{page}"
        );
        let sent = root.json("/v1/boards/press-3/sent").await;
        assert_eq!(
            (&sent["tokens"], &sent["rows"], &sent["refused"][0]["count"]),
            (&1.into(), &0.into(), &1.into())
        );
        assert_eq!(root.json("/v1/storage").await["open_codes"], 0);
        assert_eq!(root.json("/v1/users").await["users"].as_array().unwrap().len(), 3);
        let ann = Somebody::of(&app, "operator").await;
        assert_eq!(ann.get("/v1/users").await.status, 403);
        let storage = ann.json("/v1/storage").await;
        assert!(storage["open_codes"].is_null() && storage["sent_bytes"] == 0, "{storage}");
        assert_eq!(root.post("/admin/boards/press-3/revoke", &[]).await.status, 303);
        assert_eq!(root.post("/admin/boards/press-3/revoke", &[]).await.status, 404);
        assert_eq!(put("").await, 401);
        assert!(root.did().await.contains("admin: revoked the token of press-3"));
    });
}

#[test]
fn an_admin_removes_a_run_and_it_does_not_come_again() {
    on_page_engines(async |store| {
        let app = farm_of(store, None).await;
        let (ann, bob) = (Somebody::of(&app, "admin").await, Somebody::of(&app, "operator").await);
        let run = app.store.runs("east", 1).await.unwrap().remove(0);
        let (page, remove) = (format!("/runs/{}", run.id), format!("/runs/{}/remove", run.id));
        assert!(ann.get(&page).await.text.contains(&remove) && !bob.get(&page).await.text.contains(&remove));
        assert_eq!(bob.post(&remove, &[]).await.status, 403);
        assert_eq!(bob.post(&format!("{page}/pin"), &[("note", "")]).await.status, 303);
        let refused = ann.post(&remove, &[]).await;
        assert!(refused.status == 409 && refused.text.contains("is pinned"), "{}", refused.text);
        assert_eq!(ann.post(&format!("{page}/pin"), &[("remove", "1")]).await.status, 303);
        assert_eq!(ann.post(&remove, &[]).await.to, "/");
        assert_eq!((ann.get(&page).await.status, ann.post(&remove, &[]).await.status), (404, 404));
        assert!(ann.did().await.contains(&format!("admin: removed {} of east: ", run.id)));
        // What lies elsewhere stays there.
        assert!(std::path::Path::new(&run.place).join("run.json").exists());
        let found = crate::ingest::find::FoundBundle { place: run.place.into(), board: Some("east".into()) };
        let record = crate::ingest::bundle::read(&found).unwrap().0;
        let again = app.store.put(&record).await.unwrap();
        assert!(matches!(again, crate::store::PutOutcome::Refused(why) if why.contains("not stored again")));
    });
}

#[test]
#[allow(clippy::disallowed_methods)] // The files of a certificate are made here.
fn when_the_certificate_ends_is_on_the_page_and_in_the_metrics() {
    on_page_engines(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
        let renewed = |year: i32| {
            let made = rcgen::KeyPair::generate().unwrap();
            let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 5, 6);
            std::fs::write(&cert, params.self_signed(&made).unwrap().pem()).unwrap();
            std::fs::write(&key, made.serialize_pem()).unwrap();
        };
        renewed(2031);
        let certificate = Arc::new(ServerCertificate::open(&cert, &key).unwrap());
        let app = Arc::into_inner(farm_of(store, None).await).unwrap();
        let app = Arc::new(app.with_certificate(Some(certificate.clone())));
        let ann = Somebody::of(&app, "operator").await;
        assert!(ann.get("/admin").await.text.contains("certificate ends on 2031-05-06."));
        let sample = "\nonbeat_certificate_not_after_timestamp_seconds 1935792000\n";
        assert!(ann.get("/metrics").await.text.contains(sample));
        // From 2050 on a certificate writes its times otherwise (RFC 5280, section 4.1.2.5).
        renewed(2051);
        assert!(certificate.renew().unwrap());
        assert!(ann.get("/admin").await.text.contains("certificate ends on 2051-05-06."));
    });
}
