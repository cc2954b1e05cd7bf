"""Textual parses text as markup in many places; only trusted text may get there as `str`.

Every text is `Content` (which is never parsed), a literal without brackets, or shown with `markup=False`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pegboard.tui

SOURCE = Path(pegboard.tui.__file__).parent

PARSED_ARGUMENTS = {
    "Static": (0, "content"),
    "Label": (0, "content"),
    "Button": (0, "label"),
    "Checkbox": (0, "label"),
    "RadioButton": (0, "label"),
    "Collapsible": (None, "title"),
    "Tab": (0, "label"),
    "TabPane": (0, "title"),
    "Option": (0, "prompt"),
    "Hit": (1, "match_display"),
    "DiscoveryHit": (0, "display"),
}
"""Classes of Textual, and the argument that they parse."""
PARSED_ATTRIBUTES = {"border_title", "border_subtitle", "tooltip", "label", "placeholder"}
"""Attributes that Textual parses when they are set."""
PARSED_HELP = {"Hit": (4, "help"), "DiscoveryHit": (3, "help")}
FORBIDDEN = {"from_markup", "from_text", "render_str", "SelectionList", "Select", "DataTable", "matcher"}
"""Functions and classes that parse markup; none of them is needed."""
FORBIDDEN_MODULES = {"textual.markup", "rich.markup"}
"""Modules that parse markup, or claim to escape it."""

PLAIN = ast.parse("Content()", mode="eval").body


class _Package:
    """Annotations of functions, attributes and classes in the package."""

    def __init__(self, files: dict[str, ast.Module]) -> None:
        self.plain_names: set[str] = set()
        self.bases: dict[str, set[str]] = {}
        for tree in files.values():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef) and _is_plain_type(node.returns):
                    self.plain_names.add(node.name)
                if isinstance(node, ast.AnnAssign) and _is_plain_type(node.annotation):
                    self.plain_names.add(ast.unparse(node.target).rpartition(".")[2])
                if isinstance(node, ast.ClassDef):
                    self.bases[node.name] = {ast.unparse(base).partition("[")[0] for base in node.bases}

    def derives(self, name: str, base: str) -> bool:
        """Return whether a class derives from another."""
        return name == base or any(self.derives(one, base) for one in self.bases.get(name, ()))


def _is_plain_type(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).removesuffix(" | None") in {"Content", "Syntax"}


class _Reader(ast.NodeVisitor):
    """Visitor that finds a `str` other than a literal passed to a function that parses markup."""

    def __init__(self, package: _Package) -> None:
        self.package = package
        self.found: list[tuple[int, str]] = []
        self._imported: set[str] = set()
        self._statics: set[str] = set()
        self._scopes: list[dict[str, list[ast.expr | None]]] = [{}]
        self._classes: list[str] = []

    def visit_Module(self, node: ast.Module) -> None:
        for inner in ast.walk(node):
            match inner:
                case ast.Assign(targets=targets, value=ast.Call(func=ast.Name(id="Static" | "Label"))):
                    self._statics |= {ast.unparse(target) for target in targets}
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._classes.append(node.name)
        self.generic_visit(node)
        self._classes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name in {"render", "render_line"} and node.returns is not None and ast.unparse(node.returns) == "str":
            self._report(node, "render() that returns a str")
        self._scopes.append(_bindings(node))
        self.generic_visit(node)
        self._scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast's name

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr in PARSED_ATTRIBUTES:
                is_input = target.attr == "placeholder" and self._is_input()
                if not is_input and not self._is_plain(node.value):
                    self._report(node, f".{target.attr} = {ast.unparse(node.value)}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in FORBIDDEN:
            self._report(node, f"{name}()")
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        is_unparsed = isinstance(off := keywords.get("markup"), ast.Constant) and off.value is False
        if not is_unparsed:
            for place, keyword in self._parsed(node.func, name):
                given = keywords.get(keyword)
                if given is None and place is not None and place < len(node.args):
                    given = node.args[place]
                if given is not None and not self._is_plain(given):
                    self._report(node, f"{name}({ast.unparse(given)})")
        self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module in FORBIDDEN_MODULES or any(alias.name in FORBIDDEN for alias in node.names):
            self._report(node, ast.unparse(node))
        if (node.module or "").startswith("textual"):
            self._imported |= {alias.asname or alias.name for alias in node.names}

    def _parsed(self, function: ast.expr, name: str) -> Iterator[tuple[int | None, str]]:
        for table in (PARSED_ARGUMENTS, PARSED_HELP):
            if name in table and name in self._imported:
                yield table[name]
        if name == "update" and isinstance(function, ast.Attribute) and self._is_static(function.value):
            yield 0, "content"
        if name == "notify":
            yield 0, "message"

    def _is_static(self, receiver: ast.expr) -> bool:
        """Return whether an updated object may be a widget that parses its content."""
        text = ast.unparse(receiver)
        if text == "self":
            return bool(self._classes) and self.package.derives(self._classes[-1], "Static")
        is_local = isinstance(receiver, ast.Name) and bool(self._imported & {"Static", "Label"})
        return is_local or text in self._statics or "Static" in text or "Label" in text

    def _is_input(self) -> bool:
        return bool(self._classes) and self.package.derives(self._classes[-1], "Input")

    def _is_plain(self, value: ast.expr | None, seen: frozenset[str] = frozenset()) -> bool:  # noqa: C901 - a table
        match value:
            case ast.Constant(value=text):
                return not isinstance(text, str) or "[" not in text
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_plain(body, seen) and self._is_plain(orelse, seen)
            case ast.BoolOp(values=values):
                return all(self._is_plain(one, seen) for one in values)
            case ast.BinOp(left=left, right=right):
                return self._is_plain(left, seen) and self._is_plain(right, seen)
            case ast.GeneratorExp() | ast.DictComp() | ast.Dict():
                return True
            case ast.NamedExpr(value=inner):
                return self._is_plain(inner, seen)
            case ast.Call(func=ast.Name(id="Content")):
                return True
            case ast.Call(func=ast.Name(id=name)):
                return name in self.package.plain_names or name == "highlight"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="Content"))):
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr=name)):
                return name in self.package.plain_names or (name in CONTENT_METHODS and self._is_plain(inner, seen))
            case ast.Attribute(attr=name):
                return name in self.package.plain_names
            case ast.Name(id=name):
                bound = self._scopes[-1].get(name, [])
                return name in seen or (bool(bound) and all(self._is_plain(one, seen | {name}) for one in bound))
        return False

    def _report(self, node: ast.AST, what: str) -> None:
        self.found.append((getattr(node, "lineno", 0), what))


CONTENT_METHODS = {"stylize", "stylize_before", "truncate", "join", "append", "expand_tabs", "pad", "rstrip"}


def _bindings(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[ast.expr | None]]:
    """Return the values that each local name of a function is bound to; None for an unknown one."""
    bound: dict[str, list[ast.expr | None]] = {}
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        bound[argument.arg] = [PLAIN if _is_plain_type(argument.annotation) else None]
    for inner in ast.walk(node):
        match inner:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    for name, part in _bound(target, value):
                        bound.setdefault(name, []).append(part)
            case (
                ast.AugAssign(target=ast.Name(id=name), value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                bound.setdefault(name, []).append(value)
            case ast.For(target=target) | ast.comprehension(target=target):
                names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
                for one in names:
                    bound.setdefault(one, []).append(None)
    for inner in ast.walk(node):
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            bound[inner.target.id] = [PLAIN if _is_plain_type(inner.annotation) else None]
    return bound


def _bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Tuple(elts=targets), ast.Tuple(elts=values):
            for one, part in zip(targets, values, strict=False):
                yield from _bound(one, part)
        case ast.Tuple(elts=others), _:
            yield from ((one.id, None) for one in others if isinstance(one, ast.Name))


def _found(sources: dict[str, str]) -> list[str]:
    """Return the lines where a text may be parsed as markup, as `file:line: code`."""
    files = {name: ast.parse(text) for name, text in sources.items()}
    package = _Package(files)
    found: list[str] = []
    for name, tree in files.items():
        reader = _Reader(package)
        reader.visit(tree)
        found += [f"{name}:{line}: {what}" for line, what in reader.found]
    return found


@pytest.mark.slow
@pytest.mark.promise("SEC-5", "TUI-4")
def test_only_content_and_literals_are_parsed_as_markup() -> None:
    assert _found({str(file.relative_to(SOURCE)): file.read_text() for file in SOURCE.rglob("*.py")}) == []


@pytest.mark.parametrize(
    "line",
    [
        "Static(name)",
        "Static(content=f'of {name}')",
        "self.border_title = name",
        "self.query_one('#box').border_subtitle = f'{name}'",
        "self.tooltip = name",
        "self.notify(f'Saved {name}')",
        "self.about.update(name)",
        "self.about.update('[b]' + name)",
        "Option(name, 1)",
        "Button(name)",
        "DiscoveryHit(Content(name), run, name, name)",
        "Hit(1.0, name, run)",
        "Content.from_markup(name)",
        "Text.from_markup(name)",
        "from textual.markup import escape",
        "self.matcher(name)",
    ],
)
def test_the_check_finds_each_way_to_parse_a_name(line: str) -> None:
    imported = "from textual.x import Button, DiscoveryHit, Hit, Option, Static\n"
    source = f"{imported}class X:\n  def f(self, name: str) -> None:\n    self.about = Static('')\n    {line}\n"
    assert _found({"x.py": source})


def test_every_dialog_closes_once() -> None:
    bases = {
        f"{file.name}: {ast.unparse(base)}"
        for file in SOURCE.rglob("*.py")
        if file.name != "dialog.py"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if "ModalScreen" in ast.unparse(base)
    }
    assert bases == set(), "a dialog derives from `pegboard.tui.widgets.dialog.Dialog`"


@pytest.mark.promise("SEC-5")
def test_every_input_shows_control_characters_as_pictures_or_hides_its_text() -> None:
    bare = []
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Input":
                written = ast.unparse(node)
                if "ControlPictures()" not in written and "password=True" not in written:
                    bare.append(f"{file.name}:{node.lineno}")
    assert bare == []
