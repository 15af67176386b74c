-- SPDX-License-Identifier: Apache-2.0
-- The tables of the store of one machine, weir.db. It is a part of weir, which makes them by these statements.
-- Columns and their meaning are those of deploy/mysql/schema.sql.

-- ---- step 1 ----

CREATE TABLE schema_version (version INTEGER NOT NULL);

CREATE TABLE partition_state (
  role INTEGER NOT NULL,
  partition INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  checkpoint INTEGER NOT NULL,
  next_offset INTEGER NOT NULL,
  clock_ms INTEGER NOT NULL,
  policy_version INTEGER NOT NULL,
  extra BLOB,
  PRIMARY KEY (role, partition)
);

-- What is older than a base is found in the index, without a look at the rows, which are large.
CREATE TABLE segment_state (
  partition INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  checkpoint INTEGER NOT NULL,
  base INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (partition, segment, checkpoint)
);
CREATE INDEX segment_base ON segment_state (partition, segment, checkpoint) WHERE base = 1;

CREATE TABLE policy_version (
  version INTEGER PRIMARY KEY,
  text BLOB NOT NULL
);

CREATE TABLE zone_master (
  zone_id INTEGER NOT NULL,
  limit_number INTEGER NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  mode TEXT NOT NULL,
  algorithm TEXT NOT NULL,
  rate INTEGER NOT NULL,
  window_ms INTEGER NOT NULL,
  burst INTEGER NOT NULL,
  precision_ms INTEGER NOT NULL,
  lateness_ms INTEGER NOT NULL,
  offset_ms INTEGER NOT NULL,
  penalize INTEGER NOT NULL,
  block_for_ms INTEGER NOT NULL,
  policy_version INTEGER NOT NULL,
  PRIMARY KEY (zone_id, limit_number)
) WITHOUT ROWID;
CREATE INDEX zone_name ON zone_master (name);

CREATE TABLE note (
  name TEXT PRIMARY KEY,
  value BLOB NOT NULL
);

-- ---- What the archiver keeps ----

CREATE TABLE count_hourly (
  zone_id INTEGER NOT NULL,
  bucket BLOB NOT NULL,
  hour_ms INTEGER NOT NULL,
  passed INTEGER NOT NULL,
  blocked INTEGER NOT NULL,
  late INTEGER NOT NULL,
  PRIMARY KEY (zone_id, bucket, hour_ms)
) WITHOUT ROWID;

CREATE TABLE count_daily (
  day_ms INTEGER NOT NULL,
  zone_id INTEGER NOT NULL,
  bucket BLOB NOT NULL,
  passed INTEGER NOT NULL,
  blocked INTEGER NOT NULL,
  late INTEGER NOT NULL,
  PRIMARY KEY (day_ms, zone_id, bucket)
) WITHOUT ROWID;
CREATE INDEX count_daily_bucket ON count_daily (zone_id, bucket, day_ms);

CREATE TABLE zone_hourly (
  zone_id INTEGER NOT NULL,
  hour_ms INTEGER NOT NULL,
  partition_id INTEGER NOT NULL,
  passed INTEGER NOT NULL,
  blocked INTEGER NOT NULL,
  late INTEGER NOT NULL,
  PRIMARY KEY (zone_id, hour_ms, partition_id)
) WITHOUT ROWID;

CREATE TABLE decision_history (
  at_ms INTEGER NOT NULL,
  partition_id INTEGER NOT NULL,
  log_offset INTEGER NOT NULL,
  pair INTEGER NOT NULL,
  zone TEXT NOT NULL,
  bucket BLOB,
  action TEXT NOT NULL,
  until_ms INTEGER NOT NULL,
  mode TEXT NOT NULL,
  algorithm TEXT,
  rate INTEGER,
  window_ms INTEGER,
  held INTEGER,
  ordered_by TEXT,
  reason TEXT,
  PRIMARY KEY (at_ms, partition_id, log_offset, pair)
) WITHOUT ROWID;
CREATE INDEX decision_bucket ON decision_history (zone, bucket, at_ms);
CREATE INDEX decision_zone ON decision_history (zone, at_ms);
CREATE INDEX decision_until ON decision_history (until_ms);

CREATE TABLE zone_txn (
  zone_id INTEGER NOT NULL,
  bucket BLOB NOT NULL,
  at_ms INTEGER NOT NULL,
  partition_id INTEGER NOT NULL,
  log_offset INTEGER NOT NULL,
  pair INTEGER NOT NULL,
  blocked INTEGER NOT NULL,
  PRIMARY KEY (zone_id, bucket, at_ms, partition_id, log_offset, pair)
) WITHOUT ROWID;

-- ---- The same, for people ----

-- No LEFT JOIN: SQLite would not begin with the zone then. Every zone of every policy has its row.
CREATE VIEW hourly AS
SELECT name AS zone, bucket AS key_text,
       date(hour_ms / 1000, 'unixepoch') AS day, datetime(hour_ms / 1000, 'unixepoch') AS hour,
       passed, blocked, late, passed + blocked AS total, c.zone_id, bucket, hour_ms
  FROM count_hourly AS c
  JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1;

CREATE VIEW daily AS
SELECT name AS zone, bucket AS key_text, date(day_ms / 1000, 'unixepoch') AS day,
       passed, blocked, late, passed + blocked AS total, c.zone_id, bucket, day_ms
  FROM count_daily AS c
  JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1;

CREATE VIEW decisions AS
SELECT partition_id || '-' || log_offset || '-' || pair AS id, zone, bucket AS key_text,
       date(at_ms / 1000.0, 'unixepoch') AS day,
       strftime('%Y-%m-%d %H:%M:%f', at_ms / 1000.0, 'unixepoch') AS at,
       action,
       strftime('%Y-%m-%d %H:%M:%f', until_ms / 1000.0, 'unixepoch') AS until,
       mode, algorithm, rate, window_ms, held, ordered_by, reason, bucket, at_ms, until_ms
  FROM decision_history;

CREATE VIEW events AS
SELECT partition_id || '-' || log_offset || '-' || pair AS id, name AS zone, bucket AS key_text,
       date(at_ms / 1000.0, 'unixepoch') AS day,
       strftime('%Y-%m-%d %H:%M:%f', at_ms / 1000.0, 'unixepoch') AS at,
       blocked, c.zone_id, bucket, at_ms
  FROM zone_txn AS c
  JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1;

-- ---- step 2 ----

ALTER TABLE decision_history ADD COLUMN nth INTEGER;
DROP VIEW IF EXISTS decisions;
CREATE VIEW decisions AS
SELECT partition_id || '-' || log_offset || '-' || pair AS id, zone, bucket AS key_text,
       date(at_ms / 1000.0, 'unixepoch') AS day,
       strftime('%Y-%m-%d %H:%M:%f', at_ms / 1000.0, 'unixepoch') AS at,
       action,
       strftime('%Y-%m-%d %H:%M:%f', until_ms / 1000.0, 'unixepoch') AS until,
       mode, algorithm, rate, window_ms, held, ordered_by, reason, nth, bucket, at_ms, until_ms
  FROM decision_history;

-- ---- step 3 ----

ALTER TABLE zone_txn ADD COLUMN fields TEXT;
DROP VIEW IF EXISTS events;
CREATE VIEW events AS
SELECT partition_id || '-' || log_offset || '-' || pair AS id, name AS zone, bucket AS key_text,
       date(at_ms / 1000.0, 'unixepoch') AS day,
       strftime('%Y-%m-%d %H:%M:%f', at_ms / 1000.0, 'unixepoch') AS at,
       blocked, fields, c.zone_id, bucket, at_ms
  FROM zone_txn AS c
  JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1;

-- ---- step 4 ----

-- Decisions of zones in shadow mode, which nobody enforces. They have the columns of decision_history, and a table of
-- their own: so whoever counts the rows of that one counts blocks.
CREATE TABLE shadow_history (
  at_ms INTEGER NOT NULL,
  partition_id INTEGER NOT NULL,
  log_offset INTEGER NOT NULL,
  pair INTEGER NOT NULL,
  zone TEXT NOT NULL,
  bucket BLOB,
  action TEXT NOT NULL,
  until_ms INTEGER NOT NULL,
  mode TEXT NOT NULL,
  algorithm TEXT,
  rate INTEGER,
  window_ms INTEGER,
  held INTEGER,
  ordered_by TEXT,
  reason TEXT,
  nth INTEGER,
  PRIMARY KEY (at_ms, partition_id, log_offset, pair)
) WITHOUT ROWID;
CREATE INDEX shadow_bucket ON shadow_history (zone, bucket, at_ms);
CREATE INDEX shadow_zone ON shadow_history (zone, at_ms);
CREATE VIEW shadow_decisions AS
SELECT partition_id || '-' || log_offset || '-' || pair AS id, zone, bucket AS key_text,
       date(at_ms / 1000.0, 'unixepoch') AS day,
       strftime('%Y-%m-%d %H:%M:%f', at_ms / 1000.0, 'unixepoch') AS at,
       action,
       strftime('%Y-%m-%d %H:%M:%f', until_ms / 1000.0, 'unixepoch') AS until,
       mode, algorithm, rate, window_ms, held, ordered_by, reason, nth, bucket, at_ms, until_ms
  FROM shadow_history;
