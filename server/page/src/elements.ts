// Small makers of elements. Text is always text.
type Child = Node | string;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element ${id}`);
  return found as T;
}

export function button(label: string, title: string, act: () => void): HTMLButtonElement {
  return element("button", { type: "button", title, onclick: act }, label);
}

// A button that stays pressed.
export function toggle(label: string, title: string, pressed: boolean, act: (yes: boolean) => void): HTMLButtonElement {
  const made = button(label, title, () => {
    const yes = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(yes));
    act(yes);
  });
  made.setAttribute("aria-pressed", String(pressed));
  return made;
}

// A table of names and values.
export function table(rows: [string, string][]): HTMLTableElement {
  const body = element("tbody");
  for (const [name, value] of rows) {
    const head = element("th", {}, name);
    head.scope = "row";
    body.append(element("tr", {}, head, element("td", {}, value)));
  }
  return element("table", {}, body);
}

export function number(value: number, digits = 5): string {
  return Number.isFinite(value) ? Number(value.toPrecision(digits)).toString() : "not finite";
}
