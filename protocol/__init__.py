"""The published rules of the lottery: every hash, number and sum of a round, as pure functions and values.

The rule: nothing in here reads a clock, a file, a socket or a random source; whatever varies is an argument.
Only `protocol.verify`, the command line that downloads a proof bundle, touches the outside. The page
docs/protocol.md says in words what these modules say in code, section by section.
"""
