"""What is kept of files and of answers: a changed file is seen, and a changed answer changes no other."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import roofline
from roofline import files
from roofline.accelerators import load_catalog, store
from roofline.answers.hardware import hardware
from roofline.errors import BadFile
from roofline.models import load_model, reader

OLD = 1_700_000_000  # seconds: long before any test runs


def settle(path: Path, seconds: int = OLD) -> None:
    """Date a file back, so that it counts as written long ago."""
    os.utime(path, (seconds, seconds))


@pytest.fixture
def reads() -> list[str]:
    """The paths that were read."""
    return []


@pytest.fixture
def text_of(reads: list[str]):
    def read(path: str) -> str:
        reads.append(path)
        return Path(path).read_text(encoding="utf-8")

    return read


def test_a_file_is_read_once_and_again_after_each_change(tmp_path: Path, reads: list[str], text_of) -> None:
    path = tmp_path / "a"
    path.write_text("one", encoding="utf-8")
    settle(path)
    assert [files.kept(text_of, str(path)) for _ in range(3)] == ["one"] * 3
    assert len(reads) == 1
    path.write_text("two", encoding="utf-8")  # as long as before
    settle(path, OLD + 1)
    assert files.kept(text_of, str(path)) == "two"
    path.write_text("three", encoding="utf-8")
    settle(path, OLD + 1)  # written at the same time, but longer
    assert files.kept(text_of, str(path)) == "three"
    other = tmp_path / "b"
    other.write_text("seven", encoding="utf-8")
    settle(other, OLD + 1)
    other.replace(path)  # another file of the same length and time under the same name
    assert files.kept(text_of, str(path)) == "seven"
    assert len(reads) == 4


def test_a_file_written_a_moment_ago_is_read_anew(tmp_path: Path, reads: list[str], text_of) -> None:
    path = tmp_path / "a"
    for text in ("one", "two", "six"):  # within one tick of a coarse clock, and of one length
        path.write_text(text, encoding="utf-8")
        assert files.kept(text_of, str(path)) == text
    assert len(reads) == 3


def test_what_is_no_plain_file_is_never_kept(tmp_path: Path) -> None:
    assert files.stamp(str(tmp_path)) is None
    assert files.stamp(os.devnull) is None
    with pytest.raises(FileNotFoundError):
        files.kept(lambda path: Path(path).read_text(encoding="utf-8"), str(tmp_path / "none"))


def test_an_edit_of_the_builtin_yaml_is_seen_and_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(store.builtin_path()).read_text(encoding="utf-8")
    before = load_catalog(environ={})
    path = tmp_path / "hardware.yaml"
    path.write_text(text, encoding="utf-8")
    settle(path)
    monkeypatch.setattr(store, "builtin_path", lambda: str(path))
    assert load_catalog(environ={})["h800-sxm"].bandwidth == 3.35e12
    path.write_text(text.replace("_per_s: 3.35e+12", "_per_s: 3.36e+12"), encoding="utf-8")
    settle(path, OLD + 1)
    assert load_catalog(environ={})["h800-sxm"].bandwidth == 3.36e12
    assert load_catalog(environ={}).digest != before.digest
    monkeypatch.undo()
    assert load_catalog(environ={})["h800-sxm"].bandwidth == 3.35e12


PART = """
accelerators:
  mine:
    name: Mine
    bandwidth_byte_per_s: {bandwidth}
    peak_flop_per_s: {{bf16: 1.0e+15}}
    sources:
      - field: "bandwidth_byte_per_s, peak_flop_per_s.bf16"
        value: as printed
        url: "https://example.org/x"
        kind: datasheet
"""


def test_a_users_file_is_read_again_after_a_change(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    for at, bandwidth in enumerate((1e12, 2e12, 3e12)):
        path.write_text(PART.format(bandwidth=f"{bandwidth:.1e}"), encoding="utf-8")
        settle(path, OLD + at)
        environ = {"ROOFLINE_HARDWARE": str(path)}
        assert load_catalog(environ=environ)["mine"].bandwidth == bandwidth
        assert load_catalog(environ=environ)["mine"].bandwidth == bandwidth
    path.write_text("accelerators: {}", encoding="utf-8")
    settle(path, OLD + 9)
    for _ in range(2):  # a mistake is told each time
        with pytest.raises(BadFile):
            load_catalog(environ=environ)
    assert "mine" not in load_catalog(environ={})


def test_catalogues_share_their_frozen_parts_but_not_their_entries(tmp_path: Path) -> None:
    path = tmp_path / "h20.yaml"
    path.write_text(PART.format(bandwidth="1.0e+12").replace("mine:", "h20:\n    override: true"), encoding="utf-8")
    own, plain = load_catalog([str(path)], environ={}), load_catalog(environ={})
    assert own["h800-sxm"] is plain["h800-sxm"]
    assert (own["h20"].bandwidth, plain["h20"].bandwidth) == (1e12, 4e12)
    assert len(own) == len(plain) == len(load_catalog(environ={}))


def test_a_model_of_the_package_is_read_again_after_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(Path(reader.BUILTIN, "llama-3.1-8b.json").read_text(encoding="utf-8"))
    path, alias = tmp_path / "one.json", tmp_path / "two.json"
    monkeypatch.setattr(reader, "BUILTIN", str(tmp_path))
    alias.write_text(json.dumps({"_alias_of": "one", "_name": "Two"}), encoding="utf-8")
    settle(alias)
    for at, layers in enumerate((32, 16)):
        path.write_text(json.dumps({**whole, "num_hidden_layers": layers}), encoding="utf-8")
        settle(path, OLD + at)
        assert len(load_model("one").layers) == len(load_model("two").layers) == layers
        assert load_model("one") is load_model("one")
        assert (load_model("two").id, load_model("two").name) == ("two", "Two")


ANSWERS = (
    lambda: hardware("h800-sxm"),
    lambda: hardware(),
    lambda: roofline.heads("all"),
    lambda: roofline.step("llama-3.1-8b", "h100-sxm", batch=8, context=1024, kv_dtype="bf16"),
    lambda: roofline.crossover("deepseek-v3.2"),
    lambda: roofline.kv_capacity("llama-3.1-8b", "h100-sxm"),
)


def spoil(value: object) -> None:
    """Change everything in a document that can be changed, the innermost first."""
    for inner in list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()):
        spoil(inner)
    if isinstance(value, dict):
        value["spoiled"] = True
    elif isinstance(value, list):
        value.append("spoiled")


@pytest.mark.parametrize("ask", ANSWERS)
def test_a_changed_answer_changes_no_other(ask) -> None:
    first = ask()
    before = first.to_json()
    spoil(dict(first.data))
    assert first.to_json() != before
    assert ask().to_json() == before


@pytest.mark.parametrize("name", ["bf16", "BF16", "bfloat16"])
def test_every_spelling_of_a_cache_dtype_gives_the_same_step(name: str) -> None:
    """Grouped-query attention took the spelling as it was given, and only "bfloat16" was known further down."""
    plain = roofline.step("llama-3.1-8b", "h100-sxm", batch=8, context=1024)
    assert roofline.step("llama-3.1-8b", "h100-sxm", batch=8, context=1024, kv_dtype=name).data == plain.data
