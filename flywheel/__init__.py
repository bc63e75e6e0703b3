"""Verbs: a pure library, one module a verb, in the order of the loop. No Prefect import."""
