//! What the pages of boards and runs show, as data, and the files of runs.

use crate::fixture::named_rows::{lines_of, named, recording};
use std::io::Read;

use bundle::manifest::DEEPEST;

use super::*;
use crate::ingest::keep::keep;
use crate::store::RowBatch;

#[test]
fn data_is_json_and_csv() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("measured"), "west"), (&place("hunt"), "east")]).await;
        let run = app.store.runs("west", 1).await.unwrap().remove(0);
        let json = async |address: &str| document(&app, address).await;
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
        let refused = json("/v1/refused").await;
        assert_eq!(refused["schema"], "onbeat.farm-refused/1");
        assert!(refused["refused"].as_array().unwrap().is_empty());
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
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("hunt"), "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let json = async |address: &str| document(&app, address).await;
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
    on_page_engines(async |store| {
        let id = store.board_for("a", "a").await.unwrap();
        let line = |day: u64| {
            let mut row = named(1, "hog");
            (row.culprit.kind, row.culprit.share) = ("thread".into(), None);
            (day, day as i64 * 86_400, vec![row])
        };
        let rows = lines_of(recording("wakeup"), "", [3, 5].map(line));
        store.put_rows(&[RowBatch { board_id: id, ..rows }]).await.unwrap();
        let app = app_of(store, &[]).await;
        let fingerprint = app.store.culprits(None, 9).await.unwrap().remove(0).fingerprint;
        let found = document(&app, &format!("/v1/culprits/{fingerprint}")).await;
        let days = found["days"].as_array().unwrap();
        assert_eq!((days.len(), found["runs"].as_array().unwrap().len()), (2, 0));
        let told = (&days[0]["board"], &days[0]["t"], &days[0]["five_minutes"], &days[0]["series"]);
        assert_eq!(told, (&"a".into(), &(5 * 86_400).into(), &1.into(), &"wakeup".into()));
        let page = text(get(&app, &format!("/culprits/{fingerprint}")).await).await;
        assert!(page.contains("/b/a/at/432000?series=wakeup"), "{page}");
    });
}

#[test]
fn the_files_of_a_run_go_out_as_they_came_and_never_as_a_page() {
    on_page_engines(async |store| {
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
        let (mut reader, mut found) = (tar::Archive::new(&archive[..]), String::new());
        for entry in reader.entries().unwrap() {
            let mut entry = entry.unwrap();
            if entry.path().unwrap().ends_with(format!("{}/run.json", run.id)) {
                entry.read_to_string(&mut found).unwrap();
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

#[test]
#[allow(clippy::disallowed_methods)] // It makes files of its own.
fn an_archive_that_would_lack_files_is_refused_and_the_page_of_the_run_says_so() {
    on_page_engines(async |store| {
        let folder = tempfile::tempdir().unwrap();
        let (bundle, _) = keep(&place("measured"), "measured", folder.path()).unwrap();
        let app = app_of(store, &[(&bundle, "a")]).await;
        let run = app.store.runs("a", 1).await.unwrap().remove(0);
        let (page, archive) = (format!("/runs/{}", run.id), format!("/v1/runs/{}.tar", run.id));
        let deep = bundle.join(format!("host{}", "/a".repeat(DEEPEST)));
        std::fs::create_dir_all(&deep).unwrap();
        for is_whole in [false, true] {
            let response = get(&app, &archive).await;
            let status = if is_whole { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
            assert_eq!(response.status(), status);
            if !is_whole {
                assert!(text(response).await.contains("folders more than 24 deep"));
            }
            let shown = text(get(&app, &page).await).await;
            assert_eq!(shown.contains("folders more than 24 deep"), !is_whole, "{shown}");
            assert_eq!(shown.contains(&archive), is_whole);
            let _ = std::fs::remove_dir_all(bundle.join("host"));
        }
    });
}
