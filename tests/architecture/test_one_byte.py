"""What one changed byte of the package runs again. ``settings`` runs every time."""

from pathlib import Path

from likeness.stages import FOLDERS, code_digests

ROOT = Path(__file__).parents[2]
LOADS = {stage: {"core", "config", "pipeline", *folders.split()} for stage, folders in FOLDERS.items()}


def test_a_byte_changes_the_digests_of_the_stages_that_load_it(tmp_path: Path) -> None:
    """DVC runs a stage again when its digests change: tests/pipeline/test_settings_stage.py."""
    folders = {path.parent.name for path in (ROOT / "src/likeness").glob("*/__init__.py")}
    cases = {f"{name}/deep/module.py": {stage for stage in LOADS if name in LOADS[stage]} for name in folders}
    cases |= {f"stages/{stage}.py": {stage} for stage in LOADS}
    assert cases["generators/deep/module.py"] == {"train", "sample", "account"}  # no stage that asks
    assert not {case for case in cases if case.startswith(("cli/", "verify/", "bundle/", "flows/")) and cases[case]}
    for name in cases:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    before = code_digests(tmp_path)
    for name, stages in cases.items():
        (tmp_path / name).write_text("#")
        assert {stage for stage, digests in code_digests(tmp_path).items() if digests != before[stage]} == stages, name
        (tmp_path / name).write_text("")
    (tmp_path / "core/__pycache__").mkdir()
    (tmp_path / "core/__pycache__/module.pyc").write_text("compiled")
    assert code_digests(tmp_path) == before
