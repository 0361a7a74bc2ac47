//! The dashboard and the alert rules of `docs/farm` ask for metrics that there are, and that say
//! what they ask for.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use model::units::Nanos;
use tower::ServiceExt;

use crate::changes::Acknowledgement;
use crate::fixture::recorded_run;
use crate::objects::BundleCache;
use crate::objects::tests::in_memory;
use crate::store::engines::on_page_engines;
use crate::store::{AcknowledgedChange, FarmStore};
use crate::web::changes::note_found;
use crate::web::{AccessPolicy, App, FarmExposure, Intake, router};

/// Words of a text that begin as metrics of onbeat's do.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("onbeat_")).map(str::to_owned).collect()
}

/// The families of a text that is as OpenMetrics has it: each begins with its type and its help and
/// is there once, its samples follow, and those of a counter end in `_total`.
fn families(text: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = text.strip_suffix("# EOF\n").expect("the text is whole").lines().collect();
    let (mut found, mut sample) = (BTreeSet::new(), String::new());
    for (at, line) in lines.iter().enumerate() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            sample = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
            assert!(!name.ends_with("_total") && ["counter", "gauge"].contains(&kind), "{line}");
            assert!(lines[at + 1].starts_with(&format!("# HELP {name} ")), "{line}");
            assert!(found.insert(sample.clone()), "{name} is there twice");
        } else if !line.starts_with("# HELP ") {
            let (named, value) = line.rsplit_once(' ').expect("a sample has a value");
            let name = named.split('{').next().unwrap_or_default();
            assert!(name == sample && value.parse::<f64>().is_ok(), "{line}");
            assert!(named == name || named.ends_with("\"}"), "{line}");
        }
    }
    found
}

async fn offered() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let store = FarmStore::in_memory().await.unwrap();
    store.add_code(&[1], i64::MAX, &[]).await.unwrap();
    store.enrol(&[1], 0, "a", "A", &[2]).await.unwrap();
    let intake = Intake::start(store.clone(), folder.path(), 1);
    let policy = AccessPolicy { public: None, metrics_open: true };
    let cache = BundleCache::start(in_memory(), folder.path(), 1);
    let app = App::new(store, FarmExposure::BehindProxy, Some(intake)).with_policy(policy);
    let app = app.with_cache(Some(cache));
    families(&metrics_of(&Arc::new(app)).await)
}

async fn metrics_of(app: &Arc<App>) -> String {
    let request = Request::get("/metrics").header(header::HOST, "localhost").body(Body::empty()).unwrap();
    let body = router(app.clone()).oneshot(request).await.unwrap().into_body();
    String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap()
}

#[test]
fn a_change_is_there_with_the_time_at_which_it_was_found_until_it_is_acknowledged() {
    on_page_engines(async |store| {
        store.put(&recorded_run("measured", "a")).await.unwrap();
        store.set_budget("", Some(Nanos(1))).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let intake = Intake::start(store.clone(), folder.path(), 1);
        let policy = AccessPolicy { public: None, metrics_open: true };
        let app = App::new(store.clone(), FarmExposure::BehindProxy, Some(intake)).with_policy(policy);
        let app = Arc::new(app);
        let sample =
            |at: i64| format!("\nonbeat_change_timestamp_seconds{{board=\"a\",kind=\"over-budget\"}} {at}\n");
        for now in [4_000_000_000, 4_000_086_400] {
            let all = app.changes.look_through(&store).await.unwrap();
            note_found(&app, &all, now).await.unwrap();
            let text = metrics_of(&app).await;
            assert!(all[0].t < 2_000_000_000 && text.contains(&sample(4_000_000_000)), "{text}");
            assert!(text.contains("\nonbeat_board_sends{board=\"a\"} 0\n"), "{text}");
        }
        let all = app.changes.look_through(&store).await.unwrap();
        let of = AcknowledgedChange {
            board: "a".into(),
            subject: all[0].subject.clone(),
            t: all[0].t,
            by: Acknowledgement { who: "ann".into(), note: String::new(), at: 4_000_090_000 },
        };
        store.acknowledge(&of).await.unwrap();
        let text = metrics_of(&app).await;
        assert!(!text.contains("onbeat_change_timestamp_seconds{"), "{text}");
    });
}

#[test]
fn every_metric_of_the_dashboard_and_of_the_alerts_is_there() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let offered = runtime.block_on(offered());
    let dashboard = include_str!("../../../../docs/farm/grafana-dashboard.json");
    let alerts = include_str!("../../../../docs/farm/alerts.yaml");
    assert!(offered.contains("onbeat_farm_build_info"), "{offered:?}");
    let missing = |text: &str| -> Vec<String> { named(text).difference(&offered).cloned().collect() };
    assert!(missing(dashboard).is_empty() && named(dashboard).len() >= 10, "{:?}", missing(dashboard));
    assert!(missing(alerts).is_empty() && named(alerts).len() >= 6, "{:?}", missing(alerts));
    // What was imported once sends nothing for ever.
    for text in [dashboard, alerts] {
        let asked: Vec<&str> = text.split("onbeat_last_rows_timestamp_seconds").skip(1).collect();
        let quiet = asked.iter().find(|rest| rest.contains("86400") || rest.contains("172800")).unwrap();
        assert!(quiet.split("unless").next().unwrap().contains("onbeat_board_sends == 1"), "{quiet}");
    }
    // What says by itself that something is wrong is in both.
    let wrong = offered.iter().filter(|name| name.ends_with("_away") || name.ends_with("_failed"));
    let unasked: Vec<&String> =
        wrong.filter(|name| !named(alerts).contains(*name) || !named(dashboard).contains(*name)).collect();
    assert!(unasked.is_empty(), "{unasked:?}");
    // Panels lie side by side, each with a question.
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let number = |panel: &serde_json::Value, name: &str| panel["gridPos"][name].as_i64().unwrap();
    for (at, panel) in panels.iter().enumerate() {
        assert!(panel["targets"].as_array().unwrap().iter().all(|one| one["expr"].is_string()));
        let overlaps = |other: &&serde_json::Value| {
            let apart = |from: &str, length: &str| {
                number(panel, from) + number(panel, length) <= number(other, from)
                    || number(other, from) + number(other, length) <= number(panel, from)
            };
            !apart("x", "w") && !apart("y", "h")
        };
        assert!(number(panel, "x") + number(panel, "w") <= 24);
        assert!(!panels[..at].iter().any(|other| overlaps(&other)), "{}", panel["title"]);
    }
}
