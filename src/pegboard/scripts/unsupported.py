r"""Syntax that bashkit runs differently from bash without an error; scripts that contain it are not run.

Properties of bashkit 0.20 that this module relies on:

- Within `${…}`, double quotes in `$(…)` become a character of its output, and backticks are text.
- Within `((…))`, double quotes in `$(…)` are ignored, so that words are split.
- In `"${x/…}"` and `"${x%…}"`, `\\` becomes nothing or another character, and so does `"` within single quotes.
- In an assignment, backticks within double quotes are text.
- `> >(…)` after a compound command or `exec` drops the output.
- `EPOCHSECONDS` and `EPOCHREALTIME` are unset.

A scanner finds these. Then the parser confirms each one, with a command in its place that the parser reports, so that
text in comments, quotes and here-documents isn't mistaken for syntax.
"""

from __future__ import annotations

import re

from bashkit import Bash, BashError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PROBE = "_pegboard_probe"
_MOST_CONFIRMED = 20
"""Findings that the parser confirms; further ones need no confirmation."""
_MOST_MISREAD = 100
"""Times that `((` may turn out to be two subshells; each time is a second reading."""
_SUSPECT = re.compile(r">\(|`|\$\{(?!#?[\w@*]+(?:\[[\w@*]+\])?\})|\(\(|EPOCH")
_FIRST = "; assign the output of $(…) to a variable first"
_IN_PARAMETER = "$(…) with double quotes within ${…}" + _FIRST
_TICKS_IN_PARAMETER = "backticks within ${…}" + _FIRST
_IN_ARITHMETIC = "$(…) with double quotes within ((…))" + _FIRST
_TICKS_IN_ASSIGNMENT = "backticks within the double quotes of an assignment; use $(…)"
_PATTERN_IN_QUOTES = '{} within "${{…}}"; assign without double quotes, as in v=${{…}}'
_OUTPUT = "output of a compound command or of exec to >(…); use a pipe or a file"
_EPOCH = "{}, which is unset; use $(date +%s)"
_TO_PROCESS = re.compile(r"(?:\d+|&)?>>?\|?[ \t]*>\(")
_EPOCHS = re.compile(r"\$\{?(EPOCH(?:SECONDS|REALTIME))\b\}?")
_STARTS = re.compile(r"(?:\A|[;&|({\n])[ \t]*\Z")
_QUOTE = re.compile(r'(?<!\\)"')
_SAFE_QUOTES = re.compile(r'"[\w+%./:,@=-]*"')
"""Quotes that have no effect."""
_PLAIN = re.compile(r"[^\s'\"\\$`(){}<>;&|#]+")
_QUOTED = re.compile(r"[^\"\\$`]+")
_SINGLE = re.compile(r"'[^'\n]*'")
_ANSI = re.compile(r"\$'(?:[^'\\]|\\.)*'?", re.DOTALL)
_TICKS = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_PATTERN = re.compile(r"\$\{[!#]?[\w@*]+(?:\[[^\]]*\])?([#%/^,])")
"""Start of an expansion in which single quotes are quotes even within double quotes."""
_HERE = re.compile(r"<<(-?)[ \t]*((?:'[^']*'|\"[^\"]*\"|\\.|[^\s'\"\\|&;()<>])+)")
_FOLLOWED = frozenset({"!", "do", "elif", "else", "if", "then", "time", "until", "while", "{"})
_RUNNERS = frozenset({"bash", "command", "env", "eval", "find", "nohup", "parallel", "sh", "timeout", "trap", "xargs"})
"""Commands that may run a script from their arguments."""
_SIGNS = ("sh ", "eval", "parallel", "trap")
"""Texts of which a script contains one if it does that."""


def unsupported(script: str) -> str | None:
    """Return the position of the first unsupported syntax and what to use instead; None if a script has none.

    Args:
        script: The script.
    """
    found = _first(script)
    if found is None:
        return None
    at, reason = found
    line, column = script.count("\n", 0, at) + 1, at - script.rfind("\n", 0, at)
    return f"unsupported syntax at line {line}, column {column}: {reason}"


def _first(script: str) -> tuple[int, str] | None:
    """Return the position of the first unsupported syntax and the reason."""
    if not _SUSPECT.search(script):
        return None
    try:
        scanned = _Scan(script, 0, len(script), [], [])
        scanned.commands("")
    except RecursionError:
        return None
    findings = sorted([*scanned.found, *_outputs(script), *_epochs(script)], key=lambda finding: finding.at)
    for number, finding in enumerate(findings):
        if number >= _MOST_CONFIRMED or _is_confirmed(script, finding):
            return finding.at, finding.reason
    return next(_nested(script), None) if any(name in script for name in _SIGNS) else None


class _Finding:
    """Unsupported syntax at `at`, in an outermost construct from `start` to `end`.

    The parser reports the probe if it takes the place of that construct.
    """

    __slots__ = ("at", "end", "probe", "reason", "start")

    def __init__(self, at: int, start: int, end: int, probe: str, reason: str) -> None:
        self.at = at
        self.start = start
        self.end = end
        self.probe = probe
        self.reason = reason


def _outputs(script: str) -> Iterator[_Finding]:
    """Yield each `> >(…)` that is not the start of a command."""
    for found in _TO_PROCESS.finditer(script):
        at = found.start()
        if not _STARTS.search(script, max(at - 100, 0), at):
            yield _Finding(at, at, found.end(), f" {_PROBE} <(", _OUTPUT)


def _epochs(script: str) -> Iterator[_Finding]:
    """Yield each use of the time as a variable."""
    for found in _EPOCHS.finditer(script):
        yield _Finding(found.start(), *found.span(), f"$({_PROBE})", _EPOCH.format(found[1]))


def _is_confirmed(script: str, finding: _Finding) -> bool:
    try:
        parsed = Bash().analyze(script[: finding.start] + finding.probe + script[finding.end :])
    except BashError:
        return True  # lines before a syntax error will run
    if parsed.truncated:
        return True
    return any(
        command.name == _PROBE or (finding.reason == _OUTPUT and command.name == "exec" and _PROBE in command.args)
        for command in parsed.commands
    )


def _nested(script: str) -> Iterator[tuple[int, str]]:
    """Yield unsupported syntax in the arguments of commands that run them, with the position of the argument."""
    try:
        commands = Bash().analyze(script).commands
    except BashError:
        return
    for text in (word for command in commands if command.name in _RUNNERS for word in command.args):
        if text is not None and len(text) < len(script) and (found := _first(text)) is not None:
            yield max(script.find(text), 0), found[1]


class _Scan:
    """Scanner of a part of a script.

    Args:
        text: The script.
        at: Where the part starts.
        end: Where it ends.
        within: Start and opening characters of each `${`, `((` and `$((` around it.
        found: List for the findings.
    """

    def __init__(self, text: str, at: int, end: int, within: list[tuple[int, str]], found: list[_Finding]) -> None:
        self._text = text
        self._at = at
        self._end = end
        self._within = within
        self._here: list[tuple[str, bool, bool]] = []
        self._misread = 0
        self.found = found

    def commands(self, end: str) -> None:
        """Scan commands, up to and including a parenthesis if `end` is one."""
        cases: list[str] = []
        word, is_command = self._at, True
        while self._at < self._end:
            at, sign = self._at, self._text[self._at]
            if sign == ")" and cases[-1:] == ["pattern"]:
                cases[-1] = "body"
                self._at += 1
                word, is_command = self._at, True
            elif sign == end:
                self._at += 1
                return
            elif sign.isspace() or sign in ";&|":
                self._at += 1
                if sign == "\n":
                    self._skip_here_documents()
                elif sign == ";" and cases and self._text.startswith((";;", ";&"), at):
                    cases[-1] = "pattern"
                word, is_command = self._at, is_command or sign in "\n;&|"
            elif sign == "#" and at == word:
                self._skip_to("\n", 0)
            elif plain := _PLAIN.match(self._text, at, self._end):
                self._at = plain.end()
                if at == word:
                    is_command = _follow(plain[0], cases, is_command=is_command)
            elif sign == "(" and cases[-1:] == ["pattern"] and at == word:
                self._at += 1
                word = self._at
            else:
                self._special(word)

    def _special(self, word: int) -> None:
        """Scan what starts with a special character, in the word that starts at `word`."""
        at, sign = self._at, self._text[self._at]
        if sign == "'":
            self._at += 1
            self._skip_to("'", 1)
        elif sign == '"':
            self._quotes(word)
        elif ansi := _ANSI.match(self._text, at, self._end):
            self._at = ansi.end()
        elif self._text.startswith("<<<", at):
            self._at += 3
        elif here := _HERE.match(self._text, at, self._end):
            self._at = here.end()
            delimiter = re.sub(r"['\"\\]", "", here[2])
            self._here.append((delimiter, delimiter != here[2], bool(here[1])))
        elif at == word and self._text.startswith("((", at) and self._arithmetic("(("):
            pass
        elif sign == "(" or self._text.startswith(("<(", ">("), at):
            self._at += 1 if sign == "(" else 2
            self.commands(")")
        elif not self._substitution():
            self._at += 2 if sign == "\\" else 1

    def _substitution(self, *, is_quoted: bool = False) -> bool:
        """Scan a substitution; return whether one starts here."""
        at = self._at
        if self._text.startswith("$((", at) and self._arithmetic("$(("):
            return True
        if self._text.startswith("$(", at):
            self._at += 2
            self.commands(")")
            self._check(at, is_ticks=False)
            return True
        if self._text.startswith("${", at):
            self._parameter(is_quoted=is_quoted)
            return True
        if ticks := _TICKS.match(self._text, at, self._end):
            _Scan(self._text, *ticks.span(1), [*self._within], self.found).commands("")
            self._at = ticks.end()
            self._check(at, is_ticks=True)
            return True
        return False

    def _check(self, at: int, *, is_ticks: bool) -> None:
        """Note a command substitution that is unsupported because of what contains it."""
        signs = {sign for _, sign in self._within}
        inner = self._text[at : self._at]
        if "${" in signs and is_ticks:
            self._note(at, _TICKS_IN_PARAMETER)
        elif "${" in signs and _QUOTE.search(inner):
            self._note(at, _IN_PARAMETER)
        elif "((" in signs and _QUOTE.search(inner if "'" in inner else _SAFE_QUOTES.sub("", inner)):
            self._note(at, _IN_ARITHMETIC)

    def _note(self, at: int, reason: str) -> None:
        """Note a finding; the end of the construct that contains it isn't known yet."""
        start, sign = self._within[0]
        self.found.append(_Finding(at, start, 0, sign, reason))

    def _leave(self) -> None:
        """Complete the findings within the construct that ends here."""
        start, sign = self._within.pop()
        if self._within:
            return
        probe = f"$({_PROBE})"
        if sign == "((":
            probe = f" each in {probe}" if re.search(r"\bfor[ \t]*$", self._text[:start]) else f" {_PROBE}"
        for finding in self.found:
            if finding.start == start and not finding.end:
                finding.end, finding.probe = self._at, probe

    def _quotes(self, word: int) -> None:
        """Scan double quotes in a word."""
        is_assigned = not self._within and _ASSIGNED.match(self._text, word, self._at)
        self._at += 1
        while self._at < self._end and self._text[self._at] != '"':
            at = self._at
            self._in_quotes()
            if is_assigned and self._text[at] == "`":
                self.found.append(_Finding(at, at, self._at, f"$({_PROBE})", _TICKS_IN_ASSIGNMENT))
        self._at += 1

    def _in_quotes(self) -> None:
        """Scan a part of double quotes or of a here-document."""
        if plain := _QUOTED.match(self._text, self._at, self._end):
            self._at = plain.end()
        elif not self._substitution(is_quoted=True):
            self._at += 2 if self._text[self._at] == "\\" else 1

    def _parameter(self, *, is_quoted: bool) -> None:
        pattern = _PATTERN.match(self._text, self._at)
        is_at_risk = is_quoted and pattern is not None and pattern[1] in "/%"
        has_quotes = not is_quoted or pattern is not None
        self._within.append((self._at, "${"))
        self._at += 2
        while self._at < self._end and self._text[self._at] != "}":
            at = self._at
            if self._text[at] == '"':
                self._quotes(at)
            elif self._text[at] == "'" and has_quotes:
                quoted = _SINGLE.match(self._text, at, self._end)
                self._at = quoted.end() if quoted else at + 1
                if is_at_risk and '"' in self._text[at : self._at]:
                    self._note(at, _PATTERN_IN_QUOTES.format("a double quote in single quotes"))
            elif is_at_risk and self._text.startswith("\\\\", at):
                self._at += 2
                self._note(at, _PATTERN_IN_QUOTES.format("a backslash in a pattern or its replacement"))
            elif not self._substitution(is_quoted=is_quoted):
                self._at += 2 if self._text[self._at] == "\\" else 1
        self._at += 1
        self._leave()

    def _arithmetic(self, sign: str) -> bool:
        """Scan arithmetic; return False if the parentheses are subshells."""
        start, depth, known = self._at, 0, len(self.found)
        self._within.append((start, sign))
        self._at += len(sign)
        while self._at < self._end:
            char = self._text[self._at]
            if char == ")" and not depth:
                if not self._text.startswith("))", self._at):
                    break
                self._at += 2
                self._leave()
                return True
            depth += (char == "(") - (char == ")")
            if char == '"':
                self._quotes(self._at)
            elif not self._substitution():
                self._at += 2 if char == "\\" else 1
        self._within.pop()
        self._at = start
        del self.found[known:]
        self._misread += 1
        if self._misread > _MOST_MISREAD:
            raise RecursionError
        return False

    def _skip_to(self, sign: str, beyond: int) -> None:
        end = self._text.find(sign, self._at, self._end)
        self._at = self._end if end < 0 else end + beyond

    def _skip_here_documents(self) -> None:
        """Skip the bodies of here-documents; scan those that are expanded."""
        for delimiter, is_quoted, is_indented in self._here:
            start = end = self._at
            while self._at < self._end:
                end = self._at
                self._skip_to("\n", 1)
                line = self._text[end : self._at].rstrip("\n")
                if (line.lstrip("\t") if is_indented else line) == delimiter:
                    break
            body = _Scan(self._text, start, end, [*self._within], self.found)
            while not is_quoted and body._at < end:
                body._in_quotes()
        self._here.clear()


def _follow(word: str, cases: list[str], *, is_command: bool) -> bool:
    """Update the state of open `case`s; return whether a command may follow a word."""
    if is_command and word == "case":
        cases.append("word")
    elif word == "in" and cases[-1:] == ["word"]:
        cases[-1] = "pattern"
    elif word == "esac" and cases and (is_command or cases[-1] == "pattern"):
        cases.pop()
    elif is_command:
        return word in _FOLLOWED
    return False
