"""Writes the OpenAPI document of the service to tests/golden/openapi.json.

Usage: ``python tools/golden_openapi.py``, after a route or a field was added. A test compares the
service with that file by the rules of ``docs/reference/api-policy.md``; a change that breaks them
needs a new version of the API.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "openapi.json"

sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import reference_pages  # noqa: E402 (its folder is added above)


def main() -> None:
    """Write the document without the version of Counsel, which promises nothing."""
    document = reference_pages.document()
    del document["info"]
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
    GOLDEN.write_text(text + "\n", encoding="utf-8")
    print(f"{GOLDEN.relative_to(ROOT)}: {len(document['paths'])} paths")


if __name__ == "__main__":
    main()
