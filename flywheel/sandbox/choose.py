"""Which backend: what the configuration names, or what works here."""

from flywheel.errors import ConfigError, SandboxError
from flywheel.sandbox import Backend, SandboxSpec
from schemas.config import SandboxKind

PROBE = SandboxSpec(programs={}, deadline=20.0, labels={"run": "probe", "attempt": "probe"})


def open_backend(kind: SandboxKind) -> Backend:
    """Return a backend that has just started one sandbox.

    `auto` takes bubblewrap where it works, else Docker. Raises ConfigError, which says what to
    change, where neither does or the one that was named does not.
    """
    if kind != "auto":
        return _probed(kind)
    reasons = []
    for candidate in ("bubblewrap", "docker"):
        try:
            return _probed(candidate)
        except ConfigError as problem:
            reasons.append(str(problem))
    raise ConfigError("no sandbox works here:\n" + "\n".join(reasons))


def _probed(kind: str) -> Backend:
    backend = _backend(kind)
    try:
        with backend.open(PROBE) as sandbox:
            sandbox.call(["/bin/true"], timeout=5.0)
    except SandboxError as problem:
        raise ConfigError(f"sandbox '{kind}' does not start: {problem}{_remedy(kind)}") from None
    return backend


def _backend(kind: str) -> Backend:
    if kind == "bubblewrap":
        from flywheel.sandbox.bubblewrap import Bubblewrap

        return Bubblewrap()
    # Imported here, because the SDK takes a tenth of a second and bubblewrap needs none of it.
    from flywheel.sandbox.container import Docker

    return Docker()


def _remedy(kind: str) -> str:
    if kind == "bubblewrap":
        return (
            "; allow unprivileged user namespaces (sysctl user.max_user_namespaces, on Debian "
            "kernel.unprivileged_userns_clone, on Ubuntu "
            "kernel.apparmor_restrict_unprivileged_userns), or use sandbox 'docker'"
        )
    return ""
