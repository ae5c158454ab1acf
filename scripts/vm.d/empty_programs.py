"""BPF programs that do nothing, at functions of the kernel (fentry and fexit) or at raw tracepoints. What they cost is the
kernel's way to a program and back: the least that any program costs there. They are detached when `stop` is called."""
import ctypes, os, platform, struct, sys

CALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
PROG_LOAD, RAW_TRACEPOINT_OPEN = 5, 17
RAW_TRACEPOINT, TRACING = 17, 26
FENTRY, FEXIT = 24, 25
LIBC = ctypes.CDLL(None, use_errno=True)
# r0 = 0; exit
CODE = ctypes.create_string_buffer(struct.pack("<QQ", 0xB7, 0x95), 16)
LICENSE = ctypes.create_string_buffer(b"GPL")


def bpf(command, attributes):
    made = LIBC.syscall(CALL, command, ctypes.create_string_buffer(attributes, len(attributes)), len(attributes))
    if made < 0:
        sys.exit("error: bpf: " + os.strerror(ctypes.get_errno()))
    return made


class Programs:
    open = ()

    def attach(self, kind, attach_type=0, function=0, tracepoint=None):
        """`union bpf_attr` of linux/bpf.h: its fields that are not 0."""
        load = struct.pack("<IIQQ", kind, 2, ctypes.addressof(CODE), ctypes.addressof(LICENSE)).ljust(68, b"\0")
        load += struct.pack("<I", attach_type).ljust(40, b"\0") + struct.pack("<I", function)
        program = bpf(PROG_LOAD, load.ljust(128, b"\0"))
        name = ctypes.create_string_buffer(tracepoint.encode()) if tracepoint else None
        link = bpf(RAW_TRACEPOINT_OPEN, struct.pack("<QII", ctypes.addressof(name) if name else 0, program, 0))
        self.open = (*self.open, program, link)

    def stop(self):
        for one in reversed(self.open):
            os.close(one)


class Tracepoints(Programs):
    def __init__(self, *names):
        for name in names:
            self.attach(RAW_TRACEPOINT, tracepoint=name)


class Functions(Programs):
    def __init__(self, *names):
        for name in names:
            for attach_type in (FENTRY, FEXIT):
                self.attach(TRACING, attach_type, type_of_function(name))


def type_of_function(name):
    """The number of a function's type in the kernel's BTF (Documentation/bpf/btf.rst)."""
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        btf = file.read()
    _, _, _, header, types, types_bytes, strings, _ = struct.unpack_from("<HBBIIIII", btf)
    # Bytes that follow a type's twelve, by its kind: so many, and so many for each of its members.
    more = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0), 15: (0, 12), 17: (4, 0), 19: (0, 12)}
    at, end, number = header + types, header + types + types_bytes, 0
    while at < end:
        number += 1
        at_name, info = struct.unpack_from("<II", btf, at)
        kind, members = info >> 24 & 0x1F, info & 0xFFFF
        begins = header + strings + at_name
        if kind == 12 and btf[begins : begins + len(name) + 1] == name.encode() + b"\0":
            return number
        fixed, each = more.get(kind, (0, 0))
        at += 12 + fixed + each * members
    sys.exit(f"error: the kernel has no function {name}")
