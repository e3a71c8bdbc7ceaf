// Light or dark: as the system has it, until somebody switches.

const KEY = "strandline-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export function begin(button) {
  apply();
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    localStorage.setItem(KEY, current() === "dark" ? "light" : "dark");
    apply();
  });
}

function current() {
  return localStorage.getItem(KEY) ?? (system.matches ? "dark" : "light");
}

function apply() {
  document.documentElement.dataset.theme = current();
}
