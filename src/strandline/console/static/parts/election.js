// An election by hand: the plan, what it loses, a confirmation in words, and what came of it.

import { change, plan, session } from "../base/api.js";
import { h } from "../base/dom.js";
import { dialog } from "./dialog.js";
import { lines, problem } from "./notes.js";

export async function electionDialog(at, election) {
  const wanted = { ...at, ...election };
  const box = dialog(`Election: ${at.topic}-${at.partition}`, h("p", { class: "hint" }, "Asking the replicas what they have…"));
  try {
    planned(box, wanted, await plan("election", wanted));
  } catch (error) {
    box.show(problem(error));
  }
}

/** What stands above them already is left out. */
const details = (texts) => texts.slice(1).filter((text) => !text.startsWith("  lost: "));

function planned(box, wanted, found) {
  const place = `${wanted.topic}-${wanted.partition}`;
  const lost = found.lost.length ? h("ul", {}, found.lost.map((text) => h("li", { class: text === "nothing" ? null : "problem" }, text))) : null;
  const content = [h("p", {}, h("strong", {}, found.headline ?? found.lines[0])), lost ? [h("p", {}, "Lost:"), lost] : null, lines(details(found.lines), "The plan")];
  if (!session.allow_changes) {
    content.push(h("p", { class: "hint" }, "This console is read-only. Start it with --allow-changes to hold the election, or use the command."));
    box.show(...content.flat().filter(Boolean));
    return;
  }
  if (found.is_needed === false) {
    box.show(...content.flat().filter(Boolean));
    return;
  }
  const input = h("input", { autocomplete: "off", spellcheck: "false", "aria-label": `Type ${place} to confirm` });
  content.push(h("label", { class: "stacked" }, h("span", {}, `This may lose records that were acknowledged. Type ${place} to go on.`), input));
  box.show(...content.flat().filter(Boolean));
  const hold = async () => {
    if (input.value.trim() !== place) {
      input.focus();
      return;
    }
    box.buttons([]);
    box.show(h("p", { class: "hint" }, "Electing…"));
    try {
      const done = await change("election", { ...wanted, planned: found.planned });
      box.show(h("p", {}, h("strong", {}, "What came of it")), lines(done.lines, "What came of the election"));
    } catch (error) {
      box.show(problem(error));
    }
    box.buttons([["Close", box.close]]);
  };
  box.buttons([["Cancel", box.close], ["Elect", hold, "danger"]]);
}
