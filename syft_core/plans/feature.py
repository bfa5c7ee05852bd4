"""Register plans: workers store and run them."""

from __future__ import annotations

from syft_core.kinds import ObjectKind
from syft_core.plans.errors import PlanError
from syft_core.plans.messages import RunPlan
from syft_core.plans.plan import Plan as _Plan  # noqa: F401  # registers codecs
from syft_core.plans.pointer import PLAN
from syft_core.plans.program import Program
from syft_core.plans.running import bind_state, require_known_operations, run_plan
from syft_core.plugins.hookspecs import RegisterError, RegisterKind, RegisterMessage, hookimpl


@hookimpl
def register_messages(register: RegisterMessage) -> None:
    """Register the message that runs a plan."""
    register(RunPlan, run_plan)


@hookimpl
def register_kinds(register: RegisterKind) -> None:
    """Let workers store programs."""
    register(Program, ObjectKind(PLAN, require_known_operations, bind_state, lambda program: program.bytes))


@hookimpl
def register_errors(register: RegisterError) -> None:
    """Let the errors of plans be sent."""
    register(PlanError)
