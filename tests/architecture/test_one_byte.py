"""What one changed byte of the package runs again. ``settings`` runs every time."""

from pathlib import Path

from likeness.stages import FOLDERS, code_digests

ROOT = Path(__file__).parents[2]
STAGES = set(FOLDERS)
ASKS = {"auxiliary", "privatize", "card"}
DRAWS = {"train", "sample"}
RUN_AGAIN = {
    "bundle": set(),
    "cli": set(),
    "synthesizer": set(),
    "inference": {"account", "report"},
    "flows": set(),
    "onboarding": set(),
    "verify": set(),
    "generators": {*DRAWS, "account"},
    "methods": {"plan", *ASKS, *DRAWS, "account", "report", "track"},
    "evaluation": {"plan", "evaluate"},
    "preflight": {"plan"},
    "report": {"evaluate", "account", "report", "track"},
    "testing": set(),
    "tracking": {"track"},
    "engine": {"ingest", *ASKS},
    "ledger": {"fingerprint", "ingest", "plan", "categories", *ASKS, "account", "report", "track"},
    "features": STAGES - {"fingerprint", "ingest"},
    "release": STAGES - {"fingerprint", "ingest"},
    "data": STAGES,
    "privacy": STAGES,
    "config": STAGES,
    "core": STAGES,
    "pipeline": STAGES,
    "stages": set(),
}
"""By folder of the package: stages that load it. What follows one of them runs where its outputs change."""


def test_a_byte_changes_the_digests_of_the_stages_that_load_it(tmp_path: Path) -> None:
    """DVC runs a stage again when its digests change: tests/pipeline/test_settings_stage.py."""
    folders = {path.parent.name for path in (ROOT / "src/likeness").glob("*/__init__.py")}
    cases = {f"{folder}/deep/module.py": RUN_AGAIN[folder] for folder in folders}
    cases |= {f"stages/{stage}.py": {stage} for stage in STAGES}
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
