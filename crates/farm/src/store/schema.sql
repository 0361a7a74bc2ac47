-- Times are seconds since 1970 in UTC, latencies ns; bigint, text and blob alone, which both engines
-- have. A table that has `board_id` has it in each unique key, so that it can be distributed; those
-- without it, and `token`, are small enough to be on each node.
-- Clustered tables are their own index in SQLite: narrow rows would be there twice.
create table if not exists meta (name text primary key, value bigint not null);
create table if not exists board (
    id integer primary key, key text not null unique, name text not null);
create table if not exists environment (
    id integer primary key, digest text not null unique, model text not null, release text not null,
    preempt text not null, settings text not null);
create table if not exists plan (
    series text not null, plan text not null, words text not null, primary key (series, plan));
create table if not exists run (
    board_id bigint not null, id text not null, environment_id bigint not null, command text not null,
    series text not null, plan text not null, started bigint not null, length_ns bigint,
    complete bigint not null, by_rows bigint not null, cpus bigint not null, cycles bigint not null, missed bigint,
    max_ns bigint, p9999_ns bigint, invalid bigint not null, spikes bigint not null,
    place text not null, digest blob not null, whole blob not null, primary key (board_id, id));
create index if not exists run_by_id on run (id);
create index if not exists run_by_time on run (board_id, started);
create index if not exists run_counted on run (
    environment_id, series, started desc, id desc, board_id, length_ns, p9999_ns, max_ns)
    where invalid = 0 and complete = 1;
create index if not exists run_of_environment on run (environment_id, board_id, started);
create table if not exists slot (
    board_id bigint not null, series text not null, plan text not null, t bigint not null,
    recording text not null, seq bigint not null, n bigint not null, missed bigint not null,
    max_ns bigint, max_cpu bigint, max_at bigint, culprit text not null, victim text not null,
    peaks blob not null, primary key (board_id, series, plan, t, recording, seq)) /* clustered */;
create table if not exists hist (
    board_id bigint not null, series text not null, plan text not null, tier bigint not null,
    t bigint not null, n bigint not null, missed bigint not null, max_ns bigint, cpus blob not null,
    primary key (board_id, series, plan, tier, t));
create index if not exists hist_day on hist (board_id, t, max_ns, series, plan) where tier = 2;
create table if not exists culprit (
    id integer primary key, fingerprint text not null unique, rule text not null, name text not null,
    kind text not null, remedy text not null);
create table if not exists culprit_run (
    board_id bigint not null, run text not null, culprit_id bigint not null, t bigint not null,
    spikes bigint not null, total_ns bigint not null, primary key (board_id, run, culprit_id));
create index if not exists culprit_by_run on culprit_run (culprit_id, t);
create table if not exists culprit_day (
    board_id bigint not null, culprit_id bigint not null, t bigint not null, series text not null,
    slots bigint not null, total_ns bigint not null, from_t bigint not null, to_t bigint not null,
    primary key (board_id, culprit_id, t, series)) /* clustered */;
create index if not exists culprit_day_by_culprit on culprit_day (culprit_id, t);
create table if not exists row_key (
    board_id bigint not null, boot text not null, recording text not null, series text not null,
    seq bigint not null, digest blob not null,
    primary key (board_id, boot, recording, series, seq)) /* clustered */;
create table if not exists watch_environment (
    board_id bigint not null, env text not null, environment_id bigint not null,
    arrived bigint not null, primary key (board_id, env));
create table if not exists row_environment (
    board_id bigint not null, t bigint not null, env text not null, from_t bigint not null,
    to_t bigint not null, primary key (board_id, t, env)) /* clustered */;
create table if not exists boot (
    board_id bigint not null, boot text not null, offset_ns bigint not null, source text not null,
    primary key (board_id, boot));
create table if not exists code (
    hash blob primary key, until bigint not null, used bigint not null);
create table if not exists token (
    hash blob primary key, board_id bigint not null, created bigint not null, revoked bigint not null);
create index if not exists token_of_board on token (board_id, revoked);
create table if not exists upload (
    board_id bigint not null, run text not null, manifest blob not null, primary key (board_id, run));
create table if not exists kept (
    board_id bigint not null, run text not null, bytes bigint not null, primary key (board_id, run));
create table if not exists told (
    board_id bigint not null, id text not null, kind text not null, subject text not null,
    began bigint not null, noted bigint not null, state bigint not null, tries bigint not null,
    due bigint not null, document text not null, primary key (board_id, id));
create index if not exists told_due on told (state, due);
create table if not exists person (
    name text primary key, role text not null, password text not null, created bigint not null);
create table if not exists session (
    hash blob primary key, person text not null, created bigint not null, until bigint not null);
create table if not exists audit (
    t_ns bigint not null, n bigint not null, who text not null, what text not null, primary key (t_ns, n));
create table if not exists board_setting (
    board_id bigint primary key, state text not null, since bigint not null, tags text not null,
    budget_ns bigint);
create table if not exists budget (tag text primary key, limit_ns bigint not null);
create table if not exists acknowledged (
    board_id bigint not null, subject text not null, t bigint not null, who text not null,
    note text not null, at bigint not null, primary key (board_id, subject, t));
create table if not exists label (
    board_id bigint not null, recording text not null, name text not null, value text not null,
    from_t bigint not null, to_t bigint not null,
    primary key (board_id, recording, name, value, from_t)) /* clustered */;
create index if not exists label_by_value on label (name, value, board_id, recording);
create table if not exists pin (
    board_id bigint not null, run text not null, who text not null, note text not null,
    t bigint not null, primary key (board_id, run));
create table if not exists thinned (
    board_id bigint not null, run text not null, parts text not null, t bigint not null,
    primary key (board_id, run));
create table if not exists code_tag (hash blob primary key, tags text not null);
create table if not exists code_board (hash blob primary key, board text not null);
create index if not exists hist_hour on hist (board_id, t, max_ns, tier) where tier = 1
