// What the page knows: the list of runs, the chosen run, and rounds that were looked at.

const KEPT_ROUNDS = 48;

// A page in a file of its own has the answers inside.
const inside = document.getElementById("export");
const KEPT = inside ? JSON.parse(inside.textContent) : null;

// A file of a study has a comparison and no run.
export const isStudyFile = KEPT !== null && !KEPT.state;

export class Store extends EventTarget {
  list = { runs: [], studies: [], roots: [] };
  run = null; // id of the chosen run
  cursor = null;
  about = null;
  rows = {}; // columns of rounds.csv
  sums = { energy_j: [], air_bytes: [], volume_bytes: [] }; // summed up to each row
  measured = new Map(); // by kind and round
  summary = null;
  state = null; // running, finished or stopped
  connection = "connecting";
  error = null;
  rounds = new Map(); // answers to requests, oldest first
  source = null;
  retry = null;

  get nRows() {
    return this.rows.round?.length ?? 0;
  }

  get lastRound() {
    return this.nRows ? this.rows.round[this.nRows - 1] : 0;
  }

  tell(kind) {
    this.dispatchEvent(new Event(kind));
  }

  choose(run) {
    if (this.run === run && this.source) return;
    this.run = run;
    this.forget();
    this.connect();
    this.tell("reset");
  }

  forget() {
    this.cursor = null;
    this.about = null;
    this.rows = {};
    this.sums = { energy_j: [], air_bytes: [], volume_bytes: [] };
    this.measured = new Map();
    this.summary = null;
    this.state = null;
    this.error = null;
    this.rounds = new Map();
  }

  connect() {
    if (KEPT) {
      this.source = KEPT;
      this.open();
      return;
    }
    this.source?.close();
    clearTimeout(this.retry);
    const query = new URLSearchParams();
    if (this.run !== null) query.set("run", this.run);
    if (this.cursor) query.set("after", this.cursor);
    const source = new EventSource(`api/stream?${query}`);
    this.source = source;
    source.onopen = () => this.connected("connected");
    source.onerror = () => {
      this.connected("lost");
      if (source.readyState !== EventSource.CLOSED || this.source !== source) return;
      // The browser gives up after an answer that is no stream; the server may be starting.
      this.retry = setTimeout(() => this.connect(), 1500);
    };
    source.addEventListener("runs", (event) => {
      this.list = JSON.parse(event.data);
      this.tell("list");
    });
    source.addEventListener("state", (event) => {
      if (this.source !== source) return;
      this.take(JSON.parse(event.data));
      this.cursor = event.lastEventId;
    });
    source.addEventListener("gone", () => {
      this.error = "This run is not there (any more).";
      this.tell("change");
    });
  }

  // Shows what the file has.
  open() {
    this.list = KEPT.list;
    this.connection = "connected";
    if (KEPT.state && this.run === KEPT.state.run) this.take(KEPT.state);
    this.tell("list");
  }

  // What the file has of a kind: the words of every question. None with a server.
  kept(path) {
    return KEPT && Object.keys(KEPT.answers).filter((key) => key.startsWith(`${path} `)).map((key) => key.split(" ").slice(1));
  }

  // The round of this kind in the file that is nearest to this one.
  nearest(round, path = "round") {
    const there = this.kept(path).map(([kept]) => Number(kept));
    return there.reduce((best, one) => (Math.abs(one - round) < Math.abs(best - round) ? one : best), there[0]);
  }

  connected(how) {
    if (this.connection === how) return;
    this.connection = how;
    this.tell("connection");
  }

  // Applies a message: everything, or what came since. Rows that are here already are dropped.
  take(message) {
    if (message.run !== this.run) return;
    if (message.reset) this.forget();
    if (message.about) this.about = message.about;
    if (message.summary) this.summary = message.summary;
    this.state = message.state;
    this.error = message.error;
    this.append(message.first_row, message.rows);
    for (const one of message.measured) this.measured.set(`${one.kind} ${one.round}`, one);
    this.tell(message.reset ? "reset" : "change");
  }

  append(first, columns) {
    const skip = this.nRows - first;
    if (skip < 0) {
      // A gap: ask for everything again.
      this.cursor = null;
      this.connect();
      return;
    }
    const length = columns.round.length;
    for (const [name, column] of Object.entries(columns)) {
      const own = (this.rows[name] ??= []);
      for (let n = skip; n < length; n += 1) own.push(column[n]);
    }
    for (const [name, sums] of Object.entries(this.sums)) {
      for (let n = sums.length; n < this.nRows; n += 1) sums.push((sums[n - 1] ?? 0) + (this.rows[name][n] ?? 0));
    }
  }

  // Measurements of a kind in the order of their rounds.
  measurements(kind) {
    const found = [...this.measured.values()].filter((one) => one.kind === kind);
    return found.sort((a, b) => a.round - b.round);
  }

  // Where a round is on an axis: rounds, seconds, joules or bytes so far.
  at(axis, round) {
    if (axis === "round" || round === 0) return axis === "round" ? round : 0;
    const n = round - (this.rows.round?.[0] ?? 1);
    return { seconds: this.rows.clock_s, joules: this.sums.energy_j, bytes: this.sums.air_bytes }[axis]?.[n] ?? NaN;
  }

  async get(path, parameters = {}) {
    if (KEPT) {
      const words = Object.values(parameters);
      if (["round", "spent", "whatif"].includes(path)) words[0] = this.nearest(words[0], path);
      const key = [path, ...words].join(" ");
      if (!KEPT.answers[key]) throw new Error("This is not in the file: tilp dash shows it.");
      return KEPT.answers[key];
    }
    // A list of pairs may have a name more than once.
    const pairs = Array.isArray(parameters) ? parameters : Object.entries(parameters);
    const query = new URLSearchParams([["run", this.run], ...pairs]);
    const answer = await fetch(`api/${path}?${query}`);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
  }

  // The events of a round. The last few that were asked for are kept.
  round(round) {
    const known = this.rounds.get(round);
    if (known) {
      this.rounds.delete(round);
      this.rounds.set(round, known);
      return known;
    }
    const asked = this.get("round", { round });
    this.rounds.set(round, asked);
    asked.then((answer) => { if (!answer.executed) this.rounds.delete(round); }, () => this.rounds.delete(round));
    if (this.rounds.size > KEPT_ROUNDS) this.rounds.delete(this.rounds.keys().next().value);
    return asked;
  }
}
