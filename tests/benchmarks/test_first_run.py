"""The modeled person: at a real pseudo-terminal it gives Adult's schema, and its seconds are those of the model."""

import re
import sys
from pathlib import Path

import pytest

from benchmarks.first_run import INIT, Person, Reply, answer_questions, replies
from likeness.data.schema.schema import Schema

ROOT = Path(__file__).resolve().parents[2]


def test_the_person_answers_at_a_terminal_what_the_codebook_says(tmp_path: Path) -> None:
    schema = Schema.load(ROOT / "data/schema/adult.yaml")
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    rows = [
        ",".join("17" if not column.is_categorical else column.categories[place] for column in schema.columns)
        for place in (0, 1)
    ]
    (tmp_path / "people.csv").write_text("\n".join([",".join(schema.names), *rows]) + "\n")
    person = Person(pace=0.0)
    given = {**replies(schema, "pasted"), "Run now": Reply("n")}
    status, shown = answer_questions([sys.executable, "-m", "likeness", *INIT.split()], clone, given, person)
    assert status == 0 and "training records are enough" in shown
    found = Schema.load(clone / "data/schema/people.yaml")
    assert found.columns == schema.columns and found.label == schema.label
    assert person.seconds["thinking"] == pytest.approx(1.35 * 20)  # 15 columns and 5 other questions
    # Seven lists of categories; those of sex and of the label are typed sooner.
    assert person.seconds["pasting"] == pytest.approx(7 * (0.4 + 1.1 + 1.1 + 0.4 + 9 * 0.28))
    # Every word was read that was shown up to the last answer, whatever came together with an echo, and no answer was:
    # terminals show long ones in different ways, so lines are cut behind their question.
    asked = re.compile(r"(\d+ [\w-]+, \w+|Source .*?\)|Columns .*?\)|Written .*?\)|Name .*?data|Run now.*?\]): ")
    lines = [own[0] if (own := asked.match(line)) else line for line in shown.splitlines()]
    last = next(place for place, line in enumerate(lines) if line.startswith("Run now"))
    words = sum(len(line.split()) for line in lines[: last + 1])
    words += sum(len(reply.codebook.split()) for reply in given.values())
    assert person.seconds["reading"] == pytest.approx(words * 60 / 238)


def test_shift_is_a_key_and_words_are_read_at_the_published_pace() -> None:
    person = Person(pace=0.0)
    for character in "aB?\n":
        person.type(character)
    person.read("two words\n")
    assert person.keys == 6 and person.total == pytest.approx(6 * 0.28 + 2 * 60 / 238)
