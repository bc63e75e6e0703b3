"""The small policy that runs and learns in this process."""

from flywheel.policy.embedded.policy import EmbeddedPolicy

__all__ = ["EmbeddedPolicy"]
