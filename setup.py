"""Put the files of a project into the package. `likeness new` copies them from there.

`project-files` in pyproject.toml names them. An editable install needs no copy: its files are those of the clone.
Without a compiler Python hashes and counts rows, to the same bits.
"""

import ast
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

LINES = Path("pyproject.toml").read_text(encoding="utf-8").splitlines()
# Python 3.10 has no tomllib, and must hear from pip that it is too old. A list of texts is one in Python too.
PATTERNS = ast.literal_eval(
    next(line for line in LINES if line.startswith("project-files = "))[len("project-files = ") :]
)
FILES = [path.as_posix() for pattern in PATTERNS for path in sorted(Path().glob(pattern))]


class BuildWithProject(build_py):
    """Copies the package, and the files of a project into its folder `template`."""

    def run(self) -> None:
        """Copy all of it."""
        super().run()
        for name in () if self.editable_mode else FILES:
            target = Path(self.build_lib, "likeness/template", name)
            self.mkpath(str(target.parent))
            self.copy_file(name, str(target))

    def get_source_files(self) -> list[str]:
        """What a source distribution needs."""
        return [*super().get_source_files(), *FILES]


EXTENSIONS = [
    Extension(f"likeness.{name}", [f"src/likeness/{name.replace('.', '/')}.c"], py_limited_api=True, optional=True)
    for name in ("data.source.sha256_rows", "features.cell_counts")
]
setup(
    cmdclass={"build_py": BuildWithProject},
    ext_modules=EXTENSIONS,
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
