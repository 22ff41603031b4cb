// Renders openapi.json without any foreign script: operations by tag, with parameters, bodies and answers.
"use strict";
const main = document.getElementById("operations");

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}

function resolve(schema, document_) {
  if (schema && schema.$ref) {
    return schema.$ref.slice(2).split("/").reduce((at, key) => at[key.replaceAll("~1", "/")], document_);
  }
  return schema;
}

function body(title, content, parent, document_) {
  for (const [type, { schema }] of Object.entries(content || {})) {
    const box = element("details", "", parent);
    element("summary", `${title} · ${type}`, box);
    box.addEventListener("toggle", () => {
      if (box.open && box.childElementCount === 1) {
        element("pre", JSON.stringify(resolve(schema, document_), null, 1), box);
      }
    });
  }
}

function operation(path, verb, spec, document_) {
  const box = element("details", "", main);
  box.dataset.text = `${verb} ${path} ${spec.summary || ""} ${(spec.tags || []).join(" ")}`.toLowerCase();
  const head = element("summary", "", box);
  element("b", verb.toUpperCase(), head);
  element("code", path, head);
  element("span", `  ${spec.summary || ""}`, head);
  if (spec.description) element("p", spec.description, box);
  for (const parameter of spec.parameters || []) {
    const rule = (parameter.schema || {}).type || "";
    element("p", `${parameter.name} (${parameter.in}${parameter.required ? ", required" : ""}) ${rule} ${parameter.description || ""}`, box);
  }
  body("Body", (spec.requestBody || {}).content, box, document_);
  for (const [code, answer] of Object.entries(spec.responses || {})) {
    body(`${code} ${answer.description || ""}`, answer.content, box, document_);
  }
}

async function start() {
  const document_ = await (await fetch("/schemas/openapi.json")).json();
  document.getElementById("about").textContent = document_.info.description || "";
  for (const [path, verbs] of Object.entries(document_.paths)) {
    for (const [verb, spec] of Object.entries(verbs)) operation(path, verb, spec, document_);
  }
}
document.getElementById("find").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  for (const box of main.children) box.hidden = !box.dataset.text.includes(wanted);
});
start();
