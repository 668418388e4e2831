#!/usr/bin/env python3
"""Tries the walls between the modules (cmake/ActModule.cmake) with the flags that the build itself has for them.

usage: walls.py SOURCES BUILD

For each module: it finds the public headers of what it uses, and of what those export; it finds no other header,
neither upwards nor sideways nor inside another module. Its USES and EXPORTS are what its files, and its public headers,
include.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# Rooms of a module: each uses only those before it, and what is in none of them.
ROOMS = {"flow": ["code", "data", "jobfile", "source", "runs", "logs", "why", "submit", "sweep", "look", "board",
                  "keep", "cluster"]}

INCLUDE = re.compile(r'#include "(\w+)/[\w/]+\.[ch]"')


class Module:
    def __init__(self, sources, line):
        self.name, level, *lists = line.split("|")
        self.level = int(level)
        self.headers, self.uses, self.exports = (set(filter(None, words.split(";"))) for words in lists)
        self.folder = sources / "act" / self.name
        self.internal = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*.h")} - self.headers
        self.files = []  # what is compiled
        self.command = []  # how

    def compiled(self, command, file):
        """Notes how a file of this module is compiled."""
        self.files.append(file)
        words = shlex.split(command)
        self.command = words[: words.index("-o")] + ["-fsyntax-only"]

    def included_by(self, paths):
        """The other modules that these files include."""
        return {name for path in paths for name in INCLUDE.findall(path.read_text())} - {self.name}


    def wrong_ways(self):
        """Includes of a room by what comes before it."""
        order = ["", *ROOMS.get(self.name, [])]
        for path in sorted(self.folder.rglob("*.[ch]")):
            room = path.parent.name if path.parent.name in order else ""
            for other in re.findall(rf'#include "{self.name}/(\w+)/', path.read_text()):
                if other in order and order.index(other) > order.index(room):
                    yield f"{path.relative_to(self.folder)} includes {other}/"


class House:
    def __init__(self, sources, build):
        lines = (build / "tests/modules.txt").read_text().splitlines()
        self.modules = {module.name: module for module in (Module(sources, line) for line in lines)}
        self.build = build
        for entry in json.loads((build / "compile_commands.json").read_text()):
            target = re.search(r" -o act/CMakeFiles/act_(\w+)\.dir/", entry["command"])
            if target and target[1] in self.modules:
                self.modules[target[1]].compiled(entry["command"], pathlib.Path(entry["file"]))

    def visible(self, module):
        """The modules whose public headers a module finds, itself too."""
        found, ahead = {module.name}, set(module.uses)
        while ahead:
            name = ahead.pop()
            found.add(name)
            ahead |= self.modules[name].exports & self.modules.keys() - found
        return found

    def hidden(self, module):
        """Headers that a module must not find, by the direction in which they lie."""
        visible = self.visible(module)
        hidden = {"up": [], "sideways": [], "inside": []}
        for other in self.modules.values():
            direction = "up" if other.level > module.level else "sideways"
            if other.name not in visible:
                hidden[direction] += [f"{other.name}/{header}" for header in sorted(other.headers)]
            if other.name != module.name:
                hidden["inside"] += [f"{other.name}/{header}" for header in sorted(other.internal)]
        return hidden

    def compile(self, module, lines, *options):
        """What the compiler says of these lines in this module; "": they compile."""
        with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            return subprocess.run(module.command + [*options, file.name], cwd=self.build, text=True,
                                  stderr=subprocess.PIPE, check=False).stderr

    def is_refused(self, module, header):
        said = self.compile(module, [f'#include "{header}"'])
        return re.search(rf"{header}\W+(No such file|file not found)", said)  # gcc, clang

    def mistakes(self, module):
        """What is wrong with the walls of a module, in words."""
        yield self.compile(module, (f'#include "{name}/{header}"' for name in self.visible(module)
                                    for header in sorted(self.modules[name].headers)))
        hidden = self.hidden(module)
        for header in (headers[0] for headers in hidden.values() if headers):
            if not self.is_refused(module, header):
                yield f"{header} compiles"
        # The others at once; without the system's headers, where somebody else's node/node.h may be.
        yield self.compile(module, (f'#if __has_include("{header}")\n#error {header} is found\n#endif'
                                    for header in sum(hidden.values(), [])), "-nostdinc")
        yield from module.wrong_ways()
        used = module.included_by(module.files + list(module.folder.rglob("*.h")))
        if used != module.uses:
            yield f"its files include {sorted(used)}, but it USES {sorted(module.uses)}"
        exported = module.included_by(module.folder / header for header in module.headers)
        if exported != module.exports & self.modules.keys():
            yield f"its public headers include {sorted(exported)}, but it EXPORTS {sorted(module.exports)}"


def main():
    house = House(*(pathlib.Path(word) for word in sys.argv[1:]))
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda module: (module.name, list(filter(None, house.mistakes(module)))),
                         house.modules.values())
    failed = False
    for name, mistakes in found:
        for mistake in mistakes:
            failed = True
            print(f"{name}: {mistake}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
