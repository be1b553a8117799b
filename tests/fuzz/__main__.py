"""`make fuzz`: FUZZ_MINUTES of it (10), from SEED or a new one. The last line is the outcome."""

from __future__ import annotations

import os
import secrets
import sys

from deploy.engines import leave_on_sigterm
from tests.conftest import SETTINGS
from tests.fuzz.campaign import campaign


def main() -> int:
    leave_on_sigterm()
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    minutes = float(os.environ.get("FUZZ_MINUTES") or "10")
    seed = int(os.environ.get("SEED") or secrets.randbelow(2**32))
    print(f"fuzzing for {minutes:g} minutes; SEED={seed} replays it", flush=True)
    outcome = campaign(minutes * 60, seed, say=lambda line: print(line, flush=True))
    for finding in outcome.findings:
        print(finding)
    print(outcome)
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
