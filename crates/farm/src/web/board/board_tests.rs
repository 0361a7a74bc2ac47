//! Spans of a board's page, over a made-up board that keeps five minutes for a month.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use model::units::Nanos;

use crate::board_settings::{BoardSettings, BoardState};
use crate::fixture::recorded_run;
use crate::pages::parts::{escaped, moment};
use crate::records::{FarmSlot, SeriesKey, SlotPeak, Tier};
use crate::store::TimeStretch;
use crate::store::engines::on_page_engines;
use crate::web::App;
use crate::web::made_app::{app_of, get};

/// The series that has five minutes, as a part of an address.
async fn series_of(app: &App, board: &str) -> (SeriesKey, String) {
    let ever = TimeStretch { from: 0, to: i64::MAX };
    for one in app.store.series(board).await.unwrap() {
        if !app.store.tiers(board, &one.key, Tier::Slot, ever).await.unwrap().is_empty() {
            let part = format!("series={}&plan={}", escaped(&one.key.series), escaped(&one.key.plan));
            return (one.key, part);
        }
    }
    panic!("{board} has no five minutes");
}

#[test]
fn a_day_and_a_week_have_finer_columns_and_another_span_is_refused() {
    on_page_engines(async |store| {
        let app = app_of(store, 1, 40).await;
        let board = app.store.boards().await.unwrap().remove(0).board;
        let (_, series) = series_of(&app, &board).await;
        let mut known = BTreeSet::new();
        for (query, words) in [
            ("span=day&to=2026-11-20", ["Each column is five minutes", "of 2026-11-20", "per 15 minutes"]),
            // Its five minutes are older than what is kept.
            ("span=day&to=2026-10-16", ["Each column is an hour", "of 2026-10-16", "One line per hour"]),
            ("span=week&to=2026-11-20", ["Each column is an hour", "up to 2026-11-20", "per 2 hours"]),
            ("span=month&to=2026-11-01", ["Each column is a day", "of 30 days up to 2026-11-01", "per day"]),
            ("span=year", ["Each column is a day", "of a year: ", "per day"]),
            ("", ["Each column is a day", "of a year: ", "per day"]),
            ("span=day&to=2020-01-01", ["Nothing in this span", "kept for a shorter time", "the day before"]),
        ] {
            let (status, page) = get(&app, &format!("/b/{board}?{series}&{query}")).await;
            assert_eq!(status, StatusCode::OK, "{query}");
            for one in words {
                assert!(page.contains(one), "{query} has not {one}: {page}");
            }
            for link in page.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next()) {
                // Made-up runs have no bundle. Of hundreds of columns one in 16 is asked for.
                let link = format!("/{}", link.replace("&amp;", "&"));
                let within = (link.starts_with("/b/") && link.contains("2026-11")) || link.contains("/at/");
                if within && known.insert(link.clone()) && known.len() % 16 == 1 {
                    let (status, _) = get(&app, &link).await;
                    assert_eq!(status, StatusCode::OK, "{query} leads to {link}");
                }
            }
        }
        assert!(known.len() > 100, "{}", known.len());
        for query in ["span=hour", "span=Week", "span=day&to=yesterday", "to=2026-13-01", "to=1"] {
            let (status, _) = get(&app, &format!("/b/{board}?{query}")).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
        }
        let (status, _) = get(&app, &format!("/b/{board}/at/1795305600?worst=week")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    });
}

#[test]
fn the_worst_of_an_hour_is_of_that_hour() {
    on_page_engines(async |store| {
        let app = app_of(store, 1, 40).await;
        let board = app.store.boards().await.unwrap().remove(0).board;
        let (key, series) = series_of(&app, &board).await;
        let hour = TimeStretch { from: 1_795_219_200, to: 1_795_222_800 };
        let worst = app.store.worst_slots(&board, &key, hour, 1).await.unwrap().remove(0);
        let address = format!("/b/{board}/at/{}?{series}&worst=hour", hour.from + 600);
        let (_, page) = get(&app, &address).await;
        let shown = moment(worst.t);
        assert!(page.contains(&format!(", {shown} UTC</h1>")), "{shown}: {page}");
        // Its histogram is still kept, and a budget leads to what else was over it.
        assert!(page.contains("How many wake-ups had which latency") && !page.contains("over the budget"));
        app.store.set_budget("", Some(Nanos(1))).await.unwrap();
        let (_, page) = get(&app, &address).await;
        let beside = |t: i64, words: &str| {
            let link = format!("/b/{board}/at/{t}?{}\">{words}", series.replace('&', "&amp;"));
            assert!(page.contains(&link), "{link}: {page}");
        };
        beside(worst.t - 300, "the previous one over the budget");
        beside(worst.t + 300, "the next over the budget");
    });
}

/// A recorder with intervals of a second, and others beside it.
#[test]
fn five_minutes_of_many_rows_say_what_is_of_all_and_count_what_they_leave_out() {
    on_page_engines(async |store| {
        let app = app_of(store, 1, 40).await;
        let t = 1_795_305_600;
        let mut record = recorded_run("measured", "short");
        let row = |at: i64| {
            let max_ns = Some(Nanos(if at == 1_049 { 9_000_000 } else { 60_000 }));
            let cpus = vec![SlotPeak { n: 2, max_ns, ..SlotPeak::default() }];
            FarmSlot { t, n: 2, missed: 1, max_ns, run: "short".into(), cpus, ..FarmSlot::default() }
        };
        record.run.id = "short".into();
        record.slots = (0..1_050).map(row).collect();
        app.store.put(&record).await.unwrap();
        let (status, text) = get(&app, &format!("/v1/boards/short/at/{}", t + 60)).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let at: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&at["n"], &at["missed"], &at["slots_left_out"]),
            (&2_100.into(), &1_050.into(), &50.into())
        );
        assert_eq!(
            (at["slots"].as_array().unwrap().len(), &at["largest"]["max_ns"]),
            (1_000, &9_000_000.into())
        );
        assert_eq!(at["worst"].as_array().unwrap().len(), 1);
        assert_eq!(at["worst"][0], at["largest"]);
        let (_, page) = get(&app, &format!("/b/short/at/{t}")).await;
        for words in [">9 ms<", "1050 wake-ups were", "50 rows of recordings are not in", ">2000</td>"] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert_eq!(page.matches("Recorded by").count(), 1);
    });
}

#[test]
fn the_largest_latency_of_all_is_none_of_a_board_that_is_not_to_be_heard_of() {
    on_page_engines(async |store| {
        let app = app_of(store, 2, 40).await;
        let mut boards = app.store.boards().await.unwrap();
        boards.sort_by_key(|board| std::cmp::Reverse(board.max_ns));
        let names = boards.iter().map(|board| format!(" on <a href=\"/b/{}\">", escaped(&board.board)));
        let names: Vec<String> = names.collect();
        let told = async |wanted: &[bool; 2]| {
            for address in ["/", "/?state=retired", "/?state=muted"] {
                let (_, page) = get(&app, address).await;
                assert_eq!(&[0, 1].map(|at| page.contains(&names[at])), wanted, "{address}: {page}");
                assert_eq!(page.contains("The largest latency of the last"), wanted.contains(&true));
            }
        };
        told(&[true, false]).await;
        for (board, state, wanted) in [
            (&boards[0], BoardState::Retired, [false, true]),
            (&boards[1], BoardState::Muted, [false, false]),
            (&boards[0], BoardState::Replaced, [true, false]),
        ] {
            let settings = BoardSettings { state, ..BoardSettings::default() };
            assert!(app.store.set_settings(&board.board, &board.name, &settings).await.unwrap());
            told(&wanted).await;
        }
    });
}
