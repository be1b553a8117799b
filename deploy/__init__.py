"""How the coordinator runs: embedded engines, the processes of the Procfile, `make run`.

One rule: nothing in the product imports this package. It starts the product; it is not part of it.
"""
