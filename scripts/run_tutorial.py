"""Run docs/tutorial.ipynb and write its outputs into it, so that readers see them.

Run: ``python scripts/run_tutorial.py``. The noise is new at each run, so the outputs change a little.
"""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs/tutorial.ipynb"


def executed(path: Path) -> Any:
    """The notebook with the outputs of this run, without times and other marks of the run."""
    import nbclient
    import nbformat
    from jupyter_client.manager import AsyncKernelManager

    # A short path: the name of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"JUPYTER_RUNTIME_DIR": folder, "IPYTHONDIR": folder}
        notebook, manager = nbformat.read(path, as_version=4), AsyncKernelManager()
        manager.transport, manager.ip = "ipc", f"{folder}/kernel"
        place = {"metadata": {"path": str(path.parent)}}
        nbclient.NotebookClient(notebook, km=manager, timeout=300, resources=place, record_timing=False).execute()
    notebook.metadata = {"language_info": {"name": "python"}}
    return notebook


def main() -> None:
    """Write the notebook back."""
    import nbformat

    folders = re.escape(tempfile.gettempdir()) + r"/\w+"  # of this machine
    NOTEBOOK.write_text(re.sub(folders, "FOLDER", nbformat.writes(executed(NOTEBOOK))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
