"""All that stands below a folder, from inside a sandbox: bounded, following no link.

Nothing else runs in the sandbox meanwhile, so what was looked at does not change before it is read.
"""

import os
import stat

from flywheel.sandbox.workspace import Refused, open_folder, parts_of, take

LONGEST_PATH = 255
"""Characters, the folder's own path included. What is deeper is not entered."""
PERMISSIONS = 0o777


class Walk:
    """A walk below a folder, level by level: what a limit leaves out is the deep end.

    `files` grows by path, mode and bytes of each file, `refused` by path and reason.
    """

    def __init__(self, folder: str, most: int, file_bytes: int, all_bytes: int) -> None:
        self.files: list[bytes] = []
        self.refused: list[bytes] = []
        self._base = parts_of(folder)
        self._longest = LONGEST_PATH - len("/".join([*self._base[1:], ""]))
        self._most = self._room = most
        self._file_bytes, self._bytes_left = file_bytes, all_bytes
        self._unlocked: list[tuple[list[str], int]] = []

    def run(self) -> None:
        """Walk; raise Refused where the folder is none, and leave all modes as they were."""
        try:
            self._unlock_base()
            os.close(open_folder(self._base))
            folders = [""]
            for folder in folders:  # it grows as it is gone through
                folders += self._look_into(folder)
        except OSError as problem:
            raise Refused(str(problem.strerror)) from None
        finally:
            for parts, mode in reversed(self._unlocked):
                self._change_mode(parts, mode)

    def _unlock_base(self) -> None:
        if len(self._base) > 1:
            above = open_folder(self._base[:-1])
            try:
                info = os.stat(self._base[-1], dir_fd=above, follow_symlinks=False)
            finally:
                os.close(above)
            if stat.S_ISDIR(info.st_mode):
                self._unlock(self._base, info.st_mode)

    def _look_into(self, path: str) -> list[str]:
        """Take the files of the folder `path`; return the folders in it."""
        folder = open_folder([*self._base, *path.split("/")[:-1]])
        try:
            with os.scandir(folder) as entries:
                some = zip(range(self._room + 1), entries, strict=False)
                names = sorted(entry.name for _, entry in some)
            if len(names) > self._room:
                self._room = 0
                self._refuse(path or ".", f"more than {self._most} entries up to here")
                return []
            self._room -= len(names)
            return [f"{path}{name}/" for name in names if self._is_folder(path + name, folder)]
        finally:
            os.close(folder)

    def _is_folder(self, path: str, folder: int) -> bool:
        """Take what is at `path` if it is a file; tell whether it is a folder to look into."""
        name = path.rpartition("/")[2]
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if len(path) > self._longest or not path.isprintable():
            self._refuse(path, f"its path is not at most {LONGEST_PATH} printable characters")
            return False
        if stat.S_ISDIR(info.st_mode):
            self._unlock([*self._base, *path.split("/")], info.st_mode)
            return True
        try:
            if stat.S_ISREG(info.st_mode):
                self._unlock([*self._base, *path.split("/")], info.st_mode)
            data = take(name, folder, min(self._file_bytes, self._bytes_left))
        except Refused as refusal:
            self._refuse(path, str(refusal))
            return False
        self._bytes_left -= len(data)
        mode = str(info.st_mode & PERMISSIONS).encode()
        self.files += [os.fsencode(path), mode, data]
        return False

    def _refuse(self, path: str, reason: str) -> None:
        self.refused += [os.fsencode(path[:LONGEST_PATH]), reason.encode()]

    def _unlock(self, parts: list[str], mode: int) -> None:
        """Make a file or folder readable to its owner, until the walk is over."""
        needed = stat.S_IRUSR | stat.S_IXUSR if stat.S_ISDIR(mode) else stat.S_IRUSR
        if mode & needed != needed:
            self._unlocked.append((parts, stat.S_IMODE(mode)))
            self._change_mode(parts, stat.S_IMODE(mode) | needed)

    def _change_mode(self, parts: list[str], mode: int) -> None:
        folder = open_folder(parts[:-1])
        try:
            os.chmod(parts[-1], mode, dir_fd=folder)
        finally:
            os.close(folder)
