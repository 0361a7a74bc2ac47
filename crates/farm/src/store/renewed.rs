//! Culprits of stores before version 6 are named anew: by their rule and kind alone one program
//! stood for all that a rule knows.

use std::collections::BTreeMap;

use sqlx::{Any, Transaction};

use crate::ingest::fingerprint::{fingerprint_of, plain_name};
use crate::wall_clock::now;

/// What a change of a culprit is of, before its fingerprint.
const SUBJECT: &str = "culprit ";

/// A culprit as it is named from now on.
struct RenewedCulprit {
    id: i64,
    fingerprint: String,
    name: String,
    /// The number and the fingerprint of each that is this one.
    were: Vec<(i64, String)>,
}

/// Names them; those that become one are added up, and what was acknowledged or told of them stays
/// so.
pub async fn renew_culprits(all: &mut Transaction<'static, Any>) -> sqlx::Result<()> {
    let culprits = renewed(all).await?;
    for one in &culprits {
        for (id, _) in one.were.iter().filter(|(id, _)| *id != one.id) {
            add_up(all, one.id, *id).await?;
        }
    }
    // Of two that exchange fingerprints the first would have one that is still there.
    sqlx::query("update culprit set fingerprint = '-' || fingerprint").execute(&mut **all).await?;
    for one in &culprits {
        sqlx::query("update culprit set fingerprint = $1, name = $2 where id = $3")
            .bind(&one.fingerprint)
            .bind(&one.name)
            .bind(one.id)
            .execute(&mut **all)
            .await?;
    }
    let subjects: BTreeMap<String, &RenewedCulprit> = culprits
        .iter()
        .flat_map(|one| one.were.iter().map(move |(_, was)| (format!("{SUBJECT}{was}"), one)))
        .collect();
    renew_acknowledged(all, &subjects).await?;
    renew_told(all, &subjects).await?;
    // Runs up to here say of a rule that it was there, and not of which program.
    sqlx::query(
        "insert into meta (name, value) select 'named since', coalesce(max(started), 0) from run \
         where true on conflict do nothing",
    )
    .execute(&mut **all)
    .await?;
    note_rows_named(all).await
}

/// Notes from when on days have what recorders name, in seconds since 1970: of five minutes of
/// before, no more is kept than what each of them says itself, which lacks the kind that a culprit
/// is known by.
pub async fn note_rows_named(all: &mut Transaction<'static, Any>) -> sqlx::Result<()> {
    let first: Option<i64> =
        sqlx::query_scalar("select min(from_t) from culprit_day").fetch_one(&mut **all).await?;
    sqlx::query("insert into meta (name, value) values ('rows named since', $1) on conflict do nothing")
        .bind(first.unwrap_or_else(now))
        .execute(&mut **all)
        .await?;
    Ok(())
}

async fn renewed(all: &mut Transaction<'static, Any>) -> sqlx::Result<Vec<RenewedCulprit>> {
    type Row = (i64, String, String, String, String);
    let rows: Vec<Row> = sqlx::query_as("select id, fingerprint, rule, kind, name from culprit order by id")
        .fetch_all(&mut **all)
        .await?;
    let mut found: BTreeMap<String, RenewedCulprit> = BTreeMap::new();
    for (id, was, rule, kind, name) in rows {
        let fingerprint = fingerprint_of(&rule, &kind, &name);
        let one = found.entry(fingerprint.clone()).or_insert_with(|| RenewedCulprit {
            id,
            fingerprint,
            name: plain_name(&name),
            were: Vec::new(),
        });
        one.were.push((id, was));
    }
    Ok(found.into_values().collect())
}

/// Adds what one took in each run to another, and takes it out.
async fn add_up(all: &mut Transaction<'static, Any>, to: i64, from: i64) -> sqlx::Result<()> {
    type Row = (i64, String, i64, i64, i64);
    let runs: Vec<Row> =
        sqlx::query_as("select board_id, run, t, spikes, total_ns from culprit_run where culprit_id = $1")
            .bind(from)
            .fetch_all(&mut **all)
            .await?;
    for (board, run, t, spikes, total) in runs {
        sqlx::query(
            "insert into culprit_run (board_id, run, culprit_id, t, spikes, total_ns) \
             values ($1, $2, $3, $4, $5, $6) on conflict (board_id, run, culprit_id) do update set \
             spikes = culprit_run.spikes + excluded.spikes, \
             total_ns = culprit_run.total_ns + excluded.total_ns",
        )
        .bind(board)
        .bind(run)
        .bind(to)
        .bind(t)
        .bind(spikes)
        .bind(total)
        .execute(&mut **all)
        .await?;
    }
    for statement in ["delete from culprit_run where culprit_id = $1", "delete from culprit where id = $1"] {
        sqlx::query(statement).bind(from).execute(&mut **all).await?;
    }
    Ok(())
}

/// Looks at changes of culprits are of the renewed ones; of those that became one, of the time at
/// which a board first had any of them.
async fn renew_acknowledged(
    all: &mut Transaction<'static, Any>,
    subjects: &BTreeMap<String, &RenewedCulprit>,
) -> sqlx::Result<()> {
    type Row = (i64, String, i64, String, String, i64);
    let rows: Vec<Row> = sqlx::query_as(
        "select board_id, subject, t, who, note, at from acknowledged where subject like 'culprit %' \
         order by board_id, subject, t",
    )
    .fetch_all(&mut **all)
    .await?;
    sqlx::query("delete from acknowledged where subject like 'culprit %'").execute(&mut **all).await?;
    for (board, subject, t, who, note, at) in rows {
        let (subject, t) = match subjects.get(&subject) {
            None => (subject, t),
            Some(one) => {
                let first = if one.were.len() > 1 { first_of(all, board, one.id).await? } else { None };
                (format!("{SUBJECT}{}", one.fingerprint), first.unwrap_or(t))
            }
        };
        sqlx::query(
            "insert into acknowledged (board_id, subject, t, who, note, at) values ($1, $2, $3, $4, $5, $6) \
             on conflict do nothing",
        )
        .bind(board)
        .bind(subject)
        .bind(t)
        .bind(who)
        .bind(note)
        .bind(at)
        .execute(&mut **all)
        .await?;
    }
    Ok(())
}

async fn first_of(
    all: &mut Transaction<'static, Any>,
    board: i64,
    culprit: i64,
) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar("select min(t) from culprit_run where board_id = $1 and culprit_id = $2")
        .bind(board)
        .bind(culprit)
        .fetch_one(&mut **all)
        .await
}

/// What was told of culprits is of the renewed ones. Its id stays: a notice that waits may be at
/// its receiver already.
async fn renew_told(
    all: &mut Transaction<'static, Any>,
    subjects: &BTreeMap<String, &RenewedCulprit>,
) -> sqlx::Result<()> {
    let told: Vec<String> =
        sqlx::query_scalar("select distinct subject from told where subject like 'culprit %'")
            .fetch_all(&mut **all)
            .await?;
    let known = told.iter().filter_map(|subject| Some((subject, *subjects.get(subject)?)));
    let known: Vec<(&String, &RenewedCulprit)> = known.collect();
    for (subject, _) in &known {
        rename_told(all, subject, &format!("-{subject}")).await?;
    }
    for (subject, one) in &known {
        rename_told(all, &format!("-{subject}"), &format!("{SUBJECT}{}", one.fingerprint)).await?;
    }
    Ok(())
}

async fn rename_told(all: &mut Transaction<'static, Any>, from: &str, to: &str) -> sqlx::Result<()> {
    let rename = sqlx::query("update told set subject = $1 where subject = $2");
    rename.bind(to).bind(from).execute(&mut **all).await?;
    Ok(())
}
