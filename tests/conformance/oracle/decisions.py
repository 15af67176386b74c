# SPDX-License-Identifier: Apache-2.0
"""Decisions as records of the source `decisions`, for zones that count them."""

from keys import joined

_OWN = ("time", "zone", "key", "action", "mode", "by")


class Decision:
    """A decision as a record."""

    source, cost = "decisions", 1

    def __init__(self, decision, zones):
        """zones: by name, each with its key's fields as they are in policy.Zone."""
        values = [value if isinstance(value, bytes) else value.encode() for value in decision["key"]]
        self.time = decision["at"]
        self.fields = {name: decision[name].encode() for name in ("zone", "action", "mode")}
        self.fields["key"] = joined(values)
        for field, value in zip(zones[decision["zone"]].key, values):
            if field.name not in _OWN:
                self.fields.setdefault(field.name, value)

    def field(self, name):
        """The bytes of a field, or None; one that is empty, as the joined key of everybody is, is none."""
        return self.fields.get(name) or None


def is_event(decision):
    """Whether there is a decision that zones may count: a block that only ends sooner was counted when it began."""
    return decision is not None and not (decision.get("freed") and decision["action"] == "block")


def are_counted(config):
    """Whether the zones of a configuration get decisions."""
    return any(source.get("type") == "decisions" for source in config.get("sources", [])) and any(
        "decisions" in zone.get("sources", []) for zone in config["zones"])
