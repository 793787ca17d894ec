// What can be chosen in the scene, as instances of a batch count it.
export type Part = { kind: "body" | "joint" | "line"; index: number };

const firstJoint = 1e6;
const firstLine = 2e6;
const noPart = 3e6;

export const ownerOf = {
  body: (index: number): number => index,
  joint: (index: number): number => firstJoint + index,
  line: (index: number): number => firstLine + index,
  nothing: noPart,
};

export function partOf(owner: number): Part | null {
  if (owner < 0 || owner >= noPart) return null;
  const kind = owner >= firstLine ? "line" : owner >= firstJoint ? "joint" : "body";
  return { kind, index: owner % firstJoint };
}
