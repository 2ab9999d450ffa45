"""What fixes change, as a unified diff."""

from __future__ import annotations

import difflib

from trainlint.fixes import Mended
from trainlint.reading.text import Text


def unified(file: Mended, *, show_values: bool = False) -> str:
    """The diff of one file, for people and for `git apply`; a line with a hidden value is for people only.

    Lines keep their ends, as in git. What looks like a secret is masked unless `show_values`.
    """
    before, after = _shown(file, file.before, show_values), _shown(file, Text(file.content), show_values)
    lines = difflib.unified_diff(before, after, f"a/{file.path}", f"b/{file.path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _shown(file: Mended, text: Text, show_values: bool) -> list[str]:
    content = text.content
    if not show_values:
        from trainlint.reports.masking import secrets_of

        content = text.hiding(secrets_of(file.path, text)[0]).shown(0, len(content))
    return [f"{line}\n" for line in content.split("\n")[:-1]] + [line for line in content.split("\n")[-1:] if line]
