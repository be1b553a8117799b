"""``flask ops``: every group of commands is listed on this page."""

from app.ops.admin_keys import admin_key
from app.ops.applications import applications
from app.ops.audit import audit
from app.ops.deliveries import deliveries
from app.ops.group import OpsGroup
from app.ops.ledger import ledger
from app.ops.operators import operators
from app.ops.queues import queues
from app.ops.rounds import rounds

ops = OpsGroup(
    "ops",
    help="""Run the coordinator.

    What you can do over the admin API you can do here, with the database alone: no key is needed, whoever may run this
    is trusted. Everything that changes something is in the audit log under your login name, or --as NAME.

    \b
    Something is wrong and it is 3 a.m.:
      flask ops queues list                        is work piling up?
      flask ops deliveries list --status failed    who is not being reached, and why?
      flask ops rounds list                        where does each round stand?

    \b
    Exit codes: 0 done, 1 refused (not found, wrong state, not confirmed),
                2 used wrongly, 3 database or Redis down or not migrated.
    """,
)
for group in (queues, deliveries, rounds, operators, applications, ledger, audit, admin_key):
    ops.add_command(group)
