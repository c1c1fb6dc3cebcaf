// A list of what is wrong with the page: overlaps, cut text, contrast, text that is too small.
(() => {
  const SMALLEST = 8.5; // pixels of a font
  const wrong = [];
  const root = document.documentElement;

  if (root.scrollWidth > root.clientWidth)
    wrong.push(`the page is ${root.scrollWidth} wide, the window ${root.clientWidth}`);
  for (const element of document.body.querySelectorAll("*")) {
    const overflow = getComputedStyle(element).overflowX;
    if (overflow !== "visible" && !element.closest("svg") && element.scrollWidth > element.clientWidth + 1)
      wrong.push(`text is cut: ${element.className || element.tagName} holds ${element.scrollWidth} in ${element.clientWidth}`);
  }

  // Every line of every text, with its place.
  const pieces = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode, parent = node.parentElement;
    if (!node.data.trim() || parent.closest("style, script, svg title, svg desc, svg metadata")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects())
      if (rect.width > 0 && rect.height > 0) pieces.push({ text: node.data.trim(), rect, parent });
  }

  // Boxes of lines are higher than their letters.
  const inner = rect => {
    const inset = 0.18 * rect.height;
    return { left: rect.left + 0.5, right: rect.right - 0.5, top: rect.top + inset, bottom: rect.bottom - inset };
  };
  const placed = pieces.map(piece => ({ ...piece, box: inner(piece.rect) })).sort((a, b) => a.box.top - b.box.top);
  placed.forEach((a, at) => {
    for (let next = at + 1; next < placed.length && placed[next].box.top < a.box.bottom; next++) {
      const b = placed[next];
      if (b.box.left < a.box.right && a.box.left < b.box.right) wrong.push(`"${a.text}" overlaps "${b.text}"`);
    }
  });

  for (const { text, rect, parent } of pieces) {
    const svg = parent.closest("svg");
    if (!svg) continue;
    const frame = svg.getBoundingClientRect();
    const outside = rect.left < frame.left - 1 || rect.right > frame.right + 1 || rect.top < frame.top - 1 || rect.bottom > frame.bottom + 1;
    if (outside) wrong.push(`"${text}" is cut by the edge of its figure`);
  }

  const parse = colour => {
    const parts = colour.match(/[\d.]+/g);
    return parts ? parts.map(Number) : null;
  };
  const over = (top, opacity, ground) => [0, 1, 2].map(i => opacity * top[i] + (1 - opacity) * ground[i]);
  const luminance = colour => {
    const linear = colour.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const ground = element => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour && (colour.length < 4 || colour[3] > 0)) return colour;
    }
    return [255, 255, 255];
  };
  // What is painted below a text of a figure: cells and bars that hold its middle.
  const below = (svg, rect, colour) => {
    const [x, y] = [(rect.left + rect.right) / 2, (rect.top + rect.bottom) / 2];
    for (const shape of svg.querySelectorAll("rect")) {
      const box = shape.getBoundingClientRect(), style = getComputedStyle(shape), fill = parse(style.fill);
      if (fill && box.left < x && x < box.right && box.top < y && y < box.bottom)
        colour = over(fill, (fill.length > 3 ? fill[3] : 1) * style.fillOpacity * style.opacity, colour);
    }
    return colour;
  };

  for (const { text, rect, parent } of pieces) {
    const svg = parent.closest("svg"), style = getComputedStyle(parent);
    let behind = ground(parent);
    if (svg) behind = below(svg, rect, behind);
    const colour = parse(svg ? style.fill : style.color), size = parseFloat(style.fontSize);
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    const large = size * scale >= 24 || (size * scale >= 18.66 && style.fontWeight >= 700);
    const found = contrast(colour, behind);
    if (!(found >= (large ? 3 : 4.5))) wrong.push(`"${text}" has a contrast of ${found.toFixed(2)}`);
    if (!(size * scale >= SMALLEST)) wrong.push(`"${text}" is small: ${(size * scale).toFixed(1)} pixels`);
  }

  // Lines, bars and dots need 3 to 1.
  for (const shape of document.querySelectorAll("svg .line, svg .bar, svg .dot")) {
    const style = getComputedStyle(shape);
    const colour = parse(shape.classList.contains("line") ? style.stroke : style.fill);
    const found = colour ? contrast(colour, ground(shape)) : 21;
    if (!(found >= 3)) wrong.push(`a ${shape.getAttribute("class")} has a contrast of ${found.toFixed(2)}`);
  }
  return [...new Set(wrong)];
})()
