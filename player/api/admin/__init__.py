"""The admin API: what the operator's staff looks up and decides. Every path asks for a staff key in ``X-Admin-Key``.

The one rule kept here: every change says why, and is in the audit log in the transaction that makes it.
"""

from player.api.admin import audit, kyc, letters, payments, players, reports, rounds

BLUEPRINTS = tuple(page.blueprint for page in (players, kyc, rounds, payments, letters, reports, audit))
"""All of them, for the factory."""
