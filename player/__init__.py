"""The operator's side of the wire: what a company runs that takes part in rounds.

The one rule kept here: it imports `protocol` and nothing else of ours. All else it knows of the coordinator, it knows
over HTTP.
"""
