"""Compare docs/contract.md with the requirements in tests/spec; with `--write`, generate it."""

import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PAGE = PROJECT / "docs" / "contract.md"
sys.path.insert(0, str(PROJECT / "tests"))

from spec.page import contract_page  # noqa: E402  (the path is set above)


def main() -> int:
    page = contract_page()
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == page:
        return 0
    print("docs/contract.md is not what tests/spec says. Run `make fix`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
