"""Makes a PPM picture grey: grey.py IN OUT. A file that is no whole picture ends with an exit code of 1."""
import sys

data = open(sys.argv[1], "rb").read()
magic, width, height = data.split(maxsplit=3)[:3]
width, height = int(width), int(height)
# The header ends with one line end after the largest value; dots may look like anything.
dots = data.split(b"\n", 3)[-1]
if magic != b"P6" or len(dots) != 3 * width * height:
    sys.exit("not a whole PPM picture")
grey = bytes((299 * r + 587 * g + 114 * b) // 1000 for r, g, b in zip(dots[::3], dots[1::3], dots[2::3]))
with open(sys.argv[2], "wb") as file:
    file.write(b"P5\n%d %d\n255\n" % (width, height) + grey)
