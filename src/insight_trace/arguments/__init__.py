"""Where replay arguments come from: a dump, a spec, a recipe; what the user changes; and how they are packed.

Everything ends in one type, `ReplayArguments`: a tensor or scalar per slot, each with its tier.
"""

from insight_trace.arguments.buffers import materialise, materialise_all, span_bytes, view_of
from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.arguments.overrides import Overrides, apply_overrides, parse_overrides
from insight_trace.arguments.recipes import from_recipe, recipe_names, register_recipe
from insight_trace.arguments.slots import ReplayArguments, ReplayScalar, ReplaySlot, ReplayTensor, make_tensor
from insight_trace.arguments.spec import parse_arg_spec, read_arg_spec
from insight_trace.arguments.table import SlotRow, slot_rows, slot_table
from insight_trace.arguments.verification import OutputCheck, Status, Tolerance, verify_outputs

__all__ = [
    "OutputCheck",
    "Overrides",
    "ReplayArguments",
    "ReplayScalar",
    "ReplaySlot",
    "ReplayTensor",
    "SlotRow",
    "Status",
    "Tolerance",
    "apply_overrides",
    "from_dispatch",
    "from_recipe",
    "make_tensor",
    "materialise",
    "materialise_all",
    "parse_arg_spec",
    "parse_overrides",
    "read_arg_spec",
    "recipe_names",
    "register_recipe",
    "slot_rows",
    "slot_table",
    "span_bytes",
    "verify_outputs",
    "view_of",
]
