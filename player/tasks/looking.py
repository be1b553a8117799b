"""What a worker knows when it looks at a round.

The one rule kept here: the coordinator is asked at most once a look, and only if the stage needs its answer.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from player.coordinator import Coordinator, OwnRound
from player.models.looks import end, hold
from player.models.round_money import refund_round
from player.models.rounds import Round, Stage
from player.models.session import database_now, transaction
from player.settings import settings
from protocol.errors import LotteryError


class Disagreement(LotteryError):
    """The coordinator contradicts our own books. A person has to look; until then no money moves."""

    code = "disagreement"


@dataclass
class Look:
    """A round as it was taken, by the database's clock ``now``, and the coordinator to ask."""

    row: Round
    now: datetime
    coordinator: Coordinator
    told: OwnRound | None = field(default=None)

    @property
    def own(self) -> OwnRound:
        """The round as the coordinator sees it now."""
        return self.told or self.ask_again()

    def ask_again(self) -> OwnRound:
        """The same after something was sent.

        :raises Disagreement: the answer is about another round.
        """
        told = self.coordinator.round(self.row.id)
        if told.id != self.row.id:
            raise Disagreement(f"asked for round {self.row.id}, the coordinator tells of round {told.id}")
        self.told = told
        return told

    @property
    def stage(self) -> Stage:
        """How far our own work was."""
        return Stage(self.row.stage)

    @property
    def soon(self) -> datetime:
        """When to look again if nobody calls before."""
        return self.now + timedelta(seconds=settings().poll_seconds)

    def lost(self) -> bool:
        """Whether we are out of the round; then every ticket of it has been refunded and it is put away."""
        own = self.own
        if own.state != "FAILED" and own.excluded_reason is None:
            return False
        reason = own.excluded_reason or own.failure_reason or "failed"
        with transaction() as session:
            row = hold(session, self.row.id, self.stage)
            # First, so that who is buying at this moment is waited for, and paid back as well.
            end(session, row, Stage.FAILED, database_now(session), reason)
            refund_round(session, row.id)
        return True
