"""What everybody may read of the coordinator, and how a company applies: no API key is needed here.

The one rule kept here: only the limits of a public address apply (60 requests a minute), so nothing here is asked in a
loop but the pages of one answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from player.coordinator.errors import Unreadable
from player.coordinator.public_shapes import (
    Application,
    ApplicationStatus,
    Applied,
    Draw,
    InclusionProof,
    Jackpot,
    Odds,
    PublicRound,
    RoundEvent,
    TierPayout,
    Winners,
)
from player.coordinator.reading import read, read_list
from player.coordinator.transport import Ask, Transport, path_of

_WINNERS_AT_ONCE = 10_000


class PublicReads:
    """The public side of a coordinator. Every method raises `CoordinatorError`, as `errors` says."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def public_round(self, round_id: int) -> PublicRound:
        """A round as everybody sees it."""
        ask = Ask("GET", path_of("public", "rounds", round_id))
        return read(PublicRound, self._transport.send(ask), str(ask))

    def events(self, round_id: int) -> tuple[RoundEvent, ...]:
        """A round's public log, oldest first."""
        ask = Ask("GET", path_of("public", "rounds", round_id, "events"))
        return read_list(RoundEvent, "events", self._transport.send(ask), str(ask))

    def draw(self, round_id: int) -> Draw:
        """The draw of a round.

        :raises NotFound: there is none, or not yet.
        """
        ask = Ask("GET", path_of("public", "draw", round_id))
        return read(Draw, self._transport.send(ask), str(ask))

    def winners(self, round_id: int) -> Winners:
        """Every sub-prize winner of a round, of all operators; large rounds take a request for every 10,000 of a tier.

        :raises NotFound: it is not drawn.
        """
        found = self._winners(round_id, 0)
        while short := [tier for tier in found.sub_prize_tiers if len(tier.winners) < tier.count]:
            offset = max(len(tier.winners) for tier in short)
            more = {tier.tier: tier.winners for tier in self._winners(round_id, offset).sub_prize_tiers}
            if not any(more.get(tier.tier) for tier in short):
                break  # what is counted and what is listed differ: that is for the reader to see
            tiers = [
                replace(tier, winners=tier.winners + more.get(tier.tier, ())) if tier in short else tier
                for tier in found.sub_prize_tiers
            ]
            found = replace(found, sub_prize_tiers=tuple(tiers))
        return found

    def sub_prizes(self, round_id: int) -> tuple[TierPayout, ...]:
        """What the sub-prizes of a round pay, tier by tier from 1 to 5.

        :raises NotFound: it is not drawn.
        """
        ask = Ask("GET", path_of("public", "sub-prizes", round_id), query={"limit": 1})
        return read_list(TierPayout, "tiers", self._transport.send(ask), str(ask))

    def jackpot(self) -> Jackpot:
        """The jackpot now."""
        ask = Ask("GET", path_of("public", "jackpot"))
        return read(Jackpot, self._transport.send(ask), str(ask))

    def odds(self) -> Odds:
        """The odds of the jackpot now; a round keeps those it opened with."""
        ask = Ask("GET", path_of("public", "odds"))
        return read(Odds, self._transport.send(ask), str(ask))

    def proof_bundle(self, round_id: int) -> dict[str, Any]:
        """All that a round can be recomputed from, as published (docs/protocol.md, section 10)."""
        ask = Ask("GET", path_of("public", "rounds", round_id, "proof"))
        bundle = self._transport.send(ask)
        if not isinstance(bundle, dict):
            raise Unreadable(str(ask), "the answer is no bundle")
        return bundle

    def inclusion_proof(self, round_id: int, operator_id: str, ticket_id: str) -> InclusionProof:
        """That one ticket is among those an operator sealed; check it with `holds`.

        :raises Conflict: nothing is sealed yet.
        :raises NotFound: there is no such ticket among them.
        """
        ask = Ask("GET", path_of("public", "rounds", round_id, "tickets", operator_id, ticket_id, "proof"))
        return read(InclusionProof, self._transport.send(ask), str(ask))

    def apply(self, form: Application) -> Applied:
        """Apply to become an operator.

        Sent once: of a second one nobody would see the token. Where the answer was lost (`Unreachable`) and the next
        try is refused with `application_pending`, the licensor's staff can help.
        """
        ask = Ask("POST", path_of("public", "apply"), form.as_sent(), repeatable=False)
        return read(Applied, self._transport.send(ask), str(ask))

    def application_status(self, application_id: str, application_token: str) -> ApplicationStatus:
        """What became of an application."""
        path = path_of("public", "application-status", application_id)
        ask = Ask("GET", path, headers={"X-Application-Token": application_token})
        return read(ApplicationStatus, self._transport.send(ask), str(ask))

    def _winners(self, round_id: int, offset: int) -> Winners:
        query = {"limit": _WINNERS_AT_ONCE, "offset": offset}
        ask = Ask("GET", path_of("public", "draw", round_id, "winners"), query=query)
        return read(Winners, self._transport.send(ask), str(ask))
