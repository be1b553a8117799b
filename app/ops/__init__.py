"""``flask ops``: the command line of the people who run the coordinator."""

from app.ops import secrets
from app.ops.commands import ops

ops.add_command(secrets.reencrypt_secrets)

__all__ = ["ops"]
