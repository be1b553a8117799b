"""What the people who run the coordinator do: every act once, for the admin API and for ``flask ops`` alike.

The one rule kept here: an act takes the session of its caller and who acts, writes its audit entry in the same
transaction, and returns what the admin API answers; it knows neither HTTP nor a terminal. (Only an act on very
many rows opens transactions of its own, one a batch.)
"""
