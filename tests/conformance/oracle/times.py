# SPDX-License-Identifier: Apache-2.0
"""Time texts to Unix milliseconds: Common Log, ISO 8601 and Unix numbers.

The form is known by its shape. Fractions are cut, never rounded. All
arithmetic is on Python integers.
"""

import datetime
import re
import zoneinfo

LIMIT_MS = 253402300800000  # the first millisecond of the year 10000
NUMBER_FIRST_MS, NUMBER_END_MS = 946684800000, 4102444800000  # 2000, 2100

_MONTHS = [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun",
           b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"]
_CLOCK = rb"(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?"
_COMMON = re.compile(rb"(\d\d)/([A-Z][a-z][a-z])/(\d\d\d\d):" + _CLOCK +
                     rb"(?: ([+-])(\d\d)(\d\d))?")
_ISO = re.compile(rb"(\d\d\d\d)([-/])(\d\d)\2(\d\d)[Tt ]" + _CLOCK +
                  rb"(?:([Zz])| ?([+-])(\d\d)(?::?(\d\d))?)?")
_SYSLOG = re.compile(rb"([A-Z][a-z][a-z]) (?: (\d)|(\d\d?)) (?:(\d\d\d\d) )?" + _CLOCK)
_CTIME = re.compile(rb".{3} ([A-Z][a-z][a-z]) (?: (\d)|(\d\d?)) " + _CLOCK + rb" (\d\d\d\d)", re.DOTALL)
_UNIX = re.compile(rb"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_UNITS = ("s", "ms", "us", "ns")
_FIXED_ZONE = re.compile(r"([+-])(\d\d):(\d\d)")
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()


class BadTime(Exception):
    """The text is no time, or an impossible one."""


class OutOfRange(Exception):
    """The text is a time before 1970 or after 9999."""


def zone_of(name):
    """A function from local (y, m, d, H, M, S) to milliseconds east of UTC.

    `name` is UTC, Z, +HH:MM or a name of the zone database."""
    if name in ("UTC", "Z"):
        return lambda parts: 0
    fixed = _FIXED_ZONE.fullmatch(name)
    if fixed:
        offset = _offset_ms(fixed[1].encode(), fixed[2], fixed[3])
        return lambda parts: offset
    info = zoneinfo.ZoneInfo(name)

    def local_offset(parts):
        year, month, day, hour, minute, second = parts
        local = datetime.datetime(year, month, day, hour, minute, min(second, 59),
                                  tzinfo=info, fold=0)
        delta = local.utcoffset()
        return (delta.days * 86400 + delta.seconds) * 1000
    return local_offset


UTC = zone_of("UTC")


def parse(text, unit=None, zone=UTC, syslog_year=None):
    """Unix ms of `text` (bytes). Raises BadTime or OutOfRange.

    A number without a `unit` is of seconds, from 2000 to 2100.

    `syslog_year` is that of syslog's times, which have none: a number, or the month
    "YYYY-MM" with which twelve months of them begin."""
    found = _UNIX.fullmatch(text)
    if found:
        ms = _unix_ms(found, unit or "s")
        if unit is None and not NUMBER_FIRST_MS <= ms < NUMBER_END_MS:
            raise OutOfRange
        return _in_range(ms)
    found = _COMMON.fullmatch(text)
    if found:
        day, month, year, hour, minute, second, fraction, sign, zh, zm = found.groups()
        if month not in _MONTHS:
            raise BadTime
        month = _MONTHS.index(month) + 1
        explicit = None if sign is None else _offset_ms(sign, zh, zm)
        return _civil_ms((year, month, day, hour, minute, second), fraction, explicit, zone)
    found = _ISO.fullmatch(text)
    if found:
        year, _, month, day, hour, minute, second, fraction, utc, sign, zh, zm = found.groups()
        explicit = 0 if utc else None if sign is None else _offset_ms(sign, zh, zm or 0)
        return _civil_ms((year, month, day, hour, minute, second), fraction, explicit, zone)
    found = _CTIME.fullmatch(text)
    if found and found[1] in _MONTHS:
        month, padded, day, hour, minute, second, fraction, year = found.groups()
        return _civil_ms((year, _MONTHS.index(month) + 1, padded or day, hour, minute, second), fraction, None, zone)
    found = _SYSLOG.fullmatch(text)
    if found and found[1] in _MONTHS and (found[4] or syslog_year is not None):
        month = _MONTHS.index(found[1]) + 1
        first_year, first_month = (int(part) for part in f"{syslog_year or 0}-1".split("-")[:2])
        year = found[4] or first_year + (month < first_month)
        return _civil_ms((year, month, found[2] or found[3], *found.groups()[4:7]), found[8], None, zone)
    raise BadTime


def _unix_ms(found, unit):
    minus, whole, fraction, exponent = found.groups()
    if minus:
        raise OutOfRange
    if exponent is not None:  # the point moves
        places = max(-10000, min(10000, int(exponent)))
        digits = b"0" * max(0, -places) + whole + (fraction or b"") + b"0" * max(0, places)
        point = max(0, -places) + len(whole) + places
        whole, fraction = digits[:point] or b"0", digits[point:]
    if len(whole) > 4000:  # Python's own limit on digits; far out of range
        if whole.strip(b"0"):
            whole = whole.lstrip(b"0")[:100]
        else:
            whole = b"0"
    value = int(whole)
    if unit == "s":
        return value * 1000 + int(((fraction or b"") + b"000")[:3])
    return value // 1000 ** (_UNITS.index(unit) - 1)


def _offset_ms(sign, hours, minutes):
    hours, minutes = int(hours), int(minutes)
    if hours > 23 or minutes > 59:
        raise BadTime
    offset = (hours * 60 + minutes) * 60000
    return -offset if sign == b"-" else offset


def _civil_ms(parts, fraction, explicit, zone):
    year, month, day, hour, minute, second = (int(p) for p in parts)
    try:  # year 0 has no datetime.date; it has the days of the year 2000
        date = datetime.date(year or 2000, month, day)
    except ValueError:
        raise BadTime from None
    ends = (hour, minute, second) == (24, 0, 0) and not (fraction or b"").strip(b"0")
    if (hour > 23 and not ends) or minute > 59 or second > 60:
        raise BadTime
    if year == 0:
        raise OutOfRange
    offset = explicit
    if offset is None:
        midnight = date + datetime.timedelta(days=1) if ends else date
        offset = zone((midnight.year, midnight.month, midnight.day, hour % 24, minute, second))
    days = date.toordinal() - _EPOCH_DAY
    ms = int(((fraction or b"") + b"000")[:3])
    return _in_range((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms - offset)


def _in_range(ms):
    if not 0 <= ms < LIMIT_MS:
        raise OutOfRange
    return ms
