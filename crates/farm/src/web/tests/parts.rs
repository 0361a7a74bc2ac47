//! Answers that go out as they are read, and the places of those that are held.

use std::io::Read;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ConnectInfo;
use hyper::body::Body as HyperBody;

use super::*;
use crate::pages::parts::escaped;
use crate::records::SeriesKey;
use crate::store::TimeStretch;
use crate::web::edge::answer_budget::AnswerBudget;
use crate::web::edge::visitor::{AccessPolicy, PublicReading};
use crate::web::made_app;

/// A farm with some weeks of five minutes of a board, its address, and the series of these.
async fn recorded(store: FarmStore) -> (Arc<App>, String, String) {
    let app = made_app::app_of(store, 1, 20).await;
    let board = app.store.boards().await.unwrap().remove(0).board;
    let mut found = (0, String::new());
    for SeriesKey { series, plan } in app.store.series(&board).await.unwrap().into_iter().map(|one| one.key) {
        let asked = format!("series={}&plan={}", escaped(&series), escaped(&plan));
        let within = TimeStretch { from: 0, to: i64::MAX };
        let slots = app.store.slots(&board, &SeriesKey { series, plan }, within, 9_999).await.unwrap();
        found = found.max((slots.len(), asked));
    }
    (app, format!("/v1/boards/{board}"), found.1)
}

async fn next(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
    Some(frame.map(|frame| frame.into_data().unwrap()))
}

async fn asked(app: &Arc<App>, method: &str, address: &str, accepts: &str) -> Response {
    let request = Request::builder().method(method).uri(address).header(header::HOST, "localhost:8377");
    let request = request.header(header::ACCEPT_ENCODING, accepts).body(Body::empty()).unwrap();
    router(app.clone()).oneshot(request).await.unwrap()
}

/// Waits until all places are free again.
async fn given_back(app: &App, before: usize) {
    while app.budget.free_kib() != before {
        tokio::task::yield_now().await;
    }
}

#[test]
fn slots_come_in_parts_and_packed_for_who_takes_them_so() {
    on_page_engines(async |store| {
        let (app, board, series) = recorded(store).await;
        let before = app.budget.free_kib();
        for asked_for in ["slots?", "slots.csv?", "slots.csv?by=cpu&"] {
            let address = format!("{board}/{asked_for}{series}");
            let response = get(&app, &address).await;
            assert_eq!(
                (response.status(), header_of(&response, "content-length").as_str()),
                (StatusCode::OK, "")
            );
            let (mut body, mut whole, mut frames) = (response.into_body(), Vec::new(), 0);
            while let Some(frame) = next(&mut body).await {
                whole.extend(frame.unwrap());
                frames += 1;
            }
            assert!(frames > 9 && whole.len() > 200_000, "{frames} {}", whole.len());
            let response = asked(&app, "GET", &address, "gzip").await;
            assert_eq!(header_of(&response, "content-encoding"), "gzip");
            assert_eq!(header_of(&response, "vary"), "accept-encoding");
            let packed = to_bytes(response.into_body(), 64 << 20).await.unwrap();
            let mut text = Vec::new();
            flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
            assert!(text == whole && packed.len() < whole.len() / 2);
            let response = asked(&app, "HEAD", &address, "").await;
            assert_eq!(response.status(), StatusCode::OK);
            assert!(header_of(&response, "content-type").starts_with(['a', 't']));
            assert!(to_bytes(response.into_body(), 9).await.unwrap().is_empty());
        }
        let slots = document(&app, &format!("{board}/slots?{series}")).await;
        assert!(slots.as_array().unwrap().len() > 1_000);
        let histograms = document(&app, &format!("{board}/histograms?tier=1h&{series}")).await;
        assert!(histograms["histograms"].as_array().unwrap().len() > 100);
        given_back(&app, before).await;
    });
}

#[test]
fn who_goes_gives_the_place_back_and_a_store_that_fails_cuts_the_answer_off() {
    on_page_engines(async |store| {
        let (app, board, series) = recorded(store).await;
        let address = format!("{board}/slots?{series}");
        let before = app.budget.free_kib();
        let mut body = get(&app, &address).await.into_body();
        assert!(next(&mut body).await.unwrap().is_ok());
        assert!(app.budget.free_kib() < before);
        drop(body);
        given_back(&app, before).await;
        let mut plain = asked(&app, "GET", &address, "").await.into_body();
        let mut packed = asked(&app, "GET", &address, "gzip").await.into_body();
        assert!(next(&mut plain).await.unwrap().is_ok() && next(&mut packed).await.unwrap().is_ok());
        app.store.close().await;
        assert!(to_bytes(plain, 64 << 20).await.is_err());
        assert!(to_bytes(packed, 64 << 20).await.is_err());
        given_back(&app, before).await;
        assert_eq!(app.failures.load(std::sync::atomic::Ordering::Relaxed), 2);
    });
}

/// What is asked for from an address, by a request that names another one as its client's.
async fn asked_from(app: &Arc<App>, address: &str, (peer, forwarded): ([u8; 4], &str)) -> Response {
    let request = Request::get(address).header(header::HOST, "localhost:8377");
    let mut request = request.header("x-forwarded-for", forwarded).body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from((peer, 9))));
    router(app.clone()).oneshot(request).await.unwrap()
}

#[test]
fn who_takes_long_answers_slowly_leaves_half_of_the_places_to_others() {
    on_page_engines(async |store| {
        let (recorded, board, series) = recorded(store).await;
        let address = format!("{board}/slots?{series}");
        let first = ([127, 0, 0, 1], "10.0.0.1");
        let (same_peer, same_client) = (([127, 0, 0, 1], "10.0.0.2"), ([127, 0, 0, 2], "10.0.0.1"));
        for (exposure, same, other) in [
            (FarmExposure::Loopback, same_peer, same_client),
            (FarmExposure::BehindProxy, same_client, same_peer),
        ] {
            let policy = AccessPolicy { public: Some(PublicReading::All), metrics_open: false };
            let mut app = App::new(recorded.store.clone(), exposure, None).with_policy(policy);
            // Eight in parts.
            app.budget = AnswerBudget::of([4_096; 3], Duration::from_millis(20));
            let app = Arc::new(app);
            let before = app.budget.free_kib();
            let mut held = Vec::new();
            for _ in 0..4 {
                held.push(asked_from(&app, &address, first).await);
            }
            assert!(held.iter().all(|response| response.status() == StatusCode::OK));
            let refused = asked_from(&app, &address, same).await;
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "{exposure:?}");
            assert_eq!(header_of(&refused, "retry-after"), "5");
            assert!(text(refused).await.contains("your address"));
            let served = asked_from(&app, &address, other).await;
            assert_eq!(served.status(), StatusCode::OK, "{exposure:?}");
            assert!(text(served).await.ends_with("]\n"));
            drop(held);
            given_back(&app, before).await;
            assert_eq!(asked_from(&app, &address, same).await.status(), StatusCode::OK);
            given_back(&app, before).await;
        }
    });
}

#[test]
fn a_page_that_waits_to_be_taken_has_a_place_and_none_is_made_where_there_is_none() {
    on_page_engines(async |store| {
        let mut app = app_of(store, &[(&place("hunt"), "a")]).await;
        Arc::get_mut(&mut app).unwrap().budget = AnswerBudget::of([4_096; 3], Duration::from_millis(20));
        let run = app.store.runs("a", 1).await.unwrap().remove(0).id;
        let address = format!("/runs/{run}");
        let before = app.budget.free_kib();
        let response = get(&app, &address).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(app.budget.free_kib() < before, "it is long");
        drop(response);
        assert_eq!(app.budget.free_kib(), before);
        let mut all = Vec::new();
        while let Ok(place) = app.budget.whole(17 << 10).await {
            all.push(place);
        }
        all.push(app.budget.whole(usize::MAX).await.unwrap());
        let response = get(&app, &address).await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(header_of(&response, "retry-after"), "5");
        assert!(text(response).await.contains("exhausted by slow clients"));
        // What is short needs none.
        assert_eq!(get(&app, "/healthz").await.status(), StatusCode::OK);
        drop(all);
        assert_eq!(get(&app, &address).await.status(), StatusCode::OK);
    });
}
