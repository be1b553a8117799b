"""``revealed``: after the draw, which tickets won, by the coordinator's word and by our own reading of the numbers.

The one rule kept here: no prize is written down that only one of the two knows of.
"""

from dataclasses import asdict
from datetime import datetime

from player.models.looks import hold
from player.models.rounds import Stage
from player.models.session import transaction
from player.models.views import keep_view
from player.models.winnings import decide, matching
from player.tasks.looking import Disagreement, Look
from player.tasks.publishing import published


def check(look: Look) -> datetime | None:
    """``revealed`` → ``checked``."""
    if look.lost():
        return None
    if look.own.state not in ("DRAWN", "SETTLED", "CLOSED"):
        return look.soon
    draw = look.coordinator.draw(look.row.id)
    public = look.coordinator.public_round(look.row.id)
    told = {tuple(win) for win in look.coordinator.check_tickets(look.row.id).wins}
    with transaction() as session:
        row = hold(session, look.row.id, Stage.REVEALED)
        found = matching(session, row.id, draw.numbers)
        if found != told:
            differing = sorted(found ^ told)
            raise Disagreement(
                f"{len(differing)} wins are known to one side only, such as {differing[0][1]} in tier {differing[0][0]}"
            )
        decide(session, row.id, found)
        keep_view(session, f"round:{row.id}", published(asdict(public)))
        row.draw, row.stage = published(asdict(draw)), Stage.CHECKED
    return look.now
