"""The hands of a node: what its worker does, and how it is called."""
