#!/usr/bin/env python3
"""Holds the names in act/ to STYLE.md.

usage: names.py SOURCES

A static function bears a name that no other file has, and a struct tag is declared once: a backtrace, a profile and a
breakpoint then name one thing. No file outside platform/ tests the name of a platform: what differs is in its row.
"""
import collections
import pathlib
import re
import sys

STATIC = re.compile(r"^static (?!const\b[^(]*=)[^;={}()]*?\b([a-z]\w*)\(", re.MULTILINE)
STRUCT = re.compile(r"^(?:\w+ )*?struct (\w+) \{", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
NAME = re.compile(r'\.name = "(\w+)"')
# The built-in cluster is called "local" like its platform; both are the name of a verb. "singularity", "slurm" and
# "ssh" are also a program, an option of the agent, a kind of rule, and a verb.
OTHERS = {
    ("act/config/config.h", "local"), ("act/config/find.c", "aml"), ("act/cli/command/code.c", "local"),
    ("act/node/supervise.c", "slurm"), ("act/node/container.c", "singularity"), ("act/diagnose/rules.c", "slurm"),
    ("act/cli/command/clusters.c", "ssh"), ("act/site/ssh.c", "ssh"), ("act/site/ssh_words.c", "ssh"),
}
# Tags that stand twice so far.
TWICE = set("asker changes group lines listing look node place question room shown stream sum sweep use waiting walk"
            .split())


def repeated(sources, pattern):
    """The names that the pattern finds in more than one place, with these."""
    places = collections.defaultdict(list)
    for path, text in sources.items():
        for name in sorted(set(pattern.findall(text))):
            places[name].append(path)
        for name, n in collections.Counter(pattern.findall(text)).items():
            if pattern is STRUCT and n > 1:
                places[name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def platform_names(sources):
    """What the kinds of platforms are called in a cluster file."""
    texts = [text for path, text in sources.items() if path.startswith("act/platform/") and "config_kind" in text]
    return {name for text in texts for kind in re.findall(r"struct config_kind .*?\n\};", text, re.DOTALL)
            for name in NAME.findall(kind)}


def tested_names(sources):
    """Places outside platform/ that have the name of a platform as a text."""
    word = re.compile('"(' + "|".join(sorted(platform_names(sources))) + ')"')
    for path, text in sources.items():
        for name in word.findall(text) if not path.startswith("act/platform/") else ():
            if (path, name) not in OTHERS:
                yield f'{path}: the platform "{name}" is named; a member of struct platform_row says what differs'


def main():
    root = pathlib.Path(sys.argv[1])
    sources = {str(path.relative_to(root)): COMMENT.sub("", path.read_text())
               for path in sorted(root.rglob("act/**/*.[ch]"))}
    wrong = list(tested_names(sources))
    for what, pattern in (("static function", STATIC), ("struct", STRUCT)):
        for name, paths in sorted(repeated(sources, pattern).items()):
            if pattern is STRUCT and name in TWICE:
                continue
            wrong.append(f"the {what} '{name}' stands in {', '.join(paths)}")
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return bool(wrong) or not platform_names(sources)


if __name__ == "__main__":
    sys.exit(main())
