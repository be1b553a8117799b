"""The rules can be installed and run by a third party alone: protocol/ imports rfc8785 and nothing else."""

from __future__ import annotations

import ast
import sys

from deploy.procfile import TOP

ALLOWED = sys.stdlib_module_names | {"rfc8785", "protocol"}


def test_protocol_imports_the_standard_library_and_rfc8785_only() -> None:
    found = {}
    for file in sorted((TOP / "protocol").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            found |= {name: file.name for name in names if name.partition(".")[0] not in ALLOWED}
    assert found == {}
