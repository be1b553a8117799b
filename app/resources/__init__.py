"""What the API shows and reads: for each resource its schema and the way from rows to JSON.

Field names are the published ones, letter for letter, so that a search for one finds its definition here.
"""
