# SPDX-License-Identifier: Apache-2.0
"""Limiters that answer checks together: started, and awaited until each knows whom to ask."""

from support.checks import command
from support.place import PATIENCE_S, free_port
from support.redis import Redis, RedisError
from support.roles import Roles

SECTIONS = {"partitions": 8, "limiter": {"threads": 2, "memory": "64MiB", "checkpoint_interval": "300ms"}}
# Who is killed is missed soon.
QUICK = {"bus": {"kafka": {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}}}


def limiter(roles, name, listen=None, **checks):
    """A limiter that answers checks: it, with its port as `checks`. listen: more of that section."""
    port, pages = free_port(), free_port()
    one = roles.limiter(name=name, listen={"resp": f"127.0.0.1:{port}", "http": f"127.0.0.1:{pages}", **(listen or {})}, checks=checks)
    one.port, one.checks = pages, port
    return one


def answers(port, keys, zone="site"):
    """Whether each of these keys is answered there."""
    client = Redis(port)
    try:
        for key in keys:
            client.call("WEIR.PEEK", key, zone)
        return True
    except RedisError as error:
        if str(error).startswith("MOVED "):
            return True
        assert str(error).startswith(("UNAVAILABLE ", "ERR there is no policy")), error
        return False
    except OSError:
        return False  # it does not listen yet
    finally:
        client.close()


def until_answered(limiters, keys=tuple(f"other-{number}" for number in range(64)), zone="site"):
    """Waits until each of them has every key answered."""
    for one in limiters:
        one.until_up()
        one.until(lambda one=one: answers(one.checks, keys, zone), "all checks are answered", 4 * PATIENCE_S)


def crew(place, servers, zones, count=2, **checks):
    """Roles with a policy, and limiters that have every partition between them."""
    roles = Roles(place, servers, zones, **{**SECTIONS, "bus": {"partitions": 8, **QUICK["bus"]}})
    roles.__enter__()
    roles.apply()
    limiters = [limiter(roles, f"limiter-{number}", **checks) for number in range(count)]
    until_answered(limiters)
    if count > 1:
        limiters[0].until(lambda: all(one.value("weir_limiter_partitions", state="live") > 0 for one in limiters),
                          "each has partitions")
        until_answered(limiters)
    return roles, limiters


def stop_all(limiters):
    """Ends them as they should end."""
    for one in limiters:
        assert one.stop() == 0, one.said()[-2000:]


def leave(roles, limiters):
    """Ends them, and what they were started by."""
    stop_all(limiters)
    roles.__exit__(None, None, None)


def ask(raw, *words):
    """A check's integers by a connection (Raw), of several in lists; the words of an error."""
    raw.send(command(*words))
    answer = _read(raw)
    assert isinstance(answer, (list, str)), answer
    return answer


def _read(raw):
    head = raw.take(1)
    if head == b"-":
        return raw.line().decode()
    assert head in (b"*", b":"), head
    number = int(raw.line())
    return number if head == b":" else [_read(raw) for _ in range(number)]
