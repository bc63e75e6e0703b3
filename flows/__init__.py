"""Orchestration: Prefect flows and steps. The only package that imports Prefect."""
