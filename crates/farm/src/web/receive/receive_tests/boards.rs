//! Who may send: codes, tokens, what boards and their labels are called.

use super::*;
use crate::fixture::{block_on, run_folder};
use crate::ingest::find::FoundBundle;
use crate::store::PutOutcome;

#[test]
fn a_code_enrols_once_and_a_revoked_token_ends() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("press-3").await;
        assert!(token.starts_with("obt_") && token.len() == 68);
        let (status, me) = farm.ask("GET", "/v1/me", &token, "").await;
        let empty = json!({ "board": "press-3", "rows": [], "runs": [], "stretches": [], "whole": true });
        assert_eq!((status, me), (200, empty));
        let again = json!({ "code": "press-3", "name": "other" }).to_string();
        assert_eq!(farm.ask("POST", "/v1/enrol", "", again).await.0, 403);
        farm.app.store.add_code(&digest_of("old"), now() - 1, &[]).await.unwrap();
        assert_eq!(
            farm.ask("POST", "/v1/enrol", "", json!({ "code": "old", "name": "x" }).to_string()).await.0,
            403
        );
        // A name that is taken leaves the code good.
        farm.app.store.add_code(&digest_of("new"), now() + 60, &[]).await.unwrap();
        let taken = json!({ "code": "new", "name": "press-3" }).to_string();
        assert_eq!(farm.ask("POST", "/v1/enrol", "", taken).await.0, 409);
        let free = json!({ "code": "new", "name": "press-4" }).to_string();
        assert_eq!(farm.ask("POST", "/v1/enrol", "", free).await.0, 201);
        for wrong in ["", "obt_", "obt_0000", &token[..67]] {
            assert_eq!(farm.ask("GET", "/v1/me", wrong, "").await.0, 401, "{wrong}");
        }
        assert_eq!(farm.app.store.revoke("press-3", now()).await.unwrap(), 1);
        assert_eq!(farm.app.refusals.all().len(), 0);
        assert_eq!(farm.ask("GET", "/v1/me", &token, "").await.0, 401);
        let noted = farm.app.refusals.all();
        assert!(noted[0].board == "press-3" && noted[0].detail.contains("was revoked"), "{noted:?}");
        assert_eq!(farm.ask("POST", "/v1/enrol", "", "no JSON").await.0, 400);
        // Who is not known cannot send much, and each refusal is a document.
        let (status, answer) = farm.ask("POST", "/v1/enrol", "", "x".repeat(10_000)).await;
        assert_eq!((status, &answer["status"]), (413, &json!(413)));
        for (method, address) in [("PUT", "/v1/rows/b/r/s/none"), ("DELETE", "/v1/me")] {
            let (status, answer) = farm.ask(method, address, &token, "").await;
            assert_eq!(answer["status"], json!(status), "{answer}");
        }
    });
}

#[test]
fn what_the_farm_has_is_named_in_answers_of_any_length() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        for (series, seq) in
            ["timer", "timer+wakeup"].into_iter().flat_map(|of| [0, 2, 4, 5, 9].map(|seq| (of, seq)))
        {
            let address = format!("/v1/rows/boot-1/rec/{series}/{seq}");
            assert_eq!(farm.ask("PUT", &address, &token, line(seq, &[(9, 1)])).await.0, 201);
        }
        for name in ["measured", "hunt"] {
            let (id, files) = fixture(name);
            assert_eq!(farm.send(&token, &id, &files).await.0, 201);
        }
        let (_, all) = farm.ask("GET", "/v1/me", &token, "").await;
        assert_eq!((&all["whole"], &all["next"]), (&json!(true), &Value::Null), "{all}");
        let count = |of: &str| all[of].as_array().unwrap().len();
        assert_eq!((count("stretches"), count("runs")), (8, 2));
        for most in 1..=9 {
            let (mut stretches, mut runs, mut next) = (Vec::new(), Vec::new(), format!("most={most}"));
            for page in 0..20 {
                let (status, told) = farm.ask("GET", &format!("/v1/me?{next}"), &token, "").await;
                assert!(status == 200 && page < 10, "{most} {told}");
                for (to, of) in [(&mut stretches, "stretches"), (&mut runs, "runs")] {
                    let part = told[of].as_array().unwrap();
                    assert!(part.len() <= most, "{told}");
                    to.extend(part.clone());
                }
                assert_eq!(told["whole"], json!(told["next"].is_null()), "{told}");
                let Some(more) = told["next"].as_str() else { break };
                more.clone_into(&mut next);
            }
            assert_eq!((&json!(stretches), &json!(runs)), (&all["stretches"], &all["runs"]), "{most}");
        }
        let (_, before) = farm.ask("GET", "/v1/me?runs_before=0", &token, "").await;
        assert_eq!((&before["runs"], &before["stretches"]), (&json!([]), &json!([])));
        for wrong in ["rows_after=x", "rows_after=b/r/s/x", "most=x"] {
            assert_eq!(farm.ask("GET", &format!("/v1/me?{wrong}"), &token, "").await.0, 400, "{wrong}");
        }
    });
}

#[test]
fn a_board_that_lost_the_answer_enrols_once_more_with_its_secret() {
    on_each_engine(1 << 30, async |farm| {
        let ask = async |code: &str, name: &str, secret: &str| {
            let asked = json!({ "code": code, "name": name, "secret": secret }).to_string();
            farm.ask("POST", "/v1/enrol", "", asked).await
        };
        let (secret, other) = ("5a".repeat(32), "5b".repeat(32));
        farm.app.store.add_code(&digest_of("code"), now() + 60, &[]).await.unwrap();
        for wrong in ["5a", &"x".repeat(64), &"5a".repeat(33)] {
            assert_eq!(ask("code", "a", wrong).await.0, 400);
        }
        let (status, answer) = ask("code", "a", &secret).await;
        assert_eq!(status, 201, "{answer}");
        assert_eq!(ask("code", "a", &secret).await, (201, answer.clone()));
        // It is given to no other board.
        for (name, secret) in [("a", &other), ("b", &secret), ("a", &String::new())] {
            assert_eq!(ask("code", name, secret).await.0, 403, "{name}");
        }
        assert_ne!(ask("none", "a", &secret).await.0, 201);
        let token = answer["token"].as_str().unwrap();
        assert_eq!(farm.ask("GET", "/v1/me", token, "").await.0, 200);
        assert_eq!(farm.app.store.tokens().await.unwrap().get("a"), Some(&1));
        farm.app.store.revoke("a", now()).await.unwrap();
        assert_eq!(ask("code", "a", &secret).await.0, 403);
        // With another code it is another token.
        assert!(code_for(&farm, "a", "again").await);
        assert_ne!(ask("again", "a", &secret).await.1["token"], answer["token"]);
    });
}

#[test]
fn boards_whose_names_are_alike_in_an_address_enrol_beside_each_other() {
    on_each_engine(1 << 30, async |farm| {
        let names = ["\u{441}\u{442}\u{435}\u{43d}\u{434}", "\u{43f}\u{440}"];
        for (code, name) in ["one", "other"].iter().zip(names) {
            farm.app.store.add_code(&digest_of(code), now() + 60, &[]).await.unwrap();
            let (status, answer) = enrol(&farm, code, name).await;
            let key = answer["board"].as_str().unwrap();
            assert!(status == 201 && key.starts_with("board-") && key.len() == 14, "{answer}");
            let (status, page) = farm.shown(&format!("/b/{key}")).await;
            assert!(status == 200 && page.contains(name), "{page}");
        }
        farm.app.store.add_code(&digest_of("next"), now() + 60, &[]).await.unwrap();
        assert_eq!(enrol(&farm, "next", names[0]).await.0, 409);
        assert_eq!(farm.app.store.boards().await.unwrap().len(), 2);
    });
}

/// A code for one board, as the command line makes it; whether it was made.
async fn code_for(farm: &Farm, board: &str, code: &str) -> bool {
    farm.app.store.add_code_for(board, &digest_of(code), now() + 60, &[]).await.unwrap()
}

async fn enrol(farm: &Farm, code: &str, name: &str) -> (u16, Value) {
    farm.ask("POST", "/v1/enrol", "", json!({ "code": code, "name": name }).to_string()).await
}

#[test]
fn a_board_that_was_revoked_enrols_again_and_goes_on() {
    on_each_engine(1 << 30, async |farm| {
        let old = farm.enrolled("press-7").await;
        let (id, files) = fixture("measured");
        assert_eq!(farm.send(&old, &id, &files).await.0, 201);
        assert_eq!(farm.ask("PUT", "/v1/rows/b/r/timer/0", &old, line(0, &[(200, 1)])).await.0, 201);
        assert!(!code_for(&farm, "press-7", "early").await, "it has a token");
        assert_eq!(enrol(&farm, "early", "press-7").await.0, 403);
        assert_eq!(farm.app.store.revoke("press-7", now()).await.unwrap(), 1);
        // A code for any board does not take its place.
        farm.app.store.add_code(&digest_of("any"), now() + 60, &[]).await.unwrap();
        let (status, answer) = enrol(&farm, "any", "press-7").await;
        let detail = answer["detail"].as_str().unwrap();
        assert!(status == 409 && detail.contains("onbeat-farm enrol --name press-7"), "{detail}");
        assert_eq!(enrol(&farm, "any", "press-8").await.0, 201, "the code stays valid");
        assert!(code_for(&farm, "press-7", "again").await);
        let (status, answer) = enrol(&farm, "again", "press-9").await;
        let detail = answer["detail"].as_str().unwrap();
        assert!(status == 409 && detail.contains("--name press-7"), "{detail}");
        let (status, answer) = enrol(&farm, "again", "press-7").await;
        assert_eq!((status, &answer["board"]), (201, &json!("press-7")));
        let new = answer["token"].as_str().unwrap();
        assert_eq!(farm.ask("GET", "/v1/me", &old, "").await.0, 401);
        // What it sent before is its own, and counts once.
        assert_eq!(farm.send(new, &id, &files).await.0, 200);
        assert_eq!(farm.ask("PUT", "/v1/rows/b/r/timer/0", new, line(0, &[(200, 1)])).await.0, 200);
        let (_, boards) = farm.ask("GET", "/v1/boards", "", "").await;
        assert_eq!(boards["boards"].as_array().unwrap().len(), 2, "{boards}");
        assert_eq!(farm.app.store.faults().await.unwrap(), [""; 0]);
    });
}

#[test]
fn a_board_whose_runs_were_imported_enrols_with_a_code_of_its_own() {
    on_each_engine(1 << 30, async |farm| {
        let place = run_folder("measured");
        let found = FoundBundle { place, board: Some("press-7".into()) };
        let (record, _) = crate::ingest::bundle::read(&found).unwrap();
        assert_eq!(farm.app.store.put(&record).await.unwrap(), PutOutcome::Stored);
        farm.app.store.add_code(&digest_of("any"), now() + 60, &[]).await.unwrap();
        assert_eq!(enrol(&farm, "any", "press-7").await.0, 409);
        assert!(code_for(&farm, "press-7", "code").await);
        let (status, answer) = enrol(&farm, "code", "press-7").await;
        assert_eq!(status, 201, "{answer}");
        let token = answer["token"].as_str().unwrap();
        let (id, files) = fixture("measured");
        assert_eq!(farm.send(token, &id, &files).await.0, 200);
        // A code may be made for a board that the store does not know.
        assert!(code_for(&farm, "press-8", "new").await);
        assert_eq!(enrol(&farm, "new", "press-8").await.0, 201);
    });
}

#[test]
fn of_two_boards_that_use_codes_of_one_name_at_once_one_is_enrolled() {
    on_each_engine(1 << 30, async |farm| {
        for (board, codes, refused) in [("a", ["one", "one"], 403), ("b", ["two", "three"], 409)] {
            for code in codes.iter().collect::<std::collections::BTreeSet<_>>() {
                assert!(code_for(&farm, board, code).await);
            }
            let both = tokio::join!(enrol(&farm, codes[0], board), enrol(&farm, codes[1], board));
            let mut seen = [both.0.0, both.1.0];
            seen.sort_unstable();
            assert_eq!(seen, [201, refused]);
            assert_eq!(farm.app.store.tokens().await.unwrap().get(board), Some(&1));
        }
    });
}

#[test]
fn tokens_that_are_none_are_refused_less_often_and_keep_no_board_out() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let mut seen = Vec::new();
        for _ in 0..400 {
            seen.push(farm.ask("GET", "/v1/me", "obt_none", "").await.0);
        }
        let unknown = seen.iter().take_while(|status| **status == 401).count();
        assert!(unknown >= 60 && seen[unknown..].contains(&429), "{unknown}: {seen:?}");
        let (status, answer) = farm.ask("GET", "/v1/me", "obt_none", "").await;
        assert!(status == 401 || answer["detail"].as_str().unwrap().contains("enrol the board again"));
        assert_eq!(farm.ask("GET", "/v1/me", &token, "").await.0, 200);
    });
}

#[test]
fn a_stranger_who_guesses_codes_waits_and_keeps_no_board_out() {
    on_each_engine(1 << 30, async |farm| {
        let enrol = async |from: &str, code: &str, name: &str| {
            let request = Request::post("/v1/enrol").header("x-forwarded-for", format!("1.2.3.4, {from}"));
            let body = Body::from(json!({ "code": code, "name": name }).to_string());
            let response = router(farm.app.clone()).oneshot(request.body(body).unwrap()).await.unwrap();
            let status = response.status().as_u16();
            let wait = response.headers().get(header::RETRY_AFTER).cloned();
            let wait: Option<i64> = wait.map(|wait| wait.to_str().unwrap().parse().unwrap());
            let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            (status, wait, String::from_utf8(bytes.to_vec()).unwrap())
        };
        let mut seen = Vec::new();
        for _ in 0..100 {
            seen.push(enrol("6.6.6.6", "guess", "x").await.0);
        }
        assert!(seen[..10] == [403; 10] && seen[10..].contains(&429), "{seen:?}");
        let (status, wait, text) = enrol("6.6.6.6", "guess", "x").await;
        assert!(status == 429 && wait.is_some_and(|wait| (1..=21).contains(&wait)), "{wait:?}");
        assert!(text.contains(&format!("wait for {} s", wait.unwrap())), "{text}");
        for (code, name) in [("right", "a"), ("also-right", "b")] {
            farm.app.store.add_code(&digest_of(code), now() + 60, &[]).await.unwrap();
            assert_eq!(enrol("6.6.6.6", code, name).await.0, 429, "whose guesses are wrong waits");
            assert_eq!(enrol("10.0.0.7", code, name).await.0, 201);
        }
        // Who has a good code may try as often as it takes to find a name.
        farm.app.store.add_code(&digest_of("third"), now() + 60, &[]).await.unwrap();
        for _ in 0..30 {
            assert_eq!(enrol("10.0.0.8", "third", "a").await.0, 409);
        }
        assert_eq!(enrol("10.0.0.8", "third", "c").await.0, 201);
    });
}

#[test]
fn a_code_of_a_lab_tags_its_board() {
    on_each_engine(1 << 30, async |farm| {
        farm.app.store.add_code(&digest_of("code"), now() + 60, &["lab=west".into()]).await.unwrap();
        let asked = json!({ "code": "code", "name": "press-3" }).to_string();
        assert_eq!(farm.ask("POST", "/v1/enrol", "", asked).await.0, 201);
        farm.enrolled("press-4").await;
        let (_, board) = farm.ask("GET", "/v1/boards/press-3", "", "").await;
        assert_eq!((&board["board"]["lab"], &board["board"]["tags"]), (&json!("west"), &json!(["lab=west"])));
        assert_eq!(farm.ask("GET", "/v1/boards/press-4", "", "").await.1["board"]["lab"], json!(""));
        let (_, page) = farm.shown("/?q=lab%3Dwest").await;
        assert!(page.contains("/b/press-3") && !page.contains("/b/press-4"));
    });
}

#[test]
fn a_token_that_ends_in_the_middle_leaves_what_was_acknowledged() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        assert_eq!(farm.ask("PUT", "/v1/rows/b/r/timer/0", &token, line(0, &[(200, 1)])).await.0, 201);
        let (id, files) = fixture("measured");
        let first = piece(files[0].1.chunks(4 << 20).next().unwrap());
        let bytes = files[0].1.clone();
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await.0, 202);
        assert_eq!(farm.ask("PUT", &format!("/v1/pieces/{first}"), &token, bytes.clone()).await.0, 201);
        farm.app.store.revoke("a", now()).await.unwrap();
        for (address, body) in [
            (format!("/v1/pieces/{first}"), bytes),
            (format!("/v1/runs/{id}"), manifest(&files).into_bytes()),
            ("/v1/rows/b/r/timer/1".to_owned(), line(1, &[(200, 1)]).into_bytes()),
        ] {
            let (status, answer) = farm.ask("PUT", &address, &token, body).await;
            assert!(
                status == 401 && answer["detail"].as_str().unwrap().contains("enrol the board again"),
                "{answer}"
            );
        }
        assert!(farm.app.refusals.all()[0].detail.contains("was revoked"));
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        assert_eq!(farm.app.store.slots("a", &key, ALL, 9).await.unwrap().len(), 1);
    });
}

#[test]
fn a_farm_that_keeps_nothing_says_so() {
    block_on(async {
        let store = FarmStore::in_memory().await.unwrap();
        let app = Arc::new(App::new(store, FarmExposure::BehindProxy, None));
        let request = Request::put("/v1/pieces/x").body(Body::empty()).unwrap();
        assert_eq!(router(app).oneshot(request).await.unwrap().status().as_u16(), 501);
    });
}

#[test]
fn labels_come_with_runs_and_rows_and_lists_go_by_them() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        farm.enrolled("b").await;
        let labels = r#""labels":{"build":"123","job":"https:/ci/7?x=<1>","bad name":"x"},"#;
        let (id, files) = with_document(|text| text.replacen("\"id\"", &format!("{labels}\"id\""), 1));
        assert_eq!(farm.send(&token, &id, &files).await.0, 201);
        let (_, run) = farm.ask("GET", &format!("/v1/runs/{id}"), "", "").await;
        assert_eq!(run["labels"], json!({ "build": "123", "job": "https:/ci/7?x=<1>" }));
        let job = "job%3Dhttps%3A%2Fci%2F7%3Fx%3D%3C1%3E";
        for (query, found) in [
            ("label=build%3D123", 1),
            ("label=build=123&board=a", 1),
            ("label=build=123&board=b", 0),
            (&format!("label={job}&label=build%3D123"), 1),
            ("label=build=124", 0),
        ] {
            let (status, answer) = farm.ask("GET", &format!("/v1/runs?{query}"), "", "").await;
            assert_eq!((status, answer["runs"].as_array().unwrap().len()), (200, found), "{query}");
        }
        let (_, csv) = farm.shown("/v1/runs.csv?label=build=123").await;
        let row = csv.lines().nth(1).unwrap();
        assert!(row.contains(",build=123 job=https:/ci/7?x=<1>,"), "{csv}");
        assert!(row.ends_with(r#","{""build"":""123"",""job"":""https:/ci/7?x=<1>""}""#), "{csv}");
        for address in ["/runs?label=build=123".to_owned(), format!("/runs/{id}"), "/b/a".to_owned()] {
            let (status, page) = farm.shown(&address).await;
            assert!(status == 200 && page.contains(&format!("/runs?label={job}")), "{address}");
            assert!(!page.contains("x=<1>"), "{address}");
        }
        for wrong in ["label=build", "limit=0", "before=x"] {
            let (status, answer) = farm.ask("GET", &format!("/v1/runs?{wrong}"), "", "").await;
            assert!(status == 400 && !answer["detail"].as_str().unwrap().contains('\n'), "{answer}");
        }

        // The schema comes first.
        let of = json!({ "boot": "boot-1", "recording": "rec", "series": "timer", "plan": "",
            "labels": { "image": "i7", "\u{202e}": "x" } });
        let header = of.to_string().replacen('{', "{\"schema\":\"onbeat.rows/1\",", 1);
        let rows = format!("{header}\n{}{}", line(0, &[(200, 1)]), line(1, &[(200, 1)]));
        assert_eq!(farm.ask("PUT", "/v1/rows/boot-1/rec/timer/0", &token, rows).await.0, 201);
        let rows = line(2, &[(200, 1)]);
        assert_eq!(farm.ask("PUT", "/v1/rows/boot-1/rec/timer/2", &token, rows).await.0, 201);
        let slots = async |query: &str| {
            let (_, answer) =
                farm.ask("GET", &format!("/v1/boards/a/slots?series=timer{query}"), "", "").await;
            answer.as_array().unwrap().len()
        };
        assert_eq!(
            (slots("").await, slots("&label=image=i7").await, slots("&label=image=x").await),
            (3, 2, 0)
        );
        let (_, of_board) = farm.ask("GET", "/v1/boards/a/labels", "", "").await;
        let image = of_board["labels"].as_array().unwrap().iter().find(|label| label["name"] == "image");
        assert_eq!(image.unwrap()["last"], json!(300), "{of_board}");
    });
}
