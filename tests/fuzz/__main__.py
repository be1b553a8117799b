"""`make fuzz`: FUZZ_MINUTES of it (10), from SEED or a new one. The last line is the outcome."""

from __future__ import annotations

import os
import secrets
import sys

from deploy.engines import leave_on_sigterm
from tests.conftest import SETTINGS
from tests.fuzz.campaign import campaign
from tests.fuzz.node import campaign_on_a_node


def main() -> int:
    leave_on_sigterm()
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    minutes = float(os.environ.get("FUZZ_MINUTES") or "10")
    seed = int(os.environ.get("SEED") or secrets.randbelow(2**32))
    print(f"fuzzing for {minutes:g} minutes; SEED={seed} replays it", flush=True)
    findings = 0
    for target, share in ((campaign_on_a_node, 0.3), (campaign, 0.7)):
        outcome = target(minutes * 60 * share, seed, say=lambda line: print(line, flush=True))
        for finding in outcome.findings:
            print(finding)
        print(outcome)
        findings += len(outcome.findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
