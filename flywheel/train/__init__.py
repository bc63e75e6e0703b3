"""Updates of the embedded policy: demonstrations in, complete versions out."""

from flywheel.train.sft import train_sft
from flywheel.train.versions import load_policy, sweep_versions, untrained

__all__ = ["load_policy", "sweep_versions", "train_sft", "untrained"]
