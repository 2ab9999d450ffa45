"""trainlint: what training manifests and trainer configs will be refused, will crash, or will not do what they say."""

from __future__ import annotations

__version__ = "0.1.0"
