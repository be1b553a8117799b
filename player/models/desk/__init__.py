"""What the operator's staff looks up: lists and sums over all players, rounds and payments.

The one rule kept here: these are reads, newest first, of one page each; what changes something stands beside its table.
"""
