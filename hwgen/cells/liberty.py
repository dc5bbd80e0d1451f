"""Liberty syntax: text to a tree of groups, with no idea what the groups mean.

The grammar is small (Liberty User Guide, volume 1, chapter 1): ``name (args) { ... }`` is a group,
``name : value ;`` a simple attribute, ``name (args) ;`` a complex one. One regular expression matches one
whole statement, which reads 15 MB in about a second; the package ``liberty-parser`` 0.0.29 takes ten times
as long for the same file, keeps no line numbers, and its ``lark`` cannot be installed beside the
``lark-parser`` of other tools.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hwgen.errors import InputError

__all__ = ["Attribute", "Group", "merge", "parse", "read_text", "split_arguments"]

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_COMMENT = re.compile(_STRING + r"|/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_STATEMENT = re.compile(
    rf"""[\s;\\]*(?:
        (?P<close>\}})
      | (?P<name>[A-Za-z_][\w.\[\]-]*)\s*(?:
            :[ \t]*(?:\\\r?\n\s*)?(?P<value>{_STRING}|[^;\n{{}}"]*)[ \t]*;?
          | \((?P<args>[^()"{{}};]*(?:{_STRING}[^()"{{}};]*)*)\)\s*(?P<open>\{{)?
        )
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_FILLER = re.compile(r"[\s;\\]*")
_ARGUMENT = re.compile(rf"{_STRING}|[^\s,\\]+")
_BRACE = re.compile(_STRING + r"|[{}]", re.DOTALL)
_CONTINUATION = re.compile(r"\\\r?\n\s*")
# DEL and C0 controls other than white space; no Liberty file has them, every binary file does.
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


@dataclass(slots=True)
class Attribute:
    """One attribute: its text (quotes of a simple value removed, arguments as written) and its line."""

    text: str
    line: int


@dataclass(slots=True)
class Group:
    """One group.

    Attributes
    ----------
    kind : str
        ``library``, ``cell``, ``pin``, ...
    args : str
        The text between the parentheses, as written; see `names`.
    line : int
        Line of the first character, from 1.
    attributes : dict of str to Attribute
        Simple and complex attributes; of several with one name the last.
    groups : list of Group
        In the order of the file.
    repeated : dict of str to list of Attribute
        Complex attributes that occur more than once, every occurrence (``voltage_map``, ``fanout_length``).
    """

    kind: str
    args: str
    line: int
    attributes: dict[str, Attribute] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    repeated: dict[str, list[Attribute]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The arguments, unquoted."""
        return split_arguments(self.args)

    def get(self, name: str, default: str = "") -> str:
        """Text of a simple attribute, or `default`."""
        found = self.attributes.get(name)
        return default if found is None else found.text

    def every(self, name: str) -> list[Attribute]:
        """All attributes called `name`, in order."""
        if name in self.repeated:
            return self.repeated[name]
        return [self.attributes[name]] if name in self.attributes else []

    def children(self, *kinds: str) -> Iterator[Group]:
        """Subgroups of the given kinds, in the order of the file."""
        return (group for group in self.groups if group.kind in kinds)


def split_arguments(text: str) -> list[str]:
    """Split the text between parentheses at commas and white space; quotes go, line continuations too."""
    return [_unquote(match.group()) for match in _ARGUMENT.finditer(_CONTINUATION.sub(" ", text))]


def _unquote(text: str) -> str:
    if text.startswith('"'):
        text = text[1:-1]
        if "\\" in text:
            text = _CONTINUATION.sub("", text).replace('\\"', '"')
    return text.strip()


def read_text(path: str | Path) -> tuple[str, bytes]:
    """Read a Liberty file, plain or gzip (by its name or its first bytes).

    Returns
    -------
    text : str
    data : bytes
        The uncompressed contents, for a digest.

    Raises
    ------
    InputError
        If the file is missing, a directory, unreadable, not the gzip file its name promises, or not text.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a directory; expected a Liberty file (.lib or .lib.gz)")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a Liberty file (.lib or .lib.gz)") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); expected a Liberty file") from None
    if path.suffix.lower() == ".gz" or data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{path}: not a complete gzip file; expected compressed Liberty") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    junk = _BINARY.search(text)
    if junk:
        line = text.count("\n", 0, junk.start()) + 1
        raise InputError(f"{path}:{line}: binary data; expected Liberty text, as 'library (name) {{ ... }}'")
    return text, data


def _blank(match: re.Match[str]) -> str:
    text = match.group()
    return text if text.startswith('"') else "\n" * text.count("\n") or " "


def parse(text: str, path: str | Path, skip: Collection[str] = ()) -> Group:
    """Parse Liberty text.

    Parameters
    ----------
    text : str
    path : path
        For messages only.
    skip : collection of str
        Kinds of groups to leave out unparsed, only their braces matched.

    Returns
    -------
    Group
        The ``library`` group.

    Raises
    ------
    InputError
        With file and line, if the text is no Liberty or does not hold one ``library`` group.
    """
    text = _COMMENT.sub(_blank, text)
    root = Group("", "", 1)
    stack = [root]
    position, line, counted = 0, 1, 0
    match_at = _STATEMENT.match
    while True:
        match = match_at(text, position)
        if match is None:
            start = _FILLER.match(text, position).end()  # type: ignore[union-attr]
        elif match["name"] is not None:
            start = match.start("name")
        else:
            start = match.end()
        line += text.count("\n", counted, start)
        counted = start
        if match is None:
            shown = text[start : start + 30].split("\n")[0]
            cut = "" if re.search("[;{}]", text[start:]) else " (is the file truncated?)"
            raise InputError(
                f"{path}:{line}: cannot read {shown!r}; expected 'name : value;', 'name (...);' or a group{cut}"
            )
        position = match.end()
        group = stack[-1]
        name = match["name"]
        if name is None:
            if match["close"] is not None:
                if len(stack) == 1:
                    raise InputError(f"{path}:{line}: '}}' without its '{{'; expected one fewer")
                stack.pop()
                continue
            break
        if match["open"] is not None:
            if name in skip:
                position = _skip(text, position)
                continue
            child = Group(name, match["args"], line)
            group.groups.append(child)
            stack.append(child)
            continue
        value = match["value"]
        attribute = Attribute(match["args"] if value is None else _unquote(value), line)
        if value is None and name in group.attributes:
            group.repeated.setdefault(name, [group.attributes[name]]).append(attribute)
        group.attributes[name] = attribute
    if len(stack) > 1:
        opened = stack[-1]
        raise InputError(
            f"{path}:{opened.line}: the file ends inside the group '{opened.kind} ({opened.args.strip()})'; "
            "expected a closing '}' (is the file truncated?)"
        )
    libraries = list(root.children("library"))
    if not libraries:
        raise InputError(f"{path}: no 'library' group; expected a Liberty file, 'library (name) {{ ... }}'")
    if len(libraries) > 1:
        raise InputError(
            f"{path}:{libraries[1].line}: a second 'library' group; expected one in a file, each by its --liberty"
        )
    return libraries[0]


def _skip(text: str, position: int) -> int:
    """End of the group whose opening brace ends at `position`; the end of the text if it never closes."""
    depth = 1
    for match in _BRACE.finditer(text, position):
        brace = match.group()
        if brace == "{":
            depth += 1
        elif brace == "}":
            depth -= 1
            if depth == 0:
                return match.end()
    return len(text)


def merge(texts: Sequence[str]) -> str:
    """Join the files of one library into one text: the first one's header, everyone's templates and cells.

    ABC merges files itself, but keeps cells of the first one from being used as inverters and buffers unless
    it holds the gates, and then crashes.

    Parameters
    ----------
    texts
        Well-formed Liberty files, see `parse`.
    """
    first, *others = texts
    if not others:
        return first
    plain = _COMMENT.sub(_blank, first)
    known = {" ".join(plain[start:opening].split()) for start, opening, _ in _library_groups(plain)}
    parts = [plain[: plain.rindex("}")]]
    for text in others:
        plain = _COMMENT.sub(_blank, text)
        for start, opening, end in _library_groups(plain):
            header = " ".join(plain[start:opening].split())
            if header not in known:
                known.add(header)
                parts.append(plain[start:end])
    return "\n".join([*parts, "}", ""])


def _library_groups(text: str) -> Iterator[tuple[int, int, int]]:
    """Start, opening brace and end of every group directly in the library, comments being blanked."""
    depth = start = opening = 0
    for match in _BRACE.finditer(text):
        brace = match.group()
        if brace == "{":
            depth += 1
            if depth == 2:
                opening = match.start()
                start = max(text.rfind(mark, 0, opening) for mark in ";{}") + 1
        elif brace == "}":
            depth -= 1
            if depth == 1:
                yield start, opening, match.end()
