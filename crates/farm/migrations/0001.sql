-- Times are seconds since 1970 in UTC, latencies ns; bigint, text and blob alone, which both engines
-- have. A table that has `board_id` has it in each unique key and each reference to another such
-- table, so that it can be distributed; those without it, and `token`, are small enough to be on
-- each node. Clustered tables are their own index in SQLite: narrow rows would be there twice.
-- What a board or a run takes along has `on delete cascade`; other references hold their row.
-- The limits of numbers are those of `ingest::plausible`: 2^48 samples and a hundred years.
create table meta (name text primary key, value bigint not null);
create table board (id integer primary key, key text not null unique, name text not null);
create table environment (
    id integer primary key, digest text not null unique, model text not null, release text not null,
    preempt text not null, settings text not null);
create table plan (
    series text not null, plan text not null, words text not null, primary key (series, plan));
create table run (
    board_id bigint not null references board on delete cascade, id text not null,
    environment_id bigint not null references environment, command text not null,
    series text not null, plan text not null, started bigint not null,
    length_ns bigint check (length_ns between 0 and 3153600000000000000),
    complete bigint not null check (complete in (0, 1)), by_rows bigint not null check (by_rows in (0, 1)),
    cpus bigint not null check (cpus >= 0),
    cycles bigint not null check (cycles between 0 and 281474976710656),
    missed bigint check (missed between 0 and 281474976710656),
    max_ns bigint check (max_ns <= 3153600000000000000), p9999_ns bigint,
    invalid bigint not null check (invalid >= 0), spikes bigint not null check (spikes >= 0),
    place text not null, digest blob not null, whole blob not null, primary key (board_id, id),
    foreign key (series, plan) references plan (series, plan));
create index run_by_id on run (id);
create index run_by_time on run (board_id, started);
create index run_counted on run (
    environment_id, series, started desc, id desc, board_id, length_ns, p9999_ns, max_ns)
    where invalid = 0 and complete = 1;
create index run_of_environment on run (environment_id, board_id, started);
create table slot (
    board_id bigint not null references board on delete cascade, series text not null,
    plan text not null, t bigint not null, recording text not null, seq bigint not null,
    n bigint not null check (n between 0 and 281474976710656),
    missed bigint not null check (missed between 0 and 281474976710656),
    max_ns bigint check (max_ns <= 3153600000000000000), max_cpu bigint, max_at bigint,
    culprit text not null, victim text not null, peaks blob not null,
    primary key (board_id, series, plan, t, recording, seq)) /* clustered */;
create table hist (
    board_id bigint not null references board on delete cascade, series text not null,
    plan text not null, tier bigint not null check (tier in (0, 1, 2)), t bigint not null,
    n bigint not null check (n >= 0), missed bigint not null check (missed >= 0),
    max_ns bigint check (max_ns <= 3153600000000000000), cpus blob not null,
    primary key (board_id, series, plan, tier, t));
create index hist_day on hist (board_id, t, max_ns, series, plan) where tier = 2;
create index hist_hour on hist (board_id, t, max_ns, tier) where tier = 1;
-- The day before which the histograms of a tier were dropped, and, of runs that came after that,
-- the day from which on it has their samples.
create table dropped_tier (tier bigint primary key, until bigint not null);
create table later_run (
    board_id bigint not null, run text not null, tier bigint not null, from_t bigint not null,
    primary key (board_id, run, tier),
    foreign key (board_id, run) references run (board_id, id) on delete cascade);
create table culprit (
    id integer primary key, fingerprint text not null unique, rule text not null, name text not null,
    kind text not null, remedy text not null);
create table culprit_run (
    board_id bigint not null, run text not null, culprit_id bigint not null references culprit,
    t bigint not null, spikes bigint not null check (spikes >= 0),
    total_ns bigint not null check (total_ns between 0 and 3153600000000000000),
    primary key (board_id, run, culprit_id),
    foreign key (board_id, run) references run (board_id, id) on delete cascade);
create index culprit_by_run on culprit_run (culprit_id, t);
create table culprit_day (
    board_id bigint not null references board on delete cascade,
    culprit_id bigint not null references culprit, t bigint not null, series text not null,
    slots bigint not null check (slots >= 0), total_ns bigint not null check (total_ns >= 0),
    from_t bigint not null check (from_t >= t), to_t bigint not null check (to_t < t + 86400),
    primary key (board_id, culprit_id, t, series), check (to_t >= from_t)) /* clustered */;
create index culprit_day_by_culprit on culprit_day (culprit_id, t);
create table row_key (
    board_id bigint not null references board on delete cascade, boot text not null,
    recording text not null, series text not null, seq bigint not null check (seq >= 0),
    digest blob not null, primary key (board_id, boot, recording, series, seq)) /* clustered */;
create table watch_environment (
    board_id bigint not null references board on delete cascade, env text not null,
    environment_id bigint not null references environment, arrived bigint not null,
    primary key (board_id, env));
create index watch_environment_by_id on watch_environment (environment_id);
-- Rows name environments that may be sent later.
create table row_environment (
    board_id bigint not null references board on delete cascade, t bigint not null, env text not null,
    from_t bigint not null, to_t bigint not null, primary key (board_id, t, env)) /* clustered */;
create table boot (
    board_id bigint not null references board on delete cascade, boot text not null,
    offset_ns bigint not null, source text not null, primary key (board_id, boot));
-- Those of a board alone have its name.
create table code (
    hash blob primary key, until bigint not null, used bigint not null, tags text not null, board text);
create table token (
    hash blob primary key, board_id bigint not null references board on delete cascade,
    created bigint not null, revoked bigint not null);
create index token_of_board on token (board_id, revoked);
-- What is known of a run by its board, which sent it.
create table sent_run (
    board_id bigint not null, run text not null, manifest blob, bytes bigint check (bytes >= 0),
    primary key (board_id, run),
    foreign key (board_id, run) references run (board_id, id) on delete cascade);
create table notification (
    board_id bigint not null references board on delete cascade, id text not null, kind text not null,
    subject text not null, began bigint not null, noted bigint not null,
    state bigint not null check (state between 0 and 4), tries bigint not null, due bigint not null,
    document text not null, primary key (board_id, id));
create index notification_due on notification (state, due);
create table user_account (
    name text primary key, role text not null check (role in ('script', 'viewer', 'operator', 'admin')),
    password text not null, created bigint not null);
create table session (
    hash blob primary key, account text not null references user_account on delete cascade,
    created bigint not null, until bigint not null);
create table audit (
    t_ns bigint not null, n bigint not null, who text not null, what text not null, primary key (t_ns, n));
create table board_setting (
    board_id bigint primary key references board on delete cascade,
    state text not null check (state in ('active', 'maintenance', 'muted', 'retired', 'replaced')),
    since bigint not null, tags text not null, budget_ns bigint check (budget_ns >= 0));
create table budget (tag text primary key, limit_ns bigint not null check (limit_ns >= 0));
create table acknowledged (
    board_id bigint not null references board on delete cascade, subject text not null,
    t bigint not null, who text not null, note text not null, at bigint not null,
    primary key (board_id, subject, t));
create table label (
    board_id bigint not null references board on delete cascade, recording text not null,
    name text not null, value text not null, from_t bigint not null, to_t bigint not null,
    primary key (board_id, recording, name, value, from_t)) /* clustered */;
create index label_by_value on label (name, value, board_id, recording);
create table pin (
    board_id bigint not null references board on delete cascade, run text not null,
    who text not null, note text not null, t bigint not null, primary key (board_id, run),
    foreign key (board_id, run) references run (board_id, id));
create table thinned (
    board_id bigint not null, run text not null, parts text not null, t bigint not null,
    primary key (board_id, run),
    foreign key (board_id, run) references run (board_id, id) on delete cascade);
-- Runs that are not to come again, and when they were removed.
create table forgotten_run (id text primary key, t bigint not null);
