"""What a fit leaves of its rows: releases, account and generator."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likeness.config.params import Params, Sample
from likeness.config.typed import whole
from likeness.core.paths import HISTORIES, ONE_TABLE
from likeness.data.encoding.frames import FrameType
from likeness.data.histories.schema import HistorySchema
from likeness.data.schema.schema import Schema
from likeness.methods.base import Context
from likeness.pipeline.synthetic_table import numbered
from likeness.privacy.plan import Plan
from likeness.release.partition_selection import STAGE, completed
from likeness.release.released import Released


@dataclass(frozen=True)
class Fitted(ABC):
    """What a fit leaves. All of it may be published, unless noise is off.

    Attributes:
        written: the public schema as it is written.
        plan: of the releases.
        released: by the name of their query.
        privacy: the account.
        losses: (iteration, loss) during the training of each generator; empty where files say none.
        frames: library and dtypes of each frame of training rows, by the name of the table.
        generator: of all tables.
    """

    written: Schema | HistorySchema
    plan: Plan
    released: dict[str, Released]
    privacy: dict[str, Any]
    losses: list[list[tuple[int, float]]]
    frames: Mapping[str, FrameType]
    generator: Any

    @cached_property
    def schema(self) -> Schema:
        """The schema of a table, or of a row a person, with released categories."""
        rows = self.written.first_rows if isinstance(self.written, HistorySchema) else self.written
        return completed(rows, [one for one in self.released.values() if one.receipt.stage == STAGE])

    @property
    def asked_schema(self) -> Schema | HistorySchema:
        """The schema that questions about the releases are in."""
        return self.written if isinstance(self.written, HistorySchema) else self.schema

    @property
    def frame(self) -> FrameType:
        """Library and dtypes of the table, or of the events."""
        return self.frames[(HISTORIES if isinstance(self.written, HistorySchema) else ONE_TABLE).tables[-1]]

    def rows(self, n: Any) -> int:
        """The number of rows to draw: a given one, or as many as the noisy count or the public number says.

        Raises:
            ParamsError: it is no whole number from 1.
        """
        if n is None:
            context = Context(self.schema, self.privacy["adjacency"], self.privacy["num_records"], 0)
            n = numbered(Sample(), context, self.released).rows
        return whole("n", n, least=1)

    def attributes(self) -> dict[str, Any]:
        """The public attributes of a synthesizer with this fit, in the names of scikit-learn."""
        names = self.schema.names
        return {
            "plan_": self.plan,
            "releases_": self.released,
            "privacy_": self.privacy,
            "loss_curve_": self.losses[0] if self.losses else [],
            "frame_": self.frame,
            "schema_": self.schema,
            "n_features_in_": len(names),
            "feature_names_in_": np.array(names, dtype=object),
        }

    @abstractmethod
    def sample(self, n: Any, where: Any, seed: int) -> Any:
        """Synthetic rows as frames of the libraries and dtypes of the training rows."""

    @abstractmethod
    def replicates(self, count: int, n: Any, where: Any, seed: int, params: Params) -> list[Any]:
        """What :meth:`sample` gives, from models that are fitted to new draws of the noise; the first is the base."""
