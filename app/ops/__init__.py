"""``flask ops``: the command line of the people who run the coordinator."""

from app.ops.commands import ops

__all__ = ["ops"]
