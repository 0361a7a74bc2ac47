//! Every address, with what is there, what is not, and what is hostile.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use model::watch::{WatchCulprit, WatchRow};
use tower::ServiceExt;

use super::{App, FarmExposure, router};
use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::ingest::rows::{self, RowsOf};
use crate::ingest::tar::{TarEntry, TarReader};
use crate::store::engines::on_each_engine;
use crate::store::{FarmStore, RowBatch};

pub fn place(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs").join(name)
}

pub async fn app_of(store: FarmStore, bundles: &[(&Path, &str)]) -> Arc<App> {
    for (place, board) in bundles {
        let found = FoundBundle { place: place.to_path_buf(), board: Some((*board).to_owned()) };
        store.put(&read(&found).unwrap().0).await.unwrap();
    }
    Arc::new(App::new(store, FarmExposure::Loopback, None))
}

pub async fn get(app: &Arc<App>, address: &str) -> Response {
    let request = Request::get(address).header(header::HOST, "localhost:8377").body(Body::empty()).unwrap();
    router(app.clone()).oneshot(request).await.unwrap()
}

pub async fn text(response: Response) -> String {
    String::from_utf8(to_bytes(response.into_body(), 64 << 20).await.unwrap().to_vec()).unwrap()
}

pub fn header_of(response: &Response, name: &str) -> String {
    response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[test]
fn every_page_of_a_fleet_is_there_and_leads_to_the_next() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east <b>")]).await;
        let run = app.store.runs("west", 1).await.unwrap().remove(0);
        let east = crate::ingest::board_key::board_key("east <b>");
        let hunt = app.store.runs(&east, 1).await.unwrap().remove(0);
        let culprit = app.store.culprits(None, 1).await.unwrap().remove(0);
        let addresses = [
            "/".to_owned(),
            "/?q=west&sort=name".to_owned(),
            "/b/west".to_owned(),
            format!("/b/west?series={}&plan={}&span=all", run.key.series, run.key.plan),
            format!("/b/{east}/env"),
            format!("/b/west/at/{}", run.started),
            format!("/b/west/at/{}?worst=day", run.started),
            "/changes?only=all&board=west".to_owned(),
            "/kernels".to_owned(),
            format!("/runs/{}", run.id),
            format!("/runs/{}", hunt.id),
            format!("/runs/{}/spike/1", hunt.id),
            "/culprits".to_owned(),
            format!("/culprits/{}", culprit.fingerprint),
            "/compare".to_owned(),
            format!("/compare?a={}&b={}", run.id, hunt.id),
        ];
        for address in &addresses {
            let response = get(&app, address).await;
            assert_eq!(response.status(), StatusCode::OK, "{address}");
            let policy = header_of(&response, "content-security-policy");
            assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
            assert_eq!(header_of(&response, "x-content-type-options"), "nosniff");
            let text = text(response).await;
            assert!(text.contains("/assets/farm.css") && text.contains("</html>"), "{address}");
            assert!(
                !text.contains("src=\"") && !text.contains("http://") && !text.contains("<b>"),
                "{address}"
            );
            for link in text.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next()) {
                let link = format!("/{}", link.replace("&amp;", "&"));
                let status = get(&app, &link).await.status();
                assert!(status.is_success(), "{address} leads to {link}: {status}");
            }
        }
        let front = text(get(&app, "/").await).await;
        assert!(front.contains("href=\"/b/west\"") && front.contains("2 boards, 2 runs"));
        // Every largest latency leads to its five minutes, these to the run.
        assert!(front.contains("?worst=day"));
        let moment = text(get(&app, &format!("/b/west/at/{}?worst=day", run.started)).await).await;
        assert!(moment.contains("The largest latency was") && moment.contains(&format!("/runs/{}", run.id)));
    });
}

#[test]
fn where_the_farm_keeps_a_bundle_is_on_no_page() {
    on_each_engine(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept+0123");
        std::os::unix::fs::symlink(place("hunt"), &kept).unwrap();
        let app = app_of(store, &[(&kept, "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let other = app.store.run(&run.id).await.unwrap().unwrap();
        assert!(other.place.contains("kept+0123"));
        for address in ["", "/spike/1"].map(|rest| format!("/runs/{}{rest}", run.id)) {
            let text = text(get(&app, &address).await).await;
            assert!(!text.contains("kept+0123") && text.contains(&run.id), "{address}");
        }
    });
}

#[test]
fn the_script_of_a_hunt_is_the_only_one_that_may_run() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("hunt"), "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let response = get(&app, &format!("/runs/{}", run.id)).await;
        let policy = header_of(&response, "content-security-policy");
        assert!(policy.contains("script-src 'sha256-") && !policy.contains("script-src 'unsafe"), "{policy}");
        let front = get(&app, "/").await;
        assert!(!header_of(&front, "content-security-policy").contains("script-src"));
    });
}

#[test]
fn data_is_json_and_csv() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east")]).await;
        let run = app.store.runs("west", 1).await.unwrap().remove(0);
        let json = async |address: &str| -> serde_json::Value {
            let response = get(&app, address).await;
            assert_eq!(response.status(), StatusCode::OK, "{address}");
            assert_eq!(header_of(&response, "content-type"), "application/json");
            serde_json::from_str(&text(response).await).unwrap()
        };
        assert_eq!(json("/v1/boards").await["boards"].as_array().unwrap().len(), 2);
        for (query, names) in [("state=active", 2), ("state=retired", 0), ("q=west&state=active", 1)] {
            let found = json(&format!("/v1/boards?{query}")).await;
            assert_eq!(found["boards"].as_array().unwrap().len(), names, "{query}");
        }
        assert_eq!(json("/v1/boards/west").await["runs"][0]["id"], run.id);
        assert_eq!(json(&format!("/v1/runs/{}", run.id)).await["cycles"], run.cycles);
        let slots = json("/v1/boards/west/slots").await;
        let total: u64 = slots.as_array().unwrap().iter().map(|slot| slot["n"].as_u64().unwrap()).sum();
        let contract = ["t", "n", "missed", "max_ns", "max_cpu", "max_at", "culprit", "victim"];
        assert!(contract.iter().all(|name| slots[0].get(*name).is_some()), "{slots}");
        let response = get(&app, "/v1/boards/west/slots").await;
        let key = app.store.series("west").await.unwrap().remove(0).key;
        assert_eq!(header_of(&response, "onbeat-series"), key.series);
        assert_eq!(header_of(&response, "onbeat-plan"), key.plan);
        let histograms = json("/v1/boards/west/histograms?tier=1d").await;
        assert_eq!(histograms["histograms"][0]["n"], run.cycles);
        assert!(total > 0 && total <= run.cycles);
        assert!(!json("/v1/culprits").await["culprits"].as_array().unwrap().is_empty());
        assert!(!json("/v1/culprits?board=east").await["culprits"].as_array().unwrap().is_empty());
        assert!(json("/v1/culprits?board=west").await["culprits"].as_array().unwrap().is_empty());
        assert_eq!(json("/v1/changes").await["days"], 90);
        assert!(json("/v1/kernels").await["kernels"].is_array());
        assert!(json("/v1/refused").await["refused"].as_array().unwrap().is_empty());
        let response = get(&app, "/v1/boards/west/slots.csv").await;
        assert_eq!(header_of(&response, "content-disposition"), "attachment");
        assert!(text(response).await.starts_with("t,time,n,missed,max_ns"));
        let metrics = text(get(&app, "/metrics").await).await;
        assert!(metrics.contains("onbeat_max_seconds{board=\"west\"}") && metrics.ends_with("# EOF\n"));
        assert_eq!(get(&app, "/healthz").await.status(), StatusCode::OK);
    });
}

#[test]
fn what_the_pages_of_a_hunt_show_is_there_as_data() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("hunt"), "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let json = async |address: &str| -> serde_json::Value {
            let response = get(&app, address).await;
            assert_eq!(response.status(), StatusCode::OK, "{address}");
            serde_json::from_str(&text(response).await).unwrap()
        };
        let at = json(&format!("/v1/boards/a/at/{}?worst=day", run.started)).await;
        assert_eq!((&at["schema"], &at["board"]), (&"onbeat.farm-five-minutes/1".into(), &"a".into()));
        assert_eq!(
            (&at["slots"][0]["run"], &at["runs"][0]["id"]),
            (&run.id.as_str().into(), &run.id.as_str().into())
        );
        assert_eq!(at["worst"][0]["max_ns"], run.max_ns.unwrap().0);
        let in_them = at["spikes"].as_array().unwrap();
        assert!(!in_them.is_empty() && in_them.iter().all(|spike| spike["run"] == run.id.as_str()));
        let csv = text(get(&app, &format!("/v1/boards/a/at/{}/spikes.csv", at["t"])).await).await;
        assert_eq!(csv.lines().count(), 1 + in_them.len(), "{csv}");

        let base = format!("/v1/runs/{}", run.id);
        let all = json(&format!("{base}/spikes")).await["spikes"].clone();
        let latency = |at: usize| all[at]["latency_ns"].as_i64().unwrap();
        assert_eq!(all.as_array().unwrap().len() as u64, run.spikes);
        assert!(latency(0) >= latency(1) && all[0]["number"] == 1);
        let csv = text(get(&app, &format!("{base}/spikes.csv")).await).await;
        assert!(csv.starts_with("number,at,cpu,latency_ns,") && csv.lines().count() as u64 == 1 + run.spikes);
        let one = json(&format!("{base}/spikes/1")).await;
        assert_eq!(one["spike"]["latency_ns"], latency(0));
        assert!(!one["spike"]["slices"].as_array().unwrap().is_empty());
        assert!(
            one["culprits"][0]["took_ns"].as_i64().unwrap() > 0 && one["culprits"][0]["remedy"].is_string()
        );
        let command = json(&format!("{base}/again")).await["again"].clone();
        assert!(
            command.as_str().unwrap().starts_with("onbeat hunt ") && one["again"] == command,
            "{command}"
        );
        let report = json(&format!("{base}/report.json")).await;
        assert_eq!(
            (&report["id"], report["spikes"].as_array().unwrap().len() as u64),
            (&run.id.as_str().into(), run.spikes)
        );
        assert!(text(get(&app, &format!("{base}/report.csv")).await).await.lines().count() > 1);
        for missing in ["/spikes/0", "/spikes/99", "/spikes/x"] {
            assert_eq!(
                get(&app, &format!("{base}{missing}")).await.status(),
                StatusCode::NOT_FOUND,
                "{missing}"
            );
        }
        for address in ["/v1/runs/none/spikes", "/v1/runs/none/again", "/v1/runs/none/report.json"] {
            assert_eq!(get(&app, address).await.status(), StatusCode::NOT_FOUND, "{address}");
        }
        assert_eq!(json("/v1/runs?limit=1").await["more"], false);
        let slots = text(get(&app, "/v1/boards/a/slots.csv?by=cpu").await).await;
        assert!(
            slots.lines().count() > 1 && slots.lines().skip(1).all(|line| line.contains(",1,")),
            "{slots}"
        );
        assert_eq!(get(&app, "/v1/boards/a/slots.csv?by=day").await.status(), StatusCode::BAD_REQUEST);
    });
}

#[test]
fn the_days_on_which_recorders_name_a_culprit_are_in_its_data_as_on_its_page() {
    on_each_engine(async |store| {
        let id = store.board_for("a", "a").await.unwrap();
        let of = RowsOf { boot: "b".into(), recording: "r".into(), series: "wakeup".into() };
        let line = |seq: i64| {
            let hist = RowCounts::of_rows([(200, 1)]);
            let culprit =
                WatchCulprit { name: "hog".into(), kind: "thread".into(), ..WatchCulprit::default() };
            let (cpu, max_ns) = (Some(Cpu(0)), Some(Nanos(200)));
            let row = WatchRow { cpu, n: 1, max_ns, hist, culprit, ..WatchRow::default() };
            let mono = seq * 86_400 * Nanos::SECOND.0;
            serde_json::json!({ "seq": seq, "mono_ns": mono, "span_ns": 1, "wall_ns": mono, "cpus": [row] })
                .to_string()
                + "\n"
        };
        let rows = rows::read(&of, (line(3) + &line(5)).as_bytes()).unwrap();
        store
            .put_rows(&[RowBatch { board_id: id, of, clock: None, received_ns: i64::MAX, rows }])
            .await
            .unwrap();
        let app = app_of(store, &[]).await;
        let fingerprint = app.store.culprits(None, 9).await.unwrap().remove(0).fingerprint;
        let found = text(get(&app, &format!("/v1/culprits/{fingerprint}")).await).await;
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        let days = found["days"].as_array().unwrap();
        assert_eq!((days.len(), found["runs"].as_array().unwrap().len()), (2, 0));
        let told = (&days[0]["board"], &days[0]["t"], &days[0]["five_minutes"], &days[0]["series"]);
        assert_eq!(told, (&"a".into(), &(5 * 86_400).into(), &1.into(), &"wakeup".into()));
        let page = text(get(&app, &format!("/culprits/{fingerprint}")).await).await;
        assert!(page.contains("/b/a/at/432000?series=wakeup"), "{page}");
    });
}

#[test]
fn lists_as_data_are_narrowed_down_as_the_pages_are() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east")]).await;
        let json = async |address: &str| -> serde_json::Value {
            serde_json::from_str(&text(get(&app, address).await).await).unwrap()
        };
        let boards = async |query: &str| {
            let answer = json(&format!("/v1/boards?{query}")).await;
            let all = answer["boards"].as_array().unwrap().iter();
            all.map(|board| board["board"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((boards("q=EAST").await.as_str(), boards("q=no-such").await.as_str()), ("east", ""));
        assert_eq!(
            (boards("").await.as_str(), boards("sort=name").await.as_str()),
            ("east west", "east west")
        );
        let csv = text(get(&app, "/v1/boards.csv?q=wes").await).await;
        assert!(csv.contains("\nwest,") && !csv.contains("\neast,"), "{csv}");
        let all = json("/v1/culprits").await["culprits"].clone();
        assert_eq!(json("/v1/culprits?board=east").await["culprits"], all);
        assert_eq!(json("/v1/culprits?board=west").await["culprits"], serde_json::json!([]));
        assert_eq!(text(get(&app, "/v1/culprits.csv?board=west").await).await.lines().count(), 1);
        let fingerprint = all[0]["fingerprint"].as_str().unwrap();
        let one = json(&format!("/v1/culprits/{fingerprint}")).await;
        assert_eq!((&one["culprit"], one["runs"].as_array().unwrap().len()), (&all[0], 1));
        assert_eq!(one["runs"][0]["board"], "east");
    });
}

#[test]
fn a_list_as_csv_has_what_its_json_has() {
    on_each_engine(async |store| {
        store.set_budget("", Some(model::units::Nanos(1))).await.unwrap();
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east")]).await;
        let json = async |address: &str| -> serde_json::Value {
            serde_json::from_str(&text(get(&app, address).await).await).unwrap()
        };
        let slots = json("/v1/boards/west/slots").await;
        // Of each CPU there are lines with `by=cpu`.
        let mut lists = vec![("boards/west/slots", slots, "cpus")];
        for (list, apart) in [
            ("boards", "days"),
            ("runs", ""),
            ("culprits", ""),
            // Who looked at it has columns of its own.
            ("changes", "acknowledged"),
            ("kernels", ""),
        ] {
            lists.push((list, json(&format!("/v1/{list}")).await[list].clone(), apart));
        }
        for (list, all, apart) in lists {
            let csv = text(get(&app, &format!("/v1/{list}.csv")).await).await;
            let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
            let missing = all[0]
                .as_object()
                .unwrap()
                .keys()
                .filter(|name| !columns.contains(&name.as_str()) && *name != apart);
            assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "{list}");
            assert_eq!(csv.lines().count(), all.as_array().unwrap().len() + 1, "{list}: {csv}");
        }
    });
}

#[test]
fn a_word_that_is_none_of_those_that_can_be_asked_for_is_refused() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("measured"), "west")]).await;
        for address in ["/", "/v1/boards", "/v1/boards.csv"] {
            for (query, status) in
                [("sort=zzz", 400), ("sort=worst", 200), ("sort=", 200), ("sort=Name", 400)]
            {
                let got = get(&app, &format!("{address}?{query}")).await.status();
                assert_eq!(got.as_u16(), status, "{address} {query}");
            }
        }
        for address in ["/changes", "/v1/changes", "/v1/changes.csv"] {
            for (query, status) in [("only=zzz", 400), ("only=", 200), ("only=all", 200), ("", 200)] {
                let got = get(&app, &format!("{address}?{query}")).await.status();
                assert_eq!(got.as_u16(), status, "{address} {query}");
            }
        }
    });
}

#[test]
fn a_request_with_two_names_of_its_host_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let app = app_of(FarmStore::in_memory().await.unwrap(), &[]).await;
        for second in ["localhost:8377", "evil.test"] {
            for address in ["/", "/v1/boards", "/healthz"] {
                let request = Request::get(address).header(header::HOST, "localhost:8377");
                let request = request.header(header::HOST, second).body(Body::empty()).unwrap();
                let response = router(app.clone()).oneshot(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{address} {second}");
                assert!(text(response).await.contains("one Host"), "{address}");
            }
        }
    });
}

#[test]
fn a_heat_map_is_bytes_for_who_asks_for_them() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("measured"), "west")]).await;
        let address = "/v1/boards/west/histograms?tier=1d";
        let request = Request::get(address).header(header::ACCEPT, "application/octet-stream");
        let response = router(app.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(header_of(&response, "content-type"), "application/octet-stream");
        assert_eq!(header_of(&response, "vary"), "accept");
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (columns, rows) = (number(8) as usize, number(16) as usize);
        assert!(bytes.starts_with(b"onbheat1") && columns == 1 && rows > 10 && number(20) == 86_400);
        assert_eq!(bytes.len(), 24 + columns * 16 + columns * rows);
        let largest = i64::from_le_bytes(bytes[32..40].try_into().unwrap());
        let run = app.store.runs("west", 1).await.unwrap().remove(0);
        assert_eq!(Some(largest), run.max_ns.map(|max| max.0));
        // Each row is that of the JSON, which is what others get.
        let text = text(get(&app, address).await).await;
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["histograms"][0]["max_ns"], largest);
        assert!(bytes[40] > 0 && bytes[bytes.len() - 1] > 0, "the first and the last row have samples");
    });
}

#[test]
fn five_minutes_lead_to_the_spikes_that_were_recorded_in_them() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("hunt"), "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let page = text(get(&app, &format!("/b/a/at/{}?worst=day", run.started)).await).await;
        assert!(page.contains("Spikes in these five minutes"));
        let spike = format!("/runs/{}/spike/1", run.id);
        assert!(page.contains(&format!("href=\"{spike}\"")), "{page}");
        assert_eq!(get(&app, &spike).await.status(), StatusCode::OK);
        // A bundle that is gone takes the way there with it, and nothing else.
        app.store.moved(&run.id, "/nowhere").await.unwrap();
        let page = text(get(&app, &format!("/b/a/at/{}?worst=day", run.started)).await).await;
        assert!(page.contains("The largest latency was") && !page.contains("Spikes in these"));
    });
}

#[test]
fn a_refusal_is_a_page_or_a_problem_document() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("measured"), "west")]).await;
        for (address, status) in [
            ("/b/none", 404),
            ("/runs/..%2F..%2Fetc", 404),
            ("/culprits/none", 404),
            ("/nowhere", 404),
            ("/b/%00", 400),
            ("/v1/boards/%00", 400),
            ("/b/west?series=none", 404),
            ("/b/west?span=hour", 400),
            ("/?state=gone", 400),
            ("/culprits?kernel=6.12", 400),
            ("/culprits?board=none", 404),
            ("/v1/culprits?from=1", 400),
            ("/v1/culprits.csv?to=1", 400),
            ("/v1/boards.csv?state=gone", 400),
            ("/b/west?to=today", 400),
            ("/b/west/at/1?worst=year", 400),
            ("/b/west/at/now", 400),
            ("/b/none/at/1", 404),
            ("/b/west/at/1?series=none", 404),
            ("/v1/boards/none", 404),
            ("/v1/runs/none", 404),
            ("/v1/boards/west/histograms?tier=1w", 400),
            ("/v1/boards/west/histograms.csv?tier=1w", 400),
            ("/v1/boards/none/environments.csv", 404),
            ("/v1/compare.csv", 400),
            ("/v1/boards/west/slots?from=x", 400),
            ("/v1/compare", 400),
            ("/v1/culprits/none", 404),
            ("/v1/labels.csv", 400),
            ("/v1/labels.csv?board=none", 404),
            ("/v1/compare?a=none&b=none", 404),
        ] {
            let response = get(&app, address).await;
            assert_eq!(response.status().as_u16(), status, "{address}");
            let kind = header_of(&response, "content-type");
            let text = text(response).await;
            if address.starts_with("/v1/") && !address.contains("from=x") {
                assert_eq!(kind, "application/problem+json", "{address}");
                assert!(
                    serde_json::from_str::<serde_json::Value>(&text).unwrap()["detail"]
                        .as_str()
                        .unwrap()
                        .len()
                        > 9
                );
            } else if !address.starts_with("/v1/") {
                assert!(kind.starts_with("text/html") && text.contains("</html>"), "{address}");
            }
        }
    });
}

#[test]
fn a_run_whose_folder_is_gone_is_a_refusal_and_the_server_goes_on() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("measured"), "west")]).await;
        let run = app.store.runs("west", 1).await.unwrap().remove(0);
        app.store.moved(&run.id, "/nowhere").await.unwrap();
        let gone = get(&app, &format!("/runs/{}", run.id)).await;
        assert_eq!(gone.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let panicked = app.heavy(|| -> Result<(), super::answer::Refusal> { panic!("a parser's") }).await;
        assert_eq!(panicked.unwrap_err().status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(get(&app, "/").await.status(), StatusCode::OK);
    });
}

#[test]
fn another_name_is_not_answered_and_gzip_is() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("measured"), "west")]).await;
        let foreign = Request::get("/").header(header::HOST, "evil.test").body(Body::empty()).unwrap();
        let response = router(app.clone()).oneshot(foreign).await.unwrap();
        assert_eq!(response.status(), StatusCode::MISDIRECTED_REQUEST);
        let zipped = Request::get("/assets/farm.css")
            .header(header::HOST, "127.0.0.1:1")
            .header(header::ACCEPT_ENCODING, "gzip")
            .body(Body::empty())
            .unwrap();
        let response = router(app.clone()).oneshot(zipped).await.unwrap();
        assert_eq!(header_of(&response, "content-encoding"), "gzip");
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let mut plain = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).unwrap();
        assert_eq!(plain, crate::pages::style_sheet());
    });
}

#[test]
fn what_the_lists_show_is_there_as_csv_and_environments_as_json() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east")]).await;
        for (list, head, row) in [
            ("boards", "board,name,", "\nwest,west,active,"),
            ("culprits", "fingerprint,rule,", ","),
            ("kernels", "machine,kernel,", ",measure,1,1,"),
            (
                "changes",
                "board,kind,",
                "says,evidence,acknowledged_by,acknowledged_at,note,settings,address,subject\n",
            ),
            ("refused", "place,reason\n", ""),
        ] {
            let response = get(&app, &format!("/v1/{list}.csv")).await;
            assert!(header_of(&response, "content-disposition").starts_with("attachment"), "{list}");
            let text = text(response).await;
            assert!(text.starts_with(head) && text.contains(row), "{text}");
        }
        for (list, head, row) in [
            ("environments", "environment,model,release,", ",1,"),
            ("histograms", "t,cpu,lower_ns,upper_ns,count\n", ",1,"),
        ] {
            let response = get(&app, &format!("/v1/boards/west/{list}.csv")).await;
            assert!(header_of(&response, "content-disposition").starts_with("attachment"), "{list}");
            let text = text(response).await;
            assert!(text.starts_with(head) && text.contains(row) && text.lines().count() > 1, "{text}");
        }
        let run = app.store.runs("west", 1).await.unwrap().remove(0);
        let counts = text(get(&app, "/v1/boards/west/histograms.csv?tier=1d").await).await;
        let counts = counts.lines().skip(1).map(|line| line.rsplit(',').next().unwrap());
        assert_eq!(counts.map(|count| count.parse::<u64>().unwrap()).sum::<u64>(), run.cycles);
        let labels = text(get(&app, "/v1/labels.csv?board=west").await).await;
        assert!(labels.starts_with("name,value,runs,first,last\n"), "{labels}");
        let all = text(get(&app, "/v1/boards/west/environments").await).await;
        let all: serde_json::Value = serde_json::from_str(&all).unwrap();
        assert!(all["environments"][0]["settings"].is_object() && all["environments"][0]["runs"] == 1);
    });
}

#[test]
fn the_files_of_a_run_go_out_as_they_came_and_never_as_a_page() {
    on_each_engine(async |store| {
        let app = app_of(store, &[(&place("hunt"), "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let base = format!("/v1/runs/{}", run.id);
        for (address, kind) in [
            (format!("{base}.tar"), "application/x-tar"),
            (format!("{base}/files/run.json"), "application/octet-stream"),
            (format!("{base}/perfetto.json"), "application/json"),
        ] {
            let response = get(&app, &address).await;
            assert_eq!(response.status(), StatusCode::OK, "{address}");
            assert_eq!(header_of(&response, "content-type"), kind);
            assert!(header_of(&response, "content-disposition").starts_with("attachment"), "{address}");
            assert_eq!(header_of(&response, "x-content-type-options"), "nosniff");
        }
        let request = Request::get(format!("{base}.tar")).header(header::ACCEPT_ENCODING, "gzip");
        let response = router(app.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(header_of(&response, "content-encoding"), "", "it would be gathered in memory");
        let archive = to_bytes(response.into_body(), 64 << 20).await.unwrap();
        let file = text(get(&app, &format!("{base}/files/run.json")).await).await;
        let (mut reader, mut found) = (TarReader::new(&archive[..]), String::new());
        while let Some(entry) = reader.next_entry().unwrap() {
            let TarEntry::File { path, .. } = entry else { panic!("{entry:?}") };
            if path == format!("{}/run.json", run.id) {
                reader.read_to_string(&mut found).unwrap();
            }
        }
        assert!(found.contains(&run.id) && found == file);
        for path in ["..%2F..%2FREADME.md", "host%2F..%2Frun.json", "README.md", "events", "%2Fetc%2Fpasswd"]
        {
            let status = get(&app, &format!("{base}/files/{path}")).await.status();
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        }
        assert_eq!(get(&app, "/v1/runs/none.tar").await.status(), StatusCode::NOT_FOUND);
    });
}
