// What can be chosen in the scene, as instances of a batch count it.
import type { Finding, Scene } from "./model";

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

// What a finding is about; null: the whole.
export function partOfFinding(scene: Scene, { joint, connection, body }: Finding): Part | null {
  const line = connection === "" ? -1 : scene.lines.findIndex((one) => one.name === connection);
  if (line >= 0) return { kind: "line", index: line };
  if (joint >= 0) return { kind: "joint", index: joint };
  return body >= 0 ? { kind: "body", index: body } : null;
}

export function partOf(owner: number): Part | null {
  if (owner < 0 || owner >= noPart) return null;
  const kind = owner >= firstLine ? "line" : owner >= firstJoint ? "joint" : "body";
  return { kind, index: owner % firstJoint };
}
