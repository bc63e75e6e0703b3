"""Updates of the embedded policy: demonstrations in, complete versions out."""

from flywheel.train.sft import train_sft
from flywheel.train.versions import load_policy, untrained

__all__ = ["load_policy", "train_sft", "untrained"]
