"""What all pages share: the choices of the sidebar, as plain hashable data."""

from __future__ import annotations

from dataclasses import dataclass

from roofline.accelerators import Accelerator
from roofline.dashboard import known
from roofline.models import Model

ALL_ROOFS = "all"


@dataclass(frozen=True)
class Selection:
    """Names of a model and of accelerators, the name of the roof, and the workload of a step.

    hardware holds one id or two to compare; roof is a name that every chosen accelerator has, or "all"; batch is in
    sequences, context in cached tokens per sequence.
    """

    model: str = "deepseek-v3.2"
    hardware: tuple[str, ...] = ("h800-sxm",)
    roof: str = ALL_ROOFS
    batch: int = 64
    context: int = 8192

    @property
    def loaded(self) -> Model:
        """The model itself."""
        return known.model(self.model)

    @property
    def parts(self) -> tuple[Accelerator, ...]:
        """The accelerators themselves."""
        return tuple(known.parts()[name] for name in self.hardware)

    @property
    def chip(self) -> str:
        """The first accelerator, for pages that answer for one."""
        return self.hardware[0]

    @property
    def part(self) -> Accelerator:
        """The first accelerator itself."""
        return self.parts[0]

    @property
    def spelled(self) -> tuple[str, ...]:
        """The accelerators as the lines that reproduce a view give them."""
        return tuple(map(known.spelled, self.hardware))

    @property
    def roof_or_none(self) -> str | None:
        """The roof as the library takes it: None is every roof where it draws several, the datasheet's where it
        takes one."""
        return None if self.roof == ALL_ROOFS else self.roof
