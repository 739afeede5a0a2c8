"""Scripts that start a run by Prefect. They need it and a wing, and say so in a sentence."""

from likeness.core.extras import need_to_start
from likeness.core.wings import need_wing_to_start

need_to_start("prefect", "a flow")
need_wing_to_start("likeness_orchestration", "a flow")
