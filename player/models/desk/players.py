"""Players as staff finds them: by id, e-mail address or name, and what is known of one.

One rule: what is shown of a player is what a decision about her needs; never her password's hash or a token's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import case, func, or_, select
from sqlalchemy.orm import Session

from player.models.kyc import KycRequest
from player.models.ledger import balance, player_account
from player.models.limits import Standing, limits_of
from player.models.players import Player, player
from player.models.sessions import PlayerSession, goes_on
from player.models.tickets import Ticket
from player.models.transactions import Transaction


@dataclass(frozen=True)
class PlayerFile:
    """One player and what belongs to her; ``balance`` in micro-USDC, ``sessions`` those that have not ended, ``limits``
    by period."""

    player: Player
    balance: int
    limits: Mapping[str, Standing]
    sessions: int
    tickets: int


def find_players(
    session: Session, limit: int, offset: int, search: str | None, kyc_level: str | None, suspended: bool | None
) -> list[Player]:
    """A page of players, newest first. ``search`` is an id, or a part of an e-mail address or a display name."""
    wanted = select(Player).order_by(Player.id.desc()).limit(limit).offset(offset)
    if search is not None:
        fits = [Player.email.icontains(search, autoescape=True), Player.display_name.icontains(search, autoescape=True)]
        if search.isascii() and search.isdigit() and len(search) <= 18:
            fits.append(Player.id == int(search))
        wanted = wanted.where(or_(*fits))
    if kyc_level is not None:
        wanted = wanted.where(Player.kyc_level == kyc_level)
    if suspended is not None:
        wanted = wanted.where(Player.suspended_at.is_not(None) if suspended else Player.suspended_at.is_(None))
    return list(session.scalars(wanted))


def player_file(session: Session, player_id: int) -> PlayerFile:
    """One player.

    :raises NotFound: no such player.
    """
    found = player(session, player_id)
    open_sessions = select(func.count()).where(PlayerSession.player_id == player_id, goes_on())
    bought = select(func.count()).where(Ticket.player_id == player_id)
    return PlayerFile(
        player=found,
        balance=balance(session, player_account(player_id)),
        limits=limits_of(session, player_id),
        sessions=session.scalars(open_sessions).one(),
        tickets=session.scalars(bought).one(),
    )


def statement(session: Session, player_id: int, limit: int, offset: int, type: str | None) -> list[Transaction]:  # noqa: A002
    """A page of a player's transactions, newest first.

    :raises NotFound: no such player.
    """
    player(session, player_id)
    wanted = select(Transaction).where(Transaction.player_id == player_id).order_by(Transaction.id.desc())
    if type is not None:
        wanted = wanted.where(Transaction.type == type)
    return list(session.scalars(wanted.limit(limit).offset(offset)))


def find_kyc_requests(
    session: Session, limit: int, offset: int, player_id: int | None, status: str | None
) -> list[KycRequest]:
    """A page of KYC requests: those that wait first, oldest on top, then the decided ones, newest on top."""
    waits = case((KycRequest.status == "pending", KycRequest.id))
    wanted = select(KycRequest).order_by(waits.nulls_last(), KycRequest.id.desc())
    if player_id is not None:
        wanted = wanted.where(KycRequest.player_id == player_id)
    if status is not None:
        wanted = wanted.where(KycRequest.status == status)
    return list(session.scalars(wanted.limit(limit).offset(offset)))
