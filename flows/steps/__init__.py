"""Steps: the stages of the loop as Prefect tasks, in the order of the loop."""
