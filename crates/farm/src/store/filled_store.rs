//! A store with rows in all its tables, for tests.

use std::path::PathBuf;

use model::rows::RowCounts;
use model::units::Cpu;
use model::watch::WatchRow;

use super::*;
use crate::board_settings::{BoardSettings, BoardState};
use crate::changes::{Acknowledgement, ChangeIdentity};
use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::ingest::rows::{self, RowsOf};
use crate::people::{FarmPerson, Role};
use crate::records::BundleRecord;

fn hunt() -> BundleRecord {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/hunt");
    read(&FoundBundle { place: place.canonicalize().unwrap(), board: Some("a".into()) }).unwrap().0
}

fn batch(board_id: i64, from: u64, to: u64) -> RowBatch {
    let of = RowsOf { boot: "b".into(), recording: "r".into(), series: "timer".into() };
    let line = |seq: u64| {
        let hist = RowCounts::of_rows([(200, 10 + seq)]);
        let row = WatchRow { cpu: Some(Cpu(0)), n: hist.total(), hist, ..WatchRow::default() };
        let mono = seq as i64 * 300 * Nanos::SECOND.0;
        let line =
            serde_json::json!({ "seq": seq, "mono_ns": mono, "span_ns": 1, "wall_ns": mono, "cpus": [row] });
        line.to_string() + "\n"
    };
    let text: String = (from..to).map(line).collect();
    let rows = rows::read(&of, text.as_bytes()).unwrap();
    let clock = Some(BoardClock { boot: "b".into(), mono_ns: 0, wall_ns: 0, asleep_ns: 0 });
    RowBatch { board_id, of, clock, received_ns: i64::MAX, rows }
}

/// Puts a row into each table but `meta`.
pub async fn fill(store: &FarmStore) {
    let sent = SentBundle { board_id: 1, manifest: vec![1], bytes: 100 };
    let mut hunt = hunt();
    hunt.run.labels = [("build".to_owned(), "1".to_owned())].into_iter().collect();
    store.put_sent(&hunt, &sent).await.unwrap();
    let bundle = store.bundles().await.unwrap().remove(0);
    assert!(store.begin_thinning(&bundle, ThinnedPart::Blocks, 9).await.unwrap().is_some());
    assert!(store.pin(&hunt.run.id, "ann", "", 9).await.unwrap());
    store.put_rows(&[batch(1, 0, 300)]).await.unwrap();
    store.add_code(&[1], 100, &["lab=x".into()]).await.unwrap();
    store.add_code(&[2], 100, &[]).await.unwrap();
    assert!(store.add_code_for("c", &[4], 100, &[]).await.unwrap());
    assert_eq!(store.enrol(&[2], 50, "b", "B", &[3]).await.unwrap(), EnrolOutcome::Enrolled);
    let identity = ChangeIdentity {
        board: "a".into(),
        kind: "silent".into(),
        subject: String::new(),
        began: 5,
        until: 5,
        since: None,
    };
    let notice = ChangeNotice { identity, document: "{}".into() };
    store.note_changes(&[notice], 9, 10).await.unwrap();
    let ann = FarmPerson { name: "ann".into(), role: Role::Admin, created: 5 };
    assert!(store.add_person(&ann, "digest").await.unwrap());
    assert!(store.begin_session("ann", "digest", &[9], 5, i64::MAX).await.unwrap());
    store.note(&AuditEntry { t_ns: 5, who: "ann".into(), what: "logged in".into() }).await.unwrap();
    let settings = BoardSettings { state: BoardState::Muted, state_since: 5, ..BoardSettings::default() };
    assert!(store.set_settings("a", "A", &settings).await.unwrap());
    store.set_budget("lab=west", Some(Nanos(5_000))).await.unwrap();
    let by = Acknowledgement { who: "ann".into(), note: String::new(), at: 9 };
    let change = AcknowledgedChange { board: "a".into(), subject: "s".into(), t: 5, by };
    store.acknowledge(&change).await.unwrap();
    for said in [
        "insert into culprit_day (board_id, culprit_id, t, series, slots, total_ns, from_t, to_t) \
         select 1, min(id), 0, 'timer', 1, 5, 0, 0 from culprit",
        "insert into watch_environment (board_id, env, environment_id, arrived) \
         select 1, 'e', min(id), 0 from environment",
        "insert into row_environment (board_id, t, env, from_t, to_t) values (1, 0, 'e', 0, 0)",
    ] {
        sqlx::query(said).execute(&store.pool).await.unwrap();
    }
}
