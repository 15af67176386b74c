-- SPDX-License-Identifier: Apache-2.0
-- A clock that the test sets, in front of PostgreSQL's own: a session with
-- search_path = shadow_clock, public, pg_catalog reads its time from the
-- settings shadow.now (start of the transaction) and shadow.clock (this moment).

CREATE SCHEMA shadow_clock;

CREATE FUNCTION shadow_clock.now() RETURNS TIMESTAMPTZ AS $$
  SELECT pg_catalog.current_setting('shadow.now')::TIMESTAMPTZ
$$ LANGUAGE sql VOLATILE;

CREATE FUNCTION shadow_clock.clock_timestamp() RETURNS TIMESTAMPTZ AS $$
  SELECT pg_catalog.current_setting('shadow.clock')::TIMESTAMPTZ
$$ LANGUAGE sql VOLATILE;
