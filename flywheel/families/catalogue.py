"""The families that ship."""

from collections.abc import Mapping
from typing import Any

from flywheel.families import (
    Family,
    briefing,
    checksums,
    config,
    contacts,
    deadlines,
    encoding,
    layout,
    ledger,
    logs,
    orders,
    permissions,
    script,
)

FAMILIES: Mapping[str, Family[Any]] = {
    module.FAMILY.name: module.FAMILY
    for module in (
        orders,
        logs,
        config,
        contacts,
        deadlines,
        layout,
        checksums,
        permissions,
        encoding,
        ledger,
        script,
        briefing,
    )
}
