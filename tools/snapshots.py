"""Writes the text report on each bad fixture to a file beside it: `python tools/snapshots.py [CODE...]`.

With codes only the fixtures of these rules.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cases import FIXTURES, ROOT, cases, judged


def main(codes: Sequence[str]) -> int:
    """Write the snapshots that differ, remove those without a case, and list both."""
    codes = codes or [folder.name for folder in FIXTURES.iterdir()]
    bad = [case for case in cases("bad") if case.code in codes]
    for orphan in {file for code in codes for file in FIXTURES.glob(f"{code}/*.out")} - {case.snapshot for case in bad}:
        orphan.unlink()
        print(f"removed {orphan.relative_to(ROOT)}")
    for case in bad:
        text = judged(case)[1]
        if case.kept != text:
            case.snapshot.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {case.snapshot.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
