//! Requests that are not answered, and in which words.

use super::*;
use crate::fixture::block_on;
use crate::web::AccessPolicy;

#[test]
fn a_word_that_is_none_of_those_that_can_be_asked_for_is_refused() {
    on_page_engines(async |store| {
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
fn a_cpu_that_no_histogram_has_is_refused_with_those_that_there_are() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("measured"), "west")]).await;
        for list in ["histograms", "histograms.csv"] {
            let of = |cpu: u32| format!("/v1/boards/west/{list}?cpu={cpu}");
            assert_eq!(get(&app, &of(1)).await.status(), StatusCode::OK, "{list}");
            let refused = get(&app, &of(99)).await;
            assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{list}");
            let text = text(refused).await;
            assert!(text.contains("CPU 99 has no histogram: choose one of 1"), "{text}");
        }
    });
}

#[test]
fn a_request_with_two_names_of_its_host_is_refused() {
    block_on(async {
        let app = app_of(FarmStore::in_memory().await.unwrap(), &[]).await;
        for second in ["localhost:8377", "evil.test"] {
            for address in ["/", "/v1/boards", "/healthz"] {
                let request = Request::get(address).header(header::HOST, "localhost:8377");
                let request = request.header(header::HOST, second).body(Body::empty()).unwrap();
                let response = router(app.clone()).oneshot(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{address} {second}");
                assert!(text(response).await.contains("several Host headers"), "{address}");
            }
        }
    });
}

#[test]
fn a_refusal_is_a_page_or_a_problem_document() {
    on_page_engines(async |store| {
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
            ("/kernels?board=west", 400),
            ("/v1/runs?kernel=6.12", 400),
            ("/v1/boards/west/slots?step=7", 400),
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
                assert!(serde_json::from_str::<Value>(&text).unwrap()["detail"].as_str().unwrap().len() > 9);
            } else if !address.starts_with("/v1/") {
                assert!(kind.starts_with("text/html") && text.contains("</html>"), "{address}");
            }
        }
    });
}

#[test]
fn what_monitoring_systems_ask_is_refused_with_a_problem_document() {
    on_page_engines(async |store| {
        let app = App::new(store, FarmExposure::BehindProxy, None);
        let app = Arc::new(app.with_policy(AccessPolicy { public: None, metrics_open: false }));
        for (method, address, status) in [
            ("GET", "/metrics", 401),
            ("POST", "/metrics", 401),
            ("POST", "/healthz", 405),
            ("GET", "/healthz?%00", 400),
            ("GET", "/v1?x=1", 400),
            ("GET", "/v1/nowhere", 404),
        ] {
            let request = Request::builder().method(method).uri(address);
            let request = request.header("sec-fetch-site", "same-origin").body(Body::empty()).unwrap();
            let response = router(app.clone()).oneshot(request).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{method} {address}");
            assert_eq!(header_of(&response, "content-type"), "application/problem+json", "{address}");
            let problem: Value = serde_json::from_str(&text(response).await).unwrap();
            assert_eq!(problem["status"], status, "{method} {address}");
            assert!(problem["detail"].as_str().unwrap().len() > 9, "{problem}");
        }
    });
}

#[test]
fn a_run_whose_folder_is_gone_is_a_refusal_and_the_server_goes_on() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("measured"), "west")]).await;
        let run = app.store.runs("west", 1).await.unwrap().remove(0);
        app.store.moved(&run.id, "/nowhere").await.unwrap();
        let gone = get(&app, &format!("/runs/{}", run.id)).await;
        assert_eq!(gone.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let panicked =
            app.heavy(|| -> Result<(), crate::web::edge::answer::Refusal> { panic!("a parser's") }).await;
        assert_eq!(panicked.unwrap_err().status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(get(&app, "/").await.status(), StatusCode::OK);
    });
}

#[test]
fn another_name_is_not_answered_and_gzip_is() {
    on_page_engines(async |store| {
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
fn a_board_that_is_not_there_is_refused_by_its_name_wherever_it_is_asked_for() {
    on_page_engines(async |store| {
        let app = app_of(store, &[(&place("measured"), "west")]).await;
        for list in ["changes", "runs", "culprits"] {
            for address in [format!("/{list}"), format!("/v1/{list}"), format!("/v1/{list}.csv")] {
                for board in ["west", ""] {
                    let got = get(&app, &format!("{address}?board={board}")).await.status();
                    assert_eq!(got, StatusCode::OK, "{address} {board}");
                }
                let refused = get(&app, &format!("{address}?board=nope")).await;
                assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{address}");
                let text = text(refused).await;
                assert!(text.contains("nknown board nope: choose one"), "{address}: {text}");
            }
        }
        let labels = text(get(&app, "/v1/labels.csv?board=nope").await).await;
        assert!(labels.contains("nknown board nope: choose one"), "{labels}");
    });
}
