"""An operator's manifest: a JSON text it signs off its tickets with, and what that text claims.

The rule: the manifest is hashed as the exact text received. It may say anything besides, but what it says
about the round, the operator, the tickets and the nonce must be true.

Implements docs/protocol.md, section 6 (chain of hashes).
"""

from __future__ import annotations

from typing import Any

from protocol.canonical import is_hash, parse_strict_json, sha256_hex
from protocol.errors import Invalid

KNOWN_KEYS = ("roundId", "operatorId", "ticketCount", "ticketsRoot", "nonceCommit")
"""The keys with a meaning. All are optional, and other keys are allowed."""


def manifest_hash(manifest_json: str) -> str:
    """`manifestHash`: SHA-256 of the text's UTF-8 bytes, 64 hex digits. The text is never written anew."""
    return sha256_hex(manifest_json.encode("utf-8"))


def read_manifest(manifest_json: str) -> dict[str, Any]:
    """The KNOWN_KEYS a manifest has, and their values.

    Raises Invalid unless the text is strict JSON, an object, and its nonceCommit, if any, 64 lowercase hex
    digits.
    """
    manifest = parse_strict_json(manifest_json)
    if not isinstance(manifest, dict):
        raise Invalid("a manifest is a JSON object")
    claims = {key: manifest[key] for key in KNOWN_KEYS if key in manifest}
    if "nonceCommit" in claims and not is_hash(claims["nonceCommit"]):
        raise Invalid("nonceCommit is 64 lowercase hex digits")
    return claims


def contradictions(claims: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    """The keys whose claim differs from the facts, in the order of KNOWN_KEYS; a key missing from either is
    not compared.
    """
    return [
        key
        for key in KNOWN_KEYS
        if key in claims and key in facts and (type(claims[key]), claims[key]) != (type(facts[key]), facts[key])
    ]
