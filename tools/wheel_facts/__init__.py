"""Writes the release facts of the trainers from their released packages; see `python -m wheel_facts`.

`readers` has a module for each program, which uses `source` (Python sources, read with `ast`) and `package` (wheels and
source distributions). `history` is the format of the written files, `registry` fetches packages, `confirmed` keeps the
claims that people have confirmed for each release.
"""
