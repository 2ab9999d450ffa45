"""Writes beside each bad fixture the text report on it: `python tools/snapshots.py`."""

from __future__ import annotations

import sys

from cases import FIXTURES, ROOT, cases, judged


def main() -> int:
    """Write what differs, remove what no case has any more, and name both."""
    wanted = {case.snapshot: judged(case)[1] for case in cases("bad")}
    for orphan in set(FIXTURES.glob("*/*.out")) - set(wanted):
        orphan.unlink()
        print(f"removed {orphan.relative_to(ROOT)}")
    for snapshot, text in wanted.items():
        if not snapshot.is_file() or snapshot.read_text(encoding="utf-8") != text:
            snapshot.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {snapshot.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
