"""What the tests in a guest of scripts/vm have in common: its disks, fio, and what `headroom watch --source process:` counts."""
import collections, glob, json, os, signal, subprocess, time

# The machine may be busy; --seconds of scripts/vm ends what hangs.
WATCH_STARTS_S = 1500


def run(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def shell(script):
    """Ends with an error where one of its commands does."""
    subprocess.run(["bash", "-euc", script], check=True)


def disks():
    """By serial: NVMe devices are numbered as they are found."""
    serials = {open(f).read().strip(): "/dev/" + f.split("/")[3] for f in glob.glob("/sys/block/nvme*/device/serial")}
    return {"nvme0": serials["HR0001"], "nvme1": serials["HR0002"], "virtio": "/dev/vda", "scsi": "/dev/sda",
            # 300 I/Os a second.
            "slow": "/dev/vdb"}


def fio(path, engine, direct, way, ios, file_bytes, **more):
    """What a run of fio did: I/Os and bytes."""
    return fio_jobs([(path, engine, direct, way, ios, file_bytes)], **more)[0]


def fio_jobs(jobs, **more):
    """The same of several jobs, one after another, in one run: an emulated machine starts fio in a second."""
    sections = ["[global]", "bs=4k", "invalidate=1", "io_size=1G", "end_fsync=1", "norandommap"]
    sections += [f"{name}={value}" for name, value in more.items()]
    for number, (path, engine, direct, way, ios, file_bytes) in enumerate(jobs):
        depth = 4 if engine in ("libaio", "io_uring") else 1
        sections += [f"[j{number}]", "stonewall", f"filename={path}", f"size={file_bytes}", f"rw=rand{way}", f"ioengine={engine}",
                     f"direct={direct}", f"iodepth={depth}", f"number_ios={ios}"]
    answer = run("fio", "--output-format=json", "-", input="\n".join(sections) + "\n")
    done = json.loads(answer[answer.index("{"):])["jobs"]
    return [(job[way]["total_ios"], job[way]["io_bytes"]) for job, (_, _, _, way, _, _) in zip(done, jobs, strict=True)]


def attached(process):
    """How many of a process's programs are at what: fentry, fexit and tracepoints by name."""
    kinds = collections.Counter()
    for path in glob.glob(f"/proc/{process}/fdinfo/*"):
        try:
            lines = dict(line.split(":", 1) for line in open(path).read().splitlines() if ":" in line)
        except OSError:
            continue
        if "link_type" in lines:
            at = {"24": "fentry", "25": "fexit"}.get(lines.get("attach_type", "").strip(), "tracepoint " + lines.get("tp_name", "").strip())
            kinds[at] += 1
    return kinds


class Watch:
    """A running `headroom watch --source process:`."""

    def __init__(self, headroom, *more):
        with open("/run/watched", "w") as out:
            self.watch = subprocess.Popen([headroom, "watch", "--source", "process:", "--every", "1s", "--count", "9999", "--json", *more],
                                          stdout=out, stderr=subprocess.DEVNULL)
        start = time.monotonic()
        while not os.path.getsize("/run/watched"):
            if self.watch.poll() is not None or time.monotonic() - start > WATCH_STARTS_S:
                raise SystemExit("headroom watch printed nothing")
            time.sleep(0.2)
        # "functions" or "tracepoints": how the system calls are counted.
        self.way = "tracepoints" if attached(self.watch.pid)["tracepoint sys_enter"] else "functions"

    def end(self):
        """Sums of counts and bytes by (path, layer, figure); the notes."""
        self.stop()
        sums, notes = collections.Counter(), set()
        for interval in intervals():
            notes.update(interval["notes"])
            sums.update(figures(interval))
        return sums, notes

    def stop(self):
        time.sleep(3)
        self.watch.send_signal(signal.SIGINT)
        self.watch.wait()


def intervals():
    """What the last Watch printed."""
    return [json.loads(line) for line in open("/run/watched")]


def figures(interval):
    """Counts and bytes by (path, layer, figure); layer: process, misses, faults, block."""
    sums = collections.Counter()
    for row in interval["files"] + interval.get("below", []):
        instance = row["instance"]
        ends = {"block layer": "block", "page-cache misses": "misses", "page faults": "faults"}
        layer = next((layer for end, layer in ends.items() if instance.endswith(end)), "process")
        for figure in ("reads", "writes", "read_bytes", "write_bytes"):
            if isinstance(row.get(figure), int):
                sums[row["path"], layer, figure] += row[figure]
    return sums
