"""Finds the edges of a PGM picture with Sobel's two masks: edges.py IN OUT."""
import sys

data = open(sys.argv[1], "rb").read()
width, height = map(int, data.split(b"\n", 2)[1].split())
dots = data[len(data) - width * height:]


def at(x, y):
    return dots[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)]


edges = bytearray()
for y in range(height):
    for x in range(width):
        down = sum(w * (at(x + d, y + 1) - at(x + d, y - 1)) for d, w in ((-1, 1), (0, 2), (1, 1)))
        across = sum(w * (at(x + 1, y + d) - at(x - 1, y + d)) for d, w in ((-1, 1), (0, 2), (1, 1)))
        edges.append(min(255, abs(down) + abs(across)))
with open(sys.argv[2], "wb") as file:
    file.write(b"P5\n%d %d\n255\n" % (width, height) + edges)
