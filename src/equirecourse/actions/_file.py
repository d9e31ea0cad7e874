"""An action set in a file: TOML or YAML."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
import yaml

from equirecourse._files import write_beside
from equirecourse._validation import shown
from equirecourse.actions._plain import to_dict
from equirecourse.actions._words import one_line

if TYPE_CHECKING:
    from equirecourse.actions._action_set import ActionSet

__all__ = ["check_labels", "read", "write"]

HEADER = """\
What a person can change, and what it costs: an action set of equirecourse.

One entry per feature. What is left out has its default, and a column that has no entry cannot change.
  kind       "number" (the default); "ordered": labels with an order; "labels": labels without one;
             "one_hot": several columns of which exactly one is 1
  change     "any" (the default), "increase", "decrease" or "no": the way the feature may move
  low, high  limits of a number after the change; somebody who is outside now may stay there
  step       a changed number is a multiple of it; 1 means whole numbers
  labels     all labels; of an "ordered" feature from the lowest to the highest
  allowed    the labels one may move to; by default all of them
  columns    the columns of a one-hot block, one per label
  cost       what a change by 1 costs, by default 1; without an order, what any change costs
"""
YAML_HEADER = "Put texts in quotes: YAML reads a bare yes or no as true or false.\n"
SECTIONS = {
    "links": "When the source moves by 1, the target moves along by the rate, at no cost.",
    "rules": "If the first condition holds after the change, so must the second.",
    "percentiles": "Where people stand, counted from data: the costs max_shift and log_shift need it. Not for editing.",
}


def write(actions: ActionSet, path: str | os.PathLike[str]) -> None:
    """Write the file, whole or not at all."""
    path = Path(path)
    as_text = {"toml": _as_toml, "yaml": _as_yaml}[_language(path)]
    check_labels(actions)
    text = as_text(to_dict(actions), actions.notes)
    write_beside(path, text)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Plain values of a file."""
    path = Path(path)
    language = _language(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")  # editors on Windows put a mark in front
        content = tomllib.loads(text) if language == "toml" else yaml.load(text, Loader=_Loader)
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {os.fspath(path)!r} to read an action set from.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{os.fspath(path)}: the file is not UTF-8 text; save it as UTF-8.") from None
    except (tomllib.TOMLDecodeError, yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{os.fspath(path)}: the file is not {language.upper()}: {reason}.") from None
    return {} if content is None else content


def _language(path: Path) -> str:
    languages = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
    if path.suffix.lower() not in languages:
        raise ValueError(f"An action set is kept in a file that ends in .toml, .yaml or .yml, got {os.fspath(path)!r}.")
    return languages[path.suffix.lower()]


def check_labels(actions: ActionSet) -> None:
    """Refuse labels that a file does not keep, such as dates."""
    for feature in actions:
        for label in feature.labels:
            if not isinstance(label, str | int | float):
                raise ValueError(
                    f"Feature {feature.name!r}: a file holds labels that are text, numbers or true and false, "
                    f"got {shown(label)}; put it in quotes."
                )


def _comment(text: str) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


# --- TOML ----------------------------------------------------------------------------------------------------------


def _as_toml(content: dict[str, Any], notes: tuple[str, ...]) -> str:
    # Table by table, because a comment is to stand in front of each.
    parts = [_comment(HEADER)]
    for name, values in content["features"].items():
        about = re.compile(rf"{re.escape(name)}(:| is| has| numbers) ")
        said = [_comment(one_line(note)) for note in notes if about.match(note)]
        parts.append("".join(said) + _toml_table("features", name, values))
    for section in ("links", "rules"):
        if section in content:
            parts.append(_comment(SECTIONS[section]) + tomlkit.dumps({section: content[section]}))
    for place, (name, values) in enumerate(content.get("percentiles", {}).items()):
        intro = _comment(SECTIONS["percentiles"]) if place == 0 else ""
        parts.append(intro + _toml_table("percentiles", name, values))
    return "\n".join(parts)


def _toml_table(section: str, name: str, values: dict[str, Any]) -> str:
    table = tomlkit.table()
    for key, value in values.items():
        table.add(key, value)
    above = tomlkit.table(is_super_table=True)
    above[name] = table
    document = tomlkit.document()
    document[section] = above
    return tomlkit.dumps(document)


# --- YAML ----------------------------------------------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    """Tables in blocks, lists of values on one line."""


class _Loader(yaml.SafeLoader):
    """Refuses a name that is given twice, of which YAML silently keeps the last."""


def _list_on_one_line(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.Node:
    flow = not any(isinstance(value, dict) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=flow)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # PyYAML writes some line breaks (U+0085) in a way it does not read back, unless they are escaped.
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _table_without_repetition(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    seen: set[Hashable] = set()
    for key_node, _ in node.value:
        if key_node.tag.endswith(":merge"):
            continue
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            break  # construct_mapping says so
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"{key!r} is given twice", key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Dumper.add_representer(list, _list_on_one_line)
_Dumper.add_representer(str, _text)
_Loader.add_constructor("tag:yaml.org,2002:map", _table_without_repetition)


def _as_yaml(content: dict[str, Any], notes: tuple[str, ...]) -> str:  # noqa: ARG001
    parts = [_comment(HEADER + YAML_HEADER)]
    for section, values in content.items():
        if section in SECTIONS:
            parts.append(_comment(SECTIONS[section]))
        parts.append(yaml.dump({section: values}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
    return "\n".join(parts)
