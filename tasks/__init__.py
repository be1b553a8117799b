"""The hands of the coordinator: every change of a round's state, the matching, the settlement, the webhooks.

An actor is a few lines around load → decide (``protocol``) → write. Messages carry ids; all that has to be done
stands in rows (``models.base.Due``), so a message lost costs seconds and a message doubled costs a look.
"""
