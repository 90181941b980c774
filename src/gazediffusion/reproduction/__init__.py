"""The paper's experiments: every table and figure from one function.

plan.py names runs, sets and evaluations; build.py builds what is missing; tables.py turns them into
one tidy table of results, claims.py into verdicts, figures.py and page.py into the page. The TOML
files hold the paper's own numbers and what tables, claims, page and schematic say.
It must not know the command line or the web service.
"""
