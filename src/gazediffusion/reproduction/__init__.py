"""The paper's experiments: every table and figure, beside the paper's numbers and the floor.

A plan names runs, sets and evaluations; building.py builds what is missing. tables.py turns them
into one tidy table, claims.py into verdicts, page.py into the page. `reproduce` does it all. It
must not know the command line.
"""
