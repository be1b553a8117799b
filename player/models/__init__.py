"""The memory of an operator's node: its tables, one file a subject, with their queries beside them."""
