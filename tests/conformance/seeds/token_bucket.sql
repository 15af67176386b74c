-- SPDX-License-Identifier: Apache-2.0
-- The token bucket of Franck Pachot's article "Rate limiting with PostgreSQL /
-- YugabyteDB (token buckets function)": its table and its function, with the
-- same statements in the same order, laid out in our style. now() and
-- clock_timestamp() carry no schema, so the session's search_path says whose
-- clock is read (see shadow_clock.sql).

CREATE TABLE rate_limiting_token_bucket (
  id TEXT PRIMARY KEY,
  tk BIGINT NOT NULL, -- tokens left; -1 means none
  ts TIMESTAMPTZ NOT NULL -- when a token was last asked for
);

CREATE FUNCTION rate_limiting_request(
  rate_id TEXT, refill_per_sec INT DEFAULT 2, window_seconds INT DEFAULT 60)
RETURNS INT AS $$
DECLARE
  new_tk INT := NULL;
BEGIN
  -- Takes one token and adds those refilled since the last call.
  UPDATE rate_limiting_token_bucket
    SET ts = now(),
        tk = greatest(least(
          tk - 1 + refill_per_sec * extract(epoch FROM clock_timestamp() - ts),
          window_seconds * refill_per_sec), -1)
    WHERE rate_limiting_token_bucket.id = rate_id
    RETURNING tk INTO new_tk;
  -- A first call finds a full bucket.
  IF new_tk IS NULL THEN
    INSERT INTO rate_limiting_token_bucket (id, tk, ts)
      VALUES (rate_id, window_seconds * refill_per_sec - 1, clock_timestamp())
      RETURNING tk INTO new_tk;
  END IF;
  RETURN new_tk;
END;
$$ LANGUAGE plpgsql;
