"""Writes the text report on each bad fixture to a file beside it: `python tools/snapshots.py`."""

from __future__ import annotations

import sys

from cases import FIXTURES, ROOT, cases, judged


def main() -> int:
    """Write the snapshots that differ, remove those without a case, and list both."""
    bad = cases("bad")
    for orphan in set(FIXTURES.glob("*/*.out")) - {case.snapshot for case in bad}:
        orphan.unlink()
        print(f"removed {orphan.relative_to(ROOT)}")
    for case in bad:
        text = judged(case)[1]
        if case.kept != text:
            case.snapshot.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {case.snapshot.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
