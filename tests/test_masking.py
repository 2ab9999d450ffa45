"""What is taken for a secret, and that no form of a report holds one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainlint.engine import lint
from trainlint.findings import Edit, Finding, Fix, Related, Severity, Span
from trainlint.fixes import apply
from trainlint.reading.text import Text
from trainlint.report import Report
from trainlint.reports import FORMATS, RenderOptions, render
from trainlint.reports.masking import is_secret, is_secret_setting, masked, secrets_of, shown, shown_value, shown_words


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *((name, True) for name in "TOKEN HF_TOKEN HF_TOKEN_2 hf-token --db-password dbPassword PASSWD_X".split()),
        *((name, True) for name in "AWS_SECRET_ACCESS_KEY WANDB_API_KEY openaiApiKey GCP_CREDENTIALS".split()),
        *((name, True) for name in "SSH_PRIVATE_KEY my.secret SECRET".split()),
        *((name, False) for name in "MAX_TOKENS TOKENIZERS_PARALLELISM TOKENIZER SECRETS PASSWORDS KEY API".split()),
        *((name, False) for name in "ACCESS_KEYS PRIVATE KEYBOARD max_new_tokens SECRETARY PUBLIC_KEY".split()),
    ],
)
def test_names(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        *((key, True) for key in "hub_token push_to_hub_token hfToken password db_password api_key HF_TOKEN".split()),
        *((key, False) for key in "pad_token eos_token image_token token secretName secretKeyRef tokenizer".split()),
        *((key, False) for key in "automountServiceAccountToken password_file max_tokens".split()),
    ],
)
def test_settings(key: str, secret: bool) -> None:
    assert is_secret_setting(key) is secret


def hidden(content: str) -> list[str]:
    """What is hidden of a file."""
    return [content[start:end] for start, end in secrets_of("a.yaml", Text(content))[0]]


ENV = "spec:\n  env:\n  - name: HF_TOKEN\n    value: "


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (f"{ENV}abc def\n", ["abc def"]),
        (f"{ENV}'abc def'\n", ["abc def"]),
        (f'{ENV}"a\\tb"  # why\n', [r"a\tb"]),
        (f"{ENV}&x abc\n", ["abc"]),
        (f"{ENV}|\n      one\n\n      two\n  - name: A\n    value: b\n", ["one", "two"]),
        (f"{ENV}>-\n      one two\n", ["one two"]),
        (f"{ENV}one\n      two\n", ["one", "two"]),
        (f"{ENV}[abc, {{a: def}}]\n", ["abc", "def"]),
        (f"{ENV}$(OTHER)\n", []),
        (f"{ENV}'${{{{ secrets.X }}}}'\n", []),
        (f"{ENV}${{X}}\n", []),
        (f"{ENV}\n", []),
        (f"{ENV}true\n", []),
        (f"{ENV}$ecr3t\n", ["$ecr3t"]),
        ("env:\n- value: abc\n  name: HF_TOKEN\n", ["abc"]),
        ("env:\n- nam: PASSWORD\n  value: my-secret\n", ["my-secret"]),
        ("env:\n- name: PASSWORD\n  valeu: my-secret\n", ["my-secret"]),
        ("env:\n- {name: A_TOKEN, value: abc}\n- {name: MAX_TOKENS, value: '7'}\n", ["abc"]),
        ("env: [{name: A, value: hf_abcdef}]\n", ["hf_abcdef"]),
        ("env: {A: hf_abcdef, HF_TOKEN: abc, B: c}\n", ["hf_abcdef", "abc"]),
        ("environment:\n- HF_TOKEN=abc\n- A=b\n", ["abc"]),
        ("env:\n- name: T\n  valueFrom: {secretKeyRef: {name: hf-token, key: token}}\n", []),
        ("a: &x {name: HF_TOKEN, value: abc}\nenv: [*x]\n", ["abc"]),
        ("env: &e\n- {name: HF_TOKEN, value: abc}\n- *e\n", ["abc"]),
        ("volumes: [{name: my-token, mountPath: /x}]\n", []),
        ("args: ['--password', pw, --lr, '1']\n", ["pw"]),
        ("args:\n- --password\n- pw\n- --lr\n", ["pw"]),
        ("args:\n- --password=my pass\n- db.password=x y\n- lr=1\n", ["my pass", "x y"]),
        ("args: [hf_abcdef, --token, --lr]\n", ["hf_abcdef"]),
        ("command: [sh, -c, 'HF_TOKEN=abc train --hub-token \"d e\"; export A_PASSWORD=x']\n", ["abc", "d e", "x"]),
        ("run: |\n  export HF_TOKEN=abc\n  train --api-key=def --max-tokens 7 --eos_tokens=x\n", ["abc", "def"]),
        ("run: HF_TOKEN=$X train --token $HF_TOKEN --password ${PW}\n", []),
        ("kind: Secret\ndata: {a: b64}\nstringData:\n  c: |\n    d\n  e: {f: g}\n", ["b64", "d", "g"]),
        ("kind: ConfigMap\ndata: {a: b64}\n", []),
        ("hub_token: abc\npad_token: <pad>\neos_token: x\n", ["abc"]),
        ("a: hf_" + "x" * 34 + "\npip: [hf_transfer, sk-learn]\n", ["hf_" + "x" * 34]),
        ("a: https://user:pw@example.org/x\n", ["pw"]),
        ("a: |\n  -----BEGIN RSA PRIVATE KEY-----\n  MII\n  xyz\n  -----END RSA PRIVATE KEY-----\n", ["MII", "xyz"]),
        ("# HF_TOKEN=abc\n", ["abc"]),
    ],
)
def test_what_is_hidden(content: str, found: list[str]) -> None:
    assert hidden(content) == found


@pytest.mark.parametrize(
    "content",
    [
        f"{ENV}abcdef\n   broken: [\n",
        "env: {HF_TOKEN: abcdef, broken: ]\n",
        "- name: HF_TOKEN\n  value: 'abcdef'\n ]\n",
        "args:\n  - --password\n  - abcdef\n ]\n",
        "args: ['--password', 'abcdef', ]]\n",
        "- --token=abcdef\n ]\n",
    ],
)
def test_a_file_that_is_no_yaml(content: str) -> None:
    assert hidden(content) == ["abcdef"]


@pytest.mark.parametrize("count", [5_000])
def test_a_long_file_takes_no_longer_than_its_length(count: int) -> None:
    """Nothing is looked for from each place to the end: this would not end."""
    for piece in (
        "--token ",
        "TOKEN=",
        "-",
        "name: TOKEN, ",
        " ",
        "token",
        '"',
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
    ):
        secrets_of("a.yaml", Text(piece * count * 10))


def test_words() -> None:
    words = ["train", "--hub-token", "abc", "--lr", "1", "--password=x", "DB_PASSWORD=y", "hf_abcdef", "--token", "--x"]
    told = ["train", "--hub-token", "***", "--lr", "1", "--password=***", "DB_PASSWORD=***", "***", "--token", "--x"]
    assert shown_words(words) == told
    assert shown_value("HF_TOKEN", "$(X)") == "$(X)"
    assert shown_value("A", "b") == "b"
    assert shown_value(None, f"x ghp_{'a' * 36}!") == "x ***!"
    assert shown("curl https://u:pw@h/") == "curl https://u:***@h/"


JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    env:
    - name: HF_TOKEN
      value: hf_env-secret
    - nam: PASSWORD
      value: typo-secret
    args: ["--password", "pw-arg-secret"]
    imag: x
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData:
  key: hunter2-secret
"""
SECRETS = ("hf_env-secret", "typo-secret", "pw-arg-secret", "hunter2-secret")


@pytest.mark.parametrize("form", FORMATS)
def test_no_form_shows_them(form: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(JOB, encoding="utf-8")
    report = lint([tmp_path])
    assert report.findings
    told = render(form, report)
    assert not [secret for secret in SECRETS if secret in told]
    if form in ("text", "sarif"):
        asked = render(form, report, RenderOptions(show_values=True))
        assert {secret for secret in SECRETS if secret in asked} >= {"typo-secret", "pw-arg-secret"}


def finding(message: str, content: str, marked: str, **more: object) -> Finding:
    start = content.index(marked)
    line, column = Text(content).position(start)
    at = Span("a.yaml", line, column, line, column + len(marked))
    made = Finding(message, at, 0, "f", "f", severity=Severity.ERROR, rule="TJ012", name="wrong-type")
    return made.__class__(**{**{key: getattr(made, key) for key in made.__slots__}, **more})


def said(message: str, content: str, marked: str) -> str:
    made = Report((finding(message, content, marked),), texts={"a.yaml": Text(content)})
    return masked(made).findings[0].message


@pytest.mark.parametrize(
    ("value", "message", "told"),
    [
        ("abcdefgh", "no 'abcdefgh' here", "no '***' here"),
        ("abcdefgh", "no 'xabcdefghx' here", "no 'x***x' here"),
        ("auto", "auto, not automatic", "***, not automatic"),
        ("5", "5 is no text, 15 is, 2.5 too", "*** is no text, 15 is, 2.*** too"),
        ("x" * 90, f"{'x' * 38}… is too long", "*** is too long"),
        ('"a\\tbcdefghi"', "no a\tbcdefghi", "no ***"),
        ("abcdefgh", "gh ghp_" + "a" * 36, "gh ***"),
    ],
)
def test_messages(value: str, message: str, told: str) -> None:
    content = f"env:\n- name: A_PASSWORD\n  value: {value}\n"
    assert said(message, content, value) == told


def test_a_short_one_is_a_word_elsewhere() -> None:
    content = "env:\n- name: A_PASSWORD\n  value: 2\nnumNodes: 2\n"
    assert said("numNodes must be 1, not 2", content, "numNodes: 2") == "numNodes must be 1, not 2"


def test_all_that_is_said() -> None:
    content = "env:\n- name: A_PASSWORD\n  value: abcdefgh\n"
    at = Span("b.yaml", 1, 1, 1, 2)
    made = Report(
        (
            finding(
                "m abcdefgh",
                content,
                "value",
                help="h abcdefgh",
                field="f.abcdefgh",
                yaml_path="y.abcdefgh",
                related=(Related(at, "r abcdefgh"),),
                suppressed="s abcdefgh",
                fix=Fix("t abcdefgh", (Edit(0, 1, "abcdefgh"),)),
            ),
            Finding("elsewhere abcdefgh", at, 0, "f", "f", severity=Severity.ERROR),
        ),
        texts={"a.yaml": Text(content)},
        notices=("n abcdefgh",),
    )
    assert "abcdefgh" not in repr(masked(made).findings + masked(made).notices)


def test_a_fix_never_carries_a_mask(tmp_path: Path) -> None:
    content = "env:\n- name: A_PASSWORD\n  value: 12345678\n"
    file = tmp_path / "a.yaml"
    file.write_text(content, encoding="utf-8")
    start = content.index("12345678")
    fix = Fix('write "12345678"', (Edit(start, start + 8, '"12345678"'),))
    at = Span(str(file), 3, 10, 3, 18)
    made = Report((Finding("m", at, 0, "f", "f", rule="TJ012", fix=fix),), texts={str(file): Text(content)})
    assert json.loads(render("json", made))["findings"][0]["fix"] is None
    assert "fixes" not in json.loads(render("sarif", made))["runs"][0]["results"][0]
    assert '= fix: write "***"' in render("text", made)
    asked = json.loads(render("json", made, RenderOptions(show_values=True)))
    assert asked["findings"][0]["fix"]["edits"][0]["replacement"] == '"12345678"'
    assert apply(masked(made)) == 0
    assert apply(made) == 1
    assert file.read_text(encoding="utf-8") == content.replace("12345678", '"12345678"')


def test_carets_stand_under_the_mask() -> None:
    content = "env: [{name: A_PASSWORD, value: abc}, {b: c}]\n"
    for marked, caret in (("abc", "^^^"), ("bc", "^"), ("b: c", "^^^^"), ("value: abc}, {b", "^" * 15)):
        told = render("text", Report((finding("m", content, marked),), texts={"a.yaml": Text(content)})).splitlines()
        assert told[2] == "1 | env: [{name: A_PASSWORD, value: ***}, {b: c}]"
        assert told[3].split()[1] == caret, marked
    long = f"env: [{{name: A_PASSWORD, value: {'x' * 4000}}}, {{b: c}}]\n"
    for marked in ("name", "x" * 4000, "b: c"):
        told = render("text", Report((finding("m", long, marked),), texts={"a.yaml": Text(long)})).splitlines()
        assert "xx" not in told[2]


@pytest.mark.parametrize("width", [30, 80, 400])
def test_a_secret_far_from_the_mark(width: int, tmp_path: Path) -> None:
    """What is shown of a long line begins behind the secret, or ends before it."""
    filler = ", ".join(f"k{number}: v" for number in range(60))
    text = f"distributed_type: FSDP\na: {{hub_token: hf_abcdefgh, {filler}, b: [}}\n"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    report = lint([tmp_path / "a.yaml"])
    said = render("text", report, RenderOptions(width=width))
    assert not report.crashed
    assert "hf_abcdefgh" not in said
    assert "^" in said
