#!/usr/bin/env python3
"""Fetch the packages of package-lock.json from the npm registry into node_modules, each checked by its hash.

usage: fetch_packages.py FOLDER    FOLDER holds package-lock.json

Those for another system or processor are left out. When all are there, node_modules holds a copy of the lock file as
.package-lock.json. Debian's npm would do the same, and brings 366 packages of its own.
Exit status: 0 fetched, 1 a package is not the one that the lock names, 77 the registry cannot be reached.
"""

import base64
import hashlib
import io
import json
import pathlib
import platform
import shutil
import ssl
import sys
import tarfile
import urllib.error
import urllib.request

REGISTRY = "https://registry.npmjs.org"
PROCESSORS = {"x86_64": "x64", "aarch64": "arm64"}  # as npm names them


def is_for_this_machine(package: dict) -> bool:
    processor = PROCESSORS.get(platform.machine(), platform.machine())
    return "linux" in package.get("os", ["linux"]) and processor in package.get("cpu", [processor])


def fetch(name: str, version: str) -> bytes:
    url = f"{REGISTRY}/{name}/-/{name.split('/')[-1]}-{version}.tgz"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        sys.exit(f"{url}: {error}")
    except (urllib.error.URLError, TimeoutError, ssl.SSLError) as error:
        print(f"skipped: {url} cannot be reached from this machine, or not by a certificate that it trusts: {error}")
        sys.exit(77)


def unpack(archive: bytes, target: pathlib.Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        for member in package.getmembers():
            path = pathlib.PurePosixPath(member.name)
            if member.isfile() and ".." not in path.parts and not path.is_absolute():
                file = target.joinpath(*path.parts[1:])  # all are below a folder "package"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(package.extractfile(member).read())
                file.chmod(0o755 if member.mode & 0o100 else 0o644)


def main(folder: pathlib.Path) -> None:
    lock = json.loads((folder / "package-lock.json").read_text())
    for path, package in lock["packages"].items():
        if not path or not is_for_this_machine(package):
            continue
        archive = fetch(path.split("node_modules/")[-1], package["version"])
        found = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
        if found != package["integrity"]:
            sys.exit(f"{path} {package['version']} is not what package-lock.json names: {found}")
        unpack(archive, folder / path)
    shutil.copyfile(folder / "package-lock.json", folder / "node_modules/.package-lock.json")


main(pathlib.Path(sys.argv[1]))
