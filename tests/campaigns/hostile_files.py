"""Plants of :mod:`tests.campaigns.lies`: zip files, links and pipes that are made to harm whoever opens them."""

import contextlib
import shutil
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from likeness.bundle import contents as names
from likeness.bundle.files import pack
from tests.campaigns.forgery import Plant, planted
from tests.campaigns.lie_plants import NOTE


@planted
def instead(folder: Path, name: str, put: Callable[[Path], object]) -> Path:
    """Something else at the place of a file."""
    (folder / name).unlink()
    put(folder / name)
    return folder


def files_of(folder: Path) -> list[str]:
    """The names of all files below a folder, in order."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@planted
def zipped(folder: Path, change: Callable[[bytes], bytes] = lambda data: data, **items: bytes) -> Path:
    """The bundle as a zip file, its bytes changed."""
    target = folder.with_suffix(".zip")
    pack(folder, files_of(folder), target)
    target.write_bytes(change(target.read_bytes()))
    return target


def between(data: bytes) -> bytes:
    """A note between the last file and the list of files, which starts where the end says."""
    start = int.from_bytes(data[-6:-2], "little")
    return data[:start] + NOTE.encode() + data[start:-6] + struct.pack("<L", start + len(NOTE)) + data[-2:]


def in_between(data: bytes) -> bytes:
    """A note between the first two files, every later place moved."""
    start, second = int.from_bytes(data[-6:-2], "little"), data.index(b"PK\x03\x04", 1)
    directory, place = bytearray(data[start:-22]), 0
    while place < len(directory):
        offset = int.from_bytes(directory[place + 42 : place + 46], "little")
        directory[place + 42 : place + 46] = struct.pack("<L", offset + (len(NOTE) if offset else 0))
        place += 46 + int.from_bytes(directory[place + 28 : place + 30], "little")
    end = data[-22:-6] + struct.pack("<L", start + len(NOTE)) + data[-2:]
    return data[:second] + NOTE.encode() + data[second:start] + bytes(directory) + end


def before(data: bytes) -> bytes:
    return NOTE.encode() + data


def comment(data: bytes) -> bytes:
    return data[:-2] + struct.pack("<H", len(NOTE)) + NOTE.encode()


def dated(data: bytes) -> bytes:
    """Four bytes a file in the place of its date."""
    return data.replace(b"\x08\x00\x00\x00\x21\x00", b"\x08\x00NOTE")


@planted
def other_zip(folder: Path, write: Callable[[zipfile.ZipFile], object]) -> Path:
    """A zip file of other files."""
    target = folder.with_suffix(".zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        write(archive)
    return target


def twice(archive: zipfile.ZipFile) -> None:
    with warnings.catch_warnings(action="ignore"):
        for text in ("{}", NOTE):
            archive.writestr(zipfile.ZipInfo(names.PRIVACY), text, zipfile.ZIP_DEFLATED)


def bomb(archive: zipfile.ZipFile, megabytes: int = 1 << 8) -> None:
    """Zeros, packed to a thousandth: a quarter of a gigabyte of them, or as many megabytes."""
    item = zipfile.ZipInfo(names.WEIGHTS)
    item.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(item, "w") as file:
        for _ in range(megabytes):
            file.write(bytes(1 << 20))


def one_packed(pack: Callable[[bytes], bytes]) -> Plant:
    """A zip file of one file, as we would write it but for the packed bytes."""
    return lambda folder: packed_zip(folder, [names.PRIVACY], pack)


def deflated(text: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(text) + stream.flush()


def last_bits(folder: Path) -> Path:
    """A zip file of one file, with a bit behind the end of its stream: of the first file whose last byte has room."""

    def with_a_bit(text: bytes) -> bytes:
        packed = deflated(text)
        return packed[:-1] + bytes([packed[-1] ^ 0x80])

    def has_room(text: bytes) -> bool:
        with contextlib.suppress(zlib.error):
            stream = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
            return stream.decompress(with_a_bit(text)) == text and stream.eof
        return False

    name = next(name for name in files_of(folder) if has_room((folder / name).read_bytes()))
    return packed_zip(folder, [name], with_a_bit)


def packed_zip(folder: Path, order: list[str], pack: Callable[[bytes], bytes] = deflated) -> Path:
    """A zip file that has the headers of Likeness."""
    target, data, directory = folder.with_suffix(".zip"), b"", b""
    for name in order:
        content, info = (folder / name).read_bytes(), zipfile.ZipInfo(name)
        packed = pack(content)
        info.CRC, info.compress_size, info.file_size = zlib.crc32(content), len(packed), len(content)
        info.header_offset = len(data)
        head, entry_ = _headers(info)
        data, directory = data + head + packed, directory + entry_
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(order), len(order), len(directory), len(data), 0)
    target.write_bytes(data + directory + end)
    return target


def _headers(item: zipfile.ZipInfo) -> tuple[bytes, bytes]:
    """The header of a file in a zip file of Likeness, and its entry in the list at the end."""
    name = item.filename.encode()
    common = struct.pack("<5H3L2H", 20, 0, zipfile.ZIP_DEFLATED, 0, 33, item.CRC, item.compress_size, item.file_size,
                         len(name), 0)  # fmt: skip
    rest = struct.pack("<3H2L", 0, 0, 0, 0o600 << 16, item.header_offset)
    return b"PK\3\4" + common + name, b"PK\1\2" + struct.pack("<H", 20 | 3 << 8) + common + rest + name


def sparse(path: Path) -> None:
    """A terabyte that takes no place on the disk."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


def folder_link(folder: Path) -> Path:
    """The releases lie elsewhere."""
    elsewhere = folder.with_name("elsewhere")
    shutil.move(folder / names.RELEASED, elsewhere)
    (folder / names.RELEASED).symlink_to(elsewhere)
    return folder


ALIASES = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'x'}]\n" for n in range(30)) + "name: *a29\n"
