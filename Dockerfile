FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY linter linter
RUN python -m venv /opt/trainlint && /opt/trainlint/bin/python -m pip install --no-cache-dir .

FROM python:3.13-slim
# git says which files are ignored; the mounted repository belongs to another user.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && git config --system --add safe.directory /work
COPY --from=build /opt/trainlint /opt/trainlint
ENV PATH=/opt/trainlint/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["trainlint"]
