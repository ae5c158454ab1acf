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


class Watch:
    """A running `headroom watch --source process:`."""

    def __init__(self, headroom, *more):
        with open("/run/watched", "w") as out:
            self.watch = subprocess.Popen([headroom, "watch", "--source", "process:", "--interval", "1s", "--count", "9999", "--json", *more],
                                          stdout=out, stderr=subprocess.DEVNULL)
        start = time.monotonic()
        while not os.path.getsize("/run/watched"):
            if self.watch.poll() is not None or time.monotonic() - start > WATCH_STARTS_S:
                raise SystemExit("headroom watch printed nothing")
            time.sleep(0.2)

    def end(self):
        """Sums of counts and bytes by (path, layer, figure); the notes."""
        time.sleep(3)
        self.watch.send_signal(signal.SIGINT)
        self.watch.wait()
        sums, notes = collections.Counter(), set()
        for line in open("/run/watched"):
            interval = json.loads(line)
            notes.update(interval["notes"])
            for row in interval["files"] + interval.get("below", []):
                instance = row["instance"]
                layer = "block" if instance == "block layer" else "process"
                if "misses" in instance or "faults" in instance:
                    continue
                for figure in ("reads", "writes", "read_bytes", "write_bytes"):
                    if isinstance(row.get(figure), int):
                        sums[row["path"], layer, figure] += row[figure]
        return sums, notes
