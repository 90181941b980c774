"""The paper's experiments: every table and figure from one function.

A plan names runs, sets and evaluations; building.py builds what is missing, tables.py turns them
<<<<<<< HEAD
into one tidy table of results, claims.py into verdicts, page.py into the page. What tables and
claims say, and the paper's own numbers, are data: tables.toml, claims.toml and paper.toml.
=======
into one tidy table of results, claims.py into verdicts, page.py into the page. The TOML files hold
the paper's own numbers and what tables, claims, page and schematic say.
>>>>>>> shrink_rep
It must not know the command line or the web service.
"""
