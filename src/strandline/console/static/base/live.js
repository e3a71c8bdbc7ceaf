// What the console pushes: rows by channel, and only those that have changed. One stream for the page, which is closed
// while the page is hidden, since a browser has few connections for one server.

import { posted } from "./api.js";

const RETRY_MS = 1000;

class Live {
  constructor() {
    this.channels = new Map(); // name -> Map of rows
    this.wanted = [];
    this.places = [];
    this.stream = null;
    this.source = null;
    this.isSending = false;
    this.onchange = () => {};
    this.onconnection = () => {};
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
  }

  rows(channel) {
    return this.channels.get(channel) ?? new Map();
  }

  /** Has this channel sent anything since it is watched? */
  has(channel) {
    return this.channels.has(channel);
  }

  open() {
    if (this.source || document.hidden) return;
    this.asked = this.wanted.join();
    this.source = new EventSource(`/api/live?channels=${this.asked}`);
    this.source.onmessage = (message) => this.received(JSON.parse(message.data));
    this.source.onerror = () => {
      this.close();
      this.onconnection(false);
      setTimeout(() => this.open(), RETRY_MS);
    };
  }

  close() {
    this.source?.close();
    this.source = this.stream = null;
  }

  /** Watch these channels and no others; and the logs of these partitions, as [topic, partition]. */
  watch(channels, places = []) {
    for (const name of this.channels.keys()) {
      if (name !== "status" && !channels.includes(name)) this.channels.delete(name);
    }
    this.wanted = channels;
    this.places = places;
    this.send();
  }

  /** One after another, since a browser may send two requests in any order; and the last one says what counts. */
  async send() {
    this.isStale = true;
    if (this.isSending) return;
    this.isSending = true;
    while (this.isStale && this.stream) {
      this.isStale = false;
      const fresh = this.wanted.filter((name) => !this.channels.has(name));
      try {
        await posted("/api/watch", { stream: this.stream, channels: this.wanted, places: this.places, fresh });
      } catch {
        this.close(); // the console was started anew, or does not know this stream
        this.open();
      }
    }
    this.isSending = false;
  }

  received(event) {
    if (event.stream) {
      this.stream = event.stream;
      this.onconnection(true);
      if (this.places.length || this.wanted.join() !== this.asked) this.send();
      return;
    }
    const { channel, is_whole: isWhole, rows, gone } = event;
    if (channel !== "status" && !this.wanted.includes(channel)) return;
    if (!isWhole && !this.channels.has(channel)) return; // all rows come: they were asked for
    const known = isWhole ? new Map() : this.channels.get(channel);
    for (const [key, row] of Object.entries(rows)) known.set(key, row);
    for (const key of gone) known.delete(key);
    this.channels.set(channel, known);
    this.onchange(channel);
  }
}

export const live = new Live();
