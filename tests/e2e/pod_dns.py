"""A name server as a cluster has it for its pods: <pod>.<service>.ns.svc.cluster.local, of the names in a file, which
is read for each question: `pod_dns.py ADDRESS FILE`, a line "<address> <name>" each."""
import pathlib
import socket
import struct
import sys

NXDOMAIN, TYPE_A, ZONE = 3, 1, ".ns.svc.cluster.local"


def read_name(data, at):
    labels = []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode())
        at += 1 + data[at]
    return ".".join(labels).lower(), at + 1


def answer(query, names):
    name, end = read_name(query, 12)
    (kind,) = struct.unpack(">H", query[end:end + 2])
    address = names.get(name.removesuffix(ZONE)) if name.endswith(ZONE) else None
    records = b""
    if address and kind == TYPE_A:
        records = struct.pack(">HHHLH", 0xC00C, TYPE_A, 1, 5, 4) + socket.inet_aton(address)
    flags = 0x8580 | (0 if address else NXDOMAIN)
    return query[:2] + struct.pack(">HHHHH", flags, 1, 1 if records else 0, 0, 0) + query[12:end + 4] + records


def main(address, path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        print("ready", flush=True)
        while True:
            query, client = server.recvfrom(4096)
            lines = pathlib.Path(path).read_text().splitlines()
            server.sendto(answer(query, {name: at for at, name in map(str.split, lines)}), client)


if __name__ == "__main__":
    main(*sys.argv[1:])
