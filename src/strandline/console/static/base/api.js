// Requests to the console. A refusal is a Problem: what is wrong, and what to do next.

export class Problem extends Error {
  constructor(problem, advice = "", status = 0) {
    super(problem);
    this.advice = advice;
    this.status = status;
  }
}

export const session = { token: "", allow_changes: false, version: "", views: [] };

export async function begin() {
  Object.assign(session, await asked("/api/session"));
}

/** What a view asks for when a user opens something. */
export function read(name, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return asked(`/api/reads/${name}?${new URLSearchParams(given)}`);
}

/** As `read`, for what is too long for an address, such as a schema. */
export function readLong(name, query) {
  return posted(`/api/reads/${name}`, query);
}

/** What a change would do. */
export function plan(name, wanted) {
  return posted(`/api/plans/${name}`, wanted);
}

export function change(name, wanted) {
  return posted(`/api/changes/${name}`, wanted);
}

export function posted(path, body) {
  const headers = { "content-type": "application/json", "x-strandline-token": session.token };
  return asked(path, { method: "POST", headers, body: JSON.stringify(body) });
}

async function asked(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Problem("the console does not answer", "is `strandline console` still running?");
  }
  const content = await answer.json().catch(() => ({ problem: `the console answered ${answer.status}` }));
  if (!answer.ok) throw new Problem(content.problem, content.advice, answer.status);
  return content;
}
