"""Disks, servers and loads for the benchmarks that run real databases as fast as they can."""
import atexit, itertools, json, os, pwd, re, shutil, signal, subprocess, tempfile, time
from pathlib import Path

ROWS = 2_000_000
# What bulk loads insert within a row of the result fits in.
DISK_GIB = 7
# What one row of the result may insert, with its log.
FREE_MIN = 2 << 30
# Until caches hold no more changed pages than they will hold.
UNTIL_STEADY_S = {"updates": 12, "load": 6}
# Loads of transactions that take longer than LONG_S are waited for, and watched, for longer: so long at most.
LONG_S, LONG_WAIT_MAX_S, LONG_WATCHED_MAX_S = 2, 30, 60
# The longest time that a load takes until its first transaction: a store is opened again, and reads its inner pages.
BEGINS_WITHIN_S = 120

LUA = r"""
sysbench.cmdline.options = {
  kind = {"what a transaction does", "points"},
  rows = {"rows of the table", 1000000},
}
function thread_init() con = sysbench.sql.driver():connect() end
function thread_done() con:disconnect() end
local function id() return sysbench.rand.uniform(1, sysbench.opt.rows) end
local function insert() con:query("INSERT INTO events (payload) VALUES ('" .. string.rep("x", 100) .. "')") end
local function update()
  con:query("UPDATE items SET n = n + 1 WHERE id = " .. id())
end
local function read() con:query("SELECT payload FROM items WHERE id = " .. id()) end
local kinds = {
  points = read,
  ranges = function() local at = id() con:query("SELECT SUM(n) FROM items WHERE id BETWEEN " .. at .. " AND " .. at + 199) end,
  updates = update,
  commits = insert,
  batches = function()
    con:query("BEGIN")
    for _ = 1, 10 do insert() end
    con:query("COMMIT")
  end,
  load = function()
    local rows = {}
    for at = 1, 200 do rows[at] = "('" .. string.rep("x", 400) .. "')" end
    con:query("INSERT INTO events (payload) VALUES " .. table.concat(rows, ","))
  end,
  scans = function() local at = id() con:query("SELECT SUM(LENGTH(payload)) FROM items WHERE id BETWEEN " .. at .. " AND " .. at + 2999) end,
  tens = function()
    con:query("BEGIN")
    for _ = 1, 10 do update() end
    con:query("COMMIT")
  end,
  striped = function() con:query("SELECT payload FROM striped WHERE id = " .. id()) end,
  mix = function() if sysbench.rand.uniform(1, 10) == 1 then update() else read() end end,
}
function event() kinds[sysbench.opt.kind]() end
"""
# A worker process of SQLite: each of its threads connects after the extension is loaded and does what the kind says, at a part of
# the rate or flat out. It prints how many transactions all of them did every second.
WORKER = r"""
import random, sqlite3, sys, threading, time
extension, path, kind, rows, rate, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6])
loader = sqlite3.connect(":memory:")
loader.enable_load_extension(True)
loader.load_extension(extension)
done = [0] * threads
def work(thread):
    db = sqlite3.connect(path, isolation_level=None, timeout=60)
    db.execute("PRAGMA synchronous = FULL")
    def insert(): db.execute("INSERT INTO events (payload) VALUES (?)", ("x" * 100,))
    def read(): db.execute("SELECT payload FROM items WHERE id = ?", (random.randint(1, rows),)).fetchall()
    def update(): db.execute("UPDATE items SET n = n + 1 WHERE id = ?", (random.randint(1, rows),))
    def sum_of(count):
        at = random.randint(1, rows)
        db.execute("SELECT SUM(LENGTH(payload)) FROM items WHERE id BETWEEN ? AND ?", (at, at + count)).fetchall()
    def together(count, bytes):
        db.execute("BEGIN IMMEDIATE")
        for _ in range(count): db.execute("INSERT INTO events (payload) VALUES (?)", ("x" * bytes,))
        db.execute("COMMIT")
    do = {"points": read, "ranges": lambda: sum_of(200), "updates": update, "commits": insert, "batches": lambda: together(10, 100),
          "load": lambda: together(200, 400), "scans": lambda: sum_of(3000),
          "mix": lambda: update() if random.randint(1, 10) == 1 else read()}[kind]
    due = time.monotonic()
    while True:
        if rate:
            due += random.expovariate(rate / threads)
            time.sleep(max(0, due - time.monotonic()))
        do()
        done[thread] += 1
for thread in range(threads): threading.Thread(target=work, args=(thread,), daemon=True).start()
began, before = time.monotonic(), 0
while True:
    time.sleep(1)
    now, total = time.monotonic(), sum(done)
    print(f"tps: {(total - before) / (now - began):.2f}", flush=True)
    began, before = now, total
"""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
    return done.stdout


def throttle_file(kind):
    groups = (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())
    group = next((path for _, controllers, path in groups if controllers == "blkio"), "/")
    return Path("/sys/fs/cgroup/blkio") / group.strip("/") / f"blkio.throttle.{kind}_device"


def unmount(mount):
    """A program that was just ended may still have a file open."""
    for _ in range(100):
        if subprocess.run(["umount", mount], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    run("umount", mount)


class LoopDisk:
    """A loop device on a file, with limits that can be switched off."""

    def __init__(self, home, name, limits, size_gib=None):
        self.name, self.limits, self.mount = name, limits, home / f"{name}.mnt"
        image = home / f"{name}.img"
        with open(image, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, (size_gib or DISK_GIB) << 30)
        self.device = run("losetup", "--direct-io=on", "--find", "--show", image).strip()
        self.number = Path(f"/sys/block/{Path(self.device).name}/dev").read_text().strip()
        self.place()

    def reads(self):
        return int(Path(f"/sys/dev/block/{self.number}/stat").read_text().split()[0])

    def place(self):
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.device)
        self.mount.mkdir()
        run("mount", self.device, self.mount)

    def hold(self, on):
        for kind, amount in self.limits.items():
            throttle_file(kind).write_text(f"{self.number} {amount if on else 0}")

    def remove(self):
        if not self.mount.exists():
            return
        self.hold(False)
        unmount(self.mount)
        subprocess.call(["losetup", "--detach", self.device])
        self.mount.rmdir()


class Lun(LoopDisk):
    """A disk that answers late, and several at once."""

    def __init__(self, home, name, binary):
        self.name, self.limits, self.mount, self.binary = name, {}, home / f"{name}.mnt", binary
        flags = ["--size", f"{DISK_GIB}G", "--latency", "4ms", "--width", "8", "--directory", home, "--json"]
        self.device = json.loads(run(binary, "lab", "luns", "create", *flags))["luns"][0]["device"]
        self.place()

    def hold(self, on):
        pass

    def remove(self):
        if not self.mount.exists():
            return
        unmount(self.mount)
        self.mount.rmdir()
        subprocess.call([self.binary, "lab", "luns", "remove", self.device], stdout=subprocess.DEVNULL)


class Server:
    """A server in control groups of memory and of processor time."""

    memory_mib = 320
    # More than memory has room for, or than can do anything at once, are not tried.
    sessions_max = 192

    def __init__(self, home, disk):
        self.disk, self.data = disk, disk.mount / self.user
        self.socket = Path(tempfile.mkdtemp(prefix="s.", dir=home))
        self.group = Path(f"/sys/fs/cgroup/memory/headroom-bench-{os.getpid()}-{self.user}")
        self.accounts = Path(f"/sys/fs/cgroup/cpuacct/{self.group.name}")
        for group in (self.group, self.accounts):
            group.mkdir(exist_ok=True)
        (self.group / "memory.limit_in_bytes").write_text(str(self.memory_mib << 20))
        owner = pwd.getpwnam(self.user)
        self.data.mkdir()
        for path in (self.data, self.socket):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        self.process = None

    def concurrent(self, kind, sessions):
        """Sessions that a load really has."""
        return sessions

    def enter(self):
        """What a shell does to be in the groups of the server."""
        return f"echo 0 > {self.group}/cgroup.procs; echo 0 > {self.accounts}/cgroup.procs"

    def cpu_s(self):
        return int((self.accounts / "cpuacct.usage").read_text()) / 1e9

    def kernel_s(self):
        return int((self.accounts / "cpuacct.usage_sys").read_text()) / 1e9

    def waits(self):
        """How often its threads have given up a processor to wait for something."""
        return sum(map(voluntary_switches, (self.accounts / "tasks").read_text().split()))

    def start(self, command):
        into = f"{self.enter()}; exec setpriv --reuid {self.user} --regid {self.user} --clear-groups " + command
        self.process = subprocess.Popen(["sh", "-c", into], stdout=subprocess.DEVNULL, stderr=open(self.socket / "log", "w"), start_new_session=True)
        for _ in range(600):
            if self.try_sql("SELECT 1"):
                return
            time.sleep(0.1)
        raise RuntimeError(f"no server: {(self.socket / 'log').read_text()}")

    def try_sql(self, text):
        try:
            return self.sql(text)
        except RuntimeError:
            return None

    def empty(self):
        """Removes what earlier rows of the result inserted, where that is more than the disk has room for."""
        if shutil.disk_usage(self.data).free < FREE_MIN:
            self.disk.hold(False)
            shutil.rmtree(self.data)
            self.data.mkdir()
            self.fill()
            self.disk.hold(True)

    def fill(self):
        for statement in self.FILL:
            self.sql(statement.format(rows=ROWS))

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM if self.user == "mysql" else signal.SIGINT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.rmtree(self.socket, ignore_errors=True)
        for group in (self.group, self.accounts):
            try:
                group.rmdir()
            except OSError:
                pass


class Postgres(Server):
    name, user = "PostgreSQL", "postgres"
    # 192 sessions take half of it.
    memory_mib = 512
    FILL = [
        "CREATE TABLE items (id int PRIMARY KEY, n int, payload text) WITH (fillfactor = 90, autovacuum_enabled = off)",
        "INSERT INTO items SELECT g, 0, repeat('x', 500) FROM generate_series(1, {rows}) g",
        "CREATE TABLE events (id bigserial PRIMARY KEY, payload text) WITH (autovacuum_enabled = off)",
        "VACUUM (FREEZE, ANALYZE) items",
    ]

    def __init__(self, home, disk):
        super().__init__(home, disk)
        self.bin = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        run("setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups", self.bin / "initdb", "-D", self.data, "-A", "trust", "-U", "bench")
        settings = ["listen_addresses=", f"unix_socket_directories={self.socket}", "shared_buffers=32MB", "max_connections=250", "track_io_timing=on",
                    "track_wal_io_timing=on", "autovacuum=off", "max_wal_size=1GB", "wal_init_zero=on", "min_wal_size=512MB"]
        self.start(f"{self.bin}/postgres -D {self.data} " + " ".join(f"-c {one}" for one in settings))
        self.source = f"postgres:host={self.socket} user=bench dbname=postgres"
        self.driver = ["--db-driver=pgsql", f"--pgsql-host={self.socket}", "--pgsql-user=bench", "--pgsql-db=postgres"]

    def sql(self, text):
        return run("psql", "-Xqt", "-h", self.socket, "-U", "bench", "-d", "postgres", "-c", text)

    def settle(self):
        self.sql("CHECKPOINT")

    def empty(self):
        self.sql("TRUNCATE events")


class Mariadb(Server):
    name, user = "MariaDB", "mysql"
    # It bypasses the page cache; besides its buffer pool it takes 200 MiB.
    memory_mib = 512
    FILL = [
        "CREATE DATABASE bench",
        "CREATE TABLE bench.items (id INT PRIMARY KEY, n INT, payload VARCHAR(600)) ENGINE=InnoDB",
        "USE bench; INSERT INTO items SELECT seq, 0, REPEAT('x', 500) FROM seq_1_to_{rows}",
        "CREATE TABLE bench.events (id BIGINT PRIMARY KEY AUTO_INCREMENT, payload VARCHAR(600)) ENGINE=InnoDB",
    ]

    def __init__(self, home, disk):
        super().__init__(home, disk)
        file = f"{self.socket}/m.sock"
        run("mariadb-install-db", "--no-defaults", f"--datadir={self.data}", f"--user={self.user}", "--auth-root-authentication-method=normal", "--skip-test-db")
        settings = [f"--datadir={self.data}", f"--socket={file}", "--skip-networking", "--innodb-buffer-pool-size=128M", "--innodb-log-file-size=512M",
                    "--performance-schema=ON", "--max-connections=300", "--innodb-flush-method=O_DIRECT", "--pid-file=" + f"{self.socket}/pid"]
        self.start("/usr/sbin/mariadbd --no-defaults " + " ".join(settings))
        self.source = f"mysql://root@localhost/?socket={file}"
        self.driver = ["--db-driver=mysql", f"--mysql-socket={file}", "--mysql-user=root", "--mysql-db=bench"]

    def sql(self, text):
        return run("mariadb", "--no-defaults", f"--socket={self.socket}/m.sock", "-uroot", "-BNe", text)

    def settle(self):
        self.sql("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, innodb_max_dirty_pages_pct = 0")
        for _ in range(600):
            if self.sql("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Innodb_buffer_pool_pages_dirty'").strip() == "0":
                break
            time.sleep(0.1)
        self.sql("SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT")

    def empty(self):
        self.sql("TRUNCATE bench.events")


class Sqlite(Server):
    name, user = "SQLite", "root"
    # One can write at a time; the others sleep, and try again.
    sessions_max = 192

    def __init__(self, home, disk, binary):
        super().__init__(home, disk)
        self.file = self.data / "shop.db"
        self.extension = json.loads(run(binary, "sources", "sqlite-extension", "--json"))["path"]
        self.source = f"sqlite:{self.file}"

    def fill(self):
        # In the group, so that the cached pages are the group's.
        into = f'{self.enter()}; exec /usr/bin/python3 -c "$0"'
        run("sh", "-c", into, f"""
import sqlite3
db = sqlite3.connect("{self.file}")
db.execute("PRAGMA journal_mode = WAL")
db.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, n INT, payload TEXT)")
db.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, payload TEXT)")
text = "x" * 500
db.executemany("INSERT INTO items VALUES (?, 0, ?)", ((id, text) for id in range(1, {ROWS} + 1)))
db.commit()
db.isolation_level = None
for id in range(1, 2000): db.execute("UPDATE items SET n = n + 1 WHERE id = ?", (id,))
import os
os._exit(0)
""")
        # The page cache then holds what reading leaves in it, not what was written last.
        run("sh", "-c", f"{self.enter()}; cat {self.file} > /dev/null")

    def settle(self):
        """A checkpoint. The last connection is not closed: that would remove the WAL, and a new one grows with each commit."""
        checkpoint = "execute('PRAGMA wal_checkpoint(RESTART)').fetchall()"
        run("/usr/bin/python3", "-c", f"import os, sqlite3; sqlite3.connect('{self.file}', timeout=60).{checkpoint}; os._exit(0)")

    def concurrent(self, kind, sessions):
        return 1 if kind in ("updates", "commits", "batches", "load") else sessions

    def start_load(self, kind, sessions, rate):
        """One session for all that only write, since one can commit at a time; the others are threads of 16 processes."""
        processes = 1 if self.concurrent(kind, sessions) == 1 else 16
        worker = f"{self.enter()}; exec /usr/bin/python3 -c \"$0\" \"$@\""
        threads = max(1, sessions // 16) if processes > 1 else 1
        arguments = [WORKER, self.extension, str(self.file), kind, str(ROWS), str(rate / processes), str(threads)]
        return [["sh", "-c", worker, *arguments]] * processes


class Pagestore(Server):
    name, user = "pagestore", "root"
    sessions_max = 384

    def __init__(self, home, disk, driver):
        super().__init__(home, disk)
        self.store, self.driver = self.data / "shop.pages", driver
        self.source = f"published:{self.store}"

    def fill(self):
        run(self.driver, self.store, "fill", ROWS)

    def settle(self):
        """Each load opens the store again, which redoes what the last one left in the log."""

    def start_load(self, kind, sessions, rate):
        into = f'{self.enter()}; exec "$0" "$@"'
        return [["sh", "-c", into, str(self.driver), str(self.store), kind, str(ROWS), str(sessions), str(rate)]]


ENGINES = (Postgres, Mariadb, Sqlite, Pagestore)


class Load:
    """sysbench with the script above; its transactions a second are read as they are printed."""

    def __init__(self, server, script, kind, sessions, rate=0, seconds=600):
        self.outputs, self.rates = [], []
        if isinstance(server, (Sqlite, Pagestore)):
            self.began(server.start_load(kind, sessions, rate))
            return
        command = ["sysbench", *server.driver, f"--threads={sessions}", f"--time={seconds}", "--report-interval=1", "--events=0",
                   f"--rate={max(1, round(rate)) if rate else 0}", str(script), f"--kind={kind}", f"--rows={ROWS}", "run"]
        self.began([command])

    def began(self, commands):
        for command in commands:
            output = tempfile.TemporaryFile("w+")
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            self.outputs.append((process, output))
        # Before the server and its disk go, also where the bench is ended.
        atexit.register(self.end)

    def usage(self):
        """Processor time in seconds, and how often its threads have waited."""
        ticks = waits = 0
        for process, _ in self.outputs:
            ticks += sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
            waits += sum(voluntary_switches(thread.name) for thread in Path(f"/proc/{process.pid}/task").iterdir())
        return ticks / os.sysconf("SC_CLK_TCK"), waits

    def text(self):
        texts = []
        for _, output in self.outputs:
            output.seek(0)
            texts.append(output.read())
        return texts

    def read(self):
        """Transactions a second, each second, of all processes together."""
        rates = [[float(rate) for rate in re.findall(r"tps: ([0-9.]+)", text)] for text in self.text()]
        self.rates = [sum(seconds) for seconds in itertools.zip_longest(*rates, fillvalue=0)]
        return self.rates

    def wait_for_first(self):
        """Waits for the first transactions."""
        began = time.monotonic()
        while not self.read() and time.monotonic() - began < BEGINS_WITHIN_S:
            time.sleep(0.2)

    def end(self):
        atexit.unregister(self.end)
        for process, _ in self.outputs:
            process.kill()
            process.wait()
        return self.read()


def voluntary_switches(thread):
    try:
        status = Path(f"/proc/{thread}/status").read_text()
    except OSError:
        return 0
    return int(re.search(r"^voluntary_ctxt_switches:\s*([0-9]+)", status, re.M)[1])


class Usage:
    """What a server, its load and the machine have used of the processors until now."""

    def __init__(self, server, load):
        self.at, self.busy, self.server_s, self.server_waits = time.monotonic(), busy(), server.cpu_s(), server.waits()
        self.server_kernel_s = server.kernel_s()
        # A load in the server's group counts as the server's.
        self.client_s, self.client_waits = (0, 0) if isinstance(server, (Sqlite, Pagestore)) else load.usage()

    def per_transaction(self, later, rate):
        """Microseconds of processor time and waits for each transaction, and the machine's busy part."""
        done = max(rate * (later.at - self.at), 1e-9)
        all_ticks = max(1, later.busy[1] - self.busy[1])
        busy_part = (later.busy[0] - self.busy[0]) / all_ticks
        processors = os.cpu_count() * (later.at - self.at)
        return {"busy": busy_part, "all_us": busy_part * processors / done * 1e6,
                "server_us": (later.server_s - self.server_s) / done * 1e6, "server_kernel_us": (later.server_kernel_s - self.server_kernel_s) / done * 1e6, "client_us": (later.client_s - self.client_s) / done * 1e6,
                "server_waits": (later.server_waits - self.server_waits) / done, "client_waits": (later.client_waits - self.client_waits) / done}


def busy():
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def flat_out(server, script, kind, seconds, sessions):
    server.settle()
    load = Load(server, script, kind, sessions)
    load.wait_for_first()
    time.sleep(UNTIL_STEADY_S.get(kind, 3.2))
    # Transactions that began together end together: where they are long, two of each session pass, and four are watched.
    rates = load.read()
    each_s = server.concurrent(kind, sessions) * len(rates) / max(1, sum(rates))
    if each_s > LONG_S:
        time.sleep(min(2 * each_s, LONG_WAIT_MAX_S))
        seconds = max(seconds, min(4 * each_s, LONG_WATCHED_MAX_S))
    seen, before = len(load.read()), Usage(server, load)
    time.sleep(seconds)
    after, rates = Usage(server, load), load.end()[seen:]
    if not rates:
        raise RuntimeError("no transactions: " + "".join(load.text())[-1500:])
    rate = sum(rates) / len(rates)
    return rate, before.per_transaction(after, rate)


def asked(binary, history, disk, server, duration, *more):
    command = [binary, "check", disk.mount, "--source", server.source, "--duration", duration, "--json", "--history", history, *more]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if not done.stdout.strip():
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)
