"""Damage and attacks on files of ours: what `fuzz_files` and the tests try to load."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

Members = dict[str, bytes]
Rng = np.random.Generator

HOSTILE_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**63, -(2**63), 10**30, 1e308, -0.0, "", "x", "inf", "nan"),
    *([], {}, [[]], [None], {"items": []}, {"number": "nan"}, {"float": "nan"}, {"fold": "9"}),
    *({"decimal": "sNaN"}, {"date": "2020-13-01"}, "\ud800", "a" * 5000, ["a"] * 500, "_x", "$x$"),
    *("../../etc/passwd", "header.json", "<script>", "a\nb", [1, [2, [3]]], {"a": {"b": {}}}),
)
"""What a value of the header is replaced by."""

HOSTILE_NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1e308, -1e308, 5e-324, 1e-200, 2.0**53)
"""What a number of an array is replaced by."""


def members_of(data: bytes) -> Members:
    """The members of an archive, as Python's own reader sees them."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members: Members, **options: Any) -> bytes:
    """An archive with these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def with_sums(members: Members, header: dict[str, Any] | None = None) -> bytes:
    """The archive with checksums that fit its arrays, as someone who means harm writes it."""
    header = json.loads(members["header.json"]) if header is None else header
    if isinstance(header.get("checksums"), dict):
        for name in header["checksums"]:
            data = members.get(f"{name}.npy", b"")
            header["checksums"][name] = hashlib.sha256(data).hexdigest()
    return archive_of({**members, "header.json": json.dumps(header).encode()})


def npy(array: Any) -> bytes:
    """The file that NumPy writes of an array."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


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
    members = members_of(data)
    header = json.loads(members["header.json"])
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
    return with_sums(members, header)


def other_numbers(data: bytes, rng: Rng, _: bytes) -> bytes:
    """Numbers of arrays are others, or whole arrays are of another shape or type."""
    members = members_of(data)
    names = [name for name in members if name.endswith(".npy")]
    name = names[rng.integers(len(names))]
    array = np.load(io.BytesIO(members[name]))
    action = int(rng.integers(10))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
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
            kinds: list[Any] = [np.float32, ">f8", np.int64, np.float64, "S8", complex, bool]
            array = array.astype(kinds[rng.integers(len(kinds))])
    members[name] = npy(array)
    return with_sums(members)


def other_head(data: bytes, rng: Rng, _: bytes) -> bytes:
    """The head of an array's file is another: bytes, shapes, types."""
    members = members_of(data)
    names = [name for name in members if name.endswith(".npy")]
    name = names[rng.integers(len(names))]
    old = bytearray(members[name])
    if rng.integers(2):
        for place in rng.integers(0, min(len(old), 100), rng.integers(1, 5)):
            old[place] = int(rng.integers(256))
    else:
        shapes = ["(999999999999,)", "(-1, -1)", "()", "(" * 50, "(1000000, 1000000, 1000)", "(0,)"]
        shapes += ["(2, 3, )", "(1L,)", "(True,)", "(1e9,)", "((((1,),),),)"]
        types = ["<f8", "|O", "<i8", "<f4", ">f8", "<M8[ns]", "|S8"]
        shape, type_ = shapes[rng.integers(len(shapes))], types[rng.integers(len(types))]
        described = f"{{'descr': '{type_}', 'fortran_order': False, 'shape': {shape}, }}"
        head = described.ljust(117).encode() + b"\n"
        old[8 : 10 + int.from_bytes(old[8:10], "little")] = struct.pack("<H", len(head)) + head
    members[name] = bytes(old)
    return with_sums(members)


def other_archive(data: bytes, rng: Rng, _: bytes) -> bytes:
    """The archive's own structure is another: members, sizes, places."""
    members = members_of(data)
    names = list(members)
    name = names[rng.integers(len(names))]
    action = int(rng.integers(9))
    if action == 0:
        del members[name]
    elif action == 1:
        members[f"extra{rng.integers(10)}.npy"] = members[name]
    elif action == 2:
        members = {("x" + key if key == name else key): part for key, part in members.items()}
    elif action == 3:
        return archive_of(members, compression=zipfile.ZIP_DEFLATED)
    elif action == 4:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return archive_of({**members}, allowZip64=True) + b"PK\x05\x06" + rng.bytes(18)
    elif action == 5:
        return rng.bytes(int(rng.integers(1, 100))) + data
    elif action == 6:
        return twice(data, name)
    elif action == 7:
        return b"PK" + data
    else:
        return other_directory(data, rng)
    return archive_of(members)


def twice(data: bytes, name: str) -> bytes:
    """The archive with a member that is there twice."""
    members = members_of(data)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key, part in [*members.items(), (name, members[name])]:
            archive.writestr(key, part)
    return buffer.getvalue()


def other_directory(data: bytes, rng: Rng) -> bytes:
    """Fields of the directory or of its end are numbers that lie at the edge of what can be."""
    changed, starts = bytearray(data), []
    place = data.find(b"PK\x01\x02")
    while place >= 0:
        starts.append(place)
        place = data.find(b"PK\x01\x02", place + 1)
    fields: list[tuple[int, tuple[int, ...]]] = [
        (starts[rng.integers(len(starts))], (8, 10, 16, 20, 24, 28, 30, 32, 42)),
        (data.rfind(b"PK\x05\x06"), (8, 10, 12, 16, 20)),
    ]
    for _ in range(int(rng.integers(1, 4))):
        start, offsets = fields[rng.integers(2)]
        offset = start + int(offsets[rng.integers(len(offsets))])
        number = (0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, len(data))[rng.integers(6)]
        width = 4 if rng.integers(2) else 2
        changed[offset : offset + width] = (number % 256**width).to_bytes(width, "little")
    return bytes(changed)


MUTATIONS: dict[str, Callable[[bytes, Rng, bytes], bytes]] = {
    "bits flipped": flipped,
    "bytes overwritten": overwritten,
    "pieces cut out": cut,
    "pieces spliced in": spliced,
    "header edited, checksums fit": other_header,
    "numbers edited, checksums fit": other_numbers,
    "heads of arrays edited, checksums fit": other_head,
    "archive edited": other_archive,
}
"""What is done to a file, by name: damage, and attacks by someone who knows the format."""


# Large attacks, each as it would be written to take much memory or time


def overlapping(_: bytes, n: int = 3000, size: int = 1_400_000) -> bytes:
    """Very many stored members, which all lie in the same place."""
    body = npy(np.zeros(size // 8))
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0, 0, len(body), len(body), 5, 0)
    start = local + b"a.npy" + body
    central = b"".join(
        struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, 0, 0, *(len(body),) * 2, 5, *(0,) * 6
        )
        + b"a.npy"
        for _ in range(n)
    )
    end = struct.pack(
        "<4s4H2IH", b"PK\5\6", 0, 0, n % 65536, n % 65536, len(central), len(start), 0
    )
    return start + central + end


def few_overlapping(data: bytes) -> bytes:
    """A file of ours in which each array's entry says that it reaches to the end of the last."""
    changed = bytearray(data)
    end = data.find(b"PK\x01\x02")
    place = end
    while place >= 0:
        start = int.from_bytes(data[place + 42 : place + 46], "little")
        length = int.from_bytes(data[place + 28 : place + 30], "little")
        size = (end - start - 30 - length).to_bytes(4, "little")
        changed[place + 20 : place + 28] = size * 2
        changed[start + 18 : start + 26] = size * 2
        place = data.find(b"PK\x01\x02", place + 1)
    return bytes(changed)


def many_members(data: bytes, n: int = 200_000) -> bytes:
    """As many empty members as fit."""
    return archive_of({**members_of(data), **{str(i): b"" for i in range(n)}})


def huge_declared(data: bytes) -> bytes:
    """An array whose head declares a terabyte, with a checksum that fits."""
    members = members_of(data)
    described = b"{'descr': '<f8', 'fortran_order': False, 'shape': (131072, 1048576), }"
    head = described.ljust(117) + b"\n"
    members["mean.npy"] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + b"\0" * 64
    return with_sums(members)


def deep_json(data: bytes, n: int = 1_000_000) -> bytes:
    """A header of lists in lists in lists."""
    return archive_of({**members_of(data), "header.json": b"[" * n + b"]" * n})


def _swollen(data: bytes, filling: bytes) -> bytes:
    text = members_of(data)["header.json"].rstrip()[:-1] + b', "more": ' + filling + b"}"
    return archive_of({**members_of(data), "header.json": text})


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
    """As many keys as are just parsed."""
    return archive_of({**members_of(many_keys(data, 430_000)), "zeros": b""})


def long_name(data: bytes) -> bytes:
    """A member whose name is as long as names can be."""
    return archive_of({**members_of(data), "x" * 65_000: b""})


ATTACKS: dict[str, Callable[[bytes], bytes]] = {
    "3,000 stored members in one place": overlapping,
    "each member reaches to the end": few_overlapping,
    "200,000 members": many_members,
    "an array that declares a terabyte": huge_declared,
    "a million lists in one another": deep_json,
    "7 million empty lists": many_lists,
    "2 million keys": many_keys,
    "4 million short texts": many_texts,
    "as many keys as are parsed": most_keys_allowed,
    "a name of 65,000 letters": long_name,
}
"""Files that are made to take much memory or time, by name."""
