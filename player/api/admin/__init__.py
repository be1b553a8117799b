"""The admin API: what the operator's staff looks up and decides. Every path asks for a staff key in ``X-Admin-Key``.

The one rule kept here: every change says why, and is in the audit log in the transaction that makes it.
"""
