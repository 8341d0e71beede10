"""What the names of the sidebar stand for: the built-in models and accelerators, and those of this session's files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from roofline.accelerators import Accelerator, load_catalog
from roofline.dashboard import uploads
from roofline.dashboard.kit import OwnPart
from roofline.models import Model, list_models, load_model

MODEL, HARDWARE = "model", "hardware"  # the kinds of files


@cache
def built_in_models() -> tuple[str, ...]:
    """The ids of the built-in models."""
    return list_models()


def model_names() -> tuple[str, ...]:
    """The models on offer, the user's own first."""
    own = uploads.good(MODEL)
    return ((own.name,) if own else ()) + built_in_models()


def model(name: str) -> Model:
    """The model of a name; one object a model, so that answers about it can be kept."""
    own = uploads.good(MODEL)
    if own is not None and name == own.name:
        found: Model = own.content
        return found
    return _built_in_model(name)


@cache
def _built_in_model(name: str) -> Model:
    return load_model(name)


@cache
def built_in_parts() -> Mapping[str, Accelerator]:
    """Every built-in accelerator with a sourced roof."""
    return {name: part for name, part in load_catalog().items() if part.roofs}


def own_parts() -> tuple[Accelerator, ...]:
    """The accelerators of the user's file that have a roof."""
    own = uploads.good(HARDWARE)
    return tuple(part for part in own.content.parts if part.roofs) if own else ()


def parts() -> Mapping[str, Accelerator]:
    """Every accelerator on offer; one of the user's replaces the built-in one of its id."""
    return {**built_in_parts(), **{part.id: part for part in own_parts()}}


def spelled(name: str) -> str:
    """The name of an accelerator as the lines that reproduce a view give it."""
    own = uploads.good(HARDWARE)
    return OwnPart(name, own.name) if own and name in {part.id for part in own_parts()} else name
