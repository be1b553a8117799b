"""The scheduler process: ``python -m scheduler``."""

import sys

from models.schema import exit_unless_usable
from models.settings import SettingsError


def main() -> None:
    """Check that everything can be used, then run the clock until SIGTERM or Ctrl-C."""
    exit_unless_usable("scheduler")
    # Imported only now: the broker is made from the settings that were just checked.
    from scheduler.clock import run

    try:
        run()
    except SettingsError as error:
        sys.exit(f"scheduler: {error}")


if __name__ == "__main__":
    main()
