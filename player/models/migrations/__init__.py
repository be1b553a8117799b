"""Migrations of the node's database."""
