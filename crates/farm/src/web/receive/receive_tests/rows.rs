//! Rows: in whatever cuts, under whatever clocks, on a full disk.

use std::collections::BTreeMap;

use super::*;
use crate::web::answers::answer_parts::{AnswerParts, parts_of};
use crate::web::board::environment_parts::EnvironmentParts;
use crate::web::edge::visitor::{FarmView, Visitor};

fn stretch(first: u64, last: u64) -> Value {
    json!({ "boot": "boot-1", "recording": "rec", "series": "timer", "first": first, "last": last })
}

#[test]
fn rows_are_stored_once_in_whatever_cuts() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let lines: Vec<String> = (0..40).map(|seq| line(seq, &[(200 + seq as usize, seq + 1)])).collect();
        let address = |first: usize| format!("/v1/rows/boot-1/rec/timer/{first}");
        for (from, to, status) in
            [(30, 40, 201), (0, 7, 201), (3, 12, 201), (0, 12, 200), (5, 40, 201), (0, 40, 200)]
        {
            let (got, answer) = farm.ask("PUT", &address(from), &token, lines[from..to].concat()).await;
            assert_eq!(got, status, "{from}..{to}: {answer}");
        }
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        let wanted: u64 = (1..=40).sum();
        for tier in Tier::ALL {
            let rows = farm.app.store.tiers("a", &key, tier, ALL).await.unwrap();
            assert_eq!(rows.iter().map(|row| row.n).sum::<u64>(), wanted, "{tier:?}");
            let samples = rows.iter().flat_map(|row| &row.cpus).map(|cpu| cpu.rows.total()).sum::<u64>();
            assert_eq!(samples, wanted);
        }
        let slots = farm.app.store.slots("a", &key, ALL, 999).await.unwrap();
        assert_eq!((slots.len(), slots[39].max_ns), (40, Some(Nanos(239))));
        // Another content under a number is named, and what is new beside it is stored.
        let beside = line(39, &[(9, 9)]) + &line(40, &[(9, 1)]);
        let (status, answer) = farm.ask("PUT", &address(39), &token, beside).await;
        assert_eq!((status, &answer["seq"], &answer["stored"]), (409, &json!([39]), &json!(1)));
        let noted = farm.app.refusals.all().remove(0).detail;
        assert!(noted.contains("for row 39 and stays") && !noted.contains('{'), "{noted}");
        let (status, answer) = farm.ask("PUT", &address(50), &token, lines[0].clone() + "no row\n").await;
        assert_eq!((status, &answer["line"]), (422, &json!(2)));
        assert_eq!(farm.ask("PUT", &address(7), &token, lines[0].clone()).await.0, 400);
        assert_eq!(farm.ask("PUT", "/v1/rows/../r/s/0", &token, "").await.0 / 100, 4);
        let (_, me) = farm.ask("GET", "/v1/me", &token, "").await;
        assert_eq!(me["rows"], json!([{ "boot": "boot-1", "first": 0, "last": 40 }]));
        assert_eq!((&me["stretches"], &me["whole"]), (&json!([stretch(0, 40)]), &json!(true)));
        // A gap is one.
        assert_eq!(farm.ask("PUT", &address(44), &token, line(44, &[(9, 1)])).await.0, 201);
        let (_, me) = farm.ask("GET", "/v1/me", &token, "").await;
        assert_eq!(me["stretches"], json!([stretch(0, 40), stretch(44, 44)]));
        assert_eq!(me["rows"], json!([{ "boot": "boot-1", "first": 0, "last": 44 }]));
        let page = router(farm.app.clone())
            .oneshot(Request::get("/b/a").body(Body::empty()).unwrap())
            .await
            .unwrap();
        assert_eq!(page.status().as_u16(), 200);
    });
}

#[test]
fn more_rows_or_longer_ones_than_a_request_takes_are_too_large() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let rows = |count: u64| (0..count).map(|seq| line(seq, &[(200, 1)])).collect::<String>();
        let put = async |text: String| farm.ask("PUT", "/v1/rows/b/r/timer/0", &token, text).await;
        let long = line(1, &[(200, 1)])
            .replace("\"cpus\"", &format!("\"x\":\"{}\",\"cpus\"", "x".repeat(512 << 10)));
        for (text, at) in [(rows(401), 401), (rows(1) + &long, 2)] {
            let (status, answer) = put(text).await;
            assert_eq!((status, &answer["line"]), (413, &json!(at)), "{answer}");
            let detail = answer["detail"].as_str().unwrap();
            assert!(detail.contains("more than 400 rows") && answer["is_size"].is_null(), "{answer}");
        }
        // More bytes than are read at all.
        assert_eq!(put(" ".repeat((1 << 20) + 1)).await.0, 413);
        assert_eq!(put(rows(400)).await.0, 201);
        let metrics = farm.shown("/metrics").await.1;
        assert!(metrics.contains("onbeat_farm_refused_requests_total{reason=\"size\"} 3\n"), "{metrics}");
    });
}

#[test]
fn what_refuses_rows_is_a_problem_document_with_what_it_says_of_them() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let rows = |count: u64| (0..count).map(|seq| line(seq, &[(200, 1)])).collect::<String>();
        assert_eq!(farm.ask("PUT", "/v1/rows/b/r/timer/0", &token, rows(2)).await.0, 201);
        let mono = 900 * Nanos::SECOND.0;
        for (text, status, title, name, said) in [
            (rows(2) + "no row\n", 422, "Unprocessable Entity", "line", json!(3)),
            (rows(401), 413, "Payload Too Large", "line", json!(401)),
            (line(0, &[(9, 9)]) + &line(1, &[(200, 1)]), 409, "Conflict", "seq", json!([0])),
            (line(0, &[(200, 1)]) + &line(9_000, &[(9, 9)]), 422, "Unprocessable Entity", "line", json!(2)),
        ] {
            let request = Request::put("/v1/rows/b/r/timer/0")
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .header("onbeat-clock", format!("boot=b;mono={mono};wall=0"))
                .body(Body::from(text))
                .unwrap();
            let response = router(farm.app.clone()).oneshot(request).await.unwrap();
            let kind = response.headers().get(header::CONTENT_TYPE).unwrap().clone();
            let got = response.status().as_u16();
            let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!((got, kind.to_str().unwrap()), (status, "application/problem+json"), "{answer}");
            assert_eq!((&answer["status"], &answer["title"]), (&json!(status), &json!(title)), "{answer}");
            assert_eq!(answer[name], said, "{answer}");
            assert!(answer["detail"].as_str().is_some_and(|detail| detail.len() > 9), "{answer}");
            assert_eq!(answer["had"], if status == 409 { json!(1) } else { Value::Null }, "{answer}");
        }
    });
}

#[test]
fn rows_in_a_layout_that_is_not_known_are_refused_and_not_stored() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let put = async |text: String| farm.ask("PUT", "/v1/rows/b/r/timer/0", &token, text).await;
        let other = line(1, &[(200, 1)]).replace("\"log32\"", "\"hdr2\"");
        let (status, answer) = put(line(0, &[(200, 1)]) + &other).await;
        assert_eq!((status, &answer["line"]), (422, &json!(2)), "{answer}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.contains("\"hdr2\"") && detail.contains("onbeat-farm"), "{answer}");
        assert_eq!(farm.ask("GET", "/v1/me", &token, "").await.1["stretches"], json!([]));
        let without = line(0, &[(200, 1)]).replace("\"layout\":\"log32\",", "");
        let dropped = line(1, &[]).replace("\"log32\"", "\"\"");
        assert_eq!(put(without + &dropped).await.0, 201);
    });
}

#[test]
fn no_row_is_left_out_because_its_newline_is_missing() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let put = async |body: Vec<u8>, packed: bool| {
            let request = Request::put("/v1/rows/b/r/timer/0")
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .header(header::CONTENT_ENCODING, if packed { "gzip" } else { "identity" });
            let request = request.body(Body::from(body)).unwrap();
            let response = router(farm.app.clone()).oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            (status, serde_json::from_slice::<Value>(&bytes).unwrap_or_default())
        };
        let zipped = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let first = line(0, &[(200, 1)]);
        let second = line(1, &[(300, 2)]);
        let (status, answer) = put(first.trim_end().into(), false).await;
        assert_eq!((status, &answer["stored"]), (201, &json!(1)), "{answer}");
        // With its newline it is the same row.
        assert_eq!(put(zipped(&first), true).await.0, 200);
        let cut = format!("{first}{}", &second[..second.len() - 9]);
        for (body, packed) in [(cut.clone().into_bytes(), false), (zipped(&cut), true)] {
            let (status, answer) = put(body, packed).await;
            assert_eq!((status, &answer["had"]), (200, &json!(1)), "{answer}");
            assert_eq!(answer["cut_off"], json!(second.len() - 9), "{answer}");
        }
        // What is packed in several pieces is all of it, and what is packed in part is refused.
        let pieces = [zipped(&first), zipped(second.trim_end())].concat();
        let torn = pieces[..pieces.len() - 12].to_vec();
        assert_eq!(put(torn, true).await.0, 400);
        let (status, answer) = put(pieces, true).await;
        assert_eq!((status, &answer["stored"], &answer["had"]), (201, &json!(1), &json!(1)), "{answer}");
    });
}

#[test]
fn what_is_packed_otherwise_is_told_how_it_is_taken() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        for (scheme, coding, wanted, takes) in [
            ("Bearer", "br", 415, Some("gzip")),
            ("bearer", "Identity", 201, None),
            ("BEARER", "identity", 200, None),
            ("Basic", "identity", 401, None),
        ] {
            let request = Request::put("/v1/rows/b/r/timer/0")
                .header(header::AUTHORIZATION, format!("{scheme} {token}"))
                .header(header::CONTENT_ENCODING, coding)
                .body(Body::from(line(0, &[(200, 1)])))
                .unwrap();
            let response = router(farm.app.clone()).oneshot(request).await.unwrap();
            let told = response.headers().get(header::ACCEPT_ENCODING);
            let told = told.map(|value| value.to_str().unwrap().to_owned());
            assert_eq!((response.status().as_u16(), told.as_deref()), (wanted, takes), "{scheme} {coding}");
        }
    });
}

#[test]
fn clocks_that_are_wrong_place_rows_right_and_the_future_is_refused() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let put = async |boot: &str, clock: &str, text: String| {
            let request = Request::put(format!("/v1/rows/{boot}/rec/timer/0"))
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .header("onbeat-clock", clock.to_owned());
            let request = request.body(Body::from(text)).unwrap();
            let response = router(farm.app.clone()).oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            (status, serde_json::from_slice::<Value>(&bytes).unwrap_or_default())
        };
        let rows = (0..3).map(|seq| line(seq, &[(200, 1)])).collect::<String>();
        let mono = 900 * Nanos::SECOND.0;
        // It believes that it is 1970.
        let clock = format!("boot=b1;mono={mono};wall={mono}");
        assert_eq!(put("b1", &clock, rows.clone()).await.0, 201);
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        let slots = farm.app.store.slots("a", &key, ALL, 9).await.unwrap();
        assert!((now() - 1_300..now()).contains(&slots[0].t), "{}", slots[0].t);
        // A row of a later time than the board's own clock that counts from its boot.
        let future = line(0, &[(200, 1)]) + &line(2_000, &[(200, 1)]);
        let (status, answer) = put("b2", &format!("boot=b2;mono={mono};wall=0"), future).await;
        assert_eq!((status, &answer["line"]), (422, &json!(2)));
        // An earlier boot, of which only the board says when it was: in 2106.
        let wall = 4_300_000_000 * Nanos::SECOND.0;
        let late = line(0, &[(200, 1)]).replace("\"wall_ns\":0", &format!("\"wall_ns\":{wall}"));
        assert_eq!(put("b0", &format!("boot=b2;mono={mono};wall=0"), late).await.0, 422);
        // The machine before was copied, and is still alive.
        let (status, answer) = put("b1", &clock, rows).await;
        assert_eq!(status, 403, "{answer}");
    });
}

#[test]
fn of_three_machines_with_one_token_one_is_taken_also_by_a_server_that_was_started_again() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let put = async |farm: &Farm, boot: &str, seq: u64| {
            let clock = format!("boot={boot};mono=900000000000;wall={}", now() * Nanos::SECOND.0);
            let request = Request::put(format!("/v1/rows/{boot}/rec/timer/{seq}"))
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .header("onbeat-clock", clock)
                .body(Body::from(line(seq, &[(200, 1)])))
                .unwrap();
            router(farm.app.clone()).oneshot(request).await.unwrap().status().as_u16()
        };
        for (seq, wanted) in [(0, [201, 201, 201]), (1, [403, 403, 201]), (2, [403, 403, 201])] {
            for (boot, wanted) in ["b1", "b2", "b3"].into_iter().zip(wanted) {
                assert_eq!(put(&farm, boot, seq).await, wanted, "{boot}, row {seq}");
            }
        }
        let again = Farm::new(farm.app.store.clone(), tempfile::tempdir().unwrap(), 1 << 30);
        for (boot, wanted) in [("b2", 201), ("b3", 403), ("b1", 403), ("b2", 200), ("b4", 201), ("b2", 403)] {
            assert_eq!(put(&again, boot, 3).await, wanted, "{boot}");
        }
    });
}

/// Rows of a boot, each with CLOCK_MONOTONIC and what the board took for the time, in seconds.
fn lines(of: &[(i64, i64)]) -> Vec<String> {
    let line = |(seq, (mono, wall)): (u64, &(i64, i64))| {
        let mut row: Value = serde_json::from_str(&line(seq, &[(200, 1)])).unwrap();
        row["mono_ns"] = json!(mono * Nanos::SECOND.0);
        row["wall_ns"] = json!(wall * Nanos::SECOND.0);
        row.to_string() + "\n"
    };
    (0..).zip(of).map(line).collect()
}

#[test]
fn rows_of_before_the_clock_was_set_and_of_after_a_suspend_lie_where_they_were() {
    on_each_engine(1 << 30, async |farm| {
        let t = Tier::Slot.begin(now() - 86_400);
        let rtc = [(30, 30), (330, 330), (630, t), (930, t + 300), (1_230, t + 600)];
        let slept = 8 * 3_600;
        let suspended = [(30, t), (330, t + 300), (630, t + 600 + slept), (930, t + 900 + slept)];
        for (name, rows, cuts, wanted) in [
            ("a", &rtc[..], vec![(0, 5)], vec![t - 600, t - 300, t, t + 300, t + 600]),
            ("b", &rtc[..], vec![(4, 5), (0, 1), (1, 4)], vec![t - 600, t - 300, t, t + 300, t + 600]),
            ("c", &suspended[..], vec![(0, 4)], suspended.map(|row| row.1).to_vec()),
            ("d", &suspended[..], vec![(3, 4), (0, 1), (1, 3)], suspended.map(|row| row.1).to_vec()),
        ] {
            let (token, lines) = (farm.enrolled(name).await, lines(rows));
            for (from, to) in cuts {
                let path = format!("/v1/rows/old/rec/timer/{from}");
                let request = Request::put(path).header(header::AUTHORIZATION, format!("Bearer {token}"));
                // It has been started again since.
                let clock = format!("boot=new;mono=900000000000;wall={}", now() * Nanos::SECOND.0);
                let request = request.header("onbeat-clock", clock);
                let request = request.body(Body::from(lines[from..to].concat())).unwrap();
                let response = router(farm.app.clone()).oneshot(request).await.unwrap();
                let status = response.status().as_u16();
                let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
                let answer: Value = serde_json::from_slice(&bytes).unwrap();
                assert_eq!((status, &answer["undated"]), (201, &Value::Null), "{name}: {answer}");
            }
            let key = SeriesKey { series: "timer".into(), plan: String::new() };
            let slots = farm.app.store.slots(name, &key, ALL, 9).await.unwrap();
            let wanted: Vec<i64> = wanted.into_iter().map(|at| Tier::Slot.begin(at)).collect();
            assert_eq!(slots.iter().map(|slot| slot.t).collect::<Vec<_>>(), wanted, "{name}");
            let days = farm.app.store.tiers(name, &key, Tier::Day, ALL).await.unwrap();
            assert_eq!(days.iter().map(|day| day.n).sum::<u64>(), rows.len() as u64);
        }
    });
}

#[test]
fn a_board_that_is_up_again_within_five_minutes_has_the_rows_of_both_boots() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let put = async |boot: &str, counts: &[(usize, u64)]| {
            let address = format!("/v1/rows/{boot}/rec/timer/0");
            farm.ask("PUT", &address, &token, line(0, counts)).await
        };
        // Their clock was never set.
        for stored in [
            json!({ "stored": 1, "had": 0, "undated": 1, "seq": [] }),
            json!({ "stored": 0, "had": 1, "seq": [] }),
        ] {
            assert_eq!(put("b1", &[(200, 1)]).await.1, stored);
            assert_eq!(put("b2", &[(200, 2)]).await.1, stored);
        }
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        let slots = farm.app.store.slots("a", &key, ALL, 9).await.unwrap();
        assert_eq!(slots.iter().map(|slot| (slot.t, slot.n)).collect::<Vec<_>>(), [(0, 1), (0, 2)]);
        let days = farm.app.store.tiers("a", &key, Tier::Day, ALL).await.unwrap();
        assert_eq!(days.iter().map(|day| day.n).sum::<u64>(), 3);
        let (status, answer) = put("b2", &[(200, 3)]).await;
        let told = (&answer["stored"], &answer["had"], &answer["seq"]);
        assert_eq!((status, told), (409, (&json!(0), &json!(0), &json!([0]))), "{answer}");
    });
}

#[test]
fn of_two_series_that_are_counted_as_one_each_has_its_rows_of_each_boot() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        // What waited for an equal priority, and a series that is called as that is.
        let mut waited: Value = serde_json::from_str(&line(0, &[(200, 1)])).unwrap();
        (waited["cpus"][0]["holder"], waited["cpus"][0]["victims"]) = (json!("equal"), json!("user"));
        let sent = [("timer", waited.to_string() + "\n"), ("timer.priority", line(0, &[(200, 2)]))];
        for wanted in [201, 200] {
            for boot in ["b1", "b2", "b3"] {
                for (series, text) in &sent {
                    let address = format!("/v1/rows/{boot}/rec/{series}/0");
                    let (status, answer) = farm.ask("PUT", &address, &token, text.clone()).await;
                    assert_eq!(status, wanted, "{boot} {series}: {answer}");
                }
            }
        }
        let key = SeriesKey { series: "timer.priority".into(), plan: String::new() };
        let slots = farm.app.store.slots("a", &key, ALL, 99).await.unwrap();
        assert_eq!((slots.len(), slots.iter().map(|slot| slot.n).sum::<u64>()), (6, 9));
        assert_eq!(farm.shown("/healthz").await.0, 200);
    });
}

#[test]
fn a_full_disk_is_said_to_the_board_and_here_and_ends_with_room() {
    // A database server's disk is not this program's to fill.
    block_on(async {
        let store = FarmStore::in_memory().await.unwrap();
        let farm = Farm::new(store, tempfile::tempdir().unwrap(), 1 << 30);
        let token = farm.enrolled("a").await;
        farm.app.store.fill_up(true).await;
        let put = async |seq: u64| {
            let text: String = (seq..seq + 100).map(|seq| line(seq, &[(200 + seq as usize, 7)])).collect();
            farm.ask("PUT", &format!("/v1/rows/b/r/timer/{seq}"), &token, text).await
        };
        let mut answers = Vec::new();
        for at in 0..20 {
            answers.push(put(at * 100).await);
        }
        let (status, answer) = answers.iter().find(|answer| answer.0 != 201).expect("no room is left");
        let detail = answer["detail"].as_str().unwrap();
        assert!(*status == 503 && detail.contains("check its disk") && !detail.contains('\n'), "{answer}");
        assert_eq!(farm.app.refusals.all()[0].detail, detail);
        assert_eq!(farm.shown("/").await.0, 200, "pages go on");
        assert_eq!(answers.last().unwrap().0, 503);
        let failed = |yes: u8| format!("\nonbeat_farm_write_failed{{of=\"store\"}} {yes}\n");
        assert!(farm.shown("/metrics").await.1.contains(&failed(1)));
        let (status, health) = farm.shown("/healthz").await;
        let health: Value = serde_json::from_str(&health).unwrap();
        assert_eq!((status, &health["status"]), (503, &json!(503)), "{health}");
        farm.app.store.fill_up(false).await;
        for (at, before) in (0..).zip(&answers) {
            let again = put(at * 100).await;
            assert_eq!(again.0, if before.0 == 201 { 200 } else { 201 }, "{again:?}");
        }
        assert!(farm.shown("/metrics").await.1.contains(&failed(0)));
        assert_eq!(farm.shown("/healthz").await.0, 200);
    });
}

#[test]
fn a_board_that_only_records_has_the_time_of_its_rows_and_none_of_a_run() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        farm.enrolled("b").await;
        let before = farm.shown("/metrics").await.1;
        assert!(before.contains("\nonbeat_board_state{board=\"b\",state=\"active\"} 1\n"), "{before}");
        assert!(!before.contains("_timestamp_seconds{"), "{before}");
        let text: String = (0..3).map(|seq| line(seq, &[(200, 7)])).collect();
        assert_eq!(farm.ask("PUT", "/v1/rows/b/r/timer/0", &token, text).await.0, 201);
        assert_eq!(farm.ask("PUT", "/v1/rows/b/r/timer/9", &token, line(3, &[(200, 7)])).await.0, 400);
        assert_eq!(farm.ask("PUT", "/v1/rows/b/r/timer/3", "obt_none", "").await.0, 401);
        let wrong = json!({ "code": "none", "name": "c" }).to_string();
        assert_eq!(farm.ask("POST", "/v1/enrol", "", wrong).await.0, 403);
        let after = farm.shown("/metrics").await.1;
        assert!(after.contains("\nonbeat_last_rows_timestamp_seconds{board=\"a\"} 600\n"), "{after}");
        assert_eq!(after.matches("_timestamp_seconds{").count(), 1, "{after}");
        for (reason, count) in [("token", 1), ("code", 1), ("content", 1), ("conflict", 0)] {
            let said = format!("\nonbeat_farm_refused_requests_total{{reason=\"{reason}\"}} {count}\n");
            assert!(after.contains(&said), "{after}");
        }
    });
}

#[test]
fn a_board_that_sends_rows_alone_is_what_its_environments_say() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let document = |release: &str| {
            let settings = json!({ "model": "a board", "cmdline": "quiet", "preempt": "full-rt" });
            let named = json!({ "env": format!("at {release}"), "release": release, "settings": settings });
            named.to_string()
        };
        let address = |text: &str| format!("/v1/environments/{}", piece(text.as_bytes()));
        let (old, new) = (document("6.1.7"), document("6.12.9"));
        for status in [201, 200] {
            for text in [&old, &new] {
                let named = json!({ "schema": "onbeat.received/1", "id": piece(text.as_bytes()) });
                assert_eq!(farm.ask("PUT", &address(text), &token, text.clone()).await, (status, named));
            }
        }
        for wrong in ["", "{}", "[]", "no JSON"] {
            assert_eq!(farm.ask("PUT", &address(wrong), &token, wrong).await.0, 422, "{wrong}");
        }
        assert_eq!(farm.ask("PUT", &address(&old), &token, new.clone()).await.0, 422);
        assert_eq!(farm.ask("PUT", &address(&old), "obt_none", old.clone()).await.0, 401);
        let setting = |bytes: usize| {
            json!({ "env": "large", "settings": { "cmdline": "x".repeat(bytes) } }).to_string()
        };
        for (bytes, status) in [(100 << 10, 201), (140 << 10, 413)] {
            let text = setting(bytes);
            let (got, answer) = farm.ask("PUT", &address(&text), &token, text).await;
            assert_eq!(got, status, "{answer}");
            assert!(status == 201 || answer["detail"].as_str().unwrap().contains("131072 bytes"), "{answer}");
        }
        let large = " ".repeat(300 << 10);
        assert_eq!(farm.ask("PUT", &address(&large), &token, large.clone()).await.0, 413);

        for (seq, release) in [(400, "6.12.9"), (0, "6.1.7"), (1, "6.1.7")] {
            let mut row: Value = serde_json::from_str(&line(seq, &[(200, 1)])).unwrap();
            row["env"] = json!(format!("at {release}"));
            let address = format!("/v1/rows/b/r/timer/{seq}");
            assert_eq!(farm.ask("PUT", &address, &token, row.to_string() + "\n").await.0, 201);
        }
        let told: Value = serde_json::from_str(&farm.shown("/v1/boards/a/environments").await.1).unwrap();
        let releases: Vec<_> =
            told["environments"].as_array().unwrap().iter().map(|one| &one["release"]).collect();
        assert_eq!(releases, ["6.12.9", "6.1.7"], "{told}");
        assert_eq!(told["environments"][0]["changed"][0]["what"], "host.release");
        let (status, page) = farm.shown("/b/a/env").await;
        assert!(
            status == 200 && page.contains("6.12.9") && page.contains("by the board's recorder"),
            "{page}"
        );
        assert!(farm.shown("/").await.1.contains("6.12.9"));
        let (status, page) = farm.shown("/changes?only=all").await;
        assert!(status == 200 && page.contains("from 6.1.7 to 6.12.9"), "{page}");
    });
}

/// As many as are read together, each as large as one may be.
#[test]
fn an_answer_of_the_largest_environments_has_a_bound() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("hog").await;
        for env in 0..64 {
            let settings: BTreeMap<String, String> = match env % 8 {
                0 => [(format!("s{:012}", 0), format!("{}{env}", "\u{1}\"<&".repeat(2_700)))].into(),
                _ => (0..1_000).map(|n| (format!("s{n:012}"), (env + n).to_string())).collect(),
            };
            let text = json!({ "env": format!("e{env}"), "settings": settings }).to_string();
            let address = format!("/v1/environments/{}", piece(text.as_bytes()));
            let (status, answer) = farm.ask("PUT", &address, &token, text).await;
            assert_eq!(status, 201, "{answer}");
            let mut row: Value = serde_json::from_str(&line(env, &[(9, 1)])).unwrap();
            row["env"] = json!(format!("e{env}"));
            let address = format!("/v1/rows/boot-1/rec/timer/{env}");
            assert_eq!(farm.ask("PUT", &address, &token, row.to_string() + "\n").await.0, 201);
        }
        let visitor = Visitor { view: FarmView::All, ..Visitor::default() };
        let mut texts = Vec::new();
        for is_csv in [false, true] {
            let parts = EnvironmentParts::of(&farm.app, &visitor, "hog", is_csv).await;
            let parts = parts.unwrap_or_else(|refusal| panic!("{}", refusal.detail));
            assert!(parts.held() < 8 << 20 && parts.held() > 100_000, "{}", parts.held());
            let parts = parts_of(parts).await;
            assert!(parts.iter().all(|part| part.len() < 256 << 10));
            texts.push(parts.concat());
        }
        let all: Value = serde_json::from_str(&texts[0]).unwrap();
        let shown = all["environments"].as_array().unwrap();
        assert_eq!(shown.len() as u64 + all["left_out"].as_u64().unwrap(), 64);
        assert!(shown.len() >= 40 && shown[0]["environment"].is_string(), "{}", shown.len());
        assert_eq!(texts[1].lines().count(), shown.len() + 1);
        let (status, page) = farm.shown("/b/hog/env").await;
        assert!(status == 200 && page.len() < 2 << 20, "{status}: {} bytes", page.len());
        assert!(page.contains("earlier ones are not shown"));
        let (status, page) = farm.shown("/b/hog").await;
        assert!(status == 200 && page.len() < 256 << 10, "{status}: {} bytes", page.len());
    });
}
