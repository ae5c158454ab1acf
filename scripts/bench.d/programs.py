"""Programs that read many files at a steady rate, for the benchmarks of the agent and of its page."""
import os, signal, subprocess, time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def start_load(directory, chosen, number):
    """A program that reads its files at its part of the rate."""
    own = directory / f"program{number}"
    own.mkdir(exist_ok=True)
    # It ends with the benchmark, however that ends. At low priority: fio at this rate keeps two processors busy all the time. Not in
    # sessions of their own: each session has the same share (sched_autogroup), and priorities count only within one.
    command = ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "19", "fio", f"--name=load{number}", f"--directory={own}", f"--nrfiles={chosen.files}", f"--size={chosen.files * 64}k",
               "--ioengine=psync", "--direct=1", "--rw=randread", "--bs=4k", "--file_service_type=random", "--openfiles=100",
               f"--rate_iops={chosen.iops // chosen.programs}", "--time_based", "--runtime=1000000", "--thread", "--fallocate=none"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0)


def lay_out(directory, chosen):
    """The files, written once, so that the load only reads."""
    block = os.urandom(64 << 10)
    for number in range(chosen.programs):
        own = directory / f"program{number}"
        own.mkdir()
        for file in range(chosen.files):
            (own / f"load{number}.0.{file}").write_bytes(block)
    os.sync()


class Programs:
    """chosen.programs programs with chosen.files files each that read chosen.iops times a second together, until they are ended."""

    def __init__(self, directory, chosen):
        lay_out(directory, chosen)
        self.loads = [start_load(directory, chosen, number) for number in range(chosen.programs)]
        time.sleep(10)
        ended = [load.pid for load in self.loads if load.poll() is not None]
        if ended:
            self.end()
            raise SystemExit(f"error: fio ended: {ended}")

    def sources(self):
        """What an agent watches them by."""
        return [f"process:{load.pid}" for load in self.loads]

    def signal(self, number):
        for load in self.loads:
            os.killpg(load.pid, number)

    def end(self):
        for load in self.loads:
            if load.poll() is None:
                os.killpg(load.pid, signal.SIGKILL)
                load.wait()


def start_agent(headroom, directory, sources, *more):
    """An agent with the environment of its service; its messages are in agent.log."""
    command = [headroom, "agent", *(f"--source={source}" for source in sources), "--history", directory / "agent.db", *more]
    log = open(directory / "agent.log", "ab")
    return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "MALLOC_ARENA_MAX": "2"})


def of_agent(pid):
    """Processor seconds, resident MiB and bytes written of the agent."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    io = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return (int(stat[11]) + int(stat[12])) / TICKS, resident / 1024, int(io["write_bytes"])
