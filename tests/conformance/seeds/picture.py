# SPDX-License-Identifier: Apache-2.0
"""What got through each second, drawn as the chart of a page: an SVG that depends on the numbers alone."""

WIDTH, LEFT, RIGHT, PANEL, GAP, STEP = 860, 44, 850, 150, 86, 10
INK, SOFT, RULE, BAND = "#1b2430", "#566273", "#d9dee5", "#f3f6f9"
# Colour, width and dashes of each line. The first is wide, as another runs upon it for most of the time.
LINES = {"uniform": ("#9cc4e8", 5, ""), "sliding window": ("#d9622b", 2, ""),
         "token bucket": ("#1a6b35", 2, "7 4"), "queue": ("#7a3aa8", 2, "2 3")}


def draw(panels, bands, seconds):
    """Panels one below the other, over the same seconds.

    @param panels   [(title, {words: (name of LINES, numbers by second)})]
    @param bands    [(name, second at which it begins)]
    """
    height = len(panels) * (PANEL + GAP)
    most = max(value for _, lines in panels for _, numbers in lines.values() for value in numbers)
    most += -most % STEP
    scale = (RIGHT - LEFT) / seconds
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif"'
           ' font-size="12">', "<!-- SPDX-License-Identifier: Apache-2.0 -->",
           "<title>What got through each second, by strategy</title>",
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>']
    for number, (title, lines) in enumerate(panels):
        _panel(out, 40 + number * (PANEL + GAP), title, lines, bands, seconds, scale, most)
    return "\n".join([*out, "</svg>", ""])


def _panel(out, top, title, lines, bands, seconds, scale, most):
    bottom = top + PANEL
    out.append(f'<text x="{LEFT}" y="{top - 22}" fill="{INK}" font-weight="600">{title}</text>')
    ends = [*(begin for _, begin in bands[1:]), seconds]
    for number, ((name, begin), end) in enumerate(zip(bands, ends)):
        x, width = LEFT + begin * scale, (end - begin) * scale
        if number % 2 == 0:
            out.append(f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{PANEL}" fill="{BAND}"/>')
        out.append(f'<text x="{x + width / 2:.1f}" y="{top - 5}" text-anchor="middle" fill="{SOFT}">{name}</text>')
    for value in range(0, most + 1, STEP):
        y = bottom - PANEL * value / most
        out.append(f'<path d="M{LEFT} {y:.1f}H{RIGHT}" stroke="{RULE}"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="{SOFT}">{value}</text>')
    for second in range(0, seconds + 1, 10):
        x = LEFT + second * scale
        out.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="{SOFT}">{second} s</text>')
    x = LEFT
    for words, (line, numbers) in lines.items():
        colour, width, dashes = LINES[line]
        points = [f"{LEFT + second * scale:.1f} {bottom - PANEL * value / most:.1f}" for second, value in enumerate(numbers)]
        style = f'stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"'
        steps = "".join(f"L{point.split()[0]} {before.split()[1]}L{point}" for before, point in zip(points, points[1:]))
        out.append(f'<path d="M{points[0]}{steps}H{RIGHT}" fill="none" stroke-linejoin="round" {style}/>')
        out.append(f'<path d="M{x} {bottom + 30}h24" {style}/><text x="{x + 30}" y="{bottom + 34}" fill="{INK}">{words}</text>')
        x += 200
