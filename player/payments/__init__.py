"""The port to whoever moves real money: what a payment provider has to do for a node, and the sandbox's own.

The one rule kept here: a provider is told of a payment by our id, any number of times, and does it once. What becomes
of a payment is believed only with the provider's signature.
"""
