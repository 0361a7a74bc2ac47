//! Runs: sent in pieces, refused where they are no bundle.

use crate::fixture::run_folder;
use std::io::Read;

use bundle::manifest::BundleManifest;

use super::*;
use crate::ingest::keep::{PATIENCE, writer_lock};

type Damage = Box<dyn Fn(&str) -> String>;

#[test]
fn a_bundle_is_sent_once_however_often_it_is_cut_and_repeated() {
    on_each_engine(1 << 30, async |farm| {
        let (token, other) = (farm.enrolled("a").await, farm.enrolled("b").await);
        let (id, files) = fixture("hunt");
        let (address, text) = (format!("/v1/runs/{id}"), manifest(&files));
        let (status, answer) = farm.ask("PUT", &address, &token, text.clone()).await;
        let missing: Vec<&str> =
            answer["missing"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(status, 202);
        let mut pieces: Vec<&[u8]> = files.iter().flat_map(|file| file.1.chunks(4 << 20)).collect();
        pieces.sort_unstable();
        pieces.dedup();
        assert!(pieces.iter().all(|bytes| missing.contains(&piece(bytes).as_str())));
        for (at, bytes) in pieces.iter().enumerate() {
            let address = format!("/v1/pieces/{}", piece(bytes));
            let named = json!({ "schema": "onbeat.received/1", "id": piece(bytes) });
            for wanted in [201, 200] {
                let told = farm.ask("PUT", &address, &token, bytes.to_vec()).await;
                assert_eq!(told, (wanted, named.clone()), "piece {at}");
            }
            assert_eq!(farm.ask("PUT", &address, &token, "other".to_owned()).await.0, 422);
            let whole = at + 1 == pieces.len();
            let wanted = if whole { 201 } else { 202 };
            assert_eq!(
                farm.ask("PUT", &address.replace("pieces", "runs"), &token, "{}".to_owned()).await.0,
                422
            );
            if at % 5 == 0 || whole {
                let (status, told) = farm.ask("PUT", &format!("/v1/runs/{id}"), &token, text.clone()).await;
                assert_eq!(status, wanted);
                let manifest = whole.then(|| json!(piece(text.as_bytes())));
                assert_eq!(told.get("manifest"), manifest.as_ref(), "{told}");
            }
        }
        let (status, told) = farm.ask("PUT", &format!("/v1/runs/{id}"), &token, text.clone()).await;
        let named = json!({
            "schema": "onbeat.received/1", "id": id, "manifest": piece(text.as_bytes()), "remarks": []
        });
        assert_eq!((status, told), (200, named));
        let run = farm.app.store.run(&id).await.unwrap().unwrap();
        let days = farm.app.store.tiers("a", &run.key, Tier::Day, ALL).await.unwrap();
        assert_eq!((run.board.as_str(), days[0].n), ("a", run.cycles));
        // A run that is over does not change, and no other board may send it.
        let less = manifest(&files[..files.len() - 1]);
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &other, text).await.0, 409);
        let changed = farm.ask("PUT", &format!("/v1/runs/{id}"), &token, less).await.0;
        assert!(changed == 409 || changed == 422, "{changed}");
        let (_, me) = farm.ask("GET", "/v1/me", &token, "").await;
        assert_eq!((&me["runs"][0]["id"], &me["runs"][0]["complete"]), (&json!(id), &json!(run.complete)));
        // The pieces of what is there, or is refused, wait for nothing.
        for (token, board, status) in [(&token, "a", 200), (&other, "b", 409)] {
            assert_eq!(farm.send(token, &id, &files).await.0, status);
            assert_eq!(waiting(&farm, board), 0, "{board}");
        }
        assert_eq!(farm.ask("PUT", "/v1/runs/..", &token, "{}").await.0 / 100, 4);
    });
}

#[test]
fn a_run_whose_request_is_cut_off_is_stored_as_it_is_before_the_next_one_is_looked_at() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let (id, mut files) = fixture("measured");
        let small = |n: usize| (format!("host/proc/x/{n:03}"), format!("{n} ").repeat(n + 1).into_bytes());
        files.extend((0..400).map(small));
        let intake = farm.app.intake.as_ref().unwrap();
        let named = BundleManifest::read(manifest(&files).as_bytes()).unwrap();
        assert_eq!(intake.staging.missing("a", &named).len(), named.pieces().len());
        for (_, bytes) in &files {
            intake.staging.put("a", &piece(bytes), bytes).unwrap();
        }
        let request = Request::put(format!("/v1/runs/{id}"))
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .body(Body::from(manifest(&files)))
            .unwrap();
        let asked = tokio::spawn(router(farm.app.clone()).oneshot(request));
        let has_begun = || {
            let names = host::MachineFiles::folder(intake.staging.folder()).list("/.");
            names.known().is_some_and(|names| names.iter().any(|name| name.starts_with(&id)))
        };
        while !has_begun() {
            tokio::task::yield_now().await;
        }
        asked.abort();
        assert!(asked.await.is_err_and(|error| error.is_cancelled()), "it was over already");
        drop(intake.assembling.lock().await);
        let run = farm.app.store.run(&id).await.unwrap().unwrap();
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await.0, 200);
        for (path, bytes) in &files {
            let there = host::read_user_file(&Path::new(&run.place).join(path), 64 << 20).unwrap();
            assert!(there == *bytes, "{path}");
        }
    });
}

/// `forget --allow` takes a run out of the store and then its bundle out of the folder: what its
/// board sends meanwhile would go with that.
#[test]
fn a_run_is_put_into_the_folder_when_no_other_program_has_its_turn_there() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let (id, files) = fixture("hunt");
        let (other, _) = fixture("measured");
        let folder = farm.app.intake.as_ref().unwrap().staging.folder();
        let turn = writer_lock(folder, PATIENCE).await.unwrap();
        assert!(turn.is_some());
        let (status, answer) = farm.send(&token, &id, &files).await;
        assert!(status == 503 && answer["detail"].as_str().unwrap().contains("another program"), "{answer}");
        assert!(farm.app.store.run(&id).await.unwrap().is_none());
        let names = host::MachineFiles::folder(folder).list_as_it_is("/.").known().cloned().unwrap();
        assert_eq!(names, [".pieces"]);
        // Who lacks pieces does not wait, and those of the run are still here.
        let (_, lacking) = with_document(|text| text.replacen("\"cycles\":", "\"cycles\": ", 1));
        let told = farm.ask("PUT", &format!("/v1/runs/{other}"), &token, manifest(&lacking)).await;
        assert_eq!(told.0, 202, "{}", told.1);
        drop(turn);
        let address = format!("/v1/runs/{id}");
        assert_eq!(farm.ask("PUT", &address, &token, manifest(&files)).await.0, 201);
        // It is known without a turn.
        let turn = writer_lock(folder, PATIENCE).await.unwrap();
        assert!(turn.is_some(), "the turn ended with the request");
        assert_eq!(farm.ask("PUT", &address, &token, manifest(&files)).await.0, 200);
    });
}

#[test]
fn a_piece_that_was_damaged_here_is_asked_for_again() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let (id, files) = fixture("measured");
        let intake = farm.app.intake.as_ref().unwrap();
        for (_, bytes) in &files {
            intake.staging.put("a", &piece(bytes), bytes).unwrap();
        }
        let (address, bytes) = (format!("/v1/runs/{id}"), &files[0].1);
        let damaged = intake.staging.folder().join(".pieces/a").join(piece(bytes));
        host::write_user_file(&damaged, &vec![b'x'; bytes.len()]).unwrap();
        let (status, answer) = farm.ask("PUT", &address, &token, manifest(&files)).await;
        assert_eq!((status, &answer["missing"]), (202, &json!([piece(bytes)])));
        let sent = format!("/v1/pieces/{}", piece(bytes));
        assert_eq!(farm.ask("PUT", &sent, &token, bytes.clone()).await.0, 201);
        assert_eq!(farm.ask("PUT", &address, &token, manifest(&files)).await.0, 201);
    });
}

#[test]
fn a_board_has_its_quota() {
    on_each_engine(1_000, async |farm| {
        let token = farm.enrolled("a").await;
        let (id, files) = fixture("measured");
        let (status, answer) = farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await;
        assert_eq!(status, 413, "{answer}");
    });
}

#[test]
fn a_run_that_came_on_a_stick_is_there() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let place = run_folder("measured");
        let found = crate::ingest::find::FoundBundle { place, board: Some("a".into()) };
        let record = crate::ingest::bundle::read(&found).unwrap().0;
        farm.app.store.put(&record).await.unwrap();
        let (id, files) = fixture("measured");
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await.0, 200);
    });
}

#[test]
fn the_end_of_a_run_that_came_on_a_stick_after_a_state_that_was_sent_is_there() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let (id, earlier) = with_document(|text| text.replacen("\"complete\":true", "\"complete\":false", 1));
        let (_, files) = fixture("measured");
        assert_ne!(earlier, files);
        assert_eq!(farm.send(&token, &id, &earlier).await.0, 201);
        farm.app.store.put(&crate::fixture::recorded_run("measured", "a")).await.unwrap();
        assert!(farm.app.store.run(&id).await.unwrap().unwrap().complete);
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await.0, 200);
        let (_, other) = with_document(|text| text.replacen("\"cycles\":", "\"cycles\": ", 1));
        assert_ne!(other, files);
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&other)).await.0, 409);
    });
}

#[test]
fn the_last_seconds_of_a_run_that_was_killed_replace_a_state_with_the_same_document() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let folder = tempfile::tempdir().unwrap();
        let state = |seconds: i64| {
            crate::fixture::killed_run(folder.path(), seconds);
            files_of(folder.path(), "")
        };
        let (earlier, later) = (state(0), state(3));
        let document = |files: &[(String, Vec<u8>)]| files.iter().find(|file| file.0 == "run.json").cloned();
        assert_eq!(document(&earlier), document(&later));
        let (id, _) = fixture("measured");
        let has = async |files: &[(String, Vec<u8>)]| {
            let run = farm.app.store.run(&id).await.unwrap().unwrap();
            for (path, bytes) in files {
                let there = host::read_user_file(&Path::new(&run.place).join(path), 64 << 20).unwrap();
                assert!(there == *bytes, "{path}");
            }
            let (_, me) = farm.ask("GET", "/v1/me", &token, "").await;
            assert_eq!(me["runs"][0]["manifest"], json!(piece(manifest(files).as_bytes())), "{me}");
            let days = farm.app.store.tiers("a", &run.key, Tier::Day, ALL).await.unwrap();
            (run.cycles, days.iter().map(|day| day.n).sum::<u64>())
        };
        assert_eq!(farm.send(&token, &id, &earlier).await.0, 201);
        let (before, _) = has(&earlier).await;
        assert_eq!(farm.send(&token, &id, &later).await.0, 201);
        assert_eq!(has(&later).await, (before + 30, before + 30));
        assert_eq!(farm.send(&token, &id, &later).await.0, 200);
        let (status, answer) = farm.send(&token, &id, &earlier).await;
        assert!(status == 409 && answer["detail"].as_str().unwrap().contains("a later state"), "{answer}");
        assert_eq!(has(&later).await, (before + 30, before + 30));
    });
}

#[test]
fn a_run_that_was_removed_is_refused_before_its_pieces_until_it_may_come_again() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let (id, files) = fixture("hunt");
        assert_eq!(farm.send(&token, &id, &files).await.0, 201);
        let run = farm.app.store.run(&id).await.unwrap().unwrap();
        let folder = farm.app.intake.as_ref().unwrap().staging.folder();
        let kept = crate::removal::KeptBundles { folder, bucket: None, patience: PATIENCE };
        let gone = crate::removal::forget(&farm.app.store, &run, None, kept, Some(now())).await.unwrap();
        assert!(gone.bundle_gone && !gone.of.board_gone && !Path::new(&run.place).exists(), "{gone:?}");
        assert_eq!(farm.app.store.kept_bytes_of("a").await.unwrap(), 0);
        let (_, me) = farm.ask("GET", "/v1/me", &token, "").await;
        assert_eq!(me["runs"], json!([]));
        for _ in 0..2 {
            let (status, answer) = farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await;
            let detail = answer["detail"].as_str().unwrap();
            assert!(status == 409 && detail.contains("not stored again"), "{answer}");
            assert_eq!(answer["removed"], json!(true), "{answer}");
            assert_eq!(farm.app.refusals.all()[0].detail, detail);
        }
        // Its pieces may be on the way.
        assert_eq!(farm.send(&token, &id, &files).await.0, 409);
        let asked = format!("/v1/me/removed?runs=other,{id}");
        let noted = farm.app.refusals.all().len();
        assert_eq!(farm.ask("GET", &asked, &token, "").await, (200, json!({ "removed": [&id] })));
        assert_eq!(farm.ask("GET", &asked, "obt_none", "").await.0, 401);
        assert!(farm.app.store.allow_again(&id).await.unwrap());
        assert_eq!(farm.ask("GET", &asked, &token, "").await, (200, json!({ "removed": [] })));
        assert_eq!(farm.ask("GET", "/v1/me/removed", &token, "").await, (200, json!({ "removed": [] })));
        assert_eq!(farm.app.refusals.all().len(), noted, "to ask is no fault");
        let many = format!("/v1/me/removed?runs={}", vec!["x"; 65].join(","));
        assert_eq!(farm.ask("GET", &many, &token, "").await.0, 400);
        assert_eq!(farm.send(&token, &id, &files).await.0, 201);
    });
}

/// How many pieces of a board wait.
fn waiting(farm: &Farm, board: &str) -> usize {
    let folder = farm.app.intake.as_ref().unwrap().staging.folder().join(".pieces").join(board);
    host::MachineFiles::folder(folder).list("/.").known().map_or(0, Vec::len)
}

/// What is wrong is one line on the board and on the administration page, and nothing else stops.
#[test]
fn what_is_no_bundle_is_one_line_there_and_here_and_the_next_is_stored() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let bad: [(&str, Damage); 9] = [
            ("cut short", Box::new(|text| text[..text.len() / 2].to_owned())),
            ("expected a run", Box::new(|text| text.replace("onbeat.run/1", "other.tool/7"))),
            ("newer", Box::new(|text| text.replace("onbeat.run/1", "onbeat.run/2"))),
            ("id in run.json differs", Box::new(|text| text.replacen("\"id\":\"", "\"id\":\"x", 1))),
            ("invalid id", Box::new(|text| text.replacen("\"id\":\"", "\"id\":\"../\\u001b[2J", 1))),
            ("nested", Box::new(|_| "[".repeat(100_000))),
            ("in the future", Box::new(|text| text.replacen("\"started\":\"2026", "\"started\":\"2099", 1))),
            (
                "elapsed_ns is 9000000008466175545",
                Box::new(|text| text.replacen("\"elapsed_ns\":", "\"elapsed_ns\":900000000", 1)),
            ),
            ("contradicts", Box::new(|text| text.replacen("\"cycles\":", "\"cycles\":9", 1))),
        ];
        for (words, of) in &bad {
            let (id, files) = with_document(of);
            let (status, answer) = farm.send(&token, &id, &files).await;
            let detail = answer["detail"].as_str().unwrap_or_default();
            assert_eq!(status, 422, "{words}: {answer}");
            assert!(detail.contains(words) && detail.len() < 600, "{words}: {detail}");
            assert!(!detail.contains(model::text::steers), "{detail:?}");
            let noted = farm.app.refusals.all();
            assert_eq!(
                (noted[0].board.as_str(), noted[0].detail.as_str()),
                ("a", &detail[..detail.len().min(300)])
            );
            assert!(farm.app.store.run(&id).await.unwrap().is_none());
            // Its pieces wait for nothing.
            assert_eq!(waiting(&farm, "a"), 0, "{words}");
        }
        let (id, files) = fixture("measured");
        assert_eq!(farm.send(&token, &id, &files).await.0, 201);
    });
}

#[test]
fn bombs_and_paths_that_climb_are_refused_and_nothing_is_written() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::copy(&mut std::io::repeat(b'\n').take(64 << 20), &mut encoder).unwrap();
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 1 << 20);
        let pieces = format!("/v1/pieces/{}", "a".repeat(64));
        for address in ["/v1/rows/b/r/timer/0", &pieces, "/v1/runs/x"] {
            let request = Request::put(address)
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .header(header::CONTENT_ENCODING, "gzip");
            let response = router(farm.app.clone())
                .oneshot(request.body(Body::from(bomb.clone())).unwrap())
                .await
                .unwrap();
            assert_eq!(response.status().as_u16(), 413, "{address}");
            assert!(farm.app.refusals.all()[0].detail.contains("bytes"));
        }
        for path in ["../../climbed", "/climbed", "host/../../climbed", "host/\u{202e}x", "events/a/b"] {
            let files = [("run.json".to_owned(), b"{}".to_vec()), (path.to_owned(), b"x".to_vec())];
            let (status, answer) = farm.ask("PUT", "/v1/runs/x", &token, manifest(&files)).await;
            assert!(
                status == 422 && !answer["detail"].as_str().unwrap().contains(model::text::steers),
                "{answer}"
            );
        }
    });
}

#[test]
#[allow(clippy::disallowed_methods)] // A test damages a file.
fn a_bundle_that_cannot_be_put_together_leaves_no_half_of_it() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let (id, files) = fixture("measured");
        let folder = farm.app.intake.as_ref().unwrap().staging.folder().to_owned();
        for bytes in files.iter().flat_map(|file| file.1.chunks(4 << 20)) {
            farm.ask("PUT", &format!("/v1/pieces/{}", piece(bytes)), &token, bytes.to_vec()).await;
        }
        let document = files.iter().find(|file| file.0 == "run.json").unwrap();
        let damaged = folder.join(".pieces/a").join(piece(&document.1));
        std::fs::write(&damaged, "damaged").unwrap();
        let (status, answer) = farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await;
        assert_eq!((status, &answer["missing"]), (202, &json!([piece(&document.1)])));
        let names = || folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names().all(|name| name == ".pieces"), "{:?}", names().collect::<Vec<_>>());
        assert_eq!(farm.send(&token, &id, &files).await.0, 201);
    });
}

#[test]
fn rows_and_environments_are_of_the_quota_too() {
    on_each_engine(100_000, async |farm| {
        let token = farm.enrolled("a").await;
        let mut taken = 0;
        let refused = loop {
            let address = format!("/v1/rows/boot-1/rec/timer/{taken}");
            let (status, answer) = farm.ask("PUT", &address, &token, line(taken, &[(9, 1)])).await;
            if status != 201 {
                break (status, answer);
            }
            taken += 1;
        };
        assert!(refused.0 == 507 && taken > 20, "{taken}: {}", refused.1);
        let detail = refused.1["detail"].as_str().unwrap();
        assert!(detail.contains("of 100000 bytes") && detail.contains("--board-quota"), "{detail}");
        assert_eq!(farm.app.refusals.all()[0].detail, detail);
        let stored = farm.app.store.stored_bytes("a").await.unwrap();
        assert!(stored.rows > 50_000 && stored.environments == 0, "{stored:?}");
        let text = json!({ "env": "e", "settings": { "cmdline": "x".repeat(30_000) } }).to_string();
        let address = format!("/v1/environments/{}", piece(text.as_bytes()));
        assert_eq!(farm.ask("PUT", &address, &token, text.clone()).await.0, 507);
        let (id, files) = fixture("measured");
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await.0, 413);
        // Another board has its own.
        let other = farm.enrolled("b").await;
        assert_eq!(farm.ask("PUT", &address, &other, text).await.0, 201);
        assert!(farm.app.store.stored_bytes("b").await.unwrap().environments > 30_000);
    });
}
