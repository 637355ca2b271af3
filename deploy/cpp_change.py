# SPDX-License-Identifier: Apache-2.0
"""Changes of a C++ function, told by an identifier or a few tokens that it has once.

Knows brackets, literals, comments, and how clang-format breaks lines; no grammar.
"""

import bisect
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

TOKEN = re.compile(
    r"""(?P<space> \s+ ) | (?P<comment> //[^\n]* | /\*.*?\*/ )
      | R"(?P<mark>\w*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\])*" | \d[\w.']* | '(?:\\.|[^'\\])*' | \w+
      | :: | && | \|\| | [=!<>]= | .""",
    re.DOTALL | re.VERBOSE,
)
STATEMENT = re.compile(r"(?:^.*[^;{}:\s] *\n)*^.*; *$", re.MULTILINE)
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = set(OPENING.values())
BEFORE_BODY = re.compile(r"const|noexcept|override|final|ABSL_\w+")
AROUND_OPERANDS = {"&&", "||", "?", ":", ";", ",", "=", "return", "{", "}"}


class MisfitError(Exception):
    """What a change looks for is not there, or not only once."""


class Span(NamedTuple):
    """A part of a text, or of its tokens, from `begin` to before `end`."""

    begin: int
    end: int


class Function:
    """A function, with all that have its name, or a constant, in a file. Spans are those in the file."""

    def __init__(self, file: str, name: str) -> None:
        self.file = file
        self._code = TOKEN.sub(lambda match: " " * len(match[0]) if match["comment"] else match[0], file)
        tokens = [match for match in TOKEN.finditer(self._code) if not match["space"]]
        self._text = [token[0] for token in tokens]
        self._begin = [token.start() for token in tokens]
        self._end = [token.end() for token in tokens]
        self._other: dict[int, int] = {}  # the other one of two brackets
        opened: list[int] = []
        for at, text in enumerate(self._text):
            if text in OPENING:
                opened.append(at)
            elif text in CLOSING:
                self._other[at] = opened.pop()
                self._other[self._other[at]] = at
        self._name = name
        *outer, inner = name.split("::")
        named = [at for at, text in enumerate(self._text) if text == inner and self._is_in(at, *outer[-1:])]
        self._bodies = [body for at in named if (body := self._body(at + 1))]
        if not self._bodies:
            raise MisfitError(f"there is no {name}")

    def body(self) -> Span:
        """Find what is between its braces, or the value of a constant."""
        return self._only("its definition", self._bodies)

    def place(self, words: str) -> Span:
        """Find `words`, which are tokens or a part of a literal."""
        return self._only(words, self._places(words))

    def statement(self, words: str) -> Span:
        """Find the statement with `words`, together with the `if (...)` or `for (...)` before it."""
        found = [self._statement(place) for place in self._places(words)]
        return self._only(f"a statement without braces with {words}", found)

    def operand(self, words: str) -> Span:
        """Find the condition with `words`, or of `&&`, `||` and `return` the operand."""
        found = [self._operand(place) for place in self._places(words)]
        return self._only(f"a condition with {words}", found)

    def call(self, name: str) -> Span:
        """Find the call of `name`, without the object before it."""
        place = self.place(name)
        return Span(place.begin, self._end[self._other[bisect.bisect(self._begin, place.begin)]])

    def _only(self, what: str, found: Iterable[Span | None]) -> Span:
        spans = {span for span in found if span}
        if len(spans) != 1:
            raise MisfitError(f"{self._name}: {what} is there {len(spans)} times")
        return spans.pop()

    def _is_in(self, at: int, outer: str = "") -> bool:
        """Tell whether the name at a token is qualified by `outer`, or in a class of that name."""
        if not outer or self._text[at - 2 : at] == [outer, "::"]:
            return True
        named = [i for i, text in enumerate(self._text) if text == outer]
        classes = [i for i in named if {"class", "struct"} & set(self._text[i - 3 : i])]
        braces = [self._next(i, "{", ";") for i in classes]
        return any(self._text[brace] == "{" and brace < at < self._other[brace] for brace in braces)

    def _next(self, at: int, *wanted: str) -> int:
        """Find the next of some tokens, outside of brackets that open meanwhile."""
        while self._text[at] not in wanted:
            at = self._other[at] + 1 if self._text[at] in OPENING else at + 1
        return at

    def _body(self, at: int) -> Span | None:
        """Find the body of the function, or the value of the constant, whose name ends before a token."""
        if self._text[at] == "[":
            at = self._other[at] + 1
        if self._text[at] == "=":
            return Span(self._end[at], self._begin[self._next(at, ";")])
        if self._text[at] == "(":
            at = self._other[at] + 1
            while BEFORE_BODY.fullmatch(self._text[at]):
                at = self._other[at + 1] + 1 if self._text[at + 1] == "(" else at + 1
            while self._text[at] in (":", ",") and self._text[at + 2] in OPENING:  # a constructor's `: member_(value)`
                at = self._other[at + 2] + 1
        return Span(self._end[at], self._begin[self._other[at]]) if self._text[at] == "{" else None

    def _places(self, words: str) -> list[Span]:
        pattern = re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")
        return [Span(*match.span()) for body in self._bodies for match in pattern.finditer(self._code, *body)]

    def _statement(self, place: Span) -> Span | None:
        for match in STATEMENT.finditer(self._code):
            is_whole = all(match[0].count(one) == match[0].count(other) for one, other in OPENING.items())
            if match.start() <= place.begin < match.end() and is_whole:
                return Span(*match.span())
        return None

    def _operand(self, place: Span) -> Span | None:
        begin = bisect.bisect(self._begin, place.begin) - 1
        end = bisect.bisect_left(self._begin, place.end)
        while True:
            while self._text[begin - 1] not in AROUND_OPERANDS | set(OPENING):
                begin = self._other.get(begin - 1, begin - 1)
            while self._text[end] not in AROUND_OPERANDS | CLOSING:
                end = self._other.get(end, end) + 1
            before, after = self._text[begin - 1], self._text[end]
            is_condition = (before, after) == ("(", ")") and self._text[begin - 2] in ("if", "while")
            is_value = before in ("=", "return") and after == ";"
            if is_condition or is_value or before in ("&&", "||") or after in ("&&", "||", "?"):
                return Span(self._begin[begin], self._end[end - 1])
            begin -= 1
            while self._text[begin] not in OPENING:  # what the bracket belongs to that it is in
                begin = self._other.get(begin, begin) - 1
            if self._text[begin] == "{":
                return None
            end = self._other[begin] + 1


Change = Callable[[Function], dict[Span, str]]  # what becomes of parts of the file


def returns(value: str = "") -> Change:
    """Make the body `return value;`, or empty."""
    return lambda function: {function.body(): f" return {value}; " if value else ""}


def without(words: str) -> Change:
    """Leave out a statement."""
    return lambda function: {function.statement(words): ""}


def never(words: str, end: str = "&& false") -> Change:
    """Make a condition, or an operand of it, false. It is evaluated all the same."""

    def change(function: Function) -> dict[Span, str]:
        operand = function.operand(words)
        return {operand: f"(({function.file[slice(*operand)]}) {end})"}

    return change


def always(words: str) -> Change:
    """Make a condition, or an operand of it, true. It is evaluated all the same."""
    return never(words, "|| true")


def instead(old: str, new: str) -> Change:
    """Put something in the place of an identifier or a number."""
    return lambda function: {function.place(old): new}


def swapped(one: str, other: str) -> Change:
    """Put two calls in each other's place."""

    def change(function: Function) -> dict[Span, str]:
        first, second = function.call(one), function.call(other)
        return {first: function.file[slice(*second)], second: function.file[slice(*first)]}

    return change


def changed(file: str, name: str, change: Change) -> str:
    """Return the text of a file after a change of the function `name`."""
    for span, text in sorted(change(Function(file, name)).items(), reverse=True):
        file = file[: span.begin] + text + file[span.end :]
    return file
