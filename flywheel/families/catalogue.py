"""The families that ship."""

from collections.abc import Mapping
from typing import Any

from flywheel.families import Family, config, logs, orders

FAMILIES: Mapping[str, Family[Any]] = {
    family.name: family for family in (orders.FAMILY, logs.FAMILY, config.FAMILY)
}
