"""Damage and attacks on files of ours: what `fuzz_files` and the tests try to load."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator

HOSTILE_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**63, -(2**63), 10**30, 1e308, -0.0, "", "x", "inf", "nan"),
    *([], {}, [[]], [None], {"items": []}, {"number": "nan"}, {"float": "nan"}, {"fold": "9"}),
    *({"decimal": "sNaN"}, {"date": "2020-13-01"}, "\ud800", "a" * 5000, ["a"] * 500, "_x", "$x$"),
    *("../../etc/passwd", "header", "<script>", "a\nb", [1, [2, [3]]], {"a": {"b": {}}}),
)
"""What a value of the header is replaced by."""

HOSTILE_NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1e308, -1e308, 5e-324, 1e-200, 2.0**53)
"""What a number of an array is replaced by."""


def parts_of(data: bytes) -> tuple[bytes, dict[str, Any], dict[str, Any]]:
    """The kind of a file with its version, its header, and its arrays."""
    first, text, numbers = data.split(b"\n", 2)
    header, arrays, place = json.loads(text), {}, 0
    for name, shape in header["arrays"].items():
        end = place + 8 * math.prod(shape)
        kind = np.int64 if name.endswith("count") else np.float64
        arrays[name] = np.frombuffer(numbers[place:end], kind).reshape(shape).copy()
        place = end
    return first.rpartition(b" ")[0], header, arrays


def signed(kind: bytes, text: bytes, numbers: bytes) -> bytes:
    """The file with a checksum that fits, as someone who means harm writes it."""
    rest = text + b"\n" + numbers
    return kind + b" " + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def file_of(kind: bytes, header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """The file with this header and the numbers of these arrays."""
    numbers = b"".join(array.tobytes() for array in arrays.values())
    return signed(kind, json.dumps(header).encode(), numbers)


def with_header(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """What changes the header of a file, with a checksum that fits."""

    def forged(data: bytes) -> bytes:
        kind, header, arrays = parts_of(data)
        change(header)
        return file_of(kind, header, arrays)

    return forged


def with_array(name: str, change: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    """What changes an array of a file and what the header says of it, with a fitting checksum."""

    def forged(data: bytes) -> bytes:
        kind, header, arrays = parts_of(data)
        arrays[name] = np.asarray(change(arrays[name]))
        header["arrays"][name] = arrays[name].shape
        return file_of(kind, header, arrays)

    return forged


# Damage: whatever happens to bytes


def flipped(data: bytes, rng: Rng, _: bytes) -> bytes:
    """One to eight bits are others."""
    changed = bytearray(data)
    for place in rng.integers(0, len(data), rng.integers(1, 9)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwritten(data: bytes, rng: Rng, _: bytes) -> bytes:
    """A run of bytes is random."""
    start, length = int(rng.integers(len(data))), int(rng.integers(1, 64))
    return data[:start] + rng.bytes(length) + data[start + length :]


def cut(data: bytes, rng: Rng, _: bytes) -> bytes:
    """The end, the beginning or a piece in the middle is missing."""
    a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    return (data[:a], data[a:], data[:a] + data[b:])[rng.integers(3)]


def spliced(data: bytes, rng: Rng, other: bytes) -> bytes:
    """A piece comes from elsewhere in the file, or from a file of another kind."""
    source = (data, other)[rng.integers(2)]
    a, b = sorted(rng.integers(0, len(source) + 1, 2).tolist())
    start = int(rng.integers(len(data)))
    kept = start + (b - a) * int(rng.integers(2))
    return data[:start] + source[a:b] + data[kept:]


# Attacks: the checksums fit


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    parts = value.items() if isinstance(value, dict) else ()
    for key, part in enumerate(value) if isinstance(value, list) else parts:
        found += _places(part, (*path, key))
    return found


def other_header(data: bytes, rng: Rng, _: bytes) -> bytes:
    """Values of the header are replaced, removed, repeated or exchanged."""
    kind, header, arrays = parts_of(data)
    for _n in range(int(rng.integers(1, 4))):
        places = _places(header)[1:]
        # By section first, so that the many columns do not take all the changes.
        first = sorted({str(place[0]) for place in places})
        section = first[rng.integers(len(first))]
        inside = [place for place in places if str(place[0]) == section]
        *path, key = inside[rng.integers(len(inside))]
        holder = header
        for step in path:
            holder = holder[step]
        action = int(rng.integers(4))
        if action == 0:
            del holder[key]
        elif action == 1 and isinstance(holder, list):
            holder.append(holder[key])
        elif action == 2:
            *from_path, from_key = places[rng.integers(len(places))]
            source = header
            for step in from_path:
                source = source[step]
            holder[key] = json.loads(json.dumps(source[from_key]))
        else:
            value = HOSTILE_VALUES[rng.integers(len(HOSTILE_VALUES))]
            holder[key] = json.loads(json.dumps(value))
        if not _places(header)[1:]:
            break
    return file_of(kind, header, arrays)


def other_numbers(data: bytes, rng: Rng, _: bytes) -> bytes:
    """Numbers of arrays are others, or whole arrays are of another shape or type."""
    names = list(parts_of(data)[2])
    name = names[rng.integers(len(names))]
    action = int(rng.integers(10))

    def change(array: Any) -> Any:
        if action < 5 and array.size:
            number = HOSTILE_NUMBERS[rng.integers(len(HOSTILE_NUMBERS))]
            array.flat[rng.integers(array.size)] = np.asarray(number).astype(array.dtype)
        elif action == 5 and array.size:
            array.flat[rng.integers(array.size)] *= -1
        elif action == 6:
            array = (array * (1 + 1e-3 * rng.normal(size=array.shape))).astype(array.dtype)
        elif action == 7:
            array = array.T
        elif action == 8:
            array = array.ravel()[: int(rng.integers(array.size + 1))]
        else:
            kinds: list[Any] = [np.float32, ">f8", np.int64, np.float64, complex, bool]
            array = array.astype(kinds[rng.integers(len(kinds))])
        return array

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return with_array(name, change)(data)


def other_shapes(data: bytes, rng: Rng, _: bytes) -> bytes:
    """What the header says of the arrays is another: names, shapes, their order."""
    kind, header, arrays = parts_of(data)
    shapes = header["arrays"]
    names = list(shapes)
    name = names[rng.integers(len(names))]
    strange: list[Any] = [[999999999999], [-1, -1], [], [[[]]], [10**6] * 3, [0], [2.0], [True]]
    strange += ["2", None, {}, [10**30], [-5, -8], 7]
    action = int(rng.integers(5))
    if action == 0:
        del shapes[name]
    elif action == 1:
        shapes[f"extra{rng.integers(10)}"] = shapes[name]
    elif action == 2:
        order = rng.permutation(names).tolist()
        header["arrays"] = {name: shapes[name] for name in order}
    else:
        shapes[name] = strange[rng.integers(len(strange))]
    return file_of(kind, header, arrays)


def other_parts(data: bytes, rng: Rng, _: bytes) -> bytes:
    """The file's own structure is another: lines, versions, numbers too few or too many."""
    kind, header, arrays = parts_of(data)
    text = json.dumps(header).encode()
    numbers = b"".join(array.tobytes() for array in arrays.values())
    action = int(rng.integers(7))
    if action == 0:
        return signed(kind, text, numbers[: int(rng.integers(len(numbers)))])
    if action == 1:
        return signed(kind, text, numbers + rng.bytes(int(rng.integers(1, 100))))
    if action == 2:
        return signed(kind[:-1] + str(rng.integers(2, 10**6)).encode(), text, numbers)
    if action == 3:
        return signed(kind, text + b"\n", numbers)
    if action == 4:
        return signed(kind, numbers.replace(b"\n", b" "), text)
    if action == 5:
        return signed(kind, text[: int(rng.integers(len(text)))], numbers)
    return rng.bytes(int(rng.integers(1, 100))) + data


MUTATIONS: dict[str, Callable[[bytes, Rng, bytes], bytes]] = {
    "bits flipped": flipped,
    "bytes overwritten": overwritten,
    "pieces cut out": cut,
    "pieces spliced in": spliced,
    "header edited, checksum fits": other_header,
    "numbers edited, checksum fits": other_numbers,
    "shapes edited, checksum fits": other_shapes,
    "structure edited, checksum fits": other_parts,
}
"""What is done to a file, by name: damage, and attacks by someone who knows the format."""


# Large attacks, each as it would be written to take much memory or time


def huge_declared(data: bytes) -> bytes:
    """An array whose shape declares a terabyte, with a checksum that fits."""
    return with_header(lambda header: header["arrays"].update(mean=[131072, 1048576]))(data)


def deep_json(data: bytes, n: int = 1_000_000) -> bytes:
    """A header of lists in lists in lists."""
    return signed(parts_of(data)[0], b"[" * n + b"]" * n, b"")


def _swollen(data: bytes, filling: bytes) -> bytes:
    kind, header, arrays = parts_of(data)
    text = json.dumps(header).encode()[:-1] + b', "more": ' + filling + b"}"
    return signed(kind, text, b"".join(array.tobytes() for array in arrays.values()))


def many_lists(data: bytes, n: int = 7_000_000) -> bytes:
    """A header of 20 MB, nearly all of it empty lists: three bytes that become 72."""
    return _swollen(data, b"[" + b"[]," * n + b"[]]")


def many_keys(data: bytes, n: int = 2_000_000) -> bytes:
    """A header of 20 MB, nearly all of it keys."""
    return _swollen(data, b"{" + b",".join(b'"%x":0' % i for i in range(n)) + b"}")


def many_texts(data: bytes, n: int = 4_000_000) -> bytes:
    """A header of 20 MB, nearly all of it texts of two letters."""
    return _swollen(data, b"[" + b'"ab",' * n + b'"ab"]')


def most_keys_allowed(data: bytes) -> bytes:
    """As many keys as are just parsed, and a number too many."""
    kind, header, arrays = parts_of(many_keys(data, 430_000))
    return file_of(kind, header, {**arrays, "zeros": np.zeros(1)})


def long_line(data: bytes) -> bytes:
    """A first line without an end."""
    return parts_of(data)[0] + b" " + b"1" * 20_000_000


ATTACKS: dict[str, Callable[[bytes], bytes]] = {
    "an array that declares a terabyte": huge_declared,
    "a million lists in one another": deep_json,
    "7 million empty lists": many_lists,
    "2 million keys": many_keys,
    "4 million short texts": many_texts,
    "as many keys as are parsed": most_keys_allowed,
    "a first line of 20 million digits": long_line,
}
"""Files that are made to take much memory or time, by name."""
