"""Reads the documents of the project, runs their commands and looks at their words.

What a fenced block is follows from its language:

    sh        is run, line by line, all blocks of a document in one shell that begins in an empty home
    console   the same, of the lines behind "$ "; the others are what that prints, where "..." stands for anything
    bash      is not run, as it needs a cluster, a network or root; the options are those that the program knows
    any other, with a path behind "# " in its first line: is written to that file

A run id is another one every time. The one that a document shows stands for the one that was printed in its place, also
where the document uses a part of it."""
import pathlib
import re
import shlex
import subprocess
import uuid

from conftest import ROOT

RUN_ID = re.compile(r"[\w-]+_\d{10}_([0-9a-f]{8})")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"# ([\w.~/-]+\.\w+)(?:;.*)?\n")
INLINE = re.compile(r"`((?:a|scripts/[\w-]+) [^`]+)`")


def documents():
    """Those for users and developers, relative to the root."""
    found = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "STYLE.md", "CHANGELOG.md", "SECURITY.md",
                                  "act/README.md")]
    found += sorted((ROOT / "docs").rglob("*.md")) + [ROOT / "aux_data/example/README.md"]
    return [str(path.relative_to(ROOT)) for path in found]


def blocks(name):
    """The fenced blocks of a document: language and text."""
    return FENCE.findall((ROOT / name).read_text())


def commands(text):
    """The commands of a block, with the lines of output that follow each; "\\" and indentation continue a line."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> "):
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", found[-1][1])
        else:
            found[-1][1].append(line)
    return found


def file_of(language, text):
    """The file that a block is, or None."""
    path = PATH.match(text)
    return path.group(1) if path and language not in ("sh", "console", "bash") else None


class Shell:
    """One bash for all the commands of a document."""

    def __init__(self, env, cwd):
        self.bash = subprocess.Popen(["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, env=env, cwd=cwd, text=True, errors="surrogateescape")
        self.ran = 0

    def run(self, command):
        """The exit status of a command, and what it prints."""
        mark = uuid.uuid4().hex
        self.bash.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n%s %d\\n' {mark} $?\n")
        self.bash.stdin.flush()
        self.ran += 1
        text = ""
        for line in self.bash.stdout:
            if line.startswith(mark):
                return int(line.split()[1]), text.removesuffix("\n")
            text += line
        raise AssertionError(f"the shell ended in: {command}\n{text}")

    def close(self):
        self.bash.stdin.close()
        self.bash.wait(60)


class Reader:
    """Somebody who types what a document says."""

    def __init__(self, name, env, home, edit=lambda text: text):
        self.name, self.edit = name, edit
        self.shell = Shell(env, home)
        self.ids = {}  # what a document shows of a run id, and what it is

    def read(self):
        """Goes through the whole document; how many commands were run."""
        try:
            for language, text in blocks(self.name):
                self.take(language, text)
        finally:
            self.shell.close()
        return self.shell.ran

    def take(self, language, text):
        path = file_of(language, text)
        if path:
            self.write(path, text)
        elif language == "sh":
            for command in joined(text):
                self.type(command)
        elif language == "console":
            for command, output in commands(text):
                self.type(command, output)

    def write(self, path, text):
        folder = pathlib.Path(path).parent
        status, said = self.shell.run(f"mkdir -p {folder} && cat >{path} <<'END OF FILE'\n{self.edit(text)}END OF FILE")
        assert status == 0, said

    def type(self, command, output=None):
        command = self.edit(command)
        for shown, real in self.ids.items():
            command = command.replace(shown, real)
        status, text = self.shell.run(command)
        assert "Sanitizer" not in text and "runtime error:" not in text, (self.name, command, text)
        if output is None:
            assert status == 0, f"{self.name}: {command}\nstatus {status}\n{text}"
        else:
            self.compare(command, output, text)

    def compare(self, command, output, text):
        """What was printed is what the document shows, but for the width of columns."""
        shown, pattern = [], ""
        for line in output:
            if line == "...":
                pattern += r"(?:.*\n)*?"
                continue
            ids = RUN_ID.findall(line)
            shown += ids
            pattern += line_pattern(line) + r"\s*?\n"
        real = re.fullmatch(pattern + r"\s*", text + "\n")
        assert real, f"{self.name}: {command}\nshows\n" + "\n".join(output) + f"\nand printed\n{text}"
        self.ids.update(zip(shown, real.groups()))


def line_pattern(line):
    """A regular expression for a line of output, with a group for each run id."""
    pattern = ""
    for piece in re.split(rf"({RUN_ID.pattern.replace('(', '(?:')}|\.\.\.|\s+)", line):
        if RUN_ID.fullmatch(piece):
            pattern += RUN_ID.pattern
        elif piece == "...":
            pattern += ".*"
        else:
            pattern += r"\s+" if piece.isspace() else re.escape(piece)
    return pattern


def joined(text):
    """The commands of a sh block: lines, or several where one goes on behind "\\" or with a text (<<'END')."""
    found, end = [], None
    for line in text.replace("\\\n", "").splitlines():
        if end:
            found[-1] += "\n" + line
            end = None if line == end else end
        elif line.strip() and not line.startswith("#"):
            found.append(line)
            end = (re.findall(r"<<'(\w+)'", line) or [None])[0]
    return found


# ---- words


class Verbs:
    """What the program takes, from its own help."""

    def __init__(self, act):
        self.act, self.options = act, {}
        text = act.run("help").out
        self.general = option_rows(text)
        table = text.split("\n\ncode, and starting runs:\n")[1].split("\noptions of several verbs")[0]
        self.names = {name: line.split(",")[0].split()[0] for line in re.findall(r"^  \S.*", table, re.M)
                      for name in re.match(r"  ((?:[a-z-]+(?:, )?)+)", line).group(1).split(", ")}

    def of(self, verb):
        """The options that a verb takes, each with whether a value follows."""
        verb = self.names[verb]
        if verb not in self.options:
            text = self.act.run(verb, "--help").out
            listed = re.search(r"\nverbs:\n(.*?)\n'a help", text, re.DOTALL)
            for word in re.findall(r"^  (\S+)", listed[1] if listed else "", re.M):
                text += self.act.run("help", verb, word).out
            self.options[verb] = option_rows(text)
        return self.options[verb]

    def check(self, words):
        """Why these are no words of a command of `a`; None when they are."""
        verb = next((w for w in without_values(words[1:], self.general) if not w.startswith("-")), None)
        if verb is None:
            return None  # a --version
        if verb not in self.names:
            return f"no verb {verb!r}"
        known = self.of(verb)
        at = words.index(verb)
        for word in options(words[1:at]) + options(own(verb, words[at + 1:], known)):
            if word.split("=")[0] not in known:
                return f"'a {verb}' takes no {word!r}"
        return None


def option_rows(text):
    """The options of a help text: {name: whether it takes a value}."""
    found = {}
    for names, value in re.findall(r"^  (-[\w-]+(?:, --?[\w-]+)*)( [A-Z=:,[\].]+)?(?:  |$)", text, re.MULTILINE):
        found.update(dict.fromkeys(names.split(", "), bool(value)))
    return found


def without_values(words, known):
    words = iter(words)
    for word in words:
        yield word
        if known.get(word):
            next(words, None)


def own(verb, words, known):
    """The words that are the verb's, not those of the command that it is given."""
    mine = []
    for word in without_values(words, known):
        if word == "--" or (verb in ("submit", "local") and not word.startswith("-")):
            break
        mine.append(word)
    return mine


def options(words):
    return [w for w in words if w.startswith("-") and w not in ("-", "--")]


def simple_commands(line):
    """The commands of a line of shell, as words; what $(...) has in it is one more."""
    line = re.sub(r"\$\((.*?)\)", r" ; \1 ; ", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if set(word) <= set("();<>|&"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def uses(name):
    """All uses of `a` and of scripts in a document, also in its text: lists of words."""
    text = (ROOT / name).read_text()
    lines = [line for language, block in FENCE.findall(text) if language in ("sh", "bash") for line in joined(block)]
    lines += [line for language, block in FENCE.findall(text) if language == "console"
              for line, _ in commands(block)]
    inline = [" ".join(found.split()) for found in INLINE.findall(FENCE.sub("", text))]
    for line in lines + inline:
        for words in simple_commands(line):
            while words and re.match(r"\w+=", words[0]):
                words = words[1:]
            if words and (words[0] == "a" or words[0].startswith("scripts/")):
                yield words
