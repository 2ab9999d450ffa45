"""Writes the release facts of the trainers from the packages that they were released as; see `python -m wheel_facts`.

`readers` has one module a program, each built on `source` (Python sources, read with `ast`) and `package` (wheels and
source distributions). `history` is the format of the written files, `registry` where packages come from, `confirmed`
what people have said of each release.
"""
