"""The reports before the programs that read them, each of which must understand every finding.

SARIF has tests of its own (`test_sarif_schema.py`), and so have the annotations of GitHub (`test_action.py`). The
programs come from PyPI, npm, Go's proxy and the system; `make test` fetches those that it can.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from external import DEMO, ROOT, need, run, want
from sample_report import FIXABLE, FULL, NODES, ODD, report
from trainlint import lint
from trainlint.report import Report
from trainlint.reports import RenderOptions, render
from trainlint.resolve import by_document, resolve
from trainlint.settings import Overrides

CACHE = ROOT / ".cache"


def package(name: str) -> Any:
    """A package of the extra `consumers`."""
    need(find_spec(name), f"{name} from PyPI (the extra `consumers`)")
    return import_module(name)


@pytest.fixture(scope="module")
def demo() -> Report:
    """The report on the demo."""
    return lint([DEMO])


def places(made: Report) -> list[tuple[str, int, int]]:
    """Path, line and column of the findings that count."""
    return [(found.path, found.span.line, found.span.column) for found in made.active]


# reviewdog


def reviewdog(document: str, *options: str, folder: Path) -> list[dict[str, Any]]:
    """What reviewdog 0.21 understands of a document: its diagnostics."""
    tool = CACHE / "bin" / ("reviewdog.exe" if os.name == "nt" else "reviewdog")
    want(tool.exists(), "reviewdog (make test builds it where Go is)")
    file = folder / "document"
    file.write_text(document, encoding="utf-8")
    command = f'exec "{tool}" {" ".join(options)} -reporter=rdjson -filter-mode=nofilter < "{file}"'
    done = run(["sh", "-c", command], cwd=ROOT, env=dict(os.environ), network=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout).get("diagnostics", [])
    return found


def starts(diagnostics: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    """Their places, in the form of `places`."""
    locations = [one["location"] for one in diagnostics]
    begins = [(location["path"], location["range"]["start"]) for location in locations]
    return [(path, start["line"], start["column"]) for path, start in begins]


def test_reviewdog_reads_rdjson(demo: Report, tmp_path: Path) -> None:
    found = reviewdog(render("rdjson", demo), "-f=rdjson", folder=tmp_path)
    # The demo is ASCII, so that bytes are characters.
    assert starts(found) == [(os.path.relpath(path, ROOT), line, column) for path, line, column in places(demo)]
    assert {one["severity"] for one in found} == {"ERROR", "WARNING", "INFO"}
    assert found[0]["code"]["url"].endswith(f"/{next(demo.active).rule}.md")


def test_reviewdog_reads_suggestions_and_bytes(tmp_path: Path) -> None:
    fixable, odd = reviewdog(render("rdjson", report(FIXABLE, ODD)), "-f=rdjson", folder=tmp_path)
    (suggestion,) = fixable["suggestions"]
    assert suggestion["range"] == {"start": {"line": 6, "column": 1}, "end": {"line": 7, "column": 1}}
    assert odd["location"]["range"] == {"start": {"line": 9, "column": 12}, "end": {"line": 9, "column": 18}}


def test_reviewdog_reads_lines_as_an_editor_would(demo: Report, tmp_path: Path) -> None:
    pattern = "'-efm=%f:%l:%c: %t%*[a-z] %m'"
    found = reviewdog(render("concise", demo), pattern, "-name=trainlint", folder=tmp_path)
    assert starts(found) == [(os.path.relpath(path, ROOT), line, column) for path, line, column in places(demo)]
    said = [re.sub(r"^(\w+ )\[\*\] ", r"\1", one["message"]) for one in found]
    assert said == [f"{f.rule} {f.name}: {f.message}" for f in demo.active]


# Azure Pipelines


def test_the_task_library_of_azure_reads_its_commands(demo: Report) -> None:
    library = CACHE / "npm" / "node_modules" / "azure-pipelines-task-lib"
    want(library.exists(), "azure-pipelines-task-lib from npm (make test fetches it where npm is)")
    script = (
        "const {commandFromString} = require(process.argv[1]);"
        "console.log(JSON.stringify(JSON.parse(process.argv[2]).map(commandFromString)))"
    )
    made = Report((*demo.findings, *FULL.findings), texts={**demo.texts, **FULL.texts})
    lines = render("azure", made).splitlines()
    done = run(["node", "-e", script, str(library / "taskcommand"), json.dumps(lines)], cwd=ROOT, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    assert [one["command"] for one in read] == ["task.logissue"] * len(places(made))
    for one, found in zip(read, made.active, strict=True):
        properties = one["properties"]
        assert Path(properties["sourcepath"]) == Path(RenderOptions().from_root(found.path))
        assert (properties["linenumber"], properties["columnnumber"]) == (str(found.span.line), str(found.span.column))
        assert properties["code"] == found.rule
        # The library keeps the escapes of a message, which the agent takes away.
        assert one["message"].replace("%AZP25", "%").startswith(("note: ", found.message.split("\x1b")[0]))


# JUnit


def test_junitparser_reads_junit(demo: Report, tmp_path: Path) -> None:
    junit = package("junitparser")
    file = tmp_path / "junit.xml"
    file.write_text(render("junit", demo, RenderOptions(show_suppressed=True)), encoding="utf-8")
    suites = list(junit.JUnitXml.fromfile(str(file)))
    cases = [case for suite in suites for case in suite]
    assert [suite.name for suite in suites] == sorted({path for path, _, _ in places(demo)})
    errors = [found.message for found in demo.active if found.level.value == "error"]
    assert sorted(case.result[0].message for case in cases if case.result) == sorted(errors)
    assert len(cases) == len(places(demo))


# GitLab and Code Climate

ISSUE = {
    "type": "object",
    "required": ["type", "check_name", "description", "categories", "location", "fingerprint", "severity"],
    "properties": {
        "type": {"const": "issue"},
        "check_name": {"type": "string", "minLength": 1},
        "description": {"type": "string", "minLength": 1},
        "content": {"type": "object", "required": ["body"], "properties": {"body": {"type": "string"}}},
        "categories": {"type": "array", "minItems": 1, "items": {"enum": ["Bug Risk", "Style", "Compatibility"]}},
        "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{16,}$"},
        "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
        "location": {
            "type": "object",
            "required": ["path", "lines"],
            "properties": {
                "path": {"type": "string", "pattern": r"^(?!/|\./|\.\./)"},
                "lines": {
                    "type": "object",
                    "required": ["begin", "end"],
                    "properties": {"begin": {"type": "integer", "minimum": 1}, "end": {"type": "integer"}},
                },
            },
        },
    },
}
"""What both want of an issue, from their documentation: GitLab publishes no parser that could be installed."""


def test_what_gitlab_and_code_climate_want_of_an_issue(demo: Report) -> None:
    issues = json.loads(render("gitlab", demo, RenderOptions(root=ROOT)))
    jsonschema.validate(issues, {"type": "array", "items": ISSUE})
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == len(places(demo))


# Markdown


def test_githubs_markdown_reads_the_table(demo: Report) -> None:
    gfm = package("cmarkgfm.cmark")
    odd = Report((*demo.findings, ODD, NODES), demo.files, texts=demo.texts)
    # GitHub keeps harmless elements, which its sanitizer knows.
    page = gfm.github_flavored_markdown_to_html(render("markdown", odd), options=gfm.Options.CMARK_OPT_UNSAFE)
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    cells = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    assert cells[0] == ["severity", "place", "rule", "finding"]
    assert {len(row) for row in cells} == {4}
    assert [row[1] for row in cells[1:]] == [
        f"<code>{path.replace('&', '&amp;')}:{line}:{column}</code>" for path, line, column in places(odd)
    ]
    assert "100% wrong: \\x1b[31m,\\nreally<br><em>größer</em>" in page


# a browser


@pytest.fixture(scope="module")
def page_file(demo: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page on the demo and on a file whose name and text are odd."""
    jobs = by_document(resolve([DEMO], Overrides()))
    made = Report((*demo.findings, ODD), demo.files, demo.targets, demo.notices, {**demo.texts, **FULL.texts})
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(render("html", made, RenderOptions(jobs=jobs)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium of the system."""
    playwright = package("playwright.sync_api")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    want(program, "Chromium")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def opened(browser: Any, file: Path, *, dark: bool = False, width: int = 1280) -> Any:
    """The page in a window of its own, which asks nothing of any network and has no error."""
    context = browser.new_context(
        color_scheme="dark" if dark else "light", viewport={"width": width, "height": 900}, offline=True
    )
    page = context.new_page()
    page.on("console", lambda message: pytest.fail(message.text))
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.on("request", lambda request: request.url == file.as_uri() or pytest.fail(request.url))
    page.goto(file.as_uri())
    return page


def shown(page: Any) -> int:
    """How many findings can be seen."""
    return len([one for one in page.query_selector_all(".finding") if one.is_visible()])


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 1280), (False, 390), (True, 390)])
def test_nothing_is_in_the_way_of_anybody(browser: Any, page_file: Path, dark: bool, width: int) -> None:
    """axe-core finds nothing, contrasts included, and no window is too narrow for the page."""
    axe = package("axe_playwright_python.sync_playwright").Axe()
    page = opened(browser, page_file, dark=dark, width=width)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    found = axe.run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_filters(browser: Any, page_file: Path, demo: Report) -> None:
    page = opened(browser, page_file)
    everything = len(places(demo)) + 1
    assert shown(page) == everything
    page.select_option("[name=rule]", "TT104")
    assert shown(page) == 2
    assert page.inner_text("#shown") == f"2 of {everything} shown"
    assert len([one for one in page.query_selector_all(".file") if one.is_visible()]) == 1
    page.select_option("[name=program]", "kubernetes")
    assert shown(page) == 0
    page.click("button[type=reset]")
    assert shown(page) == everything
    page.uncheck("[value=error]")
    page.uncheck("[value=note]")
    assert (
        page.inner_text("#shown") == f"{sum(f.level.value == 'warning' for f in demo.active) + 1} of {everything} shown"
    )
    page.click("button[type=reset]")
    page.select_option("[name=file]", "jobs/größe & co/a b,c:d.yaml")
    assert shown(page) == 1


def test_the_keyboard_is_enough(browser: Any, page_file: Path) -> None:
    page = opened(browser, page_file)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the findings"
    page.keyboard.press("Enter")
    rules = []
    for key in "jjjkj":
        page.keyboard.press(key)
        rules.append(page.evaluate("[...document.querySelectorAll('.finding')].indexOf(document.activeElement)"))
    assert rules == [0, 1, 2, 1, 2]
    page.focus("[name=rule]")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.name") == "rule", "in a form a letter is a letter"


def test_it_is_whole_on_paper(browser: Any, page_file: Path, demo: Report) -> None:
    page = opened(browser, page_file)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert not page.is_visible("#filters")
    assert shown(page) == len(places(demo)) + 1
    assert page.evaluate("[...document.querySelectorAll('details')].every((part) => part.open)")
    assert page.pdf().startswith(b"%PDF-")


def test_it_is_whole_without_a_script(browser: Any, page_file: Path, demo: Report) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(page_file.as_uri())
    assert not page.is_visible("#filters")
    assert shown(page) == len(places(demo)) + 1


def test_no_script_of_a_file_runs(browser: Any, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=document.title='pwned'><script>document.title='pwned'</script>\"'><b>"
    found = replace(NODES, message=evil, help=evil, span=NODES.span._replace(path=evil), name=evil, field=evil)
    file = tmp_path / "evil.html"
    file.write_text(render("html", Report((found,), notices=(evil,), texts=FULL.texts)), encoding="utf-8")
    page = opened(browser, file)
    assert page.title().startswith("trainlint: ")
    assert page.query_selector("img, b") is None
    assert page.inner_text(".message") == evil


def test_the_page_is_the_same_each_time(page_file: Path, demo: Report) -> None:
    first = render("html", demo)
    assert hashlib.sha256(first.encode()).digest() == hashlib.sha256(render("html", lint([DEMO])).encode()).digest()
