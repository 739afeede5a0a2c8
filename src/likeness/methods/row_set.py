"""The rows that a method is asked about: those of a table, or both row sets of people with histories."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from likeness.core.errors import PlanError
from likeness.data.schema.rules import learned_pairs
from likeness.methods.base import EMBEDDING, Context, Method
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.records import EachPerson
from likeness.release.released import Released


class Parts(NamedTuple):
    """The releases of a run, as the generator of one row set sees them.

    Attributes:
        auxiliary: answers of the auxiliary stage, by the names that the method gives their queries.
        embedding: the answer about the embedding.
        others: all other releases.
    """

    auxiliary: dict[str, Released]
    embedding: Released
    others: list[Released]


@dataclass(frozen=True)
class RowSet:
    """Rows that a method is asked about.

    Attributes:
        context: public facts about them.
        encoding: digest of the public rules that turn them into what maps see.
        generator: folder of their generator, as in a bundle.
        prefix: begins the names of their queries.
        share: of the budget.
        is_per_person: whether the rows of a person share one contribution.
    """

    context: Context
    encoding: str
    generator: str = "generator"
    prefix: str = ""
    share: float = 1.0
    is_per_person: bool = False

    def scope(self, query: Query) -> Query:
        """A query of the method as it is asked about these rows."""
        if not self.is_per_person:
            return query
        return replace(query, name=f"{self.prefix}{query.name}", contributions=EachPerson())

    def shares(self, method: Method) -> list[QueryShare]:
        """The queries and their shares.

        Raises:
            PlanError: the method could not release them.
        """
        method.check(self.context)
        rules = learned_pairs(self.context.schema.rules)
        if rules and not method.learns_functions:
            first, second = rules[0]
            raise PlanError(
                f"{method.name} cannot learn how '{first}' determines '{second}'. Give that rule of the schema a "
                "table, or use method marginals."
            )
        shares = method.shares(self.context)
        if not self.is_per_person:
            return shares
        return [replace(share, query=f"{self.prefix}{share.query}", share=self.share * share.share) for share in shares]

    def queries(self, method: Method, auxiliary: Mapping[str, Released]) -> list[Query]:
        """Every query about these rows; ``auxiliary`` as in :class:`Parts`."""
        queries = [*method.auxiliary_queries(self.context, auxiliary), method.embedding_query(self.context, auxiliary)]
        return [self.scope(query) for query in queries]

    def auxiliary(self, released: Mapping[str, Released]) -> dict[str, Released]:
        """Answers of the auxiliary stage about these rows, by the names that the method gives their queries."""
        return {
            name.removeprefix(self.prefix): release
            for name, release in released.items()
            if release.receipt.stage == "auxiliary" and name.startswith(self.prefix)
        }

    def sort_releases(self, released: Iterable[Released]) -> Parts:
        """The releases of a run, sorted for the generator of these rows."""
        answers = {release.receipt.query: release for release in released}
        embedding = answers.pop(f"{self.prefix}{EMBEDDING}")
        auxiliary = self.auxiliary(answers)
        ours = {release.receipt.query for release in auxiliary.values()}
        others = [release for name, release in answers.items() if name not in ours]
        return Parts(auxiliary, embedding, others)


def rows_of(row_sets: Sequence[RowSet], query: str) -> RowSet:
    """The row set that a query is about: the last one whose prefix fits."""
    return [rows for rows in row_sets if query.startswith(rows.prefix)][-1]
