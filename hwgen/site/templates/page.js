"use strict";
// Sets parameters of plots, shows one report or another, paints placed cores, saves JSON. It computes no figure.
(async () => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  async function inflated(text, format) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }
  const held = (identity) => inflated(document.getElementById(identity).textContent, "gzip");
  const text = (bytes) => new TextDecoder().decode(bytes);
  const page = JSON.parse(text(await held("page-data")));

  // Plots: each is drawn when it comes near the window, and once more when its specification changes.
  const library = held("library").then((bytes) => {
    const script = document.createElement("script");
    script.textContent = text(bytes);
    document.head.append(script);
  });
  const plots = new Map();
  function settings(figure) {
    const found = {};
    for (const each of all("select[data-param]", figure)) found[each.dataset.param] = each.value;
    for (const each of all("input[data-slider]", figure)) found[each.dataset.slider] = sliderValue(each);
    return found;
  }
  function filled(spec, data, chosen) {
    const found = structuredClone(spec);
    for (const each of found.data || []) if (each.name in data) each.values = structuredClone(data[each.name]);
    for (const each of found.signals || []) if (each.name in chosen) each.value = chosen[each.name];
    return found;
  }
  async function draw(figure) {
    await library;
    const chart = page.charts[figure.dataset.chart];
    const chosen = settings(figure);
    const name = chosen.spec || "";
    const known = plots.get(figure);
    if (known && known.name === name) return apply(figure, (await known.drawn).view, chosen);
    const options = { mode: "vega", renderer: "svg", actions: false };
    const before = known && known.drawn;
    const drawn = (async () => {
      if (before) (await before).finalize();
      return vegaEmbed(figure.querySelector(".plot"), filled(chart.specs[name], chart.data, chosen), options);
    })();
    plots.set(figure, { name, drawn });
    const { view } = await drawn;
    return apply(figure, view, settings(figure));
  }
  async function apply(figure, view, chosen) {
    const signals = view.getState().signals;
    for (const [name, value] of Object.entries(chosen)) if (name in signals) view.signal(name, value);
    await view.runAsync();
    const marked = all(".plot .role-mark path", figure).length > 0;
    figure.querySelector(".plot").style.display = marked ? "" : "none";
    figure.querySelector(".empty").hidden = marked;
  }
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) {
        near.unobserve(entry.target);
        draw(entry.target);
      }
  }, { rootMargin: "200px" });
  for (const figure of all("figure[data-chart]")) {
    near.observe(figure);
    figure.addEventListener("input", (event) => {
      const shows = event.target.dataset.shows;
      if (shows) show(shows, event.target.value);
      if (figure.dataset.chart === "workloads") workload(figure, event.target);
      draw(figure);
    });
  }

  // What is large is compressed until it is first asked for.
  async function unpacked(identity) {
    const found = document.getElementById(identity);
    if (found.localName === "script") {
      const content = text(await held(identity));
      if (found.isConnected) found.outerHTML = content;
    }
    return document.getElementById(identity);
  }

  // One report of several.
  async function show(kind, name) {
    if (kind === "report") await unpacked(`report-${name}`);
    // Another may have been chosen meanwhile.
    const chosen = document.querySelector(`[data-shows="${kind}"]`).value;
    for (const each of all(`[data-${kind}]`)) each.hidden = each.dataset[kind] !== chosen;
    if (kind === "report") paint(chosen);
  }

  // Workloads: every place of the sliders is a pass that the model computed.
  function sliderValue(slider) {
    const name = slider.closest("figure").querySelector('[data-param="report"]').value;
    return page.workloads[name][slider.dataset.slider][Number(slider.value)];
  }
  const short = (value) => Number(value.toPrecision(4)).toLocaleString("en");
  function row(cells, kind) {
    const line = document.createElement("tr");
    for (const cell of cells) line.appendChild(document.createElement(kind)).textContent = cell;
    return line;
  }
  function workload(figure, moved) {
    const name = figure.querySelector('[data-param="report"]').value;
    const known = page.workloads[name];
    const sliders = Object.fromEntries(all("input[data-slider]", figure).map((each) => [each.dataset.slider, each]));
    const others = !moved || moved.dataset.param === "report";
    const place = () => `${sliders.bandwidth.value},${sliders.cores.value}`;
    for (const [what, slider] of Object.entries(sliders)) {
      slider.max = known[what].length - 1;
      // A report without a grid has other bandwidths for its own cores alone, and the other way round.
      if (others || (moved !== slider && moved.dataset.slider && !(place() in known.passes)))
        slider.value = known.base[what];
    }
    for (const slider of Object.values(sliders)) {
      const shown = short(sliderValue(slider));
      slider.parentElement.querySelector("output").textContent = shown;
      slider.setAttribute("aria-valuetext", shown);
    }
    const pass = known.passes[place()];
    const out = document.getElementById("readout");
    out.replaceChildren();
    const table = document.createElement("table");
    table.append(
      row(["", `time per ${known.unit}, ms`, `energy per ${known.unit}, mJ`], "th"),
      ...known.designs.map((design, index) =>
        row([design, short(1e3 * pass.time[index]), short(1e3 * pass.energy[index])], "td")),
    );
    if (pass.overhead) table.append(row(["overhead in energy", "", pass.overhead], "td"));
    out.append(table);
  }
  for (const figure of all('figure[data-chart="workloads"]')) workload(figure);

  // Reports as they are: saved, and read for the pictures.
  async function save(name) {
    const identity = `json-${name}`;
    const bytes = await held(identity);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([bytes], { type: "application/json" }));
    link.download = document.getElementById(identity).dataset.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  async function open(identity) {
    const dialog = await unpacked(identity);
    if (!dialog.open) dialog.showModal();
  }

  // Placed cores: a pixel is the number of a block, 255 where no cell stands.
  const painted = new Map();
  async function paint(name) {
    const box = all("[data-placement]").find((each) => each.dataset.placement === name);
    if (!box) return;
    if (!painted.has(name)) {
      const placed = JSON.parse(text(await held(`json-${name}`))).conditions.placement;
      for (const each of Object.values(placed)) each.bytes = await inflated(each.pixels, "deflate");
      painted.set(name, placed);
    }
    const only = all('[data-block][aria-pressed="true"]', box).map((each) => each.dataset.block);
    for (const canvas of all("canvas", box)) colour(canvas, painted.get(name)[canvas.dataset.design], only);
  }
  function colour(canvas, placement, only) {
    const { pixels_across: across, pixels_up: up, blocks, bytes } = placement;
    const brush = canvas.getContext("2d");
    const image = brush.createImageData(across, up);
    const colours = blocks.map((block) => {
      const code = parseInt((page.blocks[block] || "#8a8a8a").slice(1), 16);
      return only.length && !only.includes(block)
        ? [128, 128, 128, 40] : [code >> 16, (code >> 8) & 255, code & 255, 255];
    });
    for (let place = 0; place < bytes.length; place += 1) {
      const found = colours[bytes[place]];
      const line = up - 1 - Math.floor(place / across);
      if (found) image.data.set(found, 4 * (line * across + (place % across)));
    }
    brush.putImageData(image, 0, 0);
    canvas.dataset.painted = String(only.length);
    canvas.onmousemove = (event) => {
      const x = Math.min(across - 1, Math.floor((event.offsetX / canvas.clientWidth) * across));
      const y = Math.min(up - 1, Math.floor((1 - event.offsetY / canvas.clientHeight) * up));
      canvas.title = blocks[bytes[y * across + x]] || "no cell";
    };
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.dialog) open(button.dataset.dialog);
    if (button.dataset.json) save(button.dataset.json);
    if (button.dataset.block) {
      const box = button.closest("[data-placement]");
      const pressed = button.getAttribute("aria-pressed") === "true";
      for (const each of all("[data-block]", box)) each.setAttribute("aria-pressed", String(each === button && !pressed));
      paint(box.dataset.placement);
    }
  });

  // A link to a report chooses it.
  function chosen() {
    const list = document.getElementById("report");
    const name = decodeURIComponent(location.hash).replace(/^#report-/, "");
    if (!list || !all("option", list).some((each) => each.value === name)) return;
    list.value = name;
    list.dispatchEvent(new Event("input", { bubbles: true }));
    document.getElementById("inside").scrollIntoView();
  }
  addEventListener("hashchange", chosen);
  const list = document.getElementById("report");
  if (list) {
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((each) => each.isIntersecting)) return;
      seen.disconnect();
      paint(list.value);
    }, { rootMargin: "200px" });
    seen.observe(document.getElementById("inside"));
  }
  chosen();

  const theme = document.getElementById("theme");
  theme.addEventListener("input", () => {
    if (theme.value) document.documentElement.dataset.theme = theme.value;
    else delete document.documentElement.dataset.theme;
  });
  document.documentElement.dataset.ready = "";
})();
