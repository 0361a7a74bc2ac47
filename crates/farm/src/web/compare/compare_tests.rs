//! Days of boards against days, over a made-up board whose kernel changes twice.

use std::sync::Arc;

use axum::http::StatusCode;
use model::units::Nanos;

use crate::fixture::recorded_run;
use crate::records::FarmSlot;
use crate::store::engines::on_page_engines;
use crate::web::App;
use crate::web::made_app::{app_of, get};

async fn json(app: &Arc<App>, query: &str) -> serde_json::Value {
    let (status, text) = get(app, &format!("/v1/compare?{query}")).await;
    assert_eq!(status, StatusCode::OK, "{query}: {text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn spans_kernels_and_environments_of_a_board_are_compared_with_a_verdict() {
    on_page_engines(async |store| {
        let app = app_of(store, 1, 24).await;
        let board = app.store.boards().await.unwrap().remove(0).board;
        let spans = format!("a_board={board}&a_before=2026-11-11&b_board={board}&b_from=2026-11-11");
        let found = json(&app, &spans).await;
        assert_eq!(found["schema"], "onbeat.comparison/1");
        assert_eq!((found["a"].as_array().unwrap().len(), found["b"].as_array().unwrap().len()), (12, 12));
        assert_eq!(found["a"][0]["title"], format!("{board} 2026-10-30"));
        assert_eq!((&found["a"][0]["blocks"], found["units"].as_u64()), (&serde_json::json!(288), Some(24)));
        assert_eq!(found["other_series"], serde_json::json!([]));
        // Of 288 maxima of five minutes.
        assert_eq!(found["a"][0]["observed_ns"], 86_400 * Nanos::SECOND.0);
        let observed = "The time observed counts whole intervals of five minutes: each with any measurement";
        assert!(found["remarks"].to_string().contains(observed), "{}", found["remarks"]);
        let (status, table) = get(&app, &format!("/v1/compare.csv?{spans}")).await;
        assert_eq!((status, table.lines().count()), (StatusCode::OK, 25));
        assert!(
            table.starts_with("side,unit,title,") && table.contains(&format!("\nA,day,{board} 2026-10-30,"))
        );
        // The page says the same, in the words of the command, and how to ask again.
        let (status, page) = get(&app, &format!("/compare?{spans}&limit=40us")).await;
        assert_eq!(status, StatusCode::OK);
        for words in [
            observed,
            "What differs in the conditions",
            "a day of a board",
            "40 us was reached in",
            "value=\"2026-11-11\"",
        ] {
            assert!(page.contains(words), "{words}");
        }
        assert!(page.matches("<svg").count() >= 2);
        assert!(page.contains(&format!("<a href=\"/b/{board}/at/1793318400?series=")), "a day has its page");
        // Its days are told apart by what it was.
        let history = app.store.environments(&board).await.unwrap();
        assert!(history.len() >= 3, "{history:?}");
        let (old, new) = (&history[history.len() - 1].record.digest, &history[0].record.digest);
        let found =
            json(&app, &format!("a_board={board}&a_environment={old}&b_board={board}&b_environment={new}"))
                .await;
        let differs = found["environment_diff"].as_array().unwrap();
        assert!(differs.iter().any(|one| one["what"] == "host.release"), "{differs:?}");
        let records = app.store.environment_records().await.unwrap();
        let kernel = |digest: &String| &records[digest].release;
        let by_kernel = json(&app, &format!("a_kernel={}&b_kernel={}", kernel(old), kernel(new))).await;
        assert_eq!(by_kernel["a"], found["a"]);
        let setting = |side: &str, digest| format!("{side}_setting=host.release%3D{}", kernel(digest));
        let by_setting = json(&app, &format!("{}&{}", setting("a", old), setting("b", new))).await;
        assert_eq!(by_setting["b"], found["b"]);
    });
}

#[test]
fn days_with_a_run_that_does_not_count_are_of_no_side() {
    on_page_engines(async |store| {
        let app = app_of(store, 1, 24).await;
        let board = app.store.boards().await.unwrap().remove(0).board;
        let spans = format!("a_board={board}&a_before=2026-11-11&b_board={board}&b_from=2026-11-11");
        let is_there = async || json(&app, &spans).await["a"].to_string().contains("2026-10-31");
        for (plan, invalid, there) in [("another", 1, true), ("", 0, true), ("", 1, false)] {
            let mut record = recorded_run("measured", &board);
            record.run.id = format!("r{plan}{invalid}");
            if !plan.is_empty() {
                record.run.key.plan = plan.to_owned();
            }
            record.run.invalid = invalid;
            (record.run.started, record.whole.t) = (1_793_404_800, 1_793_404_800);
            record.slots.clear();
            app.store.put(&record).await.unwrap();
            assert_eq!(is_there().await, there, "{plan} {invalid}");
        }
        // How many are left out is said by all three.
        let found = json(&app, &spans).await;
        let said = "Of A, 1 day is excluded because of an invalid run.";
        assert!(found["remarks"].as_array().unwrap().iter().any(|one| one == said), "{}", found["remarks"]);
        assert_eq!(
            (&found["left_out"]["a"]["invalid"], &found["left_out"]["b"]["invalid"]),
            (&serde_json::json!(1), &serde_json::json!(0))
        );
        let (_, table) = get(&app, &format!("/v1/compare.csv?{spans}")).await;
        let ends_of = |side: &str| -> Vec<bool> {
            let lines = table.lines().filter(|line| line.starts_with(side));
            lines.map(|line| line.ends_with(if side == "A," { ",1,0" } else { ",0,0" })).collect()
        };
        assert_eq!((ends_of("A,"), ends_of("B,")), (vec![true; 11], vec![true; 12]), "{table}");
        let (_, page) = get(&app, &format!("/compare?{spans}")).await;
        assert!(page.contains(said), "{page}");
    });
}

/// A side of such days alone has no verdict.
#[test]
fn a_side_of_days_that_do_not_count_alone_is_said_to_be_empty() {
    on_page_engines(async |store| {
        let app = app_of(store, 1, 24).await;
        let board = app.store.boards().await.unwrap().remove(0).board;
        let spans = format!(
            "a_board={board}&a_from=2026-11-08&a_before=2026-11-11&b_board={board}&b_from=2026-11-11"
        );
        let mut record = recorded_run("measured", &board);
        // From 2026-11-08 on, for three days.
        (record.run.started, record.whole.t) = (1_794_096_000, 1_794_096_000);
        record.run.length_ns = Some(Nanos(3 * 86_400 * Nanos::SECOND.0 - 1));
        (record.run.id, record.run.invalid) = ("spoiled".to_owned(), 1);
        record.slots.clear();
        app.store.put(&record).await.unwrap();
        let said = "nothing is left of A: 3 days are excluded because of an invalid run";
        for query in [spans.clone(), format!("{spans}&series={}", record.run.key.series)] {
            let (status, text) = get(&app, &format!("/v1/compare?{query}")).await;
            assert!(status == StatusCode::BAD_REQUEST && text.contains(said), "{query}: {text}");
        }
    });
}

/// What a reader sees of an answer: without the form to ask again, the sentence on what to do next,
/// which is about other runs, and the data at the end.
fn words(page: &str) -> Vec<String> {
    let answer = page.split("<main").nth(1).unwrap().split("Compare others").next().unwrap();
    let (before, after) = answer.split_once("<p class=\"next\"").unwrap();
    let after = after.split_once("</p>").unwrap().1;
    let (after, data) = after.split_once("<script").unwrap();
    let calculated = data.split_once("</script>").unwrap().1;
    assert!(calculated.contains("<summary>Calculation"), "{page}");
    let text: String = before
        .split('<')
        .chain(after.split('<'))
        .chain(calculated.split('<'))
        .flat_map(|part| [" ", part.split_once('>').map_or("", |(_, text)| text)])
        .collect();
    text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect()
}

#[test]
fn sentences_name_the_unit_that_was_compared() {
    on_page_engines(async |store| {
        let app = app_of(store, 6, 8).await;
        let boards = app.store.boards().await.unwrap();
        let board = &boards[0].board;
        let of = |from: &str, before: &str| {
            format!(
                "a_board={board}&a_before=2026-11-19&a_from={from}&b_board={board}&b_from=2026-11-19\
                 &b_before={before}"
            )
        };
        for (query, unit, said) in [
            (of("2026-11-15", "2026-11-23"), "day", "4 and 4 days"),
            (of("2026-11-17", "2026-11-21"), "day", "4 v 4 days are needed"),
            (of("2026-11-18", "2026-11-20"), "day", "one day each cannot"),
            (of("2026-11-15", "2026-11-20"), "day", "B is one day"),
            ("a_kernel=6&a_before=2026-11-19&b_kernel=6&b_from=2026-11-19".to_owned(), "board", "6 pairs"),
        ] {
            let found = json(&app, &query).await;
            assert_eq!(found["unit"], unit, "{query}");
            let sentences = format!("{} {}", found["reason"], found["remarks"]);
            assert!(!sentences.contains("run"), "{query}: {sentences}");
            let (_, page) = get(&app, &format!("/compare?{query}")).await;
            assert!(page.to_lowercase().contains(&said.to_lowercase()), "{query}: {page}");
            let words = words(&page);
            assert!(words.len() > 100 && words.contains(&format!("{unit}s")), "{query}: {words:?}");
            let wrong = words.iter().position(|word| ["run", "runs"].contains(&word.as_str()));
            let around = wrong.map(|at| words[at.saturating_sub(9)..(at + 5).min(words.len())].join(" "));
            assert_eq!(around, None, "{query}");
        }
    });
}

#[test]
fn boards_on_both_sides_are_compared_with_themselves() {
    on_page_engines(async |store| {
        let app = app_of(store, 6, 8).await;
        let machines = "a_kernel=6&a_before=2026-11-19&b_kernel=6&b_from=2026-11-19";
        let found = json(&app, machines).await;
        assert_eq!((found["design"].as_str(), found["units"].as_u64()), (Some("paired"), Some(6)));
        assert_eq!(found["a"][3]["title"], found["b"][3]["title"]);
    });
}

/// Series of other plans are not compared with each other: an answer says of which boards it is.
#[test]
fn an_answer_names_the_boards_that_it_is_of() {
    on_page_engines(async |store| {
        let app = app_of(store, 1, 8).await;
        let mut record = recorded_run("measured", "a");
        let first = record.slots[0].clone();
        record.rows.clear();
        record.plan_words.clear();
        // From 2026-10-30 on; the last board has most days.
        for (board, day) in (0..3).flat_map(|board| (0..8 + 2 * board).map(move |day| (board, day))) {
            let begin = 1_793_318_400 + day * 86_400;
            record.run.id = format!("r{board}-{day}");
            record.run.board = format!("x{board}");
            record.board_name.clone_from(&record.run.board);
            record.run.key.plan = format!("p{board}");
            (record.run.started, record.whole.t) = (begin, begin);
            let (run, max_ns) = (record.run.id.clone(), Some(Nanos(50_000 + day * 100)));
            record.slots = vec![FarmSlot { t: begin + 600, run, max_ns, ..first.clone() }];
            app.store.put(&record).await.unwrap();
        }
        let query = "a_board=x0,x1,x2&a_before=2026-11-05&b_board=x0,x1,x2&b_from=2026-11-05";
        let found = json(&app, query).await;
        let boards = serde_json::json!({
            "compared": ["x2"], "other_series": 2, "no_days": 0, "one_side": 0,
        });
        assert_eq!((&found["boards"]["a"], &found["boards"]["b"]), (&boards, &boards));
        let said = "Compared of both sides: x2; 2 of 3 boards excluded: 2 were measured as other series";
        assert!(found["remarks"].to_string().contains(said), "{}", found["remarks"]);
        assert_eq!(found["other_series"][0]["boards"]["b"], serde_json::json!(["x1"]));
        let (_, page) = get(&app, &format!("/compare?{query}")).await;
        for words in [
            ", of x2 alone</h1>",
            " This applies to x2 alone.</strong>",
            said,
            ">measure, of x1<",
            ">measure, of x0<",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
        // Of all that are named nothing is to be said.
        let one = "a_board=x2&a_before=2026-11-05&b_board=x2&b_from=2026-11-05";
        assert!(!json(&app, one).await["remarks"].to_string().contains("Compared of"));
        let (_, page) = get(&app, &format!("/compare?{one}")).await;
        assert!(!page.contains("of x2 alone"), "{page}");
    });
}

/// Boards that have no maxima, because they have runs alone, take the place of none that has.
#[test]
fn boards_are_chosen_among_those_with_maxima() {
    on_page_engines(async |store| {
        let app = app_of(store, 6, 8).await;
        let mut record = recorded_run("measured", "a");
        assert!(record.environment.release.starts_with("6."));
        record.slots.clear();
        // On 2026-11-17 and 2026-11-21.
        for (number, started) in (0..120).map(|number| (number, 1_794_873_600 + number % 2 * 345_600)) {
            record.run.id = format!("retired{number}");
            record.run.board = format!("a{:02}", number / 2);
            record.board_name.clone_from(&record.run.board);
            (record.run.started, record.whole.t) = (started, started);
            app.store.put(&record).await.unwrap();
        }
        let found = json(&app, "a_kernel=6&a_before=2026-11-19&b_kernel=6&b_from=2026-11-19").await;
        assert_eq!((found["design"].as_str(), found["units"].as_u64()), (Some("paired"), Some(6)));
        let remarks = found["remarks"].to_string();
        assert!(remarks.contains("Of 66 boards of A, 6 have valid maxima"), "{remarks}");
        assert!(remarks.contains("Of 66 boards of B, 6 have valid maxima"), "{remarks}");
    });
}

#[test]
fn what_cannot_be_compared_is_said_with_the_form() {
    on_page_engines(async |store| {
        let app = app_of(store, 1, 16).await;
        let board = app.store.boards().await.unwrap().remove(0).board;
        for (query, status, words) in [
            (format!("a_board={board}&b_board={board}&b_from=2026-11-14"), 400, "on both sides"),
            (
                format!("a_board={board}&a_before=today&b_board=x"),
                400,
                " expected one from 1970 to 2262, like",
            ),
            (format!("a_board={board}&b_board=nobody"), 404, "no board is called nobody"),
            (format!("a_board={board}&b_from=2026-11-14"), 400, "B matches any board: name boards"),
            ("a_kernel=6".to_owned(), 400, "B matches any board: name boards"),
            (format!("a_board={board}&b_setting=none%3D1"), 404, "no board matched"),
            (
                format!("a_board={board}&a_before=1999-01-01&b_board={board}&b_from=2026-01-01"),
                400,
                "matches A",
            ),
            (
                format!("a_board={board}&a_before=2026-11-14&a_setting=host.no%3D&b_board={board}"),
                400,
                "excluded because the setting is unknown",
            ),
            (format!("a_setting=host.no%3D&b_board={board}"), 404, "The setting of A is unknown on 1 board"),
            (format!("a=run&a_board={board}"), 400, "give either"),
            (format!("{}b={board}", "a=run&".repeat(41)), 400, "at most 40 runs"),
            (
                format!("a_board={board}&a_before=2026-11-14&b_board={board}&b_from=2026-11-14&series=none"),
                400,
                "both have measure",
            ),
        ] {
            let (code, text) = get(&app, &format!("/v1/compare?{query}")).await;
            assert!(code.as_u16() == status && text.contains(words), "{query}: {text}");
            let (code, page) = get(&app, &format!("/compare?{query}")).await;
            assert_eq!(code, StatusCode::OK);
            assert!(page.to_lowercase().contains(&words.to_lowercase()), "{query}");
            assert!(page.contains("name=\"b_setting\""), "{query}");
        }
        // Two sides alike are a form to begin with.
        let (_, page) = get(&app, &format!("/compare?a_board={board}&b_board={board}")).await;
        assert!(!page.contains("banner") && page.contains(&format!("value=\"{board}\"")));
        // Sent by the button they are a question without an answer.
        let alike = format!("oth sides are the same days of {board}: separate them");
        let (_, page) = get(&app, &format!("/compare?a_board={board}&a_from=&b_board={board}&limit=")).await;
        assert!(page.contains("banner") && page.contains(&alike), "{page}");
        let (code, text) = get(&app, &format!("/v1/compare?a_board={board}&b_board={board}")).await;
        assert!(code == StatusCode::BAD_REQUEST && text.contains(&alike), "{text}");
    });
}

#[test]
fn a_board_without_runs_is_told_from_an_unknown_name() {
    on_page_engines(async |store| {
        let app = app_of(store, 1, 2).await;
        app.store.board_for("lathe-1", "lathe-1").await.unwrap();
        for (name, words) in [
            (
                "lathe-1",
                "board lathe-1 has no runs: compare days, each side with its board and dates, ?a_board=",
            ),
            ("none", "no run or board is named none: "),
        ] {
            let (status, text) = get(&app, &format!("/v1/compare?a={name}&b={name}")).await;
            assert!(status == StatusCode::NOT_FOUND && text.contains(words), "{text}");
        }
    });
}
