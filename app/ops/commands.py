"""``flask ops``: every command and group of commands is listed on this page."""

from app.ops.admin_keys import admin_key
from app.ops.applications import applications
from app.ops.archives import archives
from app.ops.audit import audit
from app.ops.deliveries import deliveries
from app.ops.endpoints import endpoints
from app.ops.group import OpsGroup
from app.ops.ledger import ledger
from app.ops.operators import operators
from app.ops.queues import queues
from app.ops.requeues import cancel, jobs, requeue_matching, watch
from app.ops.rounds import rounds
from app.ops.secrets import reencrypt_secrets

ops = OpsGroup(
    "ops",
    help="""Run the coordinator.

    What you can do over the admin API you can do here, with the database alone: no key is needed, whoever may run this
    is trusted. Everything that changes something is in the audit log under your login name, or --as NAME.

    \b
    Something is wrong and it is 3 a.m.:
      flask ops queues list                        is work piling up?
      flask ops endpoints list --state open        which receivers are down?
      flask ops deliveries list --status failed    who is not being reached, and why?
      flask ops rounds list                        where does each round stand?
      flask ops archives check                     is all that was sealed still whole?

    \b
    Exit codes: 0 done, 1 refused (not found, wrong state, not confirmed),
                2 used wrongly, 3 database or Redis down or not migrated.
    """,
)
for command in (requeue_matching, jobs, watch, cancel):
    deliveries.add_command(command)
for group in (
    *(queues, deliveries, endpoints, rounds, archives, operators, applications, ledger, audit),
    *(admin_key, reencrypt_secrets),
):
    ops.add_command(group)
