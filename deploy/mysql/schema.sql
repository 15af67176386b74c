-- SPDX-License-Identifier: Apache-2.0
-- The tables of weir's store, for MySQL 8 and MariaDB 10.11 and newer.
--
-- This file is a part of weir: a daemon makes its tables by these statements, in a database of weir's own. Run
-- it yourself if you would rather make them by hand. It may be run again on a database that has them.
--
--   CREATE DATABASE weir CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
--   CREATE USER weir@'10.0.0.%' IDENTIFIED BY '...';
--   GRANT SELECT, INSERT, UPDATE, DELETE ON weir.* TO weir@'10.0.0.%';           -- limiters and commands
--   GRANT CREATE, CREATE VIEW, ALTER, INDEX, DROP ON weir.* TO weir@'10.0.0.%';  -- archivers, which make and drop
--                                                       partitions of days; and to make and upgrade the tables
--   GRANT SELECT ON weir.* TO analyst@'10.0.0.%';
--
-- The server's max_allowed_packet must be 4 MiB or more, and above the largest segment (a partition's
-- state divided by 1,024). innodb_flush_log_at_trx_commit = 1: a checkpoint that is current survives.

-- ---- step 1 ----

-- The last step of this file that a database has had. Without a row: the first one was cut off, and is run again.
CREATE TABLE IF NOT EXISTS schema_version (
  program VARCHAR(16) NOT NULL,
  version INT UNSIGNED NOT NULL,
  PRIMARY KEY (program)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The row that makes a checkpoint current. role: 1 limiter, 2 archiver.
CREATE TABLE IF NOT EXISTS partition_state (
  role TINYINT UNSIGNED NOT NULL,
  partition_id INT UNSIGNED NOT NULL,
  epoch BIGINT UNSIGNED NOT NULL,
  checkpoint BIGINT UNSIGNED NOT NULL,
  next_offset BIGINT UNSIGNED NOT NULL,
  clock_ms BIGINT NOT NULL,
  policy_version BIGINT UNSIGNED NOT NULL,
  extra LONGBLOB NULL,
  PRIMARY KEY (role, partition_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Buckets by segment: a base, and deltas on top of it, each of the checkpoint that it was written under.
-- What is needed of a segment is found in the index alone, without a look at the blobs.
CREATE TABLE IF NOT EXISTS segment_state (
  partition_id INT UNSIGNED NOT NULL,
  segment INT UNSIGNED NOT NULL,
  checkpoint BIGINT UNSIGNED NOT NULL,
  base TINYINT UNSIGNED NOT NULL,
  length INT UNSIGNED NOT NULL,
  bytes LONGBLOB NOT NULL,
  PRIMARY KEY (partition_id, segment, checkpoint),
  KEY segment_index (partition_id, segment, checkpoint, base, length)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Every policy, numbered, as canonical JSON.
CREATE TABLE IF NOT EXISTS policy_version (
  version BIGINT UNSIGNED NOT NULL,
  text LONGBLOB NOT NULL,
  PRIMARY KEY (version)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The zones for analysts, one row a limit. policy_version is the newest that has the zone: one below the
-- newest of all has been removed. A queue's length and hold stand as rate and window_ms, as does uniform's interval. What
-- an algorithm does not have is 0. Rows with limit_number 0 are a site's own: velocity.sql.
CREATE TABLE IF NOT EXISTS zone_master (
  zone_id INT UNSIGNED NOT NULL,
  limit_number TINYINT UNSIGNED NOT NULL,
  name VARCHAR(64) NOT NULL,
  description VARCHAR(1024) NOT NULL DEFAULT '',
  mode VARCHAR(16) NOT NULL DEFAULT 'enforce',
  algorithm VARCHAR(32) NOT NULL,
  rate BIGINT NOT NULL,
  window_ms BIGINT NOT NULL,
  burst BIGINT NOT NULL DEFAULT 0,
  precision_ms BIGINT NOT NULL DEFAULT 0,
  lateness_ms BIGINT NOT NULL DEFAULT 0,
  offset_ms BIGINT NOT NULL DEFAULT 0,
  penalize TINYINT UNSIGNED NOT NULL DEFAULT 0,
  block_for_ms BIGINT NOT NULL DEFAULT 0,
  policy_version BIGINT UNSIGNED NOT NULL DEFAULT 0,
  PRIMARY KEY (zone_id, limit_number),
  KEY zone_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS note (
  name VARCHAR(255) NOT NULL,
  value LONGBLOB NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ---- What the archiver keeps ----

-- How often each key came to each zone: requests passed, blocked, and late (those are among the first two, too).
-- Hours and days are of the events' own times, in UTC, named by the millisecond in which they begin. A key is the
-- values of the zone's key joined by "|"; with archiver.hash_keys it is their HMAC.
CREATE TABLE IF NOT EXISTS count_hourly (
  zone_id INT UNSIGNED NOT NULL,
  bucket VARBINARY(1024) NOT NULL,
  hour_ms BIGINT NOT NULL,
  passed BIGINT UNSIGNED NOT NULL,
  blocked BIGINT UNSIGNED NOT NULL,
  late BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (zone_id, bucket, hour_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  PARTITION BY RANGE (hour_ms) (PARTITION later VALUES LESS THAN MAXVALUE);

CREATE TABLE IF NOT EXISTS count_daily (
  day_ms BIGINT NOT NULL,
  zone_id INT UNSIGNED NOT NULL,
  bucket VARBINARY(1024) NOT NULL,
  passed BIGINT UNSIGNED NOT NULL,
  blocked BIGINT UNSIGNED NOT NULL,
  late BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (day_ms, zone_id, bucket),
  KEY count_daily_bucket (zone_id, bucket, day_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  PARTITION BY RANGE (day_ms) (PARTITION later VALUES LESS THAN MAXVALUE);

-- What count_hourly has of all keys together. partition_id tells the rows of archivers apart that store at the same
-- time, and means nothing else: sum over it.
CREATE TABLE IF NOT EXISTS zone_hourly (
  zone_id INT UNSIGNED NOT NULL,
  hour_ms BIGINT NOT NULL,
  partition_id INT UNSIGNED NOT NULL,
  passed BIGINT UNSIGNED NOT NULL,
  blocked BIGINT UNSIGNED NOT NULL,
  late BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (zone_id, hour_ms, partition_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  PARTITION BY RANGE (hour_ms) (PARTITION later VALUES LESS THAN MAXVALUE);

-- Every decision once, by its id: partition_id-log_offset-pair. bucket is NULL where a zone was removed. The limit
-- that was over, and what it held then (held); or who commanded it (ordered_by) and why.
CREATE TABLE IF NOT EXISTS decision_history (
  at_ms BIGINT NOT NULL,
  partition_id INT UNSIGNED NOT NULL,
  log_offset BIGINT UNSIGNED NOT NULL,
  pair INT UNSIGNED NOT NULL,
  zone VARCHAR(64) NOT NULL,
  bucket VARBINARY(1024) NULL,
  action VARCHAR(16) NOT NULL,
  until_ms BIGINT NOT NULL,
  mode VARCHAR(16) NOT NULL,
  algorithm VARCHAR(32) NULL,
  rate BIGINT NULL,
  window_ms BIGINT NULL,
  held BIGINT NULL,
  ordered_by TEXT NULL,
  reason TEXT NULL,
  PRIMARY KEY (at_ms, partition_id, log_offset, pair),
  KEY decision_bucket (zone, bucket, at_ms),
  KEY decision_zone (zone, at_ms),
  KEY decision_until (until_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  PARTITION BY RANGE (at_ms) (PARTITION later VALUES LESS THAN MAXVALUE);

-- Every event of zones with "history", by its id: partition_id-log_offset-pair; and those of check_velocity.
CREATE TABLE IF NOT EXISTS zone_txn (
  zone_id INT UNSIGNED NOT NULL,
  bucket VARBINARY(1024) NOT NULL,
  at_ms BIGINT NOT NULL,
  partition_id INT UNSIGNED NOT NULL,
  log_offset BIGINT UNSIGNED NOT NULL,
  pair INT UNSIGNED NOT NULL,
  blocked TINYINT UNSIGNED NOT NULL,
  PRIMARY KEY (zone_id, bucket, at_ms, partition_id, log_offset, pair)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  PARTITION BY RANGE (at_ms) (PARTITION later VALUES LESS THAN MAXVALUE);

-- ---- The same, for people ----

-- Zones by name, times as DATE and DATETIME in UTC whatever the session's time_zone, keys as text (as hexadecimal digits
-- where they are not UTF-8). What the tables are indexed by stands behind: ask for zone and bucket, and for times by the
-- ms, where a table is large. bucket takes text as it is: bucket = '203.0.113.9'. Nobody sees more by a view than by its
-- table.
CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW hourly AS
SELECT name AS zone,
       CASE WHEN CONVERT(CONVERT(bucket USING utf8mb4) USING binary) = bucket
            THEN CONVERT(bucket USING utf8mb4) COLLATE utf8mb4_bin ELSE HEX(bucket) END AS key_text,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL hour_ms DIV 1000 SECOND AS DATE) AS day,
       TIMESTAMP '1970-01-01 00:00:00' + INTERVAL hour_ms DIV 1000 SECOND AS hour,
       passed, blocked, late, passed + blocked AS total, c.zone_id, bucket, hour_ms
  FROM count_hourly AS c
  LEFT JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1;

CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW daily AS
SELECT name AS zone,
       CASE WHEN CONVERT(CONVERT(bucket USING utf8mb4) USING binary) = bucket
            THEN CONVERT(bucket USING utf8mb4) COLLATE utf8mb4_bin ELSE HEX(bucket) END AS key_text,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL day_ms DIV 1000 SECOND AS DATE) AS day,
       passed, blocked, late, passed + blocked AS total, c.zone_id, bucket, day_ms
  FROM count_daily AS c
  LEFT JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1;

CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW decisions AS
SELECT CONCAT(partition_id, '-', log_offset, '-', pair) AS id, zone,
       CASE WHEN CONVERT(CONVERT(bucket USING utf8mb4) USING binary) = bucket
            THEN CONVERT(bucket USING utf8mb4) COLLATE utf8mb4_bin ELSE HEX(bucket) END AS key_text,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATE) AS day,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATETIME(3)) AS at,
       action,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL until_ms * 0.001 SECOND AS DATETIME(3)) AS until,
       mode, algorithm, rate, window_ms, held, ordered_by, reason, bucket, at_ms, until_ms
  FROM decision_history;

CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW events AS
SELECT CONCAT(partition_id, '-', log_offset, '-', pair) AS id, name AS zone,
       CASE WHEN CONVERT(CONVERT(bucket USING utf8mb4) USING binary) = bucket
            THEN CONVERT(bucket USING utf8mb4) COLLATE utf8mb4_bin ELSE HEX(bucket) END AS key_text,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATE) AS day,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATETIME(3)) AS at,
       blocked, c.zone_id, bucket, at_ms
  FROM zone_txn AS c
  LEFT JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1;

INSERT IGNORE INTO schema_version (program, version) VALUES ('weir', 1);

-- ---- step 2 ----

-- nth: which block of the key a decision is, where the zone has a list of them. Not added again where it is.
SET @weir_step = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
                        AND table_name = 'decision_history' AND column_name = 'nth') = 0,
                    'ALTER TABLE decision_history ADD COLUMN nth INT UNSIGNED NULL', 'DO 0');
PREPARE weir_step FROM @weir_step;
EXECUTE weir_step;
DEALLOCATE PREPARE weir_step;

CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW decisions AS
SELECT CONCAT(partition_id, '-', log_offset, '-', pair) AS id, zone,
       CASE WHEN CONVERT(CONVERT(bucket USING utf8mb4) USING binary) = bucket
            THEN CONVERT(bucket USING utf8mb4) COLLATE utf8mb4_bin ELSE HEX(bucket) END AS key_text,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATE) AS day,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATETIME(3)) AS at,
       action,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL until_ms * 0.001 SECOND AS DATETIME(3)) AS until,
       mode, algorithm, rate, window_ms, held, ordered_by, reason, nth, bucket, at_ms, until_ms
  FROM decision_history;

UPDATE schema_version SET version = 2 WHERE program = 'weir' AND version < 2;

-- ---- step 3 ----

-- fields: what a zone's "history" names of the record, as a JSON object. Not added again where it is.
SET @weir_step = IF((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()
                        AND table_name = 'zone_txn' AND column_name = 'fields') = 0,
                    'ALTER TABLE zone_txn ADD COLUMN fields MEDIUMTEXT NULL', 'DO 0');
PREPARE weir_step FROM @weir_step;
EXECUTE weir_step;
DEALLOCATE PREPARE weir_step;

CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW events AS
SELECT CONCAT(partition_id, '-', log_offset, '-', pair) AS id, name AS zone,
       CASE WHEN CONVERT(CONVERT(bucket USING utf8mb4) USING binary) = bucket
            THEN CONVERT(bucket USING utf8mb4) COLLATE utf8mb4_bin ELSE HEX(bucket) END AS key_text,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATE) AS day,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATETIME(3)) AS at,
       blocked, fields, c.zone_id, bucket, at_ms
  FROM zone_txn AS c
  LEFT JOIN zone_master ON zone_master.zone_id = c.zone_id AND limit_number = 1;

UPDATE schema_version SET version = 3 WHERE program = 'weir' AND version < 3;

-- ---- step 4 ----

-- Decisions of zones in shadow mode, which nobody enforces. They have the columns of decision_history, and a table of
-- their own: so whoever counts the rows of that one counts blocks.
CREATE TABLE IF NOT EXISTS shadow_history (
  at_ms BIGINT NOT NULL,
  partition_id INT UNSIGNED NOT NULL,
  log_offset BIGINT UNSIGNED NOT NULL,
  pair INT UNSIGNED NOT NULL,
  zone VARCHAR(64) NOT NULL,
  bucket VARBINARY(1024) NULL,
  action VARCHAR(16) NOT NULL,
  until_ms BIGINT NOT NULL,
  mode VARCHAR(16) NOT NULL,
  algorithm VARCHAR(32) NULL,
  rate BIGINT NULL,
  window_ms BIGINT NULL,
  held BIGINT NULL,
  ordered_by TEXT NULL,
  reason TEXT NULL,
  nth INT UNSIGNED NULL,
  PRIMARY KEY (at_ms, partition_id, log_offset, pair),
  KEY shadow_bucket (zone, bucket, at_ms),
  KEY shadow_zone (zone, at_ms)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  PARTITION BY RANGE (at_ms) (PARTITION later VALUES LESS THAN MAXVALUE);

CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW shadow_decisions AS
SELECT CONCAT(partition_id, '-', log_offset, '-', pair) AS id, zone,
       CASE WHEN CONVERT(CONVERT(bucket USING utf8mb4) USING binary) = bucket
            THEN CONVERT(bucket USING utf8mb4) COLLATE utf8mb4_bin ELSE HEX(bucket) END AS key_text,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATE) AS day,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL at_ms * 0.001 SECOND AS DATETIME(3)) AS at,
       action,
       CAST(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL until_ms * 0.001 SECOND AS DATETIME(3)) AS until,
       mode, algorithm, rate, window_ms, held, ordered_by, reason, nth, bucket, at_ms, until_ms
  FROM shadow_history;

UPDATE schema_version SET version = 4 WHERE program = 'weir' AND version < 4;
