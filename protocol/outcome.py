"""Checks what a draw came to: the tickets, who won, the ledger and the settlement hash.

The rule: winners are found in the sealed tickets themselves, never in a list of winners; the ledger is
computed from them.

Implements docs/protocol.md, section 10 (proof bundle).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from protocol.bundle import Bundle, SealedManifest
from protocol.checks import Check, NotVerified, absent, needed, same
from protocol.errors import Invalid, NotFound
from protocol.numbers import LABELS
from protocol.rules import parse_amount
from protocol.settlement import Stake, Terms, settlement_hash, settlement_proof, settlement_terms
from protocol.tabulation import Tabulation, tabulate
from protocol.winners import Winner, winners_root

Tickets = Callable[[str], Iterable[bytes]]
"""Gives an operator's sealed ticket lines, without line ends. May raise Invalid (damaged) or NotFound (not
published).
"""


def needs_tickets(bundle: Bundle) -> bool:
    """Whether the round's sealed tickets are public and needed: from DRAWN on."""
    return bundle.state in ("DRAWN", "SETTLED", "CLOSED")


def check_outcome(bundle: Bundle, tickets: Tickets | None) -> Iterator[Check]:
    """Checks tickets, winner counts, ledger, winners root and settlement hash, as far as they are stated.

    Without `tickets` the winner counts and the root are taken as stated. Raises NotVerified at the first
    difference.
    """
    if bundle.numbers is None or bundle.winner_counts is None:
        absent("winnerCounts", bundle.winner_counts)
        absent("winnersRoot", bundle.winners_root)
        absent("reserveCredits", bundle.reserve_credits)
        absent("ledger", bundle.ledger)
        absent("settlementHash", bundle.settlement_hash)
        return
    tabulations: dict[str, Tabulation] | None = None
    if tickets is not None and needs_tickets(bundle):
        tabulations = {}
        for manifest in bundle.effective:
            tabulations[manifest.operator_id] = _check_tickets(bundle, manifest, tickets)
            yield Check(f"tickets of {manifest.operator_id} ({manifest.ticket_count:,})")
        for tier, (label, count) in enumerate(zip(LABELS, bundle.winner_counts, strict=True)):
            won = sum(len(tabulation.wins[tier]) for tabulation in tabulations.values())
            same(f"winnerCounts ({label})", won, count)
    yield Check("winnerCounts", proved=tabulations is not None)
    if bundle.ledger is None:
        absent("winnersRoot", bundle.winners_root)
        absent("settlementHash", bundle.settlement_hash)
        return

    terms, prizes = _terms(bundle, bundle.winner_counts, bundle.ledger)
    yield Check("ledger")
    root = needed("winnersRoot", bundle.winners_root)
    if tabulations is not None:
        same("winnersRoot", winners_root(bundle.round_id, _winners(tabulations, terms, prizes)), root)
    yield Check("winnersRoot", proved=tabulations is not None)
    if bundle.settlement_hash is not None:
        proof = settlement_proof(
            bundle.round_id,
            needed("chainedAnchorHash", bundle.chained_anchor_hash),
            needed("effectiveManifestHash", bundle.effective_manifest_hash),
            needed("drawSeed", bundle.draw_seed),
            bundle.numbers,
            bundle.winner_counts,
            root,
            terms,
        )
        same("settlementHash", settlement_hash(proof), bundle.settlement_hash)
        yield Check("settlementHash")


def _terms(bundle: Bundle, counts: tuple[int, ...], ledger: dict[str, str]) -> tuple[Terms, tuple[int, ...]]:
    """Our own terms, equal to the stated ones; the two balances carried in are checked against the rounds
    before.
    """
    carried = {}
    for name in ("pool0", "reserve0"):
        try:
            carried[name] = parse_amount(ledger.get(name))
        except Invalid as problem:
            raise NotVerified(f"ledger.{name}", problem.message) from None
    stakes = [Stake(manifest.operator_id, manifest.ticket_count) for manifest in bundle.effective]
    terms, prizes = settlement_terms(bundle.rules, stakes, counts, carried["pool0"], carried["reserve0"])
    computed = terms.as_hashed()
    for name in (*computed, *ledger):
        same(f"ledger.{name}", computed.get(name), ledger.get(name))
    return terms, prizes


def _winners(tabulations: dict[str, Tabulation], terms: Terms, prizes: tuple[int, ...]) -> Iterator[Winner]:
    paid = (terms.jackpotPaid // terms.k if terms.k else 0, *prizes)
    for operator_id, tabulation in tabulations.items():
        for tier, won in enumerate(tabulation.wins):
            for ticket_id in won:
                yield Winner(tier, operator_id, ticket_id, paid[tier])


def _check_tickets(bundle: Bundle, manifest: SealedManifest, tickets: Tickets) -> Tabulation:
    """One operator's ticket file: every line, how many, and their root."""
    operator_id = manifest.operator_id
    try:
        tabulation = tabulate(
            bundle.round_id,
            operator_id,
            bundle.rules.number_ranges,
            needed("numbers", bundle.numbers),
            tickets(operator_id),
            at_most=manifest.ticket_count,
        )
    except (Invalid, NotFound) as problem:
        raise NotVerified(f"tickets of {operator_id}", problem.message) from None
    if tabulation.ticket_count != manifest.ticket_count:
        raise NotVerified(
            f"tickets of {operator_id}",
            f"expected {manifest.ticket_count} tickets, found {tabulation.ticket_count}",
        )
    same(f"ticketsRoot of {operator_id}", tabulation.tickets_root, manifest.tickets_root)
    return tabulation
