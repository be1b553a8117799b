"""Which account the embedded servers run as, and what that account must be able to reach.

One rule: open the least that works. A folder on the way gets the search bit for others (o+x), never the read
bit, and every such change is said aloud.
"""

from __future__ import annotations

import logging
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

LOG = logging.getLogger("deploy.engines")


@dataclass(frozen=True)
class Account:
    uid: int
    gid: int


def unprivileged(existing_data: Path) -> Account | None:
    """The account to become, or None to stay who we are.

    PostgreSQL refuses to run as root, whose every mistake is fatal. An existing data folder decides by its
    owner; otherwise it is `nobody`, which is on every Linux and owns nothing. Redis takes the same account:
    it has no more need to be root.
    """
    if os.geteuid() != 0:
        return None
    if existing_data.exists() and (owner := existing_data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid)


def let_in(account: Account, *paths: Path) -> None:
    """Make every folder above `paths` passable for `account`, touching only those that are not."""
    opened = []
    for path in paths:
        for folder in reversed(path.resolve().parents):
            mode = folder.stat()
            if mode.st_uid == account.uid or mode.st_mode & stat.S_IXOTH:
                continue
            folder.chmod(stat.S_IMODE(mode.st_mode) | stat.S_IXOTH)
            opened.append(str(folder))
    if opened:
        LOG.warning("made passable (o+x) for user %d, who runs the engines: %s", account.uid, ", ".join(opened))


def let_read(account: Account, *software: Path) -> None:
    """Let others read and run installed software.

    An install under umask 077 forbids it; it holds no secret.
    """
    opened = []
    for tree in software:
        # One look at the top tells: an installer gives every file of a tree the same bits.
        if not tree.exists() or tree.stat().st_mode & 0o005 == 0o005:
            continue
        for item in [tree, *tree.rglob("*")]:
            if not item.is_symlink():
                mode = stat.S_IMODE(item.stat().st_mode)
                item.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))
        opened.append(str(tree))
    if opened:
        LOG.warning("made readable for user %d, who runs the engines: %s", account.uid, ", ".join(opened))
