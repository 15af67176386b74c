#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oracle's times: every form, what is none, zones, and a second opinion."""

import datetime
import random
import unittest

import compare_unittest
import times


class Times(unittest.TestCase):
    """Every form, cut to the millisecond."""

    def test_forms(self):
        for text, unit, want in (
                (b"17/May/2015:10:05:03 +0000", "s", 1431857103000),
                (b"17/May/2015:12:05:03 +0200", "s", 1431857103000),
                (b"17/May/2015:10:05:03.9999", "s", 1431857103999),
                (b"2015-05-17T10:05:03Z", "s", 1431857103000),
                (b"2015-05-17t10:05:03,123456789z", "s", 1431857103123),
                (b"2015/05/17 10:05:03", "s", 1431857103000),
                (b"2015-05-17 12:35:03.5 +02:30", "s", 1431857103500),
                (b"2015-05-17T08:05:03-02", "s", 1431857103000),
                (b"2016-12-31T23:59:60Z", "s", 1483228800000),
                (b"1431857103.9999", "s", 1431857103999),
                (b"1431857103123.9", "ms", 1431857103123),
                (b"1431857103123999", "us", 1431857103123),
                (b"1431857103123999999", "ns", 1431857103123),
                (b"1.5e9", "s", 1500000000000), (b"1431857103123e-3", "s", 1431857103123),
                (b"2015-05-16T24:00:00Z", "s", 1431820800000),
                (b"0", "s", 0), (b"9999-12-31T23:59:59.999Z", "s", times.LIMIT_MS - 1)):
            self.assertEqual(times.parse(text, unit), want, text)

    def test_what_is_no_time(self):
        for text in (b"", b"x", b"1.5e", b"1.", b".5", b"+5", b" 5", b"2015-02-29T00:00:00Z",
                     b"2015-05-17T24:00:01Z", b"2015-05-17T10:60:00Z", b"2015-05-17T10:00:61Z",
                     b"2015-05/17 10:05:03", b"2015-05-17T10:05:03+2400", b"2015-05-17T10:05",
                     b"17/may/2015:10:05:03 +0000", b"17/May/2015:10:05:03 +00:00",
                     b"2015-05-17T10:05:03.Z", b"0000-02-30T00:00:00Z"):
            self.assertRaises(times.BadTime, times.parse, text)
        for text in (b"-1", b"-0", b"253402300800", b"9" * 5000, b"1969-12-31T23:59:59.999Z",
                     b"0000-02-29T00:00:00Z", b"9999-12-31T23:59:59-00:01",
                     b"1970-01-01T00:00:00+00:01"):
            self.assertRaises(times.OutOfRange, times.parse, text)

    def test_zones(self):
        berlin, fixed = times.zone_of("Europe/Berlin"), times.zone_of("-05:30")
        for text, zone, utc in (("2024-07-01T12:00:00", berlin, "2024-07-01T10:00:00"),
                                ("2024-01-01T12:00:00", berlin, "2024-01-01T11:00:00"),
                                ("2024-10-27T02:30:00", berlin, "2024-10-27T00:30:00"),
                                ("2024-03-31T02:30:00", berlin, "2024-03-31T01:30:00"),
                                ("2024-01-01T12:00:00", fixed, "2024-01-01T17:30:00")):
            self.assertEqual(times.parse(text.encode(), "s", zone), times.parse(utc.encode()))

    def test_against_datetime(self):
        rng = random.Random(5)
        for _ in range(5000):
            ms = rng.randrange(times.LIMIT_MS)
            then = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)
            for form in ("%Y-%m-%dT%H:%M:%S", "%d/%b/%Y:%H:%M:%S"):
                text = f"{then:{form}}.{ms % 1000:03}"
                if then.year >= 1000:  # strftime does not pad years
                    self.assertEqual(times.parse(text.encode()), ms)


if __name__ == "__main__":
    compare_unittest.main(__name__)
