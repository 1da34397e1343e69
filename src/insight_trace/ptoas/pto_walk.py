"""One walk over a kernel's `.pto`: control flow, calls and integer arithmetic with `Affine` values.

Arguments are bound to numbers or ranges; what is not bound stays a variable, and every fact then says
which arguments decide it.
"""

from __future__ import annotations

from collections.abc import Mapping

from insight_trace.errors import InputError
from insight_trace.ptoas.affine import (
    BINARY,
    CASTS,
    Affine,
    bounded,
    compare,
    hull,
    keeps_true,
    sane,
    unknown,
)
from insight_trace.ptoas.pto_effects import STEPS, Effects, PtoTile, Scope, Value
from insight_trace.ptoas.pto_facts import Binding, Facts, Loop, Pointer
from insight_trace.ptoas.pto_syntax import Function, Module, Operation, Parameter

_MAX_CALLS = 50
_GIVES_A_VALUE = frozenset(
    {"pto.make_tensor_view", "pto.partition_view", "pto.subview", "pto.addptr", "pto.load_scalar"}
)
_MAX_STEPS = 2_000_000  # nested loops with carried values are looked at twice each: a bound on hostile text


class _Walk(Effects):
    def call(self, function: Function, values: tuple[Value, ...], scope: Scope | None) -> None:
        calls = scope.calls + 1 if scope else 0
        if calls > _MAX_CALLS:
            raise InputError(f"@{function.name} calls itself", where=f"{self.module.where}:{function.line}")
        names: dict[str, Value] = {}
        for index, parameter in enumerate(function.parameters):
            names[parameter.name] = (
                values[index] if index < len(values) else self.argument(parameter.name, parameter.type)
            )
        side = function.kernel_kind or (scope.side if scope else "")
        if side:
            self.facts.sides.add(side)
        inner = Scope(names, bool(scope and scope.guarded), scope.trips if scope else 1, side, calls)
        self.body(function.body, inner)

    def body(self, body: tuple[Operation, ...], scope: Scope) -> tuple[Value | None, ...]:
        """Walks operations in order; returns what the region yields."""
        yielded: tuple[Value | None, ...] = ()
        for operation in body:
            if operation.name in ("scf.yield", "pto.yield"):
                yielded = tuple(scope.names.get(name) for name in operation.values())
            else:
                self.steps[0] += 1
                if self.steps[0] > _MAX_STEPS:
                    raise InputError(
                        "loops nest too deep to follow", where=f"{self.module.where}:{operation.line}"
                    )
                self.step(operation, scope)
        return yielded

    def step(self, op: Operation, scope: Scope) -> None:
        name = op.name
        if not op.results and (name.startswith("arith.") or name in _GIVES_A_VALUE):
            raise InputError(f"{name} gives its value to nothing", where=f"{self.module.where}:{op.line}")
        if name == "arith.constant":
            self.constant(op, scope)
        elif name in BINARY or name in CASTS or name in ("arith.cmpi", "arith.select"):
            self.arithmetic(op, scope)
        elif name == "scf.for":
            self.loop(op, scope)
        elif name == "scf.if":
            self.branch(op, scope)
        elif name in ("func.call", "call"):
            self.called(op, scope)
        elif name in STEPS:
            STEPS[name](self, op, scope)
        elif name.endswith("initialize_pipe") or name.startswith("pto.initialize_"):
            self.pipe(op, scope)
        elif name.startswith("pto.t"):
            self.tile_operation(op, scope)
        else:
            side = {"pto.section.cube": "cube", "pto.section.vector": "vector"}.get(name, scope.side)
            if side:
                self.facts.sides.add(side)
            self.note_opaque(op, scope)
            for argument in op.block_arguments:
                scope.names[argument] = unknown(argument)
            inner = scope
            if op.regions and name != "scf.execute_region" and not name.startswith("pto.section"):
                inner = Scope(scope.names, True, 0, side, scope.calls)
            for region in op.regions:
                self.body(region, Scope(inner.names, inner.guarded, inner.trips, side, scope.calls))
            for result in op.results:
                scope.names[result] = unknown(result)

    def constant(self, op: Operation, scope: Scope) -> None:
        text = op.tokens[0].text if op.tokens else ""
        literal = {"true": 1, "false": 0}.get(text)
        if literal is None:
            try:
                literal = int(text, 0)
            except ValueError:
                return  # a float: never a size
        scope.names[op.results[0]] = Affine(literal)

    def arithmetic(self, op: Operation, scope: Scope) -> None:
        operands = tuple(self.number(scope, f"%{name}") for name in op.values())
        if not op.results or not operands:
            return
        result = op.results[0]
        if op.name in CASTS:
            scope.names[result] = operands[0]
        elif op.name == "arith.cmpi" and len(operands) > 1:
            scope.names[result] = compare(op.tokens[0].text, operands[0], operands[1])
            guard = keeps_true(op.tokens[0].text, operands[0], operands[1])
            if guard is not None:
                self.facts.guards.append(guard)
        elif op.name == "arith.select" and len(operands) > 2:
            condition, yes, no = operands[:3]
            if condition.is_number:
                chosen = yes if condition.constant else no
                scope.names[result] = Affine(
                    chosen.constant, chosen.terms, chosen.origins | condition.origins
                )
            else:
                both = hull(yes, no)
                scope.names[result] = bounded("select", (both.low, both.high), operands)
        elif op.name in BINARY and len(operands) > 1:
            scope.names[result] = sane(BINARY[op.name](operands[0], operands[1]))

    def loop(self, op: Operation, scope: Scope) -> None:
        names = op.values()
        if len(names) < 4 or not op.regions:
            raise InputError("scf.for without bounds", where=f"{self.module.where}:{op.line}")
        counter, lower, upper, step = names[0], *(self.number(scope, f"%{n}") for n in names[1:4])
        fact = Loop(lower, upper, step, op.line)
        self.facts.loops.append(fact)
        scope.names[counter] = self.counter(counter, fact)
        carried = self.carried(op)
        starts = [scope.names.get(start) for _, start in carried]
        self.enter(op, scope, fact, [name for name, _ in carried], starts)
        trips = scope.trips * fact.least_trips
        yielded = self.body(op.regions[0], Scope(scope.names, scope.guarded, trips, scope.side, scope.calls))
        for index, result in enumerate(op.results):
            first = starts[index] if index < len(starts) else None
            last = yielded[index] if index < len(yielded) else None
            scope.names[result] = self.left(result, first, last)

    @staticmethod
    def counter(name: str, loop: Loop) -> Affine:
        """The loop's counter: from its lower end to the last value that its step reaches."""
        lower, upper, step = loop.lower, loop.upper, loop.step
        stride = step.constant if step.is_number and step.constant > 0 else 1
        last = None if upper.high is None else upper.high - 1
        if last is not None and lower.is_number:
            last = lower.constant + max(0, last - lower.constant) // stride * stride
        return unknown(name, lower.sources | upper.sources | step.sources, lower.low, last)

    def enter(
        self, op: Operation, scope: Scope, loop: Loop, names: list[str], starts: list[Value | None]
    ) -> None:
        """Binds what the loop carries; numbers get bounds from a first look at what an iteration adds."""
        for name, start in zip(names, starts, strict=True):
            if isinstance(start, Affine):
                scope.names[name] = unknown(name, start.sources)
            elif start is not None:
                scope.names[name] = start
        if not any(isinstance(start, Affine) for start in starts):
            return
        before = [scope.names.get(name) for name in names]
        probe = _Walk(self.module, self.bindings, self.steps)  # its facts are thrown away
        yielded = probe.body(op.regions[0], Scope(dict(scope.names), True, 0, scope.side, scope.calls))
        for name, start, inside, after in zip(names, starts, before, yielded, strict=False):
            self.carry(scope, name, start, inside, after, loop)

    @staticmethod
    def left(name: str, first: Value | None, last: Value | None) -> Value:
        """What a loop leaves behind: its last yield, or its start if it never turned."""
        if isinstance(first, Affine) and isinstance(last, Affine):
            return hull(first, last)
        if last is not None:
            return last
        return first if first is not None else unknown(name)

    @staticmethod
    def carried(op: Operation) -> list[tuple[str, str]]:
        """(name inside, initial value) of `iter_args(%a = %b, ...)`."""
        names = [t.text[1:] for t in op.group("iter_args") if t.kind == "value"]
        return list(zip(names[::2], names[1::2], strict=False))

    def carry(
        self,
        scope: Scope,
        name: str,
        start: Value | None,
        inside: Value | None,
        after: Value | None,
        loop: Loop,
    ) -> None:
        """A carried number that only grows by a fixed amount has bounds; others stay unknown."""
        if not (isinstance(start, Affine) and isinstance(inside, Affine) and isinstance(after, Affine)):
            return
        change = after - inside
        most = loop.most_trips
        if not change.is_number or most is None or start.low is None or start.high is None:
            return
        reach = change.constant * max(0, most - 1)
        low, high = start.low + min(0, reach), start.high + max(0, reach)
        scope.names[name] = unknown(name, start.sources | loop.upper.sources, low, high)

    def branch(self, op: Operation, scope: Scope) -> None:
        condition = self.number(scope, f"%{op.values()[0]}") if op.values() else unknown("condition")
        self.facts.conditions.append(condition)
        if condition.is_number and not condition.constant and condition.origins:
            self.facts.skipped.append((op.line, condition.origins))
        yields: list[tuple[Value | None, ...]] = []
        for index, region in enumerate(op.regions):
            taken = condition.is_number and bool(condition.constant) == (index == 0)
            trips = scope.trips if taken else 0
            guarded = scope.guarded or not taken
            yields.append(self.body(region, Scope(scope.names, guarded, trips, scope.side, scope.calls)))
        for index, result in enumerate(op.results):
            options = [y[index] for y in yields if index < len(y)]
            scope.names[result] = self.merged(options, result, condition)

    def merged(self, options: list[Value | None], name: str, condition: Affine) -> Value:
        views = [view for option in options if isinstance(option, tuple) for view in option]
        if views:
            return tuple(views)
        tiles = [option for option in options if isinstance(option, PtoTile)]
        if tiles:
            sources = frozenset().union(*(tile.sources for tile in tiles))
            return PtoTile(max(t.rows for t in tiles), max(t.cols for t in tiles), sources)
        pointers = [option for option in options if isinstance(option, Pointer)]
        if pointers:
            return pointers[0]
        numbers = [option for option in options if isinstance(option, Affine)]
        if not numbers or len(numbers) < len(options):
            return unknown(name, condition.sources)
        result = numbers[0]
        for other in numbers[1:]:
            result = hull(result, other)
        return bounded(name, (result.low, result.high), (result, condition)) if result.terms else result

    def called(self, op: Operation, scope: Scope) -> None:
        target = next((t.text[1:].strip('"') for t in op.tokens if t.kind == "symbol"), "")
        function = self.module.functions.get(target)
        if function is None:
            raise InputError(
                f"calls @{target}, which is not in the file", where=f"{self.module.where}:{op.line}"
            )
        values = tuple(scope.names.get(name, unknown(name)) for name in op.values())
        self.call(function, values, scope)
        for result in op.results:
            scope.names[result] = unknown(result)


def walk(
    module: Module,
    functions: tuple[str, ...],
    parameters: tuple[Parameter, ...],
    bindings: Mapping[str, Binding],
) -> Facts:
    """Facts of the named functions together, as of the halves of one kernel.

    The halves share their arguments by position; `parameters` gives the names that facts speak of.
    """
    run = _Walk(module, bindings)
    values = tuple(run.argument(parameter.name, parameter.type) for parameter in parameters)
    for name in functions:
        run.call(module.functions[name], values, None)
    return run.facts
