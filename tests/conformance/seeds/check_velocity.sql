-- SPDX-License-Identifier: Apache-2.0
-- The synchronous limiter of the article "Rate Limiting in Distributed System
-- Using Mysql for high cardinality": its three tables and its procedure, with
-- the same statements in the same order, laid out in our style.

CREATE TABLE zone_master (
  id INT PRIMARY KEY,
  description TEXT,
  rate INT,
  `window` BIGINT -- seconds
);

CREATE TABLE zone_bucket_lock (
  bucket_key VARCHAR(255) UNIQUE
);

CREATE TABLE zone_txn (
  id BIGINT PRIMARY KEY AUTO_INCREMENT,
  zone_id INT,
  bucket_key VARCHAR(255),
  blocked TINYINT(1),
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);

DELIMITER //
CREATE PROCEDURE check_velocity(IN p_zone_id INT(11), IN p_bucket_key VARCHAR(255))
BEGIN
  DECLARE v_rate INT;
  DECLARE v_window BIGINT;
  DECLARE v_blocked TINYINT;
  DECLARE v_zone_txn_id BIGINT;

  SELECT rate, `window` INTO v_rate, v_window FROM zone_master WHERE id = p_zone_id;

  -- The row to lock must exist before the transaction starts.
  INSERT IGNORE INTO zone_bucket_lock (bucket_key) VALUES (p_bucket_key);

  START TRANSACTION;
  SELECT * FROM zone_bucket_lock WHERE bucket_key = p_bucket_key FOR UPDATE;

  SELECT IF(COUNT(*) >= v_rate, 1, 0) INTO v_blocked
    FROM zone_txn
    WHERE bucket_key = p_bucket_key AND zone_id = p_zone_id AND blocked = 0
      AND created_at >= NOW() - INTERVAL v_window SECOND;

  INSERT INTO zone_txn (zone_id, bucket_key, blocked)
    VALUES (p_zone_id, p_bucket_key, v_blocked);
  SET v_zone_txn_id = LAST_INSERT_ID();
  COMMIT;

  SELECT v_blocked, v_zone_txn_id, p_zone_id, p_bucket_key, v_rate, v_window;
END //
DELIMITER ;
