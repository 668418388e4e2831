"""Speaks to the NVIDIA driver itself, by its library: which GPUs a process sees, and memory that is held.

    card.py see            a line for each GPU that CUDA shows to this process: its UUID and its bytes of memory
    card.py hold PERCENT   holds so much of the memory of the first one until it is ended"""
import ctypes
import signal
import sys
import uuid

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        sys.exit(f"card.py: {name} fails with status {status} of CUDA")


def number(name, kind, *arguments):
    out = kind()
    call(name, ctypes.byref(out), *arguments)
    return out.value


def see(device):
    out = (ctypes.c_ubyte * 16)()
    call("cuDeviceGetUuid", out, device)
    print(f"GPU-{uuid.UUID(bytes=bytes(out))}", number("cuDeviceTotalMem_v2", ctypes.c_size_t, device))


def hold(device, percent):
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    size = number("cuDeviceTotalMem_v2", ctypes.c_size_t, device) * percent // 100
    number("cuMemAlloc_v2", ctypes.c_uint64, ctypes.c_size_t(size))
    print(f"holds {size} bytes", flush=True)
    signal.pause()


call("cuInit", 0)
count = number("cuDeviceGetCount", ctypes.c_int)
devices = [number("cuDeviceGet", ctypes.c_int, i) for i in range(count)]
if sys.argv[1] == "hold":
    hold(devices[0], int(sys.argv[2]))
for each in devices:
    see(each)
