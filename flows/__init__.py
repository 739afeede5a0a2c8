"""Scripts that start a run by Prefect. They need it, and say so in a sentence."""

from likeness.core.extras import need_to_start

need_to_start("prefect", "a flow")
