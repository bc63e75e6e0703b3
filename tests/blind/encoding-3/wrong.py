raw = open("crater.txt", "rb").read().rstrip(b"\x00")
lines = raw.decode("utf-8-sig").split("\r")
text = "\n".join(line for line in lines if line)
with open("crater.txt", "wb") as f:
    f.write(text.encode("utf-8"))
