"""Heartbeats: telling an operator that we have not heard of it for too long."""

from models.deliveries import announce
from models.operators import miss_heartbeat
from models.session import transaction
from protocol.timestamps import format_timestamp
from tasks.bell import Bell, answers, ring_after_commit


@answers(Bell.HEARTBEAT)
def check_heartbeat(operator_id: str) -> bool:
    """Count and announce a missed heartbeat, once a silence; False when none is overdue."""
    with transaction() as session:
        last = miss_heartbeat(session, operator_id)
        if last is None:
            return False
        data = {"operatorId": operator_id, "lastHeartbeat": format_timestamp(last)}
        deliveries = announce(session, "operator.heartbeat_missed", [operator_id], None, data)
        ring_after_commit(session, Bell.DELIVERIES, deliveries)
        return True
