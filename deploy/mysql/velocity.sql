-- SPDX-License-Identifier: Apache-2.0
-- check_velocity: a rate limit that is asked and answered in the database, for a site that has only
-- MySQL 8 or MariaDB 10.11 and newer. Nothing else of weir needs to run.
--
-- Run after schema.sql, by the mysql or mariadb client, in the same database; it may be run again. Then:
--
--   INSERT INTO zone_master (zone_id, limit_number, name, description, algorithm, rate, window_ms)
--     VALUES (1, 0, 'login', 'wrong passwords of a user', 'sliding_window', 5, 60000);  -- 5 in any 60,000 ms
--   CALL check_velocity(1, 'user 4711');
--
-- gives v_blocked (0: go ahead, 1: too many), v_zone_txn_id (a number of this attempt alone, also in
-- zone_txn.log_offset), p_zone_id, p_bucket_key, v_rate, v_window_ms.
--
-- The rule: an attempt is blocked if `rate` others passed at or after `window_ms` before it; a blocked one
-- does not count. A bucket is zone and key, byte for byte: give keys in one character set, 1 to 1,024 bytes.
-- It reads the zone's row with limit_number 0, weir's own policies write those from 1 on; a policy that has
-- a zone of the same id takes the row away, so choose others. rate is 100,000 at most, and each attempt that
-- passes writes 6 * rate bytes. A zone may be changed at any time; a longer window counts from there on.
--
-- How: zone_bucket_lock has a row a bucket, which is its lock and holds the times of the newest `rate`
-- attempts that passed: the oldest of them is compared with the window's begin. No attempt passes but under
-- the lock. zone_txn, the history, is written and never read. The clock is the server's, read under the lock;
-- a session that sets its own TIMESTAMP moves it for its attempts (MariaDB's secure_timestamp forbids that).
--
-- In which transaction: called outside of one, with autocommit on, the procedure makes its own (READ
-- COMMITTED, whatever the session has); the lock is held for a moment, and a deadlock is tried again. Called
-- within a transaction, or with autocommit off, it is a part of that: as exact, under any isolation level,
-- but others who ask for the same bucket wait until it ends, a rollback takes the attempt back, and whoever
-- asks for several buckets in one transaction must keep to one order of them, as with all locks. Under
-- REPEATABLE READ with innodb_snapshot_isolation = ON such a call may fail with error 1020 where the bucket
-- has changed since the transaction began.
--
-- Who needs what: the user who runs this file, in whose name the procedures work from then on, and a caller:
--
--   GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, CREATE ROUTINE, ALTER ROUTINE ON weir.* TO keeper@localhost;
--   GRANT EXECUTE ON PROCEDURE weir.check_velocity TO login@localhost;
--
-- With a binary log, binlog_format must be ROW or MIXED. Servers that write to one another need a server_id
-- each, below 256, or their transaction numbers may meet; from 128 on those need unsigned 64 bits.

SET @velocity_sql_mode = @@SESSION.sql_mode;
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION';

-- passed: 6 bytes a time, Unix ms, big-endian, so that they compare as they stand; the oldest first.
CREATE TABLE IF NOT EXISTS zone_bucket_lock (
  zone_id INT UNSIGNED NOT NULL,
  bucket VARBINARY(1024) NOT NULL,
  passed MEDIUMBLOB NOT NULL,
  PRIMARY KEY (zone_id, bucket)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

DROP PROCEDURE IF EXISTS check_velocity;
DROP PROCEDURE IF EXISTS trim_velocity;

DELIMITER //

-- The key may be a byte too long, so that a session without strict mode does not have it cut in silence.
CREATE PROCEDURE check_velocity(IN p_zone_id INT UNSIGNED, IN p_bucket_key VARBINARY(1025))
  MODIFIES SQL DATA
BEGIN
  DECLARE v_rate, v_window_ms, v_now_ms BIGINT;
  DECLARE v_passed MEDIUMBLOB;
  DECLARE v_at, v_edge BINARY(6);
  DECLARE v_zone_txn_id BIGINT UNSIGNED;
  DECLARE v_blocked, v_locked TINYINT;
  DECLARE v_place INT;
  DECLARE v_own TINYINT DEFAULT @@SESSION.autocommit;
  DECLARE v_tries INT DEFAULT 0;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

  SELECT rate, window_ms INTO v_rate, v_window_ms
    FROM zone_master WHERE zone_id = p_zone_id AND limit_number = 0;
  IF v_rate IS NULL THEN
    SIGNAL SQLSTATE '45000'
      SET MESSAGE_TEXT = 'check_velocity: zone_master has no such zone_id with limit_number 0';
  ELSEIF v_rate > 100000 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'check_velocity: the rate of the zone is above 100000';
  ELSEIF p_bucket_key IS NULL OR LENGTH(p_bucket_key) NOT BETWEEN 1 AND 1024 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'check_velocity: the bucket key must have 1 to 1024 bytes';
  END IF;

  attempt: LOOP
    BEGIN
      DECLARE EXIT HANDLER FOR 1213 -- deadlock: the server has rolled the transaction back
      BEGIN
        IF NOT v_own OR v_tries >= 10 THEN
          RESIGNAL;
        END IF;
        SET v_tries = v_tries + 1;
      END;
      DECLARE EXIT HANDLER FOR SQLEXCEPTION
      BEGIN
        IF v_own THEN
          ROLLBACK;
        END IF;
        RESIGNAL;
      END;

      IF v_own THEN
        BEGIN
          DECLARE CONTINUE HANDLER FOR 1568 SET v_own = 0; -- refused within a transaction, which is the caller's
          SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        END;
      END IF;
      SET v_passed = NULL, v_locked = 0;
      IF v_own THEN
        START TRANSACTION;
        SELECT passed INTO v_passed
          FROM zone_bucket_lock WHERE zone_id = p_zone_id AND bucket = p_bucket_key;
      END IF;

      -- At first by what is committed: an attempt that it blocks is blocked, whatever passes meanwhile, and
      -- needs no lock. Any other is judged again under the lock.
      judge: LOOP
        -- Not by UNIX_TIMESTAMP(NOW(3)): where clocks are put back in autumn, an hour of it is ambiguous.
        SET v_now_ms = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000;
        SET v_edge = UNHEX(LPAD(HEX(GREATEST(v_now_ms - v_window_ms, 0)), 12, '0'));
        SET v_blocked = LENGTH(v_passed) >= 6 * v_rate
          AND (v_rate < 1 OR SUBSTRING(v_passed, -6 * v_rate, 6) >= v_edge);
        IF v_blocked OR v_locked THEN
          LEAVE judge;
        END IF;

        IF v_passed IS NOT NULL THEN
          SET v_passed = NULL;
          SELECT passed INTO v_passed
            FROM zone_bucket_lock WHERE zone_id = p_zone_id AND bucket = p_bucket_key FOR UPDATE;
        END IF;
        -- A row that is not there must not be searched with a lock, but under READ COMMITTED: above that, two
        -- who both find none lock the gap, and neither may insert. An insert that meets a row locks it at once.
        IF v_passed IS NULL THEN
          INSERT INTO zone_bucket_lock (zone_id, bucket, passed) VALUES (p_zone_id, p_bucket_key, '')
            ON DUPLICATE KEY UPDATE zone_id = p_zone_id;
          SELECT passed INTO v_passed
            FROM zone_bucket_lock WHERE zone_id = p_zone_id AND bucket = p_bucket_key FOR UPDATE;
        END IF;
        SET v_locked = 1;
      END LOOP;

      IF NOT v_blocked THEN
        SET v_at = UNHEX(LPAD(HEX(v_now_ms), 12, '0'));
        SET v_place = LENGTH(v_passed); -- the end, unless the server's clock was set back
        WHILE v_place > 0 AND SUBSTRING(v_passed, v_place - 5, 6) > v_at DO
          SET v_place = v_place - 6;
        END WHILE;
        UPDATE zone_bucket_lock
          SET passed = RIGHT(CONCAT(LEFT(v_passed, v_place), v_at, SUBSTRING(v_passed, v_place + 1)), 6 * v_rate)
          WHERE zone_id = p_zone_id AND bucket = p_bucket_key;
      END IF;

      SET v_zone_txn_id = UUID_SHORT();
      INSERT INTO zone_txn (zone_id, bucket, at_ms, partition_id, log_offset, pair, blocked)
        VALUES (p_zone_id, p_bucket_key, v_now_ms, 4294967295, v_zone_txn_id, 0, v_blocked);
      IF v_own THEN
        COMMIT;
      END IF;
      LEAVE attempt;
    END;
  END LOOP;

  SELECT v_blocked, v_zone_txn_id, p_zone_id, p_bucket_key, v_rate, v_window_ms;
END //

-- Removes history older than p_keep_ms, and buckets that have no history left and that no window has needed
-- for a minute, at most p_rows rows a transaction. A bucket that is in use stays for the next time; nobody is
-- waited for if callers' own transactions are shorter than p_keep_ms. One call at a time does it, others
-- meanwhile nothing. Gives the numbers of rows removed: v_history, v_buckets. Not within a transaction.
CREATE PROCEDURE trim_velocity(IN p_keep_ms BIGINT, IN p_rows INT)
  MODIFIES SQL DATA
BEGIN
  DECLARE v_guard VARCHAR(64) DEFAULT CONCAT('trim_velocity ', LEFT(SHA2(DATABASE(), 256), 32));
  DECLARE v_zone_id INT UNSIGNED DEFAULT 0;
  DECLARE v_bucket VARBINARY(1024) DEFAULT '';
  DECLARE v_passed MEDIUMBLOB;
  DECLARE v_now_ms, v_window_ms BIGINT DEFAULT 0;
  DECLARE v_left, v_gone INT;
  DECLARE v_found, v_stay, v_begun TINYINT DEFAULT 0;
  DECLARE v_history, v_buckets BIGINT DEFAULT 0;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    IF v_begun THEN
      ROLLBACK;
    END IF;
    DO RELEASE_LOCK(v_guard);
    RESIGNAL;
  END;

  IF p_keep_ms IS NULL OR p_keep_ms < 0 OR p_rows IS NULL OR p_rows < 1 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'trim_velocity: p_keep_ms must be 0 or more, p_rows 1 or more';
  END IF;
  SET v_now_ms = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000;

  IF GET_LOCK(v_guard, 0) = 1 THEN
    walk: LOOP
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- an error within a transaction
      START TRANSACTION;
      SET v_begun = 1, v_left = p_rows;
      WHILE v_left > 0 DO
        IF NOT v_stay THEN -- to the next bucket, by the key of all
          SET v_found = 1;
          SELECT bucket INTO v_bucket
            FROM zone_bucket_lock WHERE zone_id = v_zone_id AND bucket > v_bucket ORDER BY bucket LIMIT 1;
          IF NOT v_found THEN
            SET v_found = 1;
            SELECT zone_id, bucket INTO v_zone_id, v_bucket
              FROM zone_bucket_lock WHERE zone_id > v_zone_id ORDER BY zone_id, bucket LIMIT 1;
          END IF;
          IF NOT v_found THEN
            COMMIT;
            LEAVE walk;
          END IF;
        END IF;

        DELETE FROM zone_txn
          WHERE zone_id = v_zone_id AND bucket = v_bucket AND at_ms < v_now_ms - p_keep_ms
            AND partition_id = 4294967295
          LIMIT v_left;
        SET v_gone = ROW_COUNT();
        SET v_history = v_history + v_gone, v_left = v_left - v_gone, v_stay = v_left = 0;

        IF NOT v_stay THEN
          SET v_left = v_left - 1;
          IF NOT EXISTS (SELECT 1 FROM zone_txn
                           WHERE zone_id = v_zone_id AND bucket = v_bucket AND partition_id = 4294967295) THEN
            SET v_window_ms = COALESCE(
              (SELECT window_ms FROM zone_master WHERE zone_id = v_zone_id AND limit_number = 0), 0);
            SET v_found = 1;
            SELECT passed INTO v_passed FROM zone_bucket_lock
              WHERE zone_id = v_zone_id AND bucket = v_bucket FOR UPDATE SKIP LOCKED;
            -- Again, under the lock: an attempt may have come in between.
            IF v_found
                AND RIGHT(v_passed, 6) < UNHEX(LPAD(HEX(GREATEST(v_now_ms - v_window_ms - 60000, 0)), 12, '0'))
                AND NOT EXISTS (SELECT 1 FROM zone_txn
                                  WHERE zone_id = v_zone_id AND bucket = v_bucket AND partition_id = 4294967295) THEN
              DELETE FROM zone_bucket_lock WHERE zone_id = v_zone_id AND bucket = v_bucket;
              SET v_buckets = v_buckets + 1;
            END IF;
          END IF;
        END IF;
      END WHILE;
      COMMIT;
      SET v_begun = 0;
    END LOOP;
    DO RELEASE_LOCK(v_guard);
  END IF;
  SELECT v_history, v_buckets;
END //

DELIMITER ;

-- With event_scheduler = ON, and the EVENT privilege: every hour, what is older than a week.
--
--   CREATE EVENT IF NOT EXISTS trim_velocity ON SCHEDULE EVERY 1 HOUR
--     DO CALL trim_velocity(7 * 86400000, 1000);

SET SESSION sql_mode = @velocity_sql_mode;
