"""The memory of the coordinator: tables, one file an aggregate, with the queries and conditional updates beside them.

Postgres is the truth. Nothing here knows of HTTP or of queues. ``models.tables`` imports every aggregate, which is what
a migration (and anything else that needs the whole metadata) imports.
"""
