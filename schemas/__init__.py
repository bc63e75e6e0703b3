"""Nouns: the frozen records that cross rooms. Imports pydantic and the standard library only."""
