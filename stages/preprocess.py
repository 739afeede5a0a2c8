"""preprocess: `likeness.stages` says what it reads, writes and spends."""

from likeness.pipeline.run_stage import run_stage
from likeness.stages.preprocess import main

if __name__ == "__main__":
    run_stage("preprocess", main)
