"""The door of an operator's node: its player API, its admin API, and the receiver of the coordinator's webhooks."""
