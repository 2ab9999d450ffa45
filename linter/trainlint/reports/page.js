"use strict";
(() => {
  const form = document.getElementById("filters");
  const list = document.getElementById("findings");
  if (!form) return;
  const findings = [...document.querySelectorAll(".finding")];
  const shown = document.getElementById("shown");

  function filter() {
    const levels = new Set([...form.querySelectorAll("[name=severity]:checked")].map((box) => box.value));
    const chosen = ["rule", "program", "file"].map((name) => [name, form.elements[name].value]);
    for (const finding of findings) {
      const data = finding.dataset;
      finding.hidden = !levels.has(data.severity) || chosen.some(([name, value]) => value && data[name] !== value);
    }
    for (const file of document.querySelectorAll(".file")) {
      file.hidden = !file.querySelector(".finding:not([hidden])");
    }
    const count = findings.filter((finding) => !finding.hidden).length;
    shown.textContent = `${count} of ${findings.length} shown`;
  }

  // In the list, j and k go from finding to finding.
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !["j", "k"].includes(event.key)) return;
    const visible = findings.filter((finding) => !finding.hidden);
    const here = visible.indexOf(document.activeElement.closest(".finding"));
    const next = event.key === "j" ? here + 1 : here - 1;
    if (visible[next]) visible[next].focus();
  });

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  form.hidden = false;
  filter();
})();
