"""The other side of the wire: an operator's own system, from the player's purchase to the paid prize.

The one rule kept here: it imports the published rules (``protocol``) and nothing else of ours. What it knows of the
coordinator it knows over HTTP, as any operator does.

``api`` is its door (Flask), ``models`` its memory, ``tasks`` its hands and ``clock`` its clock, as in the coordinator;
``coordinator`` is the client of the coordinator's operator API and can be used alone (docs/sdk.md).
"""
