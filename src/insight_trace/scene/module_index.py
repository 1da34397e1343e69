"""What a module defines at its top, by name, and which names cannot be taken at their first word."""

from __future__ import annotations

import ast

Definition = ast.expr | ast.FunctionDef | ast.ClassDef

_PURE_MODULES = ("pathlib", "copy", "os", "os.path")


class ModuleIndex:
    """Definitions and imports of a module, found without running it."""

    def __init__(self, tree: ast.Module) -> None:
        self.definitions: dict[str, Definition] = {}
        self.modules: dict[str, str] = {}  # name -> the module or pure function it stands for
        self.imported: dict[str, tuple[str, str]] = {}  # name -> module, name there
        self.directions: set[str] = set()  # names under which ArgDirection is imported
        self.uncertain: dict[str, int] = {}  # name -> line that changes it or makes it depend on a condition
        for node in tree.body:
            self._add(node)

    def _add(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, node.value)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.definitions[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            self._import_from(node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                self.modules[alias.asname or alias.name.split(".")[0]] = alias.name
        else:
            self._doubt(node)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.definitions[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                for part, item in zip(target.elts, value.elts, strict=True):
                    self._assign(part, item)
        else:
            self._doubt_target(target)

    def _import_from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "ArgDirection":
                self.directions.add(name)
            elif node.module in _PURE_MODULES:
                self.modules[name] = f"{node.module}.{alias.name}"
            elif node.module and not node.level:
                self.imported[name] = (node.module, alias.name)

    def _doubt(self, node: ast.stmt) -> None:
        """A loop, a condition, a call: what it touches is known only to who runs it."""
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return  # only for a module that is run by itself
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                for target in targets:
                    self._doubt_target(target)
            elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                self._doubt_target(inner.func.value)
            elif isinstance(inner, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
                self._add_if_new(inner)

    def _add_if_new(self, node: ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef) -> None:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.definitions.setdefault(node.name, node)
        else:
            self._add(node)

    def _doubt_target(self, target: ast.expr) -> None:
        while isinstance(target, (ast.Attribute, ast.Subscript, ast.Starred)):
            target = target.value
        if isinstance(target, ast.Name):
            self.uncertain.setdefault(target.id, target.lineno)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._doubt_target(part)

    def class_expression(self, owner: ast.ClassDef, name: str) -> tuple[ast.ClassDef, ast.expr] | None:
        """Where a class attribute is assigned: in the class, or in a base of the same module."""
        found: ast.expr | None = None
        for node in owner.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                assert isinstance(node, (ast.Assign, ast.AnnAssign))
                found = node.value
        if found is not None:
            return owner, found
        for base in owner.bases:
            parent = self.definitions.get(base.id) if isinstance(base, ast.Name) else None
            if isinstance(parent, ast.ClassDef) and parent is not owner:
                inherited = self.class_expression(parent, name)
                if inherited is not None:
                    return inherited
        return None
