// What the simulated hosts of simulated-host.mjs report: a demand that wanders over a curve, by formulas of the time, so that
// every range of it can be asked for and gives the same figures.

const NS = 1e9;
const DAY = 86_400;
const STATE_EVERY = 15;

/// A number between 0 and 1 that depends on its arguments only.
function noise(...seeds) {
  let hash = 2166136261;
  for (const seed of seeds) hash = Math.imul(hash ^ Math.floor(seed), 16777619) ^ (hash >>> 13);
  return ((hash >>> 0) % 100_003) / 100_003;
}

/// Noise that moves smoothly: a value each `step` seconds, joined by a cosine.
function drift(seed, second, step) {
  const [at, part] = [Math.floor(second / step), (second / step) % 1];
  const ease = (1 - Math.cos(Math.PI * part)) / 2;
  return noise(seed, at) * (1 - ease) + noise(seed, at + 1) * ease;
}

/// Storage that gives `limit` I/Os a second at most and answers in `floor_ns` when nothing else is in flight.
class Storage {
  constructor(floor_ns, limit) {
    Object.assign(this, { floor_ns, limit, knee: limit * floor_ns / NS });
  }

  latency_ns(outstanding) {
    return (this.floor_ns ** 4 + (outstanding / this.limit * NS) ** 4) ** 0.25;
  }

  outstanding(iops) {
    let [low, high] = [0, 4096];
    for (let step = 0; step < 40; step += 1) {
      const middle = (low + high) / 2;
      if (middle / this.latency_ns(middle) * NS < iops) low = middle; else high = middle;
    }
    return low;
  }

  points() {
    return [1, 2, 4, 8, 16, 32, 64, 128].map((outstanding) => {
      const latency_ns = this.latency_ns(outstanding) * (0.97 + 0.06 * noise(outstanding, this.limit));
      return { outstanding, iops: outstanding / latency_ns * NS, latency_ns };
    });
  }
}

/// What the verdict crate says beside the headroom of saturated storage.
function headroomReason(verdict, utilisation) {
  if (verdict !== "demand-exceeds-capability") return null;
  return utilisation > 1 ? "none: the demand is more than the storage gives" : "at the knee: more gets through, but waits longer";
}

/// One database on one volume.
class Volume {
  constructor(started, facts) {
    Object.assign(this, { started, load: 0.2, swing: 0.25, slow: 1, files_count: 40, doubts: [], confidence: "high", lacks: null }, facts);
    this.storage = facts.storage ?? new Storage(85_000, 71_000);
    this.seed = [...this.id].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % 1_000_003;
    this.spike_at = started - 300;
    this.gaps = [
      { from: started - 9 * 60, to: started - 8 * 60, reason: "the source did not answer: connection refused" },
      { from: started - 15 * 3600, to: started - 14.2 * 3600, reason: "the agent did not run" },
      ...(facts.gaps ?? []),
    ];
    this.bad = facts.bad ?? [];
  }

  gap(second) {
    return this.gaps.find(({ from, to }) => second >= from && second < to)?.reason ?? null;
  }

  /// What held in a second, or null in a gap.
  at(second) {
    if (this.gap(second)) return null;
    const bad = this.bad.find(({ from, to }) => second >= from && second < to);
    const spike = Math.floor(second) === this.spike_at ? 0.7 : 0;
    const wander = drift(this.seed, second, 41) * 0.7 + noise(this.seed, second) * 0.3;
    const share = Math.min(1.25, Math.max(0.004, this.load + this.swing * wander + spike + (bad?.load ?? 0)));
    const iops = Math.min(share, 0.985) * this.storage.limit;
    const expected_on = Math.max(this.storage.outstanding(iops), share > 0.985 ? share * 40 : 0);
    const expected_latency_ns = this.storage.latency_ns(expected_on);
    const latency_ns = expected_latency_ns * this.slow * (bad?.slow ?? 1) * (0.94 + 0.14 * noise(this.seed, second, 5));
    const size = 8192 + 2048 * noise(this.seed, second, 3);
    return {
      utilisation: share, iops, latency_ns, expected_latency_ns, outstanding: iops * latency_ns / NS,
      read_bytes_per_second: iops * 0.7 * size, written_bytes_per_second: iops * 0.3 * size,
    };
  }

  moment(now) {
    const second = Math.floor(now) - 1;
    const names = ["utilisation", "outstanding", "latency_ns", "expected_latency_ns", "iops", "read_bytes_per_second", "written_bytes_per_second"];
    const known = this.measured ? this.at(second) : { ...this.at(second), utilisation: null, expected_latency_ns: null };
    const unknown = Object.fromEntries(names.map((name) => [name, null]));
    return { unix_ns: second * NS, ...unknown, ...(this.at(second) && !this.away ? known : {}), gap: this.away ?? this.gap(second) };
  }

  state(now) {
    const moment = this.moment(now - now % STATE_EVERY);
    const { utilisation, iops } = moment;
    const bad = this.bad.find(({ from, to }) => now >= from && now < to);
    return {
      id: this.id, database: this.database, source: this.source, engine: this.engine, mount: this.mount, device: this.device,
      verdict: bad?.verdict ?? this.verdict, sentence: bad?.sentence ?? this.sentence, next_step: bad?.next ?? this.next,
      confidence: this.confidence, doubts: this.doubts, since_unix_ns: (this.started - 4200) * NS,
      judged_unix_ns: (now - now % STATE_EVERY) * NS, gap: moment.gap, utilisation,
      headroom: utilisation && 1 / utilisation, headroom_low: utilisation && 0.93 / utilisation, headroom_high: utilisation && 1.06 / utilisation,
      headroom_reason: utilisation ? headroomReason(bad?.verdict ?? this.verdict, utilisation) : this.headroom_reason ?? "nothing was measured to compare with",
      binding: utilisation ? "operations of the storage bind, before its bandwidth" : null,
      outstanding: moment.outstanding, reads_per_second: iops && iops * 0.7, writes_per_second: iops && iops * 0.3,
      read_bytes_per_second: moment.read_bytes_per_second, written_bytes_per_second: moment.written_bytes_per_second,
      latency_ns: moment.latency_ns, expected_latency_ns: moment.expected_latency_ns, service_level_ns: 5e6,
      capability: this.measured ? { measured_unix_ns: (this.started - this.measured * DAY) * NS, directory: this.mount } : null,
      measure_command: `headroom measure ${this.mount}`,
    };
  }

  curve(now) {
    if (!this.measured) return { error: `${this.mount} was never measured`, try: `headroom measure ${this.mount}` };
    const points = this.storage.points();
    const halved = new Storage(this.storage.floor_ns * 4, this.storage.limit / 9);
    const trail = [];
    for (let second = Math.floor(now) - 300; second < now - 1; second += 1) {
      const at = this.at(second);
      if (at) trail.push({ unix_ns: second * NS, outstanding: at.outstanding, iops: at.iops, latency_ns: at.latency_ns });
    }
    const newest = trail.at(-1);
    return {
      curves: [
        { name: "random 70/30 of 8 KiB", points, knee_outstanding: this.storage.knee, limit_iops: this.storage.limit },
        { name: "random reads of 64 KiB", points: halved.points(), knee_outstanding: halved.knee, limit_iops: halved.limit },
      ],
      demand: newest ? { curve: 0, outstanding: newest.outstanding, iops: newest.iops, latency_ns: newest.latency_ns } : null,
      trail, service_level_ns: 5e6, expected_latency_ns: this.at(Math.floor(now) - 1)?.expected_latency_ns ?? null,
    };
  }

  series(from, to, points, now) {
    const step = Math.max(1, Math.ceil((to - from) / points));
    const begin = Math.floor(from / step) * step;
    const names = ["utilisation", "outstanding", "latency_ns", "expected_latency_ns", "iops", "read_bytes_per_second", "written_bytes_per_second"];
    const series = Object.fromEntries(names.map((name) => [name, { min: [], mean: [], max: [] }]));
    const times_unix_s = [];
    for (let start = begin; start < Math.min(to, Math.floor(now) - 1); start += step) {
      times_unix_s.push(start);
      const every = Math.max(1, Math.floor(step / 12));
      const seconds = [];
      for (let second = start; second < start + step; second += every) seconds.push(second);
      if (this.spike_at >= start && this.spike_at < start + step) seconds.push(this.spike_at);
      const known = this.away ? [] : seconds.map((second) => this.at(second)).filter(Boolean);
      for (const name of names) {
        const isUnknown = !this.measured && (name === "utilisation" || name === "expected_latency_ns");
        const values = isUnknown ? [] : known.map((at) => at[name]);
        series[name].min.push(values.length ? Math.min(...values) : null);
        series[name].max.push(values.length ? Math.max(...values) : null);
        series[name].mean.push(values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
      }
    }
    const gaps = this.away ? [{ from, to, reason: this.away }] : this.gaps.filter((gap) => gap.to > from && gap.from < to);
    const marks = [
      { second: this.started - 7.5 * 60, kind: "restart", text: "the server restarted", incident: null },
      { second: this.started - 200, kind: "cap", text: "io.max of the slice changed to 40,000 IOPS", incident: null },
      ...this.bad.map((bad) => ({ second: bad.from, kind: "incident", text: bad.verdict.replaceAll("-", " "), incident: bad.incident })),
    ];
    return {
      from_unix_ns: from * NS, to_unix_ns: to * NS, step_ns: step * NS, times_unix_s, series,
      gaps: gaps.map((gap) => ({ from_unix_ns: gap.from * NS, to_unix_ns: gap.to * NS, reason: gap.reason })),
      marks: marks.filter(({ second }) => second > from && second < to).map(({ second, ...mark }) => ({ unix_ns: second * NS, ...mark })),
    };
  }

  verdicts(from, to) {
    const stretches = [];
    const gaps = this.away ? [{ from, to, reason: this.away }] : this.gaps;
    const cuts = [from, to, ...this.bad.flatMap((bad) => [bad.from, bad.to]), ...gaps.flatMap((gap) => [gap.from, gap.to])]
      .filter((cut) => cut >= from && cut <= to).sort((a, b) => a - b);
    for (let at = 0; at + 1 < cuts.length; at += 1) {
      if (cuts[at + 1] <= cuts[at]) continue;
      const middle = (cuts[at] + cuts[at + 1]) / 2;
      const gap = gaps.find((gap) => middle >= gap.from && middle < gap.to);
      const bad = this.bad.find((bad) => middle >= bad.from && middle < bad.to);
      stretches.push({
        from_unix_ns: cuts[at] * NS, to_unix_ns: cuts[at + 1] * NS,
        verdict: gap ? "cannot-say" : bad?.verdict ?? this.verdict, incident: gap ? null : bad?.incident ?? null, reason: gap?.reason ?? null,
      });
    }
    return { stretches };
  }

  files(now) {
    const slot = Math.floor(now / STATE_EVERY);
    if (this.slot === slot) return this.listed;
    this.slot = slot;
    const files = [];
    for (let at = 0; at < this.files_count; at += 1) {
      const weight = 6 / (at + 1.5) * (0.6 + 0.8 * noise(this.seed, at, now / STATE_EVERY));
      const path = this.names?.[at] ?? `${this.mount}/base/${16384 + (at % 7)}/${24576 + at}${at % 9 === 3 ? "_fsm" : ""}`;
      const isIdle = at > 0 && at % 11 === 0;
      const reads = isIdle ? 0 : weight * 900;
      const latency_ns = 120_000 * (1 + noise(this.seed, at));
      files.push({
        path, database: this.database, waited_share: isIdle ? 0 : weight * 0.3,
        reads_per_second: reads, writes_per_second: reads * 0.3,
        read_bytes_per_second: reads * 8192, written_bytes_per_second: reads * 0.3 * 8192,
        read_latency_ns: isIdle ? null : latency_ns, write_latency_ns: isIdle ? null : latency_ns * 0.6,
        trail: Array.from({ length: 60 }, (_, step) => step > 20 && step < 26 ? null : isIdle ? 0 : Number((weight * 0.3 * (0.5 + noise(this.seed, at, now / STATE_EVERY + step))).toPrecision(3))),
        histogram: at % 3 === 2 ? null : [64, 128, 256, 512, 1024, 2048, 4096, 8192].map((us, band) =>
          ({ upper_ns: us * 1000, reads: Math.round(reads * 60 * [5, 30, 42, 15, 5, 2, 0.8, 0.2][band] / 100), writes: Math.round(reads * 20 * [40, 35, 15, 6, 2, 1, 0.7, 0.3][band] / 100) })),
      });
    }
    this.listed = { total_files: files.length, files };
    return this.listed;
  }

  waits(now) {
    if (this.away) return { waits: [] };
    const sessions = (this.at(Math.floor(now) - 1)?.outstanding ?? 0) + 0.4;
    const waits = [["IO / DataFileRead", "I/O", 0.7, "sessions that read a page of a table or an index from storage"],
      ["IO / WALSync", "log", 0.2, "commits that wait until the log is on storage"], ["LWLock / WALWrite", "log", 0.07, "commits that wait for another one's write"],
      ["Lock / transactionid", "lock", 0.02, "sessions that wait for another transaction"]];
    return { waits: waits.map(([name, kind, share, what]) => ({ name, class: kind, sessions: sessions * share, what })) };
  }

  devices(now) {
    const at = this.away ? null : this.at(Math.floor(now) - 1);
    const rates = (share) => at ? {
      reads_per_second: at.iops * 0.7 * share, writes_per_second: at.iops * 0.3 * share, read_bytes_per_second: at.read_bytes_per_second * share,
      written_bytes_per_second: at.written_bytes_per_second * share, busy: Math.min(1, at.utilisation * share * 1.3), outstanding: at.outstanding * share, latency_ns: at.latency_ns * 0.95,
    } : { reads_per_second: null, writes_per_second: null, read_bytes_per_second: null, written_bytes_per_second: null, busy: null, outstanding: null, latency_ns: null };
    return {
      devices: [
        { name: this.device, mount: this.mount, parents: ["md0"], ...rates(1) },
        { name: "md0", mount: null, parents: ["nvme0n1", "nvme1n1"], ...rates(1) },
        { name: "nvme0n1", mount: null, parents: [], ...rates(0.52) }, { name: "nvme1n1", mount: null, parents: [], ...rates(0.48) },
      ],
      users: this.away ? [] : [
        { program: this.program ?? "postgres", pid: 2214, ios_per_second: (at?.iops ?? 0) * 0.93, share: 0.93 },
        { program: "restic", pid: 31877, ios_per_second: (at?.iops ?? 0) * 0.06, share: 0.06 }, { program: "systemd-journald", pid: 611, ios_per_second: 14, share: 0.01 },
      ],
    };
  }
}

/// A host of volumes with what it found besides.
function host(started, volumes, { databases, incidents = () => [], name = "db-07" }) {
  return {
    started, volumes, incidents,
    state: (now) => ({
      host: name, version: "0.9.0", now_unix_ns: now * NS, started_unix_ns: (started - 14.2 * 3600) * NS, window_ns: 60 * NS, every_ns: NS, live: true,
      volumes: volumes.map((volume) => volume.state(now)), databases, incidents_open: incidents(now).filter(({ ended_unix_ns }) => ended_unix_ns === null).length,
    }),
    capabilities: (now) => volumes.filter(({ measured }) => measured).map((volume) => ({
      directory: volume.mount, mount: volume.mount, from: "measured", measured_unix_ns: (started - volume.measured * DAY) * NS, age_ns: (now - started + volume.measured * DAY) * NS,
      reads_per_second: volume.storage.limit, writes_per_second: volume.storage.limit * 0.6, read_bandwidth: 3.2e9, write_bandwidth: 1.4e9,
      latency_ns: volume.storage.floor_ns, refresh_command: `headroom measure ${volume.mount}`,
    })),
    seen: (now) => volumes.filter(({ seen }) => seen).map((volume) => ({
      target_path: volume.mount, seen: { since: (started - volume.seen * DAY) * NS, until: now * NS, observed_s: volume.seen * 86_400, forgotten: null }, credits: [], contradictions: [],
      resources: [
        { name: "read-operations", value: 2314.6, unit: "1/s", bound: "at-least", from: "seen" }, { name: "write-operations", value: 1480, unit: "1/s", bound: "exact", from: "seen" },
        { name: "read-latency", value: 412_000, unit: "ns", bound: "exact", from: "seen" },
      ],
    })),
  };
}

function incident(id, started, ended, facts) {
  return {
    id, also: [], started_unix_ns: started * NS, started_time: new Date(started * 1000).toISOString(), opened_unix_ns: (started + 60) * NS,
    ended_unix_ns: ended && ended * NS, ended_time: ended && new Date(ended * 1000).toISOString(), ending: ended ? "recovered" : null,
    held_ns: ((ended ?? Date.now() / 1000) - started) * NS, utilisation_max: 1.12, utilisation_mean: 0.97, occurrences: 1, period_ns: null,
    kinds: [{ verdict: facts.verdict, held_ns: 600 * NS, summary: facts.summary }], cause: null,
    worst: {
      at_unix_ns: (started + 240) * NS, at_time: new Date((started + 240) * 1000).toISOString(), confidence: "high", utilisation: 1.12, outstanding: 41.2,
      latency_ns: 612_000, expected_ns: 588_000, evidence: [
        { what: "utilisation", value: 1.12, unit: "share", source: "device rates x measured cost model", at: 0, at_time: null, expected: null, expected_source: null, ratio: null },
        { what: "latency of reads from storage", value: 612_000, unit: "ns", source: "the database's file statistics", at: 0, at_time: null, expected: 588_000, expected_source: "measured capability", ratio: 1.0408 },
      ],
      files: [{ path: `${facts.mount}/base/16384/24576`, operations_per_s: 41_200, bytes_per_s: 3.4e8, outstanding: 22.5 }],
      processes: [{ pid: 2214, command: "postgres", share: 0.93, device: null }, { pid: 31877, command: "restic", share: 0.06, device: null }],
      waits: [{ event: "IO / DataFileRead", sessions: 28.4 }],
    },
    ...facts,
  };
}

const OVER = {
  verdict: "demand-exceeds-capability", summary: "the demand is 112 % of what the storage gives; latency is what the curve gives at this load",
  next_step: "Spread the index rebuild of orders over the night, or give the volume 15 % more operations.",
};

function well(started, names) {
  const volumes = [
    new Volume(started, {
      id: "a1c4", database: "orders", source: "postgres://localhost:5432", engine: "PostgreSQL 17", mount: "/srv/postgres", device: "dm-3", measured: 6, names,
      files_count: 10_000, load: 0.12, swing: 0.5, verdict: "healthy", sentence: "Latency agrees with what this storage gives, and 38 % of it is in use.",
      next: "Nothing to do: the storage can carry 2.6 x this demand.",
      bad: [{ from: started - 7.2 * 3600, to: started - 6.4 * 3600, load: 0.7, verdict: OVER.verdict, incident: 12 },
        { from: started - 2.6 * 3600, to: started - 2.45 * 3600, load: 0.1, slow: 4, verdict: "storage-degraded", incident: 13 }],
    }),
    new Volume(started, {
      id: "b2d5", database: "shop", source: "mysql://localhost:3306", engine: "MySQL 8.4", mount: "/srv/mysql", device: "nvme2n1", measured: 41, program: "mysqld",
      load: 0.92, swing: 0.2, confidence: "medium", doubts: ["the capability is 41 days old"], verdict: OVER.verdict,
      sentence: "The demand is 104 % of what the storage gives; latency is what the curve gives at this load.", next: OVER.next_step,
      bad: [{ from: started - 4200, to: started + 1e6, load: 0, verdict: OVER.verdict, incident: 14, sentence: "The demand is 104 % of what the storage gives; latency is what the curve gives at this load.", next: OVER.next_step }],
    }),
    new Volume(started, {
      id: "c3e6", database: "archive", source: "sqlite:/var/lib/archive.db", engine: "SQLite 3.46", mount: "/", device: "nvme0n1p2", load: 0.01, swing: 0.01, confidence: "low",
      verdict: "cannot-say", sentence: "Nothing was measured to compare with: latency is 91 us at 0.06 outstanding I/Os.", next: "Measure the storage at a quiet hour.",
      doubts: ["no capability of /"], program: "archived", seen: 2,
    }),
  ];
  return host(started, volumes, {
    databases: [
      { name: "orders", engine: "PostgreSQL 17", pid: 2214, source: "postgres://localhost:5432", watched: true, lacks: [] },
      { name: "shop", engine: "MySQL 8.4", pid: 1980, source: "mysql://localhost:3306", watched: true, lacks: ["GRANT SELECT ON performance_schema.* TO 'headroom'@'localhost';"] },
      { name: "archive", engine: "SQLite 3.46", pid: 402, source: "sqlite:/var/lib/archive.db", watched: true, lacks: [] },
      { name: "mongod", engine: "MongoDB", pid: 5120, source: null, watched: false, lacks: ["no address: give --database mongodb://..."] },
    ],
    incidents: () => [
      incident(14, started - 4200, null, { ...OVER, mount: "/srv/mysql", database: "shop" }),
      incident(13, started - 2.6 * 3600, started - 2.45 * 3600, { verdict: "storage-degraded", summary: "latency is 4.1 x what this storage gave at the same load", next_step: "Look at md0: a mirror was being rebuilt.", mount: "/srv/postgres", database: "orders" }),
      incident(12, started - 7.2 * 3600, started - 6.4 * 3600, { ...OVER, mount: "/srv/postgres", database: "orders" }),
    ],
  });
}

const HOSTILE = [
  "/srv/postgres/<img src=x onerror=alert(1)>", "/srv/postgres/\u001b[2J\u001b]0;owned\u0007.dat", "/srv/postgres/\u202egnp.exe",
  "/srv/postgres/</script><script>alert(2)</script>", `/srv/postgres/${"a_very_long_name_without_any_space".repeat(6)}`, "/srv/postgres/line\nbreak",
];

export const SCENES = {
  well: (started) => well(started),

  /// Names that are markup and control characters.
  hostile: (started) => {
    const scene = well(started, HOSTILE);
    scene.volumes[0].program = "<i onclick=alert(6)>postgres</i>\u001b[31m";
    scene.volumes[0].database = "<b onmouseover=alert(3)>orders</b>";
    scene.volumes[0].sentence = "<script>alert(4)</script> is in this sentence.";
    scene.volumes[0].gaps[0].reason = "<img src=x onerror=alert(5)>";
    return scene;
  },

  /// No capability, no grants, the source away, nothing else found.
  wrong: (started) => {
    const away = "the source does not answer: password authentication failed for user \"headroom\"";
    const volume = new Volume(started, {
      id: "a1c4", database: "orders", source: "postgres://localhost:5432", engine: "PostgreSQL", mount: "/srv/postgres", device: "dm-3", away, confidence: "low", files_count: 0,
      verdict: "cannot-say", sentence: "Nothing is known of orders: password authentication failed for user \"headroom\".",
      next: "Create the user: CREATE USER headroom PASSWORD '...'; GRANT pg_monitor TO headroom;", doubts: ["no capability of /srv/postgres", "the source is away"],
      headroom_reason: "the demand is not known",
    });
    return host(started, [volume], {
      databases: [{ name: "orders", engine: "PostgreSQL", pid: 2214, source: "postgres://localhost:5432", watched: false, lacks: ["GRANT pg_monitor TO headroom;", "the process's files cannot be read: run the agent as root or with CAP_SYS_PTRACE"] }],
    });
  },

  /// No database at all.
  empty: (started) => host(started, [], { databases: [] }),

  /// Twenty volumes.
  many: (started) => host(started, Array.from({ length: 20 }, (_, at) => new Volume(started, {
    id: `v${at}`, database: `tenant_${at}`, source: `postgres://localhost:${5432 + at}`, engine: "PostgreSQL 17", mount: `/srv/tenant_${at}`, device: `dm-${at}`, measured: at + 1,
    load: 0.05 + (at * 7 % 20) / 25, swing: 0.15, files_count: 500, verdict: at % 7 === 3 ? "throttled" : at % 9 === 4 ? "serialized" : at % 8 === 6 ? "burst" : "healthy",
    sentence: at % 7 === 3 ? "A cap adds the time: io.max of tenant.slice holds reads at 4,000 a second." : at % 9 === 4 ? "One I/O at a time is waited for, far below the knee." : "Latency agrees with what this storage gives.",
    next: at % 7 === 3 ? "Raise io.max of tenant.slice." : "Nothing to do.",
  })), { databases: [] }),
};
