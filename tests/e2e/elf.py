"""What an ELF file of 64 bits and little endian says about the program in it. Source: elf(5)."""
import struct
from types import SimpleNamespace

DYN = 3  # e_type of a program that runs at any address
PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 2, 3, 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
SHT_SYMTAB, SHT_DYNSYM = 2, 11
DT_NEEDED, DT_FLAGS_1, DF_1_NOW, DF_1_PIE = 1, 0x6FFFFFFB, 1, 0x08000000
X86_64, AARCH64 = 62, 183


def structs(form, data, start, size):
    return struct.iter_unpack(form, data[start:start + size])


class Elf:
    """type, machine, segments (type, flags, offset, address, size), dynamic (tag: values), symbols (name: address; 0
    where another file defines it)."""

    def __init__(self, path):
        self.data = data = path.read_bytes()
        assert data[:6] == b"\x7fELF\x02\x01", path
        (self.type, self.machine, _, _, program_at, section_at, _, _, program_size, programs, section_size, sections,
         _) = struct.unpack_from("<HHIQQQIHHHHHH", data, 16)
        names = ("type", "flags", "offset", "address", "_", "size", "in_memory", "align")
        self.segments = [SimpleNamespace(**dict(zip(names, row)))
                         for row in structs("<IIQQQQQQ", data, program_at, program_size * programs)]
        self.sections = list(structs("<IIQQQQIIQQ", data, section_at, section_size * sections))
        self.dynamic = {}
        for segment in self.of_type(PT_DYNAMIC):
            for tag, value in structs("<QQ", data, segment.offset, segment.size):
                self.dynamic.setdefault(tag, []).append(value)
        self.symbols = {}
        for section in self.sections:
            if section[1] in (SHT_SYMTAB, SHT_DYNSYM):
                self.add_symbols(section)

    def of_type(self, kind):
        return [s for s in self.segments if s.type == kind]

    def add_symbols(self, section):
        strings = self.sections[section[6]][4]
        for name, _, _, _, value, _ in structs("<IBBHQQ", self.data, section[4], section[5]):
            start = strings + name
            text = self.data[start:self.data.index(b"\0", start)].decode()
            self.symbols[text.partition("@")[0]] = value

    def code(self, symbol, size):
        """The first bytes of a function."""
        address = self.symbols[symbol]
        segment = next(s for s in self.segments if s.flags & PF_X and s.address <= address < s.address + s.size)
        return self.data[segment.offset + address - segment.address:][:size]
