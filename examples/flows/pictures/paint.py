"""Paints a picture of colours, a disc before a slope, as a PPM file: paint.py SIZE FILE."""
import sys

size, path = int(sys.argv[1]), sys.argv[2]
middle = size / 2
with open(path, "wb") as file:
    file.write(b"P6\n%d %d\n255\n" % (size, size))
    for y in range(size):
        for x in range(size):
            inside = (x - middle) ** 2 + (y - middle) ** 2 < (size / 3) ** 2
            file.write(bytes((255, 200, 0) if inside else (0, x * 255 // size, y * 255 // size)))
