"""Incremental scanner of bash for highlighting and command names, line by line. Independent of Textual."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, Literal

from pegboard.data.mask import REDACTED

if TYPE_CHECKING:
    from pygments.lexer import Lexer

Kind = Literal["comment", "keyword", "builtin", "string", "variable", "number", "operator", "placeholder"]
"""Kind of a highlighted span."""
Piece = tuple[int, int, Kind]

PLACEHOLDER: Final = re.compile(rf"(?<!\S)<[^<>\s|&;()]+>(?!\S)|{REDACTED}")
"""An argument to fill in, such as `<path>`, or a redacted one."""
_LONGEST: Final = 2_000
"""Length from which a line isn't highlighted."""

_ENDS: Final = frozenset(" \t|&;()<>`")
"""Characters that end a word."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_OPERATOR: Final = re.compile(r"\|\||&&|;;&?|;&|\|&?|;|&(?!>)")
_REDIRECT: Final = re.compile(r"\d*(?:&>>?|<<<|<<-?|>>|>\||>&|<&|<>|<|>)")
_HERE: Final = re.compile(r"\s*(?:'([^']+)'|\"([^\"]+)\"|\\?([^\s|&;()<>'\"]+))")
_PLAIN: Final = re.compile(r"[^\s|&;()<>\\'\"$`]+")
_IN_DOUBLE: Final = re.compile(r"[^\"\\$`]+")
_FUNCTION: Final = re.compile(r"\s*\(\s*\)")

_FOLLOWED: Final = frozenset({"!", "do", "elif", "else", "if", "then", "time", "until", "while", "{"})
"""Keywords followed by a command."""
_UNFOLLOWED: Final = frozenset({"done", "esac", "fi", "for", "function", "in", "select", "}"})
"""Keywords not followed by a command."""
KEYWORDS: Final = _FOLLOWED | _UNFOLLOWED | {"case", "[[", "]]"}
_WRAPPERS: Final = frozenset({"command", "env", "exec", "nohup", "parallel", "time", "timeout", "xargs"})
"""Commands that run another command from their arguments."""
_OWN: Final = """
. : [ alias arch assert awk b2sum base32 base64 basename basenc bash bc bg bind break builtin bunzip2 busybox
bzcat bzip2 caller cat cd chgrp chmod chown cksum clear cmp column comm command compgen complete compopt
continue coproc cp csv curl cut date dd declare df diff dirname dirs disown dotenv du echo egrep enable env
envsubst eval exec exit expand export expr factor false fc fg fgrep file find flock fmt fold free gawk getconf
getopts glob grep groups gunzip gzip hash head help hexdump history hostid hostname http iconv id install jobs
join jq json kill less let link ln local locale log logname ls make man mapfile mawk md5sum mkdir mkfifo mktemp
more mv nano nawk nice nl nohup nproc numfmt od openssl parallel paste patch pgrep pkill popd pr printenv printf
ps pushd pwd read readarray readlink readonly realpath retry return rev rg rm rmdir sed semver seq set sh
sha1sum sha224sum sha256sum sha384sum sha512sum shasum shift shopt shuf sleep sort source split stat strings
sudo sum sync tac tail tar tee template test timeout times tomlq touch tr trap tree true truncate tsort tty type
typeset ulimit umask unalias uname unexpand uniq unlink unset unzip uptime users uuidgen verify vi wait watch wc
wget which who whoami xargs xxd yes yq zip
"""
SHELL: Final = frozenset(_OWN.split())
"""Builtin commands of the sandboxed shell."""


@dataclass(frozen=True, slots=True)
class ShellState:
    """State of the scanner at the start of a line."""

    around: tuple[str, ...] = ()
    """Open quotes, substitutions and groups, innermost last."""
    here: tuple[tuple[str, bool], ...] = ()
    """Delimiters of pending here-documents, and whether leading tabs are stripped."""
    wants: bool = True
    """Whether a command is expected."""


NOTHING: Final = ShellState()


@dataclass(frozen=True, slots=True)
class Word:
    """A word in command position, or an argument that another command may run."""

    start: int
    end: int
    text: str
    is_command: bool = True


@dataclass(frozen=True, slots=True)
class Scanned:
    """Result of scanning a line."""

    words: tuple[Word, ...] = ()
    strings: tuple[tuple[int, int], ...] = ()
    """Spans of quotes that continue across lines, and of here-documents."""
    functions: tuple[str, ...] = ()
    """Names of functions defined in the line."""
    after: ShellState = NOTHING
    """State at the end of the line."""


@lru_cache(maxsize=10_000)
def scan(line: str, before: ShellState) -> Scanned:
    """Return the commands of a line and the state at its end.

    Args:
        line: The line without its line break.
        before: State at the start of the line.
    """
    if before.here:
        (end, is_indented), *rest = before.here
        is_end = (line.lstrip("\t") if is_indented else line) == end
        after = replace(before, here=tuple(rest)) if is_end else before
        return Scanned(strings=((0, len(line)),), after=after)
    return _Scan(line, before).run()


@dataclass
class _Scan:
    line: str
    before: ShellState
    at: int = 0
    wants: bool = True
    is_target: bool = False
    """Whether the next word is the target of a redirection."""
    is_value: bool = False
    """Whether the current word is an assignment, which a command may follow."""
    command: str = ""
    words: list[Word] = field(default_factory=list)
    strings: list[tuple[int, int]] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    here: list[tuple[str, bool]] = field(default_factory=list)
    around: list[str] = field(default_factory=list)

    def run(self) -> Scanned:
        self.around += self.before.around
        self.wants = self.before.wants
        began = 0 if self._is_quoted else None
        is_continued = False
        while self.at < len(self.line):
            was_quoted, start = self._is_quoted, self.at
            is_continued = self._step()
            if was_quoted and not self._is_quoted and began is not None:
                self.strings.append((began, self.at))
                began = None
            elif self._is_quoted and not was_quoted:
                began = start
        if self._is_quoted:
            self.strings.append((began or 0, len(self.line)))
        elif not is_continued and not self._is_closed:
            self.wants = True
        after = ShellState(tuple(self.around), tuple(self.here), self.wants)
        return Scanned(tuple(self.words), tuple(self.strings), tuple(self.functions), after)

    @property
    def _top(self) -> str:
        return self.around[-1].removesuffix("=") if self.around else ""

    def _push(self, sign: str, *, wants: bool = False) -> None:
        self.around.append(f"{sign}=" if self.is_value else sign)
        self.wants, self.is_value = wants, False

    def _pop(self) -> None:
        """Close the innermost group. A command is expected only after a group within an assignment."""
        self.wants = self.is_value = self.around.pop().endswith("=")

    @property
    def _is_quoted(self) -> bool:
        return self._top in {"'", "$'", '"'}

    @property
    def _is_closed(self) -> bool:
        """Whether the innermost group can't contain commands."""
        return self._top in {"((", "${", "[[", "array", "case", "pattern"}

    def _step(self) -> bool:
        """Scan one token; return whether it is a backslash that continues the line."""
        line, at = self.line, self.at
        match self._top:
            case "'":
                self._close_at(line.find("'", at))
            case "$'":
                self._close_at(_end_of(line, at, "'"))
            case '"':
                if line[at] == '"':
                    self._close_at(at)
                elif not self._open_within(at):
                    found = _IN_DOUBLE.match(line, at)
                    self.at = found.end() if found else at + (2 if line[at] == "\\" else 1)
            case "((":
                end = line.find("))", at)
                self.at = len(line) if end < 0 else end + 2
                if end >= 0:
                    self._pop()
            case "${":
                if line[at] == "}":
                    self._close_at(at)
                elif line[at] in "'\"":
                    self._push(line[at])
                    self.at = at + 1
                elif not self._open_within(at):
                    self.at = at + (2 if line[at] == "\\" else 1)
            case _:
                return self._step_plain()
        return False

    def _close_at(self, end: int) -> None:
        self.at = len(self.line) if end < 0 else end + 1
        if end >= 0:
            self._pop()

    def _open_within(self, at: int) -> bool:
        """Open a substitution at `at`; return False if none starts there."""
        for sign in ("$((", "$(", "${", "`"):
            if self.line.startswith(sign, at):
                if sign == "`" and {"`", "`="} & {*self.around}:
                    while self._top != "`":
                        self.around.pop()
                    self._pop()
                else:
                    inside = {"$((": "((", "$(": "(", "${": "${", "`": "`"}[sign]
                    self._push(inside, wants=sign in {"$(", "`"})
                self.at = at + len(sign)
                return True
        return False

    def _step_plain(self) -> bool:
        line, at = self.line, self.at
        sign = line[at]
        is_start = at == 0 or line[at - 1] in _ENDS
        if sign.isspace():
            self.at = at + 1
            self.is_value = False
        elif sign == "#" and is_start:
            self.at = len(line)
        elif sign == "\\":
            self.at = at + 2
            self._note_unknown_word()
            return at + 1 == len(line)
        elif sign in "'\"":
            self._note_unknown_word()
            self._push(sign)
            self.at = at + 1
        elif line.startswith("$'", at):
            self._note_unknown_word()
            self._push("$'")
            self.at = at + 2
        elif self._open_within(at):
            pass
        elif sign in "()":
            self._parenthesis(sign)
        elif found := _REDIRECT.match(line, at):
            self._redirect(found)
        elif found := _OPERATOR.match(line, at):
            self.at = found.end()
            self.wants, self.is_target, self.is_value = not self._is_closed, False, False
            if self._top == "arm" and found[0].startswith(";;"):
                self.around[-1] = "pattern"
                self.wants = False
        elif found := _PLAIN.match(line, at):
            self._word(found, is_start=is_start)
        else:
            self.at = at + 1
        return False

    def _parenthesis(self, sign: str) -> None:
        line, at = self.line, self.at
        self.at = at + 1
        if sign == ")":
            if self._top == "pattern":
                self.around[-1] = "arm"
                self.wants = True
            elif self._top in {"(", "array"}:
                self._pop()
        elif self._top == "pattern":
            pass
        elif line.startswith("((", at) and self.wants and not self.is_value:
            self._push("((")
            self.at = at + 2
        elif self.is_value:
            self._push("array")
        else:
            self._push("(", wants=True)

    def _redirect(self, found: re.Match[str]) -> None:
        self.at = found.end()
        sign = found[0].lstrip("0123456789")
        if sign in {"<<", "<<-"}:
            if word := _HERE.match(self.line, self.at):
                self.here.append((next(filter(None, word.groups())), sign == "<<-"))
                self.at = word.end()
        elif self.line.startswith("(", self.at):
            self._push("(", wants=True)
            self.at += 1
            self.is_target = False
        else:
            self.is_target = True

    def _note_unknown_word(self) -> None:
        """Record a word that isn't a known command name."""
        if not self.is_value:
            self.command = ""
            self.wants = self.is_target = False

    def _word(self, found: re.Match[str], *, is_start: bool) -> None:
        line, word, self.at = self.line, found[0], found.end()
        is_whole = is_start and (self.at == len(line) or line[self.at] in _ENDS)
        if self._top in {"case", "pattern", "[[", "array"}:
            self._close_word(word)
        elif self.is_target:
            self.is_target = False
        elif self.wants and is_start and _ASSIGNMENT.match(word):
            self.is_value = True
        elif self.is_value:
            pass
        elif not self.wants or not is_whole:
            if is_whole and self.command in _WRAPPERS:
                self.words.append(Word(found.start(), self.at, word, is_command=False))
            elif is_whole and self.command == "function":
                self.functions.append(word)
                self._note_unknown_word()
            elif self.wants:
                self._note_unknown_word()
        elif definition := _FUNCTION.match(line, self.at):
            self.functions.append(word)
            self.at = definition.end()
        else:
            self._command(found.start(), word)

    def _close_word(self, word: str) -> None:
        if (word, self._top) == ("in", "case"):
            self.around[-1] = "pattern"
        elif (word, self._top) in {("esac", "pattern"), ("]]", "[[")}:
            self._pop()

    def _command(self, start: int, word: str) -> None:
        self.command = word
        self.wants = word in _FOLLOWED
        if word in {"case", "[["}:
            self._push(word)
        elif word == "esac" and self._top == "arm":
            self._pop()
        elif word not in KEYWORDS:
            self.words.append(Word(start, self.at, word))


def _end_of(line: str, at: int, quote: str) -> int:
    """Return the index of the closing quote, skipping escaped characters, or -1."""
    while at < len(line) and line[at] != quote:
        at += 2 if line[at] == "\\" else 1
    return at if at < len(line) else -1


@lru_cache(maxsize=10_000)
def pieces(line: str, before: ShellState) -> Sequence[Piece]:
    """Return the highlighted spans of a line except commands. Later spans override earlier ones.

    Args:
        line: The line.
        before: State at the start of the line.
    """
    if len(line) > _LONGEST:
        return ()
    scanned = scan(line, before)
    strings: list[Piece] = [(start, end, "string") for start, end in scanned.strings]
    code = 0 if not strings or strings[0][0] else strings[0][1]
    found: list[Piece] = [] if code == len(line) else [*_lexed(line, code)]
    placeholders: list[Piece] = [(*match.span(), "placeholder") for match in PLACEHOLDER.finditer(line)]
    return (*found, *strings, *placeholders)


def _lexed(line: str, start: int) -> Sequence[Piece]:
    """Return the spans of Pygments for a line from a column on."""
    from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String

    kinds: tuple[tuple[object, Kind], ...] = (
        (Comment, "comment"),
        (Keyword, "keyword"),
        (Name.Variable, "variable"),
        (String.Interpol, "variable"),
        (String, "string"),
        (Number, "number"),
        (Name.Builtin, "builtin"),
        (Operator, "operator"),
        (Punctuation, "operator"),
    )
    found: list[Piece] = []
    for at, token, text in _lexer().get_tokens_unprocessed(f"{line[start:]}\n"):
        kind = next((kind for wanted, kind in kinds if token in wanted), None)  # type: ignore[operator]
        if kind is not None:
            found.append((start + at, start + at + len(text.rstrip("\n")), kind))
    return found


@cache
def _lexer() -> Lexer:
    from pygments.lexers.shell import BashLexer

    return BashLexer()
