"""What a node needs of a payment provider.

The one rule kept here: every call may be made again, with the same order, by a node that died before it heard the
answer; a provider that would pay twice for it is not a provider for us. A class that keeps to this page is named in the
setting ``PAYMENT_PORT`` (``package.module:Class``) and made without arguments.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol
from uuid import UUID

from player.settings import SettingsError, settings
from protocol.errors import Unavailable


@dataclass(frozen=True)
class Order:
    """A payment to be made. ``amount`` is micro-USDC, at least 1; ``destination`` is where a withdrawal goes, in the
    player's words (an address, an account), None for a deposit.
    """

    id: UUID
    player_id: int
    amount: int
    destination: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How a payment ended, which is for good. ``reference`` is the provider's own name for it, for the staff; no two
    payments, deposits and withdrawals alike, have the same.
    """

    payment_id: UUID
    completed: bool
    amount: int
    reference: str | None = None


class PaymentPort(Protocol):
    """A payment provider. Implementations have timeouts of their own, 10 seconds or less, and keep no state."""

    def begin_deposit(self, order: Order) -> str:
        """Open a deposit and return the address the player is sent to. The same order again is the same deposit.

        :raises protocol.errors.Unavailable: the provider does not answer; the player may try again.
        """

    def begin_withdrawal(self, order: Order) -> Outcome | None:
        """Have a withdrawal paid out; its outcome if that is known at once, None if a callback will tell it.

        Called again, hours apart, for as long as no outcome is known: the same order is paid once, and a later call
        may well return the outcome that a callback failed to bring.

        :raises protocol.errors.Unavailable: the provider does not answer; it is asked again.
        """

    def verify_callback(self, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Read what the provider sent to ``POST /api/payments/callback``: ``headers`` by their names in lower
        case, ``body`` as it came over the wire.

        :raises protocol.errors.Unauthenticated: the signature is missing or wrong.
        :raises protocol.errors.Invalid: the provider's, and not to be understood.
        """


class NoPayments:
    """The port of a node that has no provider: everything is refused, nothing is lost."""

    _refusal = "no payment provider is set up"

    def begin_deposit(self, order: Order) -> str:
        """Refuse.

        :raises Unavailable: always.
        """
        raise Unavailable(self._refusal, code="payments_off")

    def begin_withdrawal(self, order: Order) -> Outcome | None:
        """Refuse.

        :raises Unavailable: always; the withdrawal waits for a provider.
        """
        raise Unavailable(self._refusal, code="payments_off")

    def verify_callback(self, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Refuse.

        :raises Unavailable: always.
        """
        raise Unavailable(self._refusal, code="payments_off")


def payment_port() -> PaymentPort:
    """The provider of this node.

    :raises SettingsError: ``PAYMENT_PORT`` names nothing that can be made.
    """
    module, _, name = settings().payment_port.partition(":")
    try:
        made: PaymentPort = getattr(import_module(module), name)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingsError(
            f"PAYMENT_PORT must be package.module:Class, and this one cannot be made ({type(error).__name__})"
        ) from None
    return made


def exit_unless_made(process: str) -> None:
    """Make the provider once at the start of a process; exit with one clear line if that cannot be done."""
    try:
        payment_port()
    except SettingsError as error:
        sys.exit(f"{process}: {error}")
