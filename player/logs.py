"""Structured logs: one JSON object a line on standard error, the same from every process of a node.

The one rule kept here: what belongs to an event travels as a field (``extra``); passwords, tokens and keys are never
fields.
"""

import logging
import sys

import structlog
from structlog.typing import Processor


def configure(level: str) -> None:
    """Send every log of this process, libraries' included, to standard error as JSON lines."""
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=render))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for chatty in ("alembic", "apscheduler", "urllib3"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
